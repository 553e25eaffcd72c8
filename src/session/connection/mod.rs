//! What both ends share once a session is up: numbers, frames, signs of life, the end.
//!
//! A datagram in: `receive` opens it and gives each frame to its part. One out: `transmit` asks each part, in order of urgency, as often
//! as `pacing` allows. `timeout` is what time does, and when. The parts: `lanes` and `datagrams` have data, `acks` what the peer is told
//! of packets, `answer` what whoever pings is, `path` the peer's address, `mtu` how long datagrams may be there, with `probing` and `parts`, `keepalive` the silence,
//! `life` the end, `farewell` its words, `redirect` where it goes on, `repairs` what is rebuilt; `memory` what all of it takes,
//! `loss`, `measured` and `observe` what there is to know of all that, and of what has arrived.

mod acks;
mod answer;
mod datagrams;
mod ecn;
mod farewell;
mod keepalive;
mod lanes;
mod life;
mod loss;
mod measured;
mod memory;
mod mtu;
mod observe;
mod pacing;
mod parts;
mod path;
mod probing;
mod receive;
mod redirect;
mod repairs;
mod timeout;
mod tracked;
mod transmit;
#[cfg(test)]
mod wraps;

pub(in crate::session) use farewell::check_text;
pub use observe::ConnectionState;
pub(in crate::session) use transmit::Next;

use super::config::{DATAGRAM_MIN, SessionConfig, micros};
use super::error::SendError;
use super::event::{CloseReason, DatagramId, Event, Undelivered};
use super::seal::Seal;
use super::stats::Counters;
use crate::arq::RecvError;
use crate::config::{ConfigError, in_range};
use crate::message::Message;
use crate::message::channel::{Channels, Received};
use crate::pace::Rtt;
use crate::seq::Seq16;
use crate::time::Time;
use answer::Answer;
use datagrams::Datagrams;
use ecn::Marks;
use keepalive::Keepalive;
use lanes::Lanes;
use life::{Closing, Life};
use measured::InUse;
use memory::SEGMENT;
use mtu::PathMtu;
use observe::Observer;
use pacing::Pacing;
use parts::Parts as FrameParts;
use path::{Challenges, Path};
use redirect::Redirects;
use repairs::Repairs;
use std::net::SocketAddr;
use std::sync::Arc;
use tracked::Tracked;

/// One end of a session that is up: data in and out. Its owner, a [`Session`](super::Session) or a [`Server`](super::Server), does the
/// rest; after a call here, drain the owner's polls.
#[derive(Debug)]
pub struct Connection<M> {
    life: Life,
    seal: Seal,
    /// What the peer calls the session.
    peer_sid: u32,
    path: Path,
    /// A datagram that has left, to be sent to a candidate as well.
    copy: Option<Box<(SocketAddr, Vec<u8>)>>,
    /// Makes what a candidate is asked.
    challenges: Challenges,
    keepalive: Keepalive,
    lanes: Lanes,
    channels: Option<Box<Channels<M>>>,
    datagrams: Datagrams,
    /// How many datagrams with data may leave; `None`: as many as there are.
    pacing: Option<Box<Pacing>>,
    /// Datagrams with data that left while more waited; each so many begin with what is least urgent.
    turn: u8,
    /// What was in them since, a bit each.
    served: u32,
    received: acks::Received,
    sent: Tracked,
    /// By the handshake's end, by pings and by packets that are acknowledged.
    rtt: Rtt,
    in_use: Option<Box<InUse>>,
    /// What the last ping asks, and how it is to be answered.
    ping: u64,
    answer: Answer,
    /// The question of a path that has not been answered.
    response: Option<[u8; 8]>,
    /// Whether the peer's CLOSE is to be answered.
    farewell: bool,
    /// What our CLOSE says, or what the peer's has said.
    close_text: Box<str>,
    is_closed_by_peer: bool,
    redirects: Redirects,
    is_client: bool,
    /// Most bytes of a datagram on any path, for what cannot be cut up; and on this one.
    max_datagram: u16,
    mtu: PathMtu,
    parts: FrameParts,
    /// If both ends heed marks.
    marks: Option<Box<Marks>>,
    /// If both ends use repairs.
    repairs: Option<Box<Repairs>>,
    /// A lane found no room for its bytes, and waits for the event that there is some.
    is_short: bool,
    /// A lane was given something that may leave at once.
    is_eager: bool,
    /// Bytes that may be taken until the owner counts again.
    memory_left: u64,
    /// Tables were made since the owner counted.
    has_grown: bool,
    /// µs.
    ack_delay: u32,
    events: Pending,
    stats: Counters,
    now: Time,
    /// When anything but signs of life was last sent or received.
    busy: Time,
    user: Box<[u8]>,
    /// While events are logged.
    observer: Option<Box<Observer>>,
}

/// Events not yet asked for: one of each kind at most.
#[derive(Debug, Default)]
struct Pending {
    connected: bool,
    readable: bool,
    writable: bool,
    redirected: bool,
    moved: Option<Box<(SocketAddr, SocketAddr)>>,
    closed: Option<Box<(CloseReason, Undelivered)>>,
}

/// What a connection is made of when its handshake is over.
#[derive(Debug)]
pub(in crate::session) struct Parts {
    pub(in crate::session) seal: Seal,
    /// What the peer calls the session.
    pub(in crate::session) peer_sid: u32,
    pub(in crate::session) peer: SocketAddr,
    /// The number that the server gave the session.
    pub(in crate::session) conv: u32,
    /// Largest datagram that the peer takes.
    pub(in crate::session) max_datagram: u16,
    /// What the peer says that it does.
    pub(in crate::session) features: u32,
    /// Whether the peer's address may change.
    pub(in crate::session) moves: bool,
    /// Whether this end is the client, which pings until the server is heard.
    pub(in crate::session) is_client: bool,
    pub(in crate::session) seed: [u64; 2],
    /// What the peer's application said in the handshake.
    pub(in crate::session) user: Box<[u8]>,
}

impl<M: Message> Connection<M> {
    pub(in crate::session) fn new(
        now: Time,
        config: &Arc<SessionConfig>,
        parts: Parts,
    ) -> Result<Self, ConfigError> {
        let Parts { mut seal, peer_sid, peer, conv, max_datagram, features, moves, is_client, seed, user } =
            parts;
        in_range("max_datagram", max_datagram, DATAGRAM_MIN..=u16::MAX)?;
        let mtu =
            PathMtu::new(max_datagram.min(config.max_datagram), max_datagram.min(config.datagram_taken()));
        let max_datagram = mtu.current();
        let features = config.features() & features;
        let repairs = Repairs::new(config, features);
        let protected = max_datagram - Repairs::room(repairs.as_deref());
        seal.set_update_after(config.key_update.into());
        seal.rest(); // until there is data: many begin, and some never come
        let channels = config.channels(protected);
        let SessionConfig { datagrams_out, datagrams_in, unacked, keepalive, timeout, .. } = **config;
        let datagram_limits = datagrams::Limits {
            max: SessionConfig::datagram_max(protected),
            out: datagrams_out,
            received: datagrams_in,
            unacked,
        };
        Ok(Self {
            life: Life::Up,
            seal,
            peer_sid,
            path: Path::new(peer, moves),
            copy: None,
            challenges: Challenges { key: seed, count: 0 },
            keepalive: Keepalive::new(now, keepalive, timeout, is_client),
            lanes: Lanes::new(conv, config, protected)?,
            channels: channels.map(|channels| Channels::new(&channels).map(Box::new)).transpose()?,
            datagrams: Datagrams::new(datagram_limits),
            pacing: config.pacing.map(|pace| Pacing::new(&pace).map(Box::new)).transpose()?,
            turn: 0,
            served: 0,
            received: acks::Received::default(),
            sent: Tracked::new(unacked),
            rtt: Rtt::default(),
            in_use: None,
            ping: 0,
            answer: Answer::None,
            response: None,
            farewell: false,
            close_text: Box::default(),
            is_closed_by_peer: false,
            redirects: Redirects::default(),
            is_client,
            max_datagram,
            mtu,
            parts: FrameParts::new(SessionConfig::frame_max(config.datagram_taken())),
            marks: Marks::new(features),
            repairs,
            is_short: false,
            is_eager: false,
            memory_left: u64::MAX,
            has_grown: false,
            ack_delay: micros(config.ack_delay),
            events: Pending { connected: true, ..Pending::default() },
            stats: Counters::default(),
            now,
            busy: now,
            user,
            observer: None,
        })
    }

    /// Queues a message on a lane; returns the bytes taken, which is all of them but for a stream.
    ///
    /// # Errors
    ///
    /// Enough waits already: send again later. Or the message is too long, or there is no such lane, or it is too late.
    pub fn send(&mut self, lane: usize, message: &[u8]) -> Result<usize, SendError> {
        if !self.is_up() {
            return Err(SendError::Closed);
        }
        let count = self.lanes.len();
        let is_stream = self.lanes.is_stream(lane).ok_or(SendError::NoLane { lane, count })?;
        let room = self.within_memory(lane, message, is_stream);
        if let Err(SendError::Full { .. } | SendError::NoMemory) = room {
            self.is_short = true;
            self.lanes.wait_for_room(self.now, lane, if is_stream { 1 } else { message.len() });
        }
        let message = room?;
        let taken = self.lanes.send(lane, message).ok_or(SendError::NoLane { lane, count })??;
        self.take_memory(taken + SEGMENT);
        self.is_eager = self.lanes.are_open();
        Ok(taken)
    }

    /// Ends what this end sends on a lane, by an empty message, also on a stream. It ends nothing but by agreement: what is sent afterwards
    /// is sent.
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send).
    pub fn send_end(&mut self, lane: usize) -> Result<(), SendError> {
        if !self.is_up() {
            return Err(SendError::Closed);
        }
        let count = self.lanes.len();
        Ok(self.lanes.send_end(lane).ok_or(SendError::NoLane { lane, count })??)
    }

    /// Whether all that was sent on a lane is known to have arrived. If not, [`Event::Writable`] tells when it has.
    pub fn is_delivered(&mut self, lane: usize) -> bool {
        self.lanes.is_delivered(lane)
    }

    /// Takes the next message of a lane and returns its length.
    ///
    /// # Errors
    ///
    /// There is none yet, or it does not fit and stays.
    pub fn recv(&mut self, lane: usize, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.lanes.recv(lane, buf)
    }

    /// Bytes of the next message of a lane; `None`: it is not there yet.
    #[must_use]
    pub fn peek_size(&self, lane: usize) -> Option<usize> {
        self.lanes.peek_size(lane)
    }

    /// Queues an unreliable datagram. It leaves as soon as the session is polled, once.
    ///
    /// # Errors
    ///
    /// Too many bytes wait, or it is too long, or it is too late.
    pub fn send_datagram(&mut self, datagram: &[u8]) -> Result<DatagramId, SendError> {
        if !self.is_up() {
            return Err(SendError::Closed);
        }
        self.check_memory(datagram.len())?;
        let id = self.datagrams.send(datagram)?;
        self.take_memory(datagram.len() + SEGMENT);
        Ok(id)
    }

    /// Takes the next unreliable datagram and returns its length.
    ///
    /// # Errors
    ///
    /// There is none, or it does not fit and stays.
    pub fn recv_datagram(&mut self, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.datagrams.recv(buf)
    }

    /// Stores a message of a channel; returns its number.
    ///
    /// # Errors
    ///
    /// The channel has no room for it, now or ever, or it is too late.
    pub fn send_message(&mut self, channel: usize, now: Time, message: M) -> Result<Seq16, SendError> {
        let id = self.open_channels(channel)?.send(channel, now, message)?;
        self.take_memory(usize::from(self.max_datagram));
        Ok(id)
    }

    /// Stores a block of a channel, to be sent slice by slice.
    ///
    /// # Errors
    ///
    /// The channel carries none of that length, or has no room now, or it is too late.
    pub fn send_block(&mut self, channel: usize, block: &[u8]) -> Result<(), SendError> {
        self.check_memory(block.len())?;
        self.open_channels(channel)?.send_block(channel, block)?;
        self.take_memory(2 * block.len());
        Ok(())
    }

    /// Takes the next message or block of a channel.
    pub fn recv_message(&mut self, channel: usize) -> Option<Received<M>> {
        self.channels.as_mut()?.recv(channel)
    }

    /// Ends the session once what was sent has arrived, but `drain` later at the latest. The peer is told `code`, one of the
    /// application's own. What did not arrive is told with [`Event::Closed`].
    pub fn close(&mut self, now: Time, code: u16) {
        let _ = self.close_with(now, code, ""); // there is nothing to say, so nothing wrong with it
    }

    /// Whether the session is up and takes what is sent.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        matches!(self.life, Life::Up)
    }

    /// Whether the session is over: nothing is sent any more, and nothing more arrives.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.life, Life::Closed)
    }

    /// Where the peer is.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.path.address()
    }

    /// What the peer's application said in the handshake.
    #[must_use]
    pub const fn user(&self) -> &[u8] {
        &self.user
    }

    /// The channels, to look at.
    #[must_use]
    pub fn channels(&self) -> Option<&Channels<M>> {
        self.channels.as_deref()
    }

    pub(in crate::session) fn poll_event(&mut self) -> Option<Event> {
        let Pending { connected, readable, writable, redirected, moved, closed } = &mut self.events;
        if std::mem::take(connected) {
            return Some(Event::Connected);
        }
        if let Some((from, to)) = moved.take().map(|moved| *moved) {
            return Some(Event::Moved { from, to });
        }
        if std::mem::take(readable) {
            return Some(Event::Readable);
        }
        if std::mem::take(writable) {
            return Some(Event::Writable);
        }
        if std::mem::take(redirected) {
            return Some(Event::Redirected);
        }
        closed.take().map(|closed| Event::Closed { reason: closed.0, undelivered: closed.1 })
    }

    pub(in crate::session) const fn has_events(&self) -> bool {
        let Pending { connected, readable, writable, redirected, moved, closed } = &self.events;
        *connected || *readable || *writable || *redirected || moved.is_some() || closed.is_some()
    }

    /// Tells the peer at once that it is over, without waiting for anything.
    pub(in crate::session) fn fail(&mut self, now: Time, reason: CloseReason) {
        if let Life::Up | Life::Draining { .. } = self.life {
            self.life = Life::Closing(Box::new(Closing::new(now, reason, self.undelivered())));
        }
    }

    /// It is over, and the peer is not told.
    pub(in crate::session) fn end(&mut self, reason: CloseReason, undelivered: Undelivered) {
        if !self.is_closed() {
            self.life = Life::Closed;
            self.events.closed = Some(Box::new((reason, undelivered)));
            self.observe(self.now);
        }
    }

    pub(in crate::session) fn undelivered(&self) -> Undelivered {
        Undelivered {
            segments: self.lanes.unacked(),
            messages: self.channels.as_ref().map_or(0, |channels| channels.unacked()),
            datagrams: self.datagrams.waiting(),
            redirect: self.redirects.is_pending(),
        }
    }

    fn open_channels(&mut self, channel: usize) -> Result<&mut Channels<M>, SendError> {
        if !self.is_up() {
            return Err(SendError::Closed);
        }
        self.check_memory(0)?;
        let none = crate::message::SendError::NoChannel { index: channel, count: 0 };
        self.channels.as_deref_mut().ok_or(none.into())
    }

    fn tick(&mut self, now: Time) {
        self.now = now;
        self.keepalive.tick(now);
    }
}
