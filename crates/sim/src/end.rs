//! A control block as a peer, with the times at which `update` is called.

use super::pair::{Peer, pop_from};
use std::time::Duration;
use whitewater::kcp::{self, Config, Conv, Kcp};
use whitewater::machine::DatagramQueue;
use whitewater::{ConfigError, Time};

/// When `update` is called, and whether `flush` is called as well.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "two switches with names")]
pub struct Drive {
    /// When `update` is called.
    pub clock: Clock,
    /// Whether `flush` is called after each message sent and each datagram received.
    pub flush: bool,
}

/// When `update` is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Clock {
    /// When [`Kcp::check`] says: nothing waits for the next interval.
    Check,
    /// As in a loop that calls `ikcp_update` every ms: flushes are always `interval` apart. Flushes with
    /// nothing to do are skipped, which makes no difference.
    Beat,
}

impl Drive {
    /// Driven by [`Kcp::check`], as [`net`](whitewater#the-layers) does.
    pub const CHECK: Self = Self { clock: Clock::Check, flush: false };
    /// Driven by a loop that calls `update` each ms, as most users of ikcp.c do.
    pub const BEAT: Self = Self { clock: Clock::Beat, flush: false };

    /// The same, with a `flush` after each message sent and each datagram received.
    #[must_use]
    pub const fn flushing(self) -> Self {
        Self { flush: true, ..self }
    }
}

/// A control block that drives itself: one end of a [`Pair`](super::Pair).
#[derive(Debug)]
pub struct KcpEnd {
    kcp: Kcp<DatagramQueue>,
    drive: Drive,
    /// The first flush.
    first: Time,
    /// When any method was last called; `None` before the first update.
    called: Option<Time>,
}

impl KcpEnd {
    /// A control block of conversation `conv`. With [`Clock::Beat`] it first flushes at `first`.
    ///
    /// # Errors
    ///
    /// If a field of `config` is out of range.
    pub fn new(conv: Conv, config: &Config, drive: Drive, first: Time) -> Result<Self, ConfigError> {
        let kcp = Kcp::new(conv, config, DatagramQueue::with_limit(usize::MAX))?;
        Ok(Self { kcp, drive, first, called: None })
    }

    /// Sends a message and returns the number of bytes accepted; see [`Kcp::send`].
    ///
    /// # Errors
    ///
    /// As [`Kcp::send`].
    pub fn send(&mut self, now: Time, message: &[u8]) -> Result<usize, kcp::SendError> {
        let taken = self.kcp.send(message)?;
        self.after_call(now);
        Ok(taken)
    }

    /// Replaces the content of `message` by the next message. Returns `false` if there is none.
    pub fn recv(&mut self, message: &mut Vec<u8>) -> bool {
        let Some(len) = self.kcp.peek_size() else {
            return false;
        };
        message.resize(len, 0);
        self.kcp.recv_into(message).is_ok()
    }

    /// The control block.
    #[must_use]
    pub const fn kcp(&self) -> &Kcp<DatagramQueue> {
        &self.kcp
    }

    /// The control block, mutable.
    pub const fn kcp_mut(&mut self) -> &mut Kcp<DatagramQueue> {
        &mut self.kcp
    }

    /// Number of segments that were resent.
    #[must_use]
    pub fn resends(&self) -> u64 {
        let stats = self.kcp.stats();
        u64::from(stats.resends_timeout) + u64::from(stats.resends_fast)
    }

    fn after_call(&mut self, now: Time) {
        if self.drive.flush {
            self.kcp.flush(now);
        }
        self.called = self.called.map(|_| now);
    }

    /// The first flush at `due` or later that has not passed. At equal times, a flush comes before another
    /// call.
    fn beat(&self, due: Time, called: Time) -> Time {
        let from = due.max(called + Duration::from_micros(1)).since(self.first).as_micros();
        let interval = u128::from(self.kcp.config().interval) * 1000;
        let beats = from.div_ceil(interval.max(1));
        self.first + Duration::from_micros(u64::try_from(beats * interval).unwrap_or(u64::MAX))
    }
}

impl Peer for KcpEnd {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        let _ = self.kcp.input(now, datagram); // a bad one has been counted
        self.after_call(now);
    }

    fn poll(&mut self, now: Time) {
        self.kcp.update(now);
        self.called = Some(now);
    }

    fn next_wake(&self, now: Time) -> Option<Time> {
        match (self.drive.clock, self.called) {
            (Clock::Check, _) => self.kcp.check(now),
            (Clock::Beat, None) => Some(self.first), // even with nothing to send: it opens the first window
            (Clock::Beat, Some(called)) => self.kcp.check(now).map(|due| self.beat(due, called)),
        }
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        pop_from(self.kcp.output_mut(), datagram)
    }
}
