//! One bare KCP peer, and what is due for it.

use super::memory::{Allowance, UNKNOWN};
use super::{Peers, PeersConfig};
use crate::events::Logged;
use crate::kcp::{Envelope, Event, Kcp, RecvError, SendError, Stats};
use crate::seq::Conv;
use crate::session::seats::Entry;
use crate::time::Time;
use crate::wire::{DatagramQueue, Output};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Identifies a peer. No two peers of one [`Peers`](super::Peers) ever have the same id.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PeerId(pub(super) u64);

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Something that happened to a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PeerEvent {
    /// A stranger became a peer.
    Accepted(PeerId),
    /// A message has arrived. Read until [`Peer::recv`] returns nothing: the next event comes with the next datagram.
    Readable(PeerId),
    /// A send queue that was full has room again, or everything has arrived, if you [asked](Peer::is_delivered).
    Writable(PeerId),
    /// The peer is gone.
    Closed {
        /// Which peer.
        id: PeerId,
        /// Why.
        reason: PeerCloseReason,
    },
}

/// Why a peer is gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PeerCloseReason {
    /// It sent no datagram for `idle_timeout`.
    Idle,
    /// It did not acknowledge a segment for too long; see [`Kcp::is_dead`].
    DeadLink,
}

/// A bare KCP peer: one address and one conv. What you send here leaves when its machine is next drained.
#[derive(Debug)]
pub struct Peer {
    pub(super) kcp: Kcp<DatagramQueue>,
    /// Wrapped datagrams that are ready to be sent.
    pub(super) wrapped: Option<Box<DatagramQueue>>,
    address: SocketAddr,
    /// The address whose limits it counts against. `None`: it was registered.
    pub(super) host: Option<IpAddr>,
    /// Bytes that it counts for in the memory of all peers, and how many it may hold.
    pub(super) counted: u64,
    pub(super) allowance: Allowance,
    /// About how many bytes it may have taken since it was counted; more if it has to be counted anyway.
    pub(super) uncounted: u64,
    /// Bytes that the envelope holds for it.
    pub(super) enveloped: usize,
    pub(super) heard: Time,
    pub(super) entry: Entry,
    /// It must be served before its datagrams are sent.
    pub(super) is_touched: bool,
    /// A datagram was sent since the last check for more.
    has_sent: bool,
    pub(super) flush: bool,
    /// The next service flushes what was sent and received.
    flushes_sends: bool,
    pub(super) flushes_acks: bool,
    /// Events that are on their way.
    pub(super) told_readable: bool,
    pub(super) told_writable: bool,
    /// A send found the queue full and waits for the event.
    blocked: bool,
    /// The program asked whether everything has arrived, and it had not.
    is_asked: bool,
    /// Its memory was freed since it was last heard from.
    pub(super) shrunk: bool,
    /// It is closed when everything sent has arrived, and at this time at the latest.
    pub(super) leaves_by: Option<Time>,
}

impl Peer {
    pub(super) fn new(
        peers: &Peers,
        now: Time,
        address: SocketAddr,
        conv: Conv,
        host: Option<IpAddr>,
    ) -> Option<Self> {
        let (config, envelope) = (&peers.config.kcp, peers.envelope());
        let mut kcp = Kcp::new(conv, config, config.datagram_queue()).ok()?;
        if envelope.is_some() {
            kcp.refuse_empty();
        }
        Some(Self {
            wrapped: envelope.map(|_| Box::new(kcp.config().datagram_queue())),
            kcp,
            address,
            host,
            counted: 0,
            allowance: Allowance::Ample(0),
            uncounted: 0,
            enveloped: 0,
            heard: now,
            entry: Entry::at(now),
            is_touched: true,
            has_sent: false,
            flush: false,
            flushes_sends: envelope.is_some_and(Envelope::flushes_sends),
            flushes_acks: envelope.is_some_and(Envelope::flushes_acks),
            told_readable: false,
            told_writable: false,
            blocked: false,
            is_asked: false,
            shrunk: false,
            leaves_by: None,
        })
    }

    /// Queues a message for the next flush.
    ///
    /// # Errors
    ///
    /// The send queue is full; [`PeerEvent::Writable`] tells when to try again. Or the message is too long.
    pub fn send(&mut self, message: &[u8]) -> Result<usize, SendError> {
        let sent = if self.has_memory(message.len()) {
            self.take(message.len());
            self.kcp.send(message)
        } else {
            Err(SendError::Full { segments: self.kcp.wait_snd(), bytes: self.kcp.send_held() })
        };
        self.flush |= self.flushes_sends;
        self.blocked |= sent.is_err_and(|error| error.is_full());
        sent
    }

    /// Whether everything sent is known to have arrived. If not, [`PeerEvent::Writable`] reports when it has.
    pub fn is_delivered(&mut self) -> bool {
        self.is_asked = self.kcp.wait_snd() > 0;
        !self.is_asked
    }

    /// Returns the next message. `None`: no whole one has arrived.
    pub fn recv(&mut self) -> Option<Bytes> {
        self.kcp.recv()
    }

    /// Reads the next message into `buf` and returns its length.
    ///
    /// # Errors
    ///
    /// There is no message, or it does not fit and stays queued.
    pub fn recv_into(&mut self, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.kcp.recv_into(buf)
    }

    /// Sends everything that may be sent when its machine is next drained, instead of after the interval.
    pub const fn flush(&mut self) {
        self.flush = true;
    }

    /// Counters and measurements.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.kcp.stats()
    }

    /// The conversation.
    #[must_use]
    pub fn conv(&self) -> Conv {
        self.kcp.conv()
    }

    /// The address of the peer.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.address
    }

    /// Logs events from now on; see [`Kcp::log_events`].
    pub fn log_events(&mut self, most: usize) {
        self.kcp.log_events(self.heard, most);
    }

    /// Takes the oldest event of the log.
    pub fn poll_log(&mut self) -> Option<Logged<Event>> {
        self.kcp.poll_log()
    }

    /// Takes all events of the log and writes each as a line of JSON; see [`Kcp::write_log`].
    ///
    /// # Errors
    ///
    /// Errors of `out`. The event that could not be written is lost.
    pub fn write_log(&mut self, out: &mut impl io::Write) -> io::Result<usize> {
        self.kcp.write_log(out)
    }

    /// The control block.
    #[must_use]
    pub const fn kcp(&self) -> &Kcp<DatagramQueue> {
        &self.kcp
    }

    /// The control block, to configure it, or to send and receive without copies. Leave methods that take a time to the
    /// owner: the control block has a clock of its own.
    pub const fn kcp_mut(&mut self) -> &mut Kcp<DatagramQueue> {
        self.uncounted = UNKNOWN;
        &mut self.kcp
    }

    /// Takes a datagram from the peer. Returns whether it changed anything.
    pub(super) fn input(&mut self, now: Time, datagram: &[u8]) -> bool {
        let result = self.kcp.input(now, datagram);
        if let Err(error) = &result {
            log::trace!("rejected a datagram from {}: {error}", self.address);
        }
        result.is_ok()
    }

    /// Takes what an envelope has rebuilt. Returns whether it changed anything.
    pub(super) fn rebuild(&mut self, now: Time, id: PeerId, envelope: &mut dyn Envelope) -> bool {
        envelope.rebuild(now, id.0, &mut self.kcp)
    }

    /// Wraps what is ready to be sent.
    pub(super) fn wrap(&mut self, now: Time, id: PeerId, envelope: &mut dyn Envelope) {
        let Some(wrapped) = &mut self.wrapped else { return };
        while !wrapped.is_full()
            && let Some(datagram) = self.kcp.output_mut().pop()
        {
            envelope.wrap(now, id.0, true, datagram, wrapped);
        }
    }

    /// Does what is due, and reports: is the peer gone and why, can it be written to, when is it due again?
    pub(super) fn serve(
        &mut self,
        now: Time,
        id: PeerId,
        config: &PeersConfig,
        mut envelope: Option<&mut dyn Envelope>,
        events: &mut VecDeque<PeerEvent>,
    ) -> Option<PeerCloseReason> {
        let flush = std::mem::take(&mut self.flush) || config.eager;
        let must_update = flush || !self.kcp.config().is_at_once();
        let mut due = if must_update { now } else { self.kcp.due_at(now) };
        if due <= now {
            self.update(now, flush);
            due = self.kcp.due_at(now);
        }
        if let Some(envelope) = &mut envelope {
            self.wrap(now, id, &mut **envelope);
            self.note_envelope(id, &**envelope);
        }
        let idle_at = self.heard + config.idle_timeout;
        if self.kcp.is_dead() {
            return Some(PeerCloseReason::DeadLink);
        }
        if now >= idle_at {
            return Some(PeerCloseReason::Idle);
        }
        let waits = self.blocked && self.kcp.waiting() <= self.kcp.config().snd_queue / 2;
        let has_room = waits && self.has_memory(self.kcp.config().mtu.into());
        let is_delivered = self.is_asked && self.kcp.wait_snd() == 0;
        self.blocked &= !has_room;
        self.is_asked &= !is_delivered;
        if (has_room || is_delivered) && !std::mem::replace(&mut self.told_writable, true) {
            events.push_back(PeerEvent::Writable(id));
        }
        let quiet_at = self.heard + QUIET;
        if !self.shrunk && now >= quiet_at && self.kcp.is_idle() {
            self.kcp.shrink();
            self.kcp.output_mut().shrink();
            if let Some(wrapped) = &mut self.wrapped {
                wrapped.shrink();
            }
            self.shrunk = true;
            if let Some(envelope) = envelope {
                envelope.shrink(id.0);
                self.note_envelope(id, envelope);
            }
            self.uncounted = UNKNOWN;
        }
        let due = idle_at.min(due.max(now));
        let due = self.leaves_by.map_or(due, |by| by.min(due));
        let due = if waits && !has_room {
            self.uncounted = UNKNOWN; // to be told what there is
            due.min(now + MEMORY_AGAIN)
        } else {
            due
        };
        self.entry.due = if !self.shrunk && quiet_at > now { due.min(quiet_at) } else { due };
        None
    }

    pub(super) fn update(&mut self, now: Time, flush: bool) {
        self.kcp.update(now);
        if flush && !self.kcp.config().is_at_once() {
            self.kcp.flush(now); // at once, because the update has done the rest
        }
    }

    /// The datagrams that are ready to be sent.
    pub(super) fn into_last_words(mut self) -> DatagramQueue {
        match self.wrapped {
            Some(wrapped) => *wrapped,
            None => std::mem::take(self.kcp.output_mut()),
        }
    }

    fn may_send(&self) -> bool {
        !self.wrapped.as_deref().unwrap_or(self.kcp.output()).is_empty()
    }

    /// Whether it is being closed and has nothing more to send, or its time is up.
    pub(super) fn has_left(&self, now: Time) -> bool {
        self.leaves_by.is_some_and(|by| now >= by || self.kcp.wait_snd() == 0)
    }

    /// Whether there is more to send after what was ready was sent. Reported once.
    pub(super) fn has_left_more(&mut self) -> bool {
        if self.may_send() || !std::mem::take(&mut self.has_sent) {
            return false;
        }
        let waits = !self.kcp.output().is_empty();
        if let Some(wrapped) = &self.wrapped {
            return wrapped.is_empty() && (waits || self.kcp.output_mut().clear_full());
        }
        !waits && self.kcp.output_mut().clear_full()
    }

    /// Whether its turn goes on: it has another datagram, or has to be served again.
    #[inline]
    pub(super) fn goes_on(&mut self) -> bool {
        if self.may_send() {
            return true;
        }
        self.is_touched |= self.has_left_more();
        self.is_touched
    }

    /// Takes the next datagram that may be sent.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<&[u8]> {
        if !self.may_send() {
            return None;
        }
        self.has_sent = true;
        if let Some(wrapped) = &mut self.wrapped {
            return wrapped.pop();
        }
        self.kcp.output_mut().pop()
    }
}

/// How often a peer looks whether there is memory again.
const MEMORY_AGAIN: Duration = Duration::from_millis(100);
/// Silence after which a peer frees memory.
const QUIET: Duration = Duration::from_secs(2);
