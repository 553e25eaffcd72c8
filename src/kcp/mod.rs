//! Bare KCP, on the wire what every KCP implementation speaks.
//!
//! [`Kcp`] is the control block: the ARQ machine of one conversation, without I/O and without a clock. [`Link`] adds
//! the address of its peer, and [`Peers`] holds many of those. Both implement [`Machine`](crate::machine::Machine).
#![cfg_attr(feature = "net", doc = "[`Socket`] and [`Listener`] are the same over UDP.")]
//!
//! Each verb of [`Kcp`] is a short list of calls into the parts: `send` and `recv` hold the segments, `input` takes a
//! datagram apart, `flush` and `transmit` build datagrams with the `packer`. `rtt` estimates the round trip. `classic`
//! detects loss as ikcp.c does, `modern` by timing. [`congestion`] limits what is in flight. `acks` and `probe` are
//! what we owe the peer and ask of it.

mod acks;
mod classic;
mod config;
pub mod congestion;
mod envelope;
mod error;
mod flush;
mod input;
mod link;
pub(crate) mod modern;
mod observe;
mod packer;
mod probe;
mod recv;
mod rest;
mod rtt;
mod send;
mod stats;
mod trace;
mod transmit;

pub use crate::config::in_range;
#[cfg(feature = "net")]
pub use crate::net::{listener::Listener, socket::Socket};
pub use crate::seq::{Conv, Sn};
pub use crate::session::peers::{
    Peer, PeerCloseReason, PeerEvent, PeerId, Peers, PeersConfig, PeersStats, RegisterError, Strangers,
};
pub use crate::time::Millis;
pub use config::{Config, Modern, Recovery};
pub use congestion::Congestion;
pub use envelope::{Envelope, EnvelopeConfig, Opened};
pub use error::{InputError, RecvError, SendError};
pub use link::Link;
pub use observe::{Cause, Event};
pub use stats::{Rejected, Stats};

/// KCP segments: encoding and decoding.
pub mod wire {
    pub use crate::wire::{Command, DecodeError, HEADER_LEN, Header, Segment, Segments, conv_of, segments};
}

use crate::config::ConfigError;
use crate::time::Time;
use crate::wire::{InPacket, Output};
use acks::AckList;
use bytes::Bytes;
use classic::Classic;
use congestion::Controller;
use flush::Timer;
pub(crate) use input::LONG_AGO;
use modern::{ByTime, Rebuild, Ride};
use observe::Observer;
use probe::Probe;
use recv::Receiver;
use rest::Rest;
pub(crate) use rtt::PathHint;
use rtt::Rtt;
use send::Sender;
use stats::Counters;

/// A KCP control block: one end of a conversation.
///
/// The owner feeds it received datagrams ([`input`](Self::input)) and the time ([`update`](Self::update)). It hands
/// finished datagrams to its [`Output`].
///
/// ```
/// use whitewater::Time;
/// use whitewater::kcp::{Config, Conv, Kcp};
/// use whitewater::machine::DatagramQueue;
///
/// let config = Config::default();
/// let mut alice = Kcp::new(Conv(7), &config, DatagramQueue::new())?;
/// let mut bob = Kcp::new(Conv(7), &config, DatagramQueue::new())?;
///
/// alice.send(b"hello")?;
/// let now = Time::from_millis(1);
/// alice.flush(now);
/// while let Some(datagram) = alice.output_mut().pop() {
///     bob.input(now, datagram)?;
/// }
/// assert_eq!(bob.recv().ok_or("nothing")?, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Kcp<O> {
    conv: Conv,
    config: Config,
    sender: Sender,
    receiver: Receiver,
    rtt: Rtt,
    congestion: Controller,
    probe: Probe,
    timer: Timer,
    counters: Counters,
    work: Option<Box<Work>>,
    output: O,
}

/// What a control block needs only while there is traffic.
#[derive(Debug, Default)]
struct Work {
    acks: AckList,
    classic: Classic,
    by_time: ByTime,
    /// Made when the first segment is missing or the first repair arrives, if repairs are on.
    rebuild: Option<Box<Rebuild>>,
    /// Made when the first segment arrives, if acknowledgements may wait for a segment of ours.
    ride: Option<Box<Ride>>,
    spare: Vec<u8>,
    /// Congestion marks are ignored until then.
    marked_until: Time,
    /// `Some` while events are logged.
    observer: Option<Box<Observer>>,
    rest: Rest,
    /// When something was last sent or counted.
    flushed: Time,
}

impl Work {
    /// When the acknowledgements that we owe are sent, or the last one is repeated. `None`: nothing to send.
    fn acks_at(&self, now: Time) -> Option<Time> {
        let owed = self.acks.len();
        let waits = self.rebuild.as_ref().and_then(|rebuild| rebuild.waits.due_at(now, owed));
        if owed == 0 {
            return waits;
        }
        let ride = self.ride.as_ref().map(|ride| ride.due_at(now));
        Some(waits.max(ride).unwrap_or(now))
    }
}

impl<O: Output> Kcp<O> {
    /// Makes a control block of conversation `conv` that sends its datagrams to `output`. Both ends use the same
    /// `conv`. Source: ikcp.c `ikcp_create`.
    ///
    /// # Errors
    ///
    /// A field of `config` is out of range.
    pub fn new(conv: Conv, config: &Config, output: O) -> Result<Self, ConfigError> {
        Self::starting_at(conv, config, output, Sn(0), Sn(0))
    }

    /// Makes a control block whose first segment has the number `snd`, and which expects `rcv` first. KCP starts both
    /// at 0; a protocol around it may agree on other numbers.
    ///
    /// # Errors
    ///
    /// A field of `config` is out of range.
    pub fn starting_at(
        conv: Conv,
        config: &Config,
        output: O,
        snd: Sn,
        rcv: Sn,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            conv,
            config: *config,
            sender: Sender::new(snd),
            receiver: Receiver::new(rcv),
            rtt: Rtt::new(),
            congestion: Controller::new(config.congestion),
            probe: Probe::default(),
            timer: Timer::default(),
            counters: Counters::default(),
            work: None,
            output,
        })
    }

    /// Queues a message; the next flush sends it. Returns the number of bytes taken. That is the whole message, except
    /// in a stream (`Config::stream`), which may take less. An empty message is sent as one, but adds nothing to a
    /// stream. Source: ikcp.c `ikcp_send`.
    ///
    /// # Errors
    ///
    /// [`SendError::TooLong`] if it needs more than 127 segments, [`SendError::Full`] if the queue is full,
    /// [`SendError::Empty`] after [`refuse_empty`](Self::refuse_empty). On an error nothing is taken.
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> Result<usize, SendError> {
        if message.is_empty() && self.sender.refuses_empty && !self.config.stream {
            return Err(SendError::Empty);
        }
        self.sender.send(message, None, &self.config)
    }

    /// [`send`](Self::send) without a copy: the segments share the memory of `message`, unless they are short.
    ///
    /// # Errors
    ///
    /// The same as [`send`](Self::send).
    #[expect(clippy::needless_pass_by_value, reason = "the buffer is handed over")]
    pub fn send_bytes(&mut self, message: Bytes) -> Result<usize, SendError> {
        if message.is_empty() {
            return self.send(&[]);
        }
        self.sender.send(&message, Some(&message), &self.config)
    }

    /// Refuses to send empty messages from now on. For peers such as kcp-go and node-kcp, which acknowledge an empty
    /// message and then never read past it.
    pub const fn refuse_empty(&mut self) {
        self.sender.refuses_empty = true;
    }

    /// Queues an empty message. In a stream this marks an end, if both peers agree on that; [`send`](Self::send) would
    /// add nothing there. Data that the stream sends next may share its segment.
    ///
    /// # Errors
    ///
    /// [`SendError::Full`] if the queue is full, [`SendError::Empty`] after [`refuse_empty`](Self::refuse_empty).
    pub fn send_end(&mut self) -> Result<(), SendError> {
        if self.sender.refuses_empty {
            return Err(SendError::Empty);
        }
        let config = Config { stream: false, ..self.config };
        self.sender.send(&[], None, &config).map(drop)
    }

    /// Reads the next message, or in a stream the next segment, and returns its length in bytes. Source: ikcp.c
    /// `ikcp_recv`.
    ///
    /// # Errors
    ///
    /// [`RecvError::NoMessage`] until a whole message has arrived. [`RecvError::BufferTooSmall`] if it does not fit; it
    /// stays queued.
    #[inline]
    pub fn recv_into(&mut self, buf: &mut [u8]) -> Result<usize, RecvError> {
        match self.receiver.read_simple(buf) {
            Some(len) => Ok(len),
            None => self.recv_any(buf),
        }
    }

    #[inline(never)]
    fn recv_any(&mut self, buf: &mut [u8]) -> Result<usize, RecvError> {
        if let Some(len) = self.receiver.read_one(buf) {
            return Ok(len);
        }
        let message = self.room_in(buf)?;
        self.make_room(|receiver| receiver.read(message));
        Ok(message.len())
    }

    /// The front of `buf`, with the length of the next message.
    fn room_in<'b>(&self, buf: &'b mut [u8]) -> Result<&'b mut [u8], RecvError> {
        let (have, need) = (buf.len(), self.peek_size().ok_or(RecvError::NoMessage)?);
        buf.get_mut(..need).ok_or(RecvError::BufferTooSmall { have, need })
    }

    /// [`recv_into`](Self::recv_into), but the message stays queued.
    ///
    /// # Errors
    ///
    /// The same as [`recv_into`](Self::recv_into).
    pub fn peek(&self, buf: &mut [u8]) -> Result<usize, RecvError> {
        let message = self.room_in(buf)?;
        self.receiver.peek(message);
        Ok(message.len())
    }

    /// Returns the next message, or in a stream the next segment. `None`: no whole one has arrived. A message of one
    /// segment that arrived through [`input_bytes`](Self::input_bytes) is not copied.
    pub fn recv(&mut self) -> Option<Bytes> {
        let need = self.peek_size()?;
        Some(self.make_room(|receiver| receiver.read_bytes(need)))
    }

    /// Length of the next message, bytes. `None`: it has not arrived in full. Source: ikcp.c `ikcp_peeksize`.
    #[must_use]
    pub fn peek_size(&self) -> Option<usize> {
        self.receiver.peek_size()
    }

    #[inline]
    pub(crate) fn is_readable(&self) -> bool {
        self.receiver.is_readable()
    }

    /// Flushes if the interval has passed since the last flush. Call it at least once per interval, or when
    /// [`check`](Self::check) says. Source: ikcp.c `ikcp_update`.
    ///
    /// After 5 s without traffic it frees memory, as [`shrink`](Self::shrink) does.
    pub fn update(&mut self, now: Time) {
        if self.is_beat(now) && !self.rests(now) {
            self.flush(now);
        }
        self.shrink_if_quiet(now);
    }

    /// [`update`](Self::update) if [`check`](Self::check) says that something is due. The first datagram goes to
    /// `ahead`, if there is room for it.
    #[inline]
    pub(crate) fn update_if_due(&mut self, now: Time, ahead: Option<&mut InPacket<'_>>) {
        if self.due_at(now) <= now && self.is_beat(now) {
            self.flush_ahead(now, ahead);
        }
    }

    /// Whether the interval has passed, or none has to.
    fn is_beat(&mut self, now: Time) -> bool {
        self.timer.tick(now.wire(), self.config.interval) || self.config.is_at_once()
    }

    /// Segments in flight and waiting to be sent. Source: ikcp.c `ikcp_waitsnd`.
    #[must_use]
    pub fn wait_snd(&self) -> usize {
        self.sender.in_flight as usize + self.sender.waiting() as usize
    }

    /// Whether the link counts as dead. Classic recovery: a segment was sent `dead_link` times without an
    /// acknowledgement. Modern: nothing was acknowledged for `dead_link` seconds. As in ikcp.c, this stays true and the
    /// control block keeps trying; the owner decides what to do.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        self.sender.dead
    }

    /// Whether there is nothing to send, resend or acknowledge.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.wait_snd() == 0
            && !self.owes_acks()
            && !self.probe.ask
            && !self.probe.tell
            && self.probe.tell_again_at(Millis(0), self.sender.rmt_wnd).is_none()
    }

    /// The number of the conversation.
    #[must_use]
    pub const fn conv(&self) -> Conv {
        self.conv
    }

    /// The settings in force.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Changes any setting while running. Segments that are already cut keep their size: after the mtu is lowered, they
    /// are sent in datagrams longer than it.
    ///
    /// # Errors
    ///
    /// A field is out of range. Nothing has changed then.
    pub fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        config.check()?;
        self.set_recovery(config.recovery)?;
        if let Some(work) = &mut self.work
            && (!config.has_repairs() || config.rcv_mtu != self.config.rcv_mtu)
        {
            work.rebuild = None; // our ACKs must no longer say that we understand repairs
        }
        if !config.congestion.shares_controller(self.config.congestion) {
            self.congestion = Controller::new(config.congestion);
        }
        self.config = *config;
        self.receiver.set_window(config.rcv_wnd);
        if let Some(work) = &mut self.work {
            work.rest = Rest::default();
            if self.sender.in_flight > 0 {
                work.classic.deadlines.look(); // with the new settings, segments in flight may count as lost
            }
        }
        Ok(())
    }

    /// From now on acknowledgements may wait for a segment of this end. The peer must support that, and know that we do
    /// it.
    pub(crate) const fn set_ack_ride(&mut self) {
        self.receiver.rides = true;
    }

    /// Switches between kinds of recovery, which measure time in different units.
    fn set_recovery(&mut self, recovery: Recovery) -> Result<(), ConfigError> {
        let changes = (recovery == Recovery::Classic) == self.config.is_by_time();
        if !changes {
            return Ok(());
        }
        if self.sender.in_flight > 0 {
            return crate::config::unless(true, "recovery", "cannot change while segments are in flight");
        }
        self.rtt = Rtt::new();
        if let Some(work) = &mut self.work {
            (work.classic, work.by_time, work.ride) = (Classic::default(), ByTime::default(), None);
        }
        Ok(())
    }

    /// The sink of the datagrams.
    #[must_use]
    pub const fn output(&self) -> &O {
        &self.output
    }

    /// The sink of the datagrams, to change or to empty it.
    pub const fn output_mut(&mut self) -> &mut O {
        &mut self.output
    }

    /// Frees memory that is not in use. A control block that has long been idle then costs no more than a new one;
    /// traffic allocates it again. Modern recovery also drops what it has learned about late transmissions and about
    /// what rebuilds lost segments, and learns it anew.
    pub fn shrink(&mut self) {
        self.sender.shrink();
        self.receiver.shrink();
        if self.sender.in_flight == 0 && !self.owes_acks() && !self.has_passes() {
            let observer = self.work.as_mut().and_then(|work| work.observer.take());
            let flushed = Time::NEVER; // there is nothing more to free
            self.work =
                observer.map(|one| Box::new(Work { observer: Some(one), flushed, ..Work::default() }));
        }
    }

    /// Changes what the receiver holds, queues what then has room, and tells the peer if this opens the window.
    #[inline]
    fn make_room<T>(&mut self, change: impl FnOnce(&mut Receiver) -> T) -> T {
        let was_closed = self.receiver.window(self.config.rcv_wnd) == 0;
        let changed = change(&mut self.receiver);
        self.receiver.deliver(self.config.rcv_wnd);
        if was_closed && self.receiver.window(self.config.rcv_wnd) > 0 {
            self.probe.opened(self.config.is_by_time());
        }
        changed
    }

    /// Whether acknowledgements are to be sent, for the first time or again.
    fn owes_acks(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.acks_at(Time::ZERO).is_some())
    }

    fn has_passes(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.classic.has_passes())
    }
}
