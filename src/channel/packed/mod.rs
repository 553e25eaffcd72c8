//! Messages, reliable or not, in packets that are acknowledged and never resent.

mod beside;
mod carried;
mod content;
mod due;
mod error;
mod expiry;
mod receive;
mod send;
mod stats;

use super::config::MESSAGES_MAX;
use super::{AnyChannel, Channel, ChannelConfig, ChannelError, ChannelsConfig, SendError, cure};
use crate::config::ConfigError;
use crate::message::BitsError;
use crate::message::pack::{BitReader, BitWriter, Payload};
use crate::seq::Seq16;
use crate::time::Time;
pub(crate) use beside::Next;
use carried::Carried;
use content::{BYTES_MAX, read_count};
pub use error::{ReadError, RejectedPayloads};
use receive::{Ready, Receiver};
use send::Sender;
pub use stats::ChannelStats;
use std::sync::Arc;
use std::time::Duration;

/// Channels that share packets, at one end of a connection.
///
/// Sent messages are stored. Each packet takes what is due and fits, from every channel, and when it is acknowledged,
/// its messages are done. This needs numbered packets that report whether they arrived: those of a
/// [`packet::Endpoint`](crate::packet::Endpoint), or others. No channel waits for what another one has lost. If a
/// packet is too small for all, the first channels come first.
///
/// ```
/// use whitewater::channel::{Channels, ChannelsConfig};
/// use whitewater::packet::{Endpoint, PacketConfig};
/// use whitewater::machine::DatagramQueue;
/// use whitewater::{Channel, Message, Time};
/// use std::time::Duration;
///
/// #[derive(Debug, PartialEq, Message)]
/// struct Position {
///     #[float(-512.0..=512.0, 0.01)]
///     x: f32,
///     #[float(-512.0..=512.0, 0.01)]
///     y: f32,
/// }
///
/// const CHAT: Channel<String> = Channel::unordered(0);
/// const POSITIONS: Channel<Position> = Channel::sequenced(1);
/// let config = ChannelsConfig { channels: vec![CHAT.into(), POSITIONS.into()], ..ChannelsConfig::default() };
/// let (mut alice, mut bob) = (Channels::new(&config)?, Channels::new(&config)?);
/// let mut ends = [(); 2].map(|()| Endpoint::new(&PacketConfig::default(), DatagramQueue::new()).unwrap());
/// let [alices, bobs] = &mut ends;
///
/// // Alice, at each tick: messages, and a packet for them.
/// let now = Time::from_millis(1000);
/// alice.send(now, CHAT, &"hello".to_string())?;
/// alice.send(now, POSITIONS, &Position { x: 1.0, y: -2.0 })?;
/// let payload = alice.write(now, alices.stats().rtt)?;
/// let sequence = alices.send(now, payload)?;
/// alice.on_sent(now, sequence);
///
/// // Bob, for each datagram: what is in it. What he refuses is not acknowledged.
/// let datagram = alices.output_mut().pop().unwrap();
/// bobs.receive_if(now, datagram, |payload| bob.read(payload).is_ok())?;
/// assert_eq!(bob.recv(CHAT), Some("hello".to_string()));
/// assert!(bob.recv(POSITIONS).is_some());
///
/// // Bob's next packet tells that it has arrived, so the chat is not sent again.
/// bobs.send(now, &[])?;
/// alices.receive(now, bobs.output_mut().pop().unwrap())?;
/// while let Some(sequence) = alices.pop_acked() {
///     alice.on_acked(sequence);
/// }
/// while let Some(sequence) = alices.pop_lost() {
///     alice.on_lost(sequence);
/// }
/// assert_eq!(alice.check(now, Duration::ZERO), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// docs/WIRE.md describes the payload of a packet, docs/BEHAVIOUR.md timers and limits.
#[derive(Debug)]
pub struct Channels {
    channels: Vec<One>,
    carried: Carried,
    rejected: RejectedPayloads,
    /// The payload of the packet being made, and its most bytes.
    payload: Vec<u8>,
    payload_max: u16,
    /// A buffer to pack messages in before they are stored.
    scratch: Vec<u8>,
    /// Bytes of messages that were acknowledged or read. It wraps.
    moved: u32,
    /// The path loses nothing.
    is_lossless: bool,
}

#[derive(Debug)]
struct One {
    config: Arc<ChannelConfig>,
    sender: Sender,
    receiver: Receiver,
    stats: ChannelStats,
}

impl Channels {
    /// Channels on which nothing was sent or received.
    ///
    /// # Errors
    ///
    /// A field of `config` is out of range.
    pub fn new(config: &ChannelsConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let one = |channel: &ChannelConfig| {
            let (room, stats, config) =
                (config.room_for_one(channel), ChannelStats::default(), Arc::new(*channel));
            let sender = Sender::new(Arc::clone(&config), room);
            One { sender, receiver: Receiver::new(Arc::clone(&config)), config, stats }
        };
        let mut channels: Vec<_> = config.channels.iter().map(one).collect();
        channels.shrink_to_fit(); // each session of a server has one
        Ok(Self {
            channels,
            carried: Carried::new(config.packets, MESSAGES_MAX.into()),
            rejected: RejectedPayloads::default(),
            payload: Vec::new(),
            payload_max: config.payload_max,
            scratch: Vec::new(),
            moved: 0,
            is_lossless: false,
        })
    }

    /// Stores a message to be sent with the next packets, and returns its id. A reliable one expires as the config of the channel
    /// says.
    ///
    /// # Errors
    ///
    /// There is no room now ([`SendError::Full`]: try again later), the message is too long, or the handle belongs to
    /// none of these channels.
    pub fn send<P: Payload + ?Sized>(
        &mut self,
        now: Time,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Result<Seq16, SendError> {
        let lifetime = self.config(channel.into())?.expire_after;
        self.send_expiring(now, channel, message, lifetime)
    }

    /// The same, for a reliable message that is given up after `lifetime`; `None`: never. Messages after it are delivered without
    /// waiting for it then. An unreliable one leaves with the next packet that has room, however late.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_expiring<P: Payload + ?Sized>(
        &mut self,
        now: Time,
        channel: Channel<P>,
        message: &P::Sent,
        lifetime: Option<Duration>,
    ) -> Result<Seq16, SendError> {
        self.config(channel.into())?;
        let mut spare = std::mem::take(&mut self.scratch);
        let stored = P::pack(message, &mut spare).map_err(SendError::from).and_then(|(bytes, bits)| {
            let (len, channel) = (bytes.len(), channel.number());
            let max = if P::SKIP.is_none() { BYTES_MAX } else { usize::MAX }.min(self.payload_max.into());
            let one = find(&mut self.channels, channel);
            let stored = one.map(|one| one.sender.push(now, (bytes, bits), lifetime)).transpose()?;
            stored.flatten().ok_or(SendError::TooLong { channel, len, max, cure: cure::CUT })
        });
        self.scratch = spare;
        stored
    }

    /// Whether a message can be stored now.
    #[must_use]
    pub fn has_room(&self, channel: impl Into<AnyChannel>) -> bool {
        self.one(channel.into().number).is_some_and(|one| one.sender.waiting() < one.config.send_buffer)
    }

    /// Whether half of the messages that may wait on a channel can be stored.
    pub(crate) fn has_half_room(&self, channel: u8) -> bool {
        self.one(channel).is_some_and(|one| one.sender.waiting() <= one.config.send_buffer / 2)
    }

    /// Takes the next message that was received. `None`: there is none, or no such channel.
    pub fn recv<P: Payload + ?Sized>(&mut self, channel: Channel<P>) -> Option<P::Received> {
        self.config(channel.into()).inspect_err(|error| log::error!("recv: {error}")).ok()?;
        let one = find(&mut self.channels, channel.number())?;
        loop {
            // Only a session has another way for messages, so no honest peer announces one here.
            let Ready::Message(bytes) = one.receiver.pop()? else { continue };
            let message = P::unpack(bytes.bytes()).ok(); // it was checked when it arrived
            self.moved = self.moved.wrapping_add(len32(bytes.bytes().len()));
            one.receiver.keep(bytes.into_spare());
            return message;
        }
    }

    /// Takes the id of a message that is known to have arrived, on a channel with
    /// [`receipts`](ChannelConfig::receipts); each is reported once. Unreliable messages that are never reported may
    /// have arrived all the same. The newest `send_buffer` ids are kept until they are taken.
    pub fn pop_delivered(&mut self, channel: impl Into<AnyChannel>) -> Option<Seq16> {
        find(&mut self.channels, channel.into().number)?.sender.told.as_mut()?.delivered.pop_front()
    }

    /// Takes the id of a message that was given up because it was too old: it is not known to have arrived. The
    /// newest `send_buffer` ids are kept until they are taken.
    pub fn pop_expired(&mut self, channel: impl Into<AnyChannel>) -> Option<Seq16> {
        find(&mut self.channels, channel.into().number)?.sender.told.as_mut()?.expired.pop_front()
    }

    /// Makes the payload of a packet from what is due; empty: nothing is. Send it and call
    /// [`on_sent`](Self::on_sent), or the next payload has the same messages again.
    ///
    /// `rtt` is the smoothed round trip, zero when none is known.
    ///
    /// # Errors
    ///
    /// None that an honest program can cause.
    pub fn write(&mut self, now: Time, rtt: Duration) -> Result<&[u8], BitsError> {
        let len = self.write_payload(now, rtt)?;
        Ok(self.payload.get(..len).unwrap_or_default())
    }

    /// Notes that the payload from [`write`](Self::write) left now in the packet `sequence`. Call it for packets
    /// without messages as well, or a number is mistaken for the same one before a wrap.
    pub fn on_sent(&mut self, now: Time, sequence: Seq16) {
        let Self { channels, carried, .. } = self;
        let start = carried.end;
        for (index, One { sender, stats, .. }) in (0..).zip(channels) {
            sender.commit(now, sequence, stats, |id| carried.push(start, index, id));
        }
        carried.finish(sequence, start);
    }

    /// Notes that the packet `sequence` has arrived: its messages are not sent again.
    pub fn on_acked(&mut self, sequence: Seq16) {
        let Self { channels, carried, moved, .. } = self;
        for (index, id) in carried.remove(sequence) {
            if let Some(one) = channels.get_mut(usize::from(index)) {
                *moved = moved.wrapping_add(len32(one.sender.arrived(id)));
            }
        }
    }

    /// Notes that the packet `sequence` is evidently lost, as
    /// [`Endpoint::pop_lost`](crate::packet::Endpoint::pop_lost) reports: its messages are due at once, on channels
    /// with [`resend_lost`](ChannelConfig::resend_lost). If it arrives after all, the receiver drops the copies.
    pub fn on_lost(&mut self, sequence: Seq16) {
        let Self { channels, carried, .. } = self;
        for (index, id) in carried.of(sequence) {
            if let Some(one) = channels.get_mut(usize::from(index)) {
                one.sender.lost(id, sequence);
            }
        }
    }

    /// Takes the payload of a packet. An empty one says nothing.
    ///
    /// # Errors
    ///
    /// No peer with the same channels sends this, or there is no room for it because too little was read. Only a
    /// counter has changed, and the packet must not be acknowledged.
    pub fn read(&mut self, payload: &[u8]) -> Result<(), ReadError> {
        let read = self.read_within(payload, usize::MAX, |_| true).map(drop);
        read.inspect_err(|error| self.rejected.count(error))
    }

    fn read_within(
        &mut self,
        payload: &[u8],
        left: usize,
        is_wanted: impl Fn(&[One]) -> bool,
    ) -> Result<usize, ReadError> {
        if payload.is_empty() {
            return Ok(0);
        }
        let before = self.received_memory();
        let staged = self.stage(payload, left);
        let staged =
            staged.and_then(|()| if is_wanted(&self.channels) { Ok(()) } else { Err(ReadError::Empty) });
        if let Err(error) = staged {
            self.channels.iter_mut().for_each(|one| one.receiver.refuse());
            return Err(error);
        }
        for One { receiver, stats, .. } in &mut self.channels {
            receiver.apply(stats);
        }
        Ok(self.received_memory().saturating_sub(before))
    }

    /// Bytes of the heap that messages of the peer take.
    fn received_memory(&self) -> usize {
        self.channels.iter().map(|one| one.receiver.memory()).sum()
    }

    /// When [`write`](Self::write) has something next, not before `now`; `None`: not until something is sent or acknowledged.
    #[must_use]
    pub fn check(&self, now: Time, rtt: Duration) -> Option<Time> {
        let due = |one: &One| one.sender.check(now, one.config.resend_after(rtt, self.is_lossless));
        self.channels.iter().filter_map(due).min()
    }

    /// Messages of a channel that wait or are under way.
    #[must_use]
    pub fn waiting(&self, channel: impl Into<AnyChannel>) -> u16 {
        self.one(channel.into().number).map_or(0, |one| one.sender.waiting())
    }

    /// Whether a channel has messages that wait or are under way.
    pub(crate) fn waits(&self, number: u8) -> bool {
        self.one(number).is_some_and(|one| one.sender.waiting() > 0)
    }

    /// Messages of all channels that wait or are under way.
    pub(crate) fn unacked(&self) -> usize {
        self.channels.iter().map(|one| usize::from(one.sender.waiting())).sum()
    }

    pub(crate) fn payload_max(&self) -> usize {
        self.payload_max.into()
    }

    /// Bytes of the heap that the channels own.
    #[must_use]
    pub fn memory(&self) -> usize {
        let channels = self.channels.iter().map(|one| ONE + one.sender.memory() + one.receiver.memory());
        let buffers = self.payload.capacity() + self.scratch.capacity();
        buffers + self.carried.memory() + channels.sum::<usize>()
    }

    /// Bytes of messages that were acknowledged or read. It wraps.
    pub(crate) const fn moved(&self) -> u32 {
        self.moved
    }

    /// Frees empty buffers.
    pub(crate) fn trim(&mut self) {
        for One { sender, receiver, .. } in &mut self.channels {
            sender.trim();
            receiver.trim();
        }
    }

    /// Frees the memory of everything empty. If nothing waits for an acknowledgement, the record of sent packets is
    /// cleared.
    pub fn shrink(&mut self) {
        for One { sender, receiver, .. } in &mut self.channels {
            sender.shrink();
            receiver.shrink();
        }
        if self.unacked() == 0 {
            self.carried.reset();
        }
        (self.payload, self.scratch) = (Vec::new(), Vec::new());
    }

    /// Statistics of a channel; zeros if there is no such channel.
    #[must_use]
    pub fn stats(&self, channel: impl Into<AnyChannel>) -> ChannelStats {
        self.one(channel.into().number).map(|one| one.stats).unwrap_or_default()
    }

    /// The payloads that were refused.
    #[must_use]
    pub const fn rejected(&self) -> RejectedPayloads {
        self.rejected
    }

    fn one(&self, number: u8) -> Option<&One> {
        self.channels.iter().find(|one| one.config.channel.number == number)
    }

    /// The config of the channel that a handle belongs to.
    fn config(&self, handle: AnyChannel) -> Result<&ChannelConfig, ChannelError> {
        let missing = ChannelError::Missing { number: handle.number, count: self.channels.len() };
        let config = &self.one(handle.number).ok_or(missing)?.config;
        if config.channel == handle { Ok(config) } else { Err(ChannelError::wrong(handle, config.channel)) }
    }

    /// Chooses what is due and writes it; returns the bytes of the payload.
    fn write_payload(&mut self, now: Time, rtt: Duration) -> Result<usize, BitsError> {
        let Self { channels, payload, payload_max, is_lossless, .. } = self;
        let room = 8 * usize::from(*payload_max);
        let (mut to, mut is_empty) = (BitWriter::new(std::mem::take(payload)), true);
        let (mut after, mut messages) = (channels.len(), MESSAGES_MAX);
        for One { config, sender, stats, .. } in channels {
            after -= 1;
            sender.expire(now, stats);
            let left = (room - to.bits()).saturating_sub(1 + after);
            let resend = config.resend_after(rtt, *is_lossless);
            let has_messages = sender.choose(now, resend, (left, messages));
            messages -= u16::try_from(sender.chosen.len()).unwrap_or(messages);
            to.bool(has_messages)?;
            if has_messages {
                sender.write(&mut to)?;
                is_empty = false;
            }
        }
        *payload = to.finish();
        Ok(if is_empty { 0 } else { payload.len() })
    }

    fn stage(&mut self, payload: &[u8], mut left: usize) -> Result<(), ReadError> {
        let (mut from, mut messages) = (BitReader::new(payload), 0);
        for One { config, receiver, .. } in &mut self.channels {
            if from.bool()? {
                let count = read_count(&mut from, config)?;
                messages += count;
                if messages > MESSAGES_MAX {
                    return Err(ReadError::TooMany { max: MESSAGES_MAX });
                }
                receiver.stage(&mut from, count, &mut left)?;
            }
        }
        from.finish()?;
        if messages == 0 { Err(ReadError::Empty) } else { Ok(()) }
    }
}

/// Bytes of an unused channel, with its reference-counted config.
const ONE: usize = size_of::<One>() + size_of::<ChannelConfig>() + 2 * size_of::<usize>();

/// The length of a buffer that holds no more than a packet.
fn len32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn find(channels: &mut [One], number: u8) -> Option<&mut One> {
    channels.iter_mut().find(|one| one.config.channel.number == number)
}
