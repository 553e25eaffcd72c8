//! What both ends share once a session is up: numbers, frames, signs of life, the end.
//!
//! A datagram in: `receive` opens it and gives each frame to its part. One out: `transmit` asks each part, in order of urgency, as often
//! as `pacing` allows. `clock` is what time does, and when. The parts: `lanes` and `datagrams` have data, `acks` what the peer is told
//! of packets and answered, `path` the peer's address, `mtu` how long datagrams may be there, with `parts`, `life` the end, `redirect`
//! where it goes on, `repairs` what is rebuilt; `memory` what all of it takes, `loss` and `observe` what there is to know of all that.

mod acks;
mod clock;
mod datagrams;
mod ecn;
mod lanes;
mod life;
mod loss;
mod memory;
mod mtu;
mod observe;
mod pacing;
mod parts;
mod path;
mod receive;
mod redirect;
mod repairs;
mod transmit;
#[cfg(test)]
mod wraps;

pub(in crate::session) use life::check_text;
pub use observe::ConnectionState;
pub(in crate::session) use transmit::Next;

use super::config::{DATAGRAM_MIN, SessionConfig, micros};
use super::error::SendError;
use super::event::{CloseReason, DatagramId, Event, Undelivered};
use super::repair::{REPAIR_ROOM, Repairs};
use super::seal::Seal;
use super::stats::Counters;
use crate::config::{ConfigError, in_range};
use crate::kcp::RecvError;
use crate::message::Message;
use crate::message::channel::{Channels, Received};
use crate::packet::AckTracker;
use crate::seq::Seq16;
use crate::time::Time;
use clock::Keepalive;
use datagrams::Datagrams;
use ecn::Marks;
use lanes::Lanes;
use life::Life;
use memory::{Budget, SEGMENT};
use mtu::PathMtu;
use observe::{Measured, Observer};
use pacing::Turns;
use parts::FrameParts;
use path::Path;
use redirect::Redirects;
use std::net::SocketAddr;
use std::sync::Arc;

/// One end of a session that is up: data in and out. Its owner, a [`Client`](super::Client) or a [`Server`](super::Server), does the
/// rest; after a call here, drain the owner's polls.
#[derive(Debug)]
pub struct Connection<M> {
    life: Life,
    /// What our CLOSE says, or what the peer's has said: for people and their logs.
    close_text: Box<str>,
    seal: Seal,
    peer: Peer,
    path: Path,
    keepalive: Keepalive,
    lanes: Lanes,
    channels: Option<Box<Channels<M>>>,
    datagrams: Datagrams,
    turns: Turns,
    received: acks::Received,
    /// Packets of which the session wants to know whether they arrived: none, in a session of lanes alone, which have acknowledgements of
    /// their own. Made for the first.
    sent: Option<Box<AckTracker>>,
    measured: Measured,
    /// The stamp of the last ping, until it is answered, and whether with what had arrived.
    answer: Option<(u64, bool)>,
    redirects: Redirects,
    mtu: PathMtu,
    parts: FrameParts,
    /// If both ends heed marks.
    marks: Option<Box<Marks>>,
    /// If both ends use repairs.
    repairs: Option<Box<Repairs>>,
    budget: Budget,
    events: Pending,
    stats: Counters,
    /// While events are logged.
    observer: Option<Box<Observer>>,
}

/// The other end.
#[derive(Debug)]
struct Peer {
    /// What it calls the session.
    sid: u32,
    is_server: bool,
    /// What its application said in the handshake.
    user: Box<[u8]>,
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
        let features = config.features() & features;
        let repairs = Repairs::new(config, features);
        let protected = mtu.current - if repairs.is_some() { REPAIR_ROOM } else { 0 };
        seal.set_update_after(config.key_update.into());
        seal.rest(); // until there is data: many begin, and some never come
        let channels = config.channels(protected);
        Ok(Self {
            life: Life::Up,
            close_text: Box::default(),
            seal,
            peer: Peer { sid: peer_sid, is_server: is_client, user },
            path: Path::new(peer, moves, seed),
            keepalive: Keepalive::new(now, config.keepalive, config.timeout, is_client),
            lanes: Lanes::new(conv, Arc::clone(config), protected)?,
            channels: channels.map(|channels| Channels::new(&channels).map(Box::new)).transpose()?,
            datagrams: Datagrams::new(SessionConfig::datagram_max(protected)),
            turns: Turns::new(config.pacing.as_ref())?,
            received: acks::Received::default(),
            sent: None,
            measured: Measured::default(),
            answer: None,
            redirects: Redirects::default(),
            mtu,
            parts: FrameParts::default(),
            marks: Marks::new(features),
            repairs,
            budget: Budget::NONE_SET,
            events: Pending { connected: true, ..Pending::default() },
            stats: Counters::default(),
            observer: None,
        })
    }

    /// Queues a message on a lane; returns the bytes taken, which is all of them but for a stream.
    ///
    /// # Errors
    ///
    /// Enough waits already: send again later. Or the message is too long, or there is no such lane, or it is too late.
    pub fn send(&mut self, lane: usize, message: &[u8]) -> Result<usize, SendError> {
        self.check_up()?;
        let room = self.within_memory(lane, message);
        if let Err(SendError::Full { .. } | SendError::NoMemory) = room {
            self.budget.is_short = true;
            self.lanes.wait_for_room(self.keepalive.now, lane, message.len());
        }
        let taken = self.lanes.send(lane, room?)?;
        self.budget.spend(taken + SEGMENT);
        self.turns.is_eager = self.lanes.are_open();
        Ok(taken)
    }

    /// Ends what this end sends on a lane, by an empty message, also on a stream. It ends nothing but by agreement: what is sent afterwards
    /// is sent.
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send).
    pub fn send_end(&mut self, lane: usize) -> Result<(), SendError> {
        self.check_up()?;
        self.lanes.send_end(lane)
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
        self.lanes.blocks().nth(lane).ok_or(RecvError::NoMessage)?.recv_into(buf)
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
        self.check_up()?;
        self.budget.check(datagram.len())?;
        let id = self.datagrams.send(&self.lanes.config, datagram)?;
        self.budget.spend(datagram.len() + SEGMENT);
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
        self.budget.spend(self.mtu.least().into());
        Ok(id)
    }

    /// Stores a block of a channel, to be sent slice by slice.
    ///
    /// # Errors
    ///
    /// The channel carries none of that length, or has no room now, or it is too late.
    pub fn send_block(&mut self, channel: usize, block: &[u8]) -> Result<(), SendError> {
        self.budget.check(block.len())?;
        self.open_channels(channel)?.send_block(channel, block)?;
        self.budget.spend(2 * block.len());
        Ok(())
    }

    /// Takes the next message or block of a channel.
    pub fn recv_message(&mut self, channel: usize) -> Option<Received<M>> {
        self.channels.as_mut()?.recv(channel)
    }

    /// Where the peer is.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.path.address
    }

    /// What the peer's application said in the handshake.
    #[must_use]
    pub const fn user(&self) -> &[u8] {
        &self.peer.user
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

    fn check_up(&self) -> Result<(), SendError> {
        if self.is_up() { Ok(()) } else { Err(SendError::Closed) }
    }

    fn open_channels(&mut self, channel: usize) -> Result<&mut Channels<M>, SendError> {
        self.check_up()?;
        self.budget.check(0)?;
        let none = crate::message::ChannelSendError::NoChannel { index: channel, count: 0 };
        self.channels.as_deref_mut().ok_or(none.into())
    }

    fn ack_delay(&self) -> u64 {
        micros(self.lanes.config.ack_delay).into()
    }
}
