//! Messages and blocks, reliable or not, in packets that are acknowledged and never resent.
//!
//! [`Channels`] are one end of a connection. What is sent on a channel is stored; each packet takes what is due and fits, of every
//! channel, and when a packet is acknowledged, what it carried is done. So it needs numbered packets that tell whether they arrived:
//! those of a [`packet::Endpoint`](crate::packet::Endpoint), or others.
//!
//! ```
//! use whitewater::Time;
//! use whitewater::machine::DatagramQueue;
//! use whitewater::message::{BitsError, Message, Serialize, Stream};
//! use whitewater::message::channel::{ChannelConfig, Channels, ChannelsConfig, Received};
//! use whitewater::packet::{Endpoint, PacketConfig};
//! use std::time::Duration;
//!
//! #[derive(Debug, PartialEq)]
//! enum Game {
//!     Position { x: f32, y: f32 },
//!     Chat(String),
//! }
//!
//! impl Serialize for Game {
//!     fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
//!         match self {
//!             Self::Position { x, y } => {
//!                 stream.float(x, -512.0..=512.0, 0.01)?;
//!                 stream.float(y, -512.0..=512.0, 0.01)
//!             }
//!             Self::Chat(text) => stream.string(text, 200),
//!         }
//!     }
//! }
//!
//! impl Message for Game {
//!     const KINDS: u32 = 2;
//!
//!     fn kind(&self) -> u32 {
//!         match self {
//!             Self::Position { .. } => 0,
//!             Self::Chat(_) => 1,
//!         }
//!     }
//!
//!     fn blank(kind: u32) -> Option<Self> {
//!         match kind {
//!             0 => Some(Self::Position { x: 0.0, y: 0.0 }),
//!             1 => Some(Self::Chat(String::new())),
//!             _ => None,
//!         }
//!     }
//! }
//!
//! const CHAT: usize = 0;
//! const POSITIONS: usize = 1;
//! let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable_sequenced()];
//! let config = ChannelsConfig { channels, ..ChannelsConfig::default() };
//! let (mut alice, mut bob) = (Channels::new(&config)?, Channels::new(&config)?);
//! let mut ends = [(); 2].map(|()| Endpoint::new(&PacketConfig::default(), DatagramQueue::new()).unwrap());
//! let [alices, bobs] = &mut ends;
//!
//! // Alice, at each tick: messages, and a packet for them.
//! let now = Time::from_millis(1000);
//! alice.send(CHAT, now, Game::Chat("hello".into()))?;
//! alice.send(POSITIONS, now, Game::Position { x: 1.0, y: -2.0 })?;
//! let payload = alice.write(now, alices.stats().rtt)?;
//! let sequence = alices.send(now, payload)?;
//! alice.on_sent(now, sequence);
//!
//! // Bob, for each datagram: what is in it. What he refuses is not acknowledged.
//! let datagram = alices.output_mut().pop().unwrap();
//! bobs.receive_if(now, datagram, |payload| bob.read(payload).is_ok())?;
//! assert_eq!(bob.recv(CHAT), Some(Received::Message(Game::Chat("hello".into()))));
//! assert!(matches!(bob.recv(POSITIONS), Some(Received::Message(Game::Position { .. }))));
//!
//! // Bob's next packet tells that it has arrived, so the chat is not sent again.
//! bobs.send(now, &[])?;
//! alices.receive(now, bobs.output_mut().pop().unwrap())?;
//! while let Some(sequence) = alices.pop_acked() {
//!     alice.on_acked(sequence);
//! }
//! while let Some(sequence) = alices.pop_lost() {
//!     alice.on_lost(sequence);
//! }
//! assert_eq!(alice.check(now, Duration::ZERO), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What the payload of a packet looks like is in docs/WIRE.md, timers and limits in docs/BEHAVIOUR.md.

mod carried;
mod config;
mod content;
mod peer;
mod receive;
mod send;

pub use config::{BLOCK_MAX, ChannelConfig, ChannelsConfig, Delivery, Resend};
pub use peer::ChannelPeer;

use super::Message;
use super::bits::{Read, Stream, Write};
use super::error::{BitsError, ChannelSendError, ReadError};
use crate::config::ConfigError;
use crate::seq::Seq16;
use crate::time::Time;
use carried::Carried;
use receive::Receiver;
use send::Sender;
use std::time::Duration;

/// One end of a connection: channels that share packets.
///
/// No channel waits for what another one has lost. Where a packet is too small for all, the first channels come first.
#[derive(Debug)]
pub struct Channels<M> {
    channels: Vec<Channel<M>>,
    carried: Carried,
    rejected: RejectedPayloads,
    /// The payload of the packet that is made, and most bytes of it.
    payload: Vec<u8>,
    payload_max: u16,
}

#[derive(Debug)]
struct Channel<M> {
    config: ChannelConfig,
    sender: Sender<M>,
    receiver: Receiver<M>,
    stats: ChannelStats,
}

/// What a channel delivers.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing else to send")]
pub enum Received<M> {
    /// A message.
    Message(M),
    /// A block.
    Block(Vec<u8>),
}

impl<M: Message> Channels<M> {
    /// Channels of which nothing was sent or received.
    ///
    /// # Errors
    ///
    /// When a field of `config` is out of range.
    pub fn new(config: &ChannelsConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let per_packet = config.channels.iter().map(|channel| u32::from(channel.messages_per_packet)).sum();
        let channel = |channel: &ChannelConfig| Channel {
            config: *channel,
            sender: Sender::new(*channel, config.room_for_one(channel)),
            receiver: Receiver::new(*channel),
            stats: ChannelStats::default(),
        };
        Ok(Self {
            channels: config.channels.iter().map(channel).collect(),
            carried: Carried::new(config.packets, per_packet),
            rejected: RejectedPayloads::default(),
            payload: Vec::new(),
            payload_max: config.payload_max,
        })
    }

    /// Stores a message to be sent with the next packets, and returns its id. A reliable one expires as the config of the channel
    /// says.
    ///
    /// # Errors
    ///
    /// There is no room for it now ([`ChannelSendError::Full`]: send it later), or never. The message is gone; see
    /// [`has_room`](Self::has_room).
    pub fn send(&mut self, channel: usize, now: Time, message: M) -> Result<Seq16, ChannelSendError> {
        let lifetime = self.channels.get(channel).and_then(|channel| channel.config.expire_after);
        self.send_expiring(channel, now, message, lifetime)
    }

    /// The same, for a reliable message that is given up after `lifetime`; `None`: never. Messages after it are delivered without
    /// waiting for it then. An unreliable one leaves with the next packet that has room, however late.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_expiring(
        &mut self,
        channel: usize,
        now: Time,
        message: M,
        lifetime: Option<Duration>,
    ) -> Result<Seq16, ChannelSendError> {
        self.channel(channel)?.sender.push(now, message, lifetime)
    }

    /// Stores a block to be sent slice by slice, in its turn among the messages. There is one block under way at a time: until all
    /// of it is known to have arrived. It does not expire.
    ///
    /// # Errors
    ///
    /// There is no room for it now, or another block is under way; or it is empty or longer than `block_max`.
    pub fn send_block(&mut self, channel: usize, block: &[u8]) -> Result<(), ChannelSendError> {
        self.channel(channel)?.sender.push_block(block)
    }

    /// Whether a message can be stored now.
    #[must_use]
    pub fn has_room(&self, channel: usize) -> bool {
        self.channels
            .get(channel)
            .is_some_and(|channel| channel.sender.waiting() < channel.config.send_buffer)
    }

    /// Takes the next message or block that was received.
    pub fn recv(&mut self, channel: usize) -> Option<Received<M>> {
        self.channels.get_mut(channel)?.receiver.pop()
    }

    /// Takes the id of a message that is known to have arrived, on a channel with [`receipts`](ChannelConfig::receipts); each is
    /// told once, as it becomes known. Unreliable messages that are never told may have arrived all the same. Of those that nobody
    /// asks for the newest `send_buffer` are kept.
    pub fn pop_delivered(&mut self, channel: usize) -> Option<Seq16> {
        self.channels.get_mut(channel)?.sender.delivered.pop_front()
    }

    /// Takes the id of a message that was given up because it was too old: it is not known to have arrived. Of those that nobody
    /// asks for the newest `send_buffer` are kept.
    pub fn pop_expired(&mut self, channel: usize) -> Option<Seq16> {
        self.channels.get_mut(channel)?.sender.expired.pop_front()
    }

    /// Makes the payload of a packet of what is due; empty: nothing is. Send it and tell [`on_sent`](Self::on_sent), or it will be
    /// in the next one again.
    ///
    /// `rtt` is the smoothed round trip, zero when none is known.
    ///
    /// # Errors
    ///
    /// A message writes itself otherwise than when it was measured. Repair its `serialize`. Nothing is sent then.
    pub fn write(&mut self, now: Time, rtt: Duration) -> Result<&[u8], BitsError> {
        let written = self.write_payload(now, rtt);
        if written.is_err() {
            self.channels.iter_mut().for_each(|channel| channel.sender.chosen.clear());
        }
        Ok(self.payload.get(..written?).unwrap_or_default())
    }

    /// Notes that what [`write`](Self::write) gave left now in the packet `sequence`. Tell it of packets without messages as
    /// well, or a number is taken for the same one before a wrap.
    pub fn on_sent(&mut self, now: Time, sequence: Seq16) {
        let Self { channels, carried, .. } = self;
        let start = carried.end;
        for (index, Channel { sender, stats, .. }) in (0..).zip(channels) {
            sender.commit(now, sequence, stats, |id| carried.push(index, id));
        }
        carried.finish(sequence, start);
    }

    /// Notes that the packet `sequence` has arrived: what it carried is not sent again.
    pub fn on_acked(&mut self, sequence: Seq16) {
        let Self { channels, carried, .. } = self;
        for (index, id) in carried.remove(sequence) {
            if let Some(channel) = channels.get_mut(usize::from(index)) {
                channel.sender.arrived(id);
            }
        }
    }

    /// Notes that the packet `sequence` is evidently lost, as [`Endpoint::pop_lost`](crate::packet::Endpoint::pop_lost) tells: what it
    /// carried is due at once, on channels with [`resend_lost`](ChannelConfig::resend_lost). Should it arrive after all, the copies are
    /// dropped there.
    pub fn on_lost(&mut self, sequence: Seq16) {
        let Self { channels, carried, .. } = self;
        for (index, id) in carried.of(sequence) {
            if let Some(channel) = channels.get_mut(usize::from(index)) {
                channel.sender.lost(id, sequence);
            }
        }
    }

    /// Takes the payload of a packet. An empty one says nothing.
    ///
    /// # Errors
    ///
    /// It is not what a peer of the same config and the same messages sends, or there is no room for it because too little was
    /// read. Nothing has changed but a counter, and the packet must not be acknowledged.
    pub fn read(&mut self, payload: &[u8]) -> Result<(), ReadError> {
        if payload.is_empty() {
            return Ok(());
        }
        let staged = self.stage(payload);
        for Channel { receiver, stats, .. } in &mut self.channels {
            if staged.is_ok() {
                receiver.apply(stats);
            } else {
                receiver.staged.clear();
            }
        }
        staged.inspect_err(|error| self.rejected.count(error))
    }

    /// When [`write`](Self::write) has something next, not before `now`; `None`: not until something is sent or acknowledged.
    #[must_use]
    pub fn check(&self, now: Time, rtt: Duration) -> Option<Time> {
        let due = |channel: &Channel<M>| channel.sender.check(now, channel.config.resend_after(rtt));
        self.channels.iter().filter_map(due).min()
    }

    /// Messages and slices of a channel that wait or are under way.
    #[must_use]
    pub fn waiting(&self, channel: usize) -> u16 {
        self.channels.get(channel).map_or(0, |channel| channel.sender.waiting())
    }

    /// Messages and slices of all channels that wait or are under way.
    pub(crate) fn unacked(&self) -> usize {
        self.channels.iter().map(|channel| usize::from(channel.sender.waiting())).sum()
    }

    pub(crate) fn payload_max(&self) -> usize {
        self.payload_max.into()
    }

    /// Bytes of the heap that the channels own, as far as they know: what messages own is taken for as much as they have bits.
    #[must_use]
    pub fn memory(&self) -> usize {
        let channels = self
            .channels
            .iter()
            .map(|channel| size_of::<Channel<M>>() + channel.sender.memory() + channel.receiver.memory());
        self.payload.capacity() + self.carried.memory() + channels.sum::<usize>()
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.channels.iter().any(|channel| !channel.receiver.ready.is_empty())
    }

    /// Gives back the memory of what is empty. If nothing waits for an acknowledgement, no packet is remembered any more.
    pub fn shrink(&mut self) {
        for Channel { sender, receiver, .. } in &mut self.channels {
            sender.shrink();
            receiver.shrink();
        }
        if self.unacked() == 0 {
            self.carried.reset();
        }
        self.payload = Vec::new();
    }

    /// What a channel has done; zeros when there is no such channel.
    #[must_use]
    pub fn stats(&self, channel: usize) -> ChannelStats {
        self.channels.get(channel).map(|channel| channel.stats).unwrap_or_default()
    }

    /// The payloads that were refused.
    #[must_use]
    pub const fn rejected(&self) -> RejectedPayloads {
        self.rejected
    }

    fn channel(&mut self, index: usize) -> Result<&mut Channel<M>, ChannelSendError> {
        let count = self.channels.len();
        self.channels.get_mut(index).ok_or(ChannelSendError::NoChannel { index, count })
    }

    /// Chooses what is due and writes it; returns the bytes of the payload.
    fn write_payload(&mut self, now: Time, rtt: Duration) -> Result<usize, BitsError> {
        let Self { channels, payload, payload_max, .. } = self;
        payload.resize((*payload_max).into(), 0);
        let (mut stream, mut is_empty) = (Write::new(payload), true);
        let mut after = channels.len();
        for Channel { config, sender, stats, .. } in channels {
            after -= 1;
            sender.expire(now, stats);
            let room = stream.left().saturating_sub(1 + after);
            let mut has_messages = sender.choose(now, config.resend_after(rtt), room)?;
            stream.bool(&mut has_messages)?;
            if has_messages {
                sender.write(&mut stream)?;
                is_empty = false;
            }
        }
        Ok(if is_empty { 0 } else { stream.finish() })
    }

    fn stage(&mut self, payload: &[u8]) -> Result<(), ReadError> {
        let (mut stream, mut is_empty) = (Read::new(payload), true);
        for Channel { receiver, .. } in &mut self.channels {
            let mut has_messages = false;
            stream.bool(&mut has_messages)?;
            if has_messages {
                receiver.stage(&mut stream)?;
                is_empty = false;
            }
        }
        stream.finish()?;
        if is_empty { Err(ReadError::Empty) } else { Ok(()) }
    }
}

/// What a channel has done since it was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ChannelStats {
    /// Messages, slices and notices of expired messages sent for the first time.
    pub sent: u64,
    /// Sent again.
    pub resends: u64,
    /// Messages given up because they were too old.
    pub expired: u64,
    /// Messages delivered.
    pub received: u64,
    /// Blocks delivered.
    pub blocks_received: u64,
    /// Messages and slices that had come before.
    pub duplicates: u64,
    /// Messages that the peer gave up and that had not come.
    pub skipped: u64,
    /// Sequenced: messages older than one delivered before.
    pub old: u64,
    /// Unreliable: messages dropped because as many as `receive_buffer` were not read. Blocks too long to be honest.
    pub overflowed: u64,
}

reasons! {
    /// Payloads that were refused, by the [`ReadError`].
    pub struct RejectedPayloads: u64, by ReadError {
        bits: Bits,
        empty: Empty,
        no_room: NoRoom,
    }
}
