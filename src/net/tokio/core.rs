//! What a driver task and its handles want of the machine between them: bare KCP peers, or sessions.

use super::super::batch::{Fragments, Outbox};
use super::super::error::Error;
use crate::arq::RecvError;
use crate::machine::{Machine, Transmit};
use crate::session::{Event, SendError, Undelivered};
use crate::time::Time;
use std::fmt::Debug;
use std::hash::Hash;
use std::net::SocketAddr;

/// Peers or sessions without I/O, each of them with an id and with lanes. A bare KCP peer is one lane.
pub(super) trait Core: Machine + Send + 'static {
    /// Names one of them.
    type Id: Copy + Debug + Eq + Hash + Send + Sync + Unpin;
    /// What is left to read of one that has ended.
    type Remains: Send;
    /// Whether an empty message on a lane ends what the peer sends there.
    const HAS_END: bool;
    /// Whether [`flush`](Self::flush) does anything.
    const HAS_FLUSH: bool;
    /// Whether what is too long for its way may be cut there.
    const FRAGMENTS: Fragments;

    /// The next thing that has happened.
    fn poll_notice(&mut self, now: Time) -> Option<(Self::Id, Notice<Self::Remains>)>;

    /// Puts datagrams into the outbox until it is due; returns whether that was all. `way` is what the socket makes of an address.
    fn fill(&mut self, now: Time, outbox: &mut Outbox, way: impl Fn(SocketAddr) -> SocketAddr) -> bool {
        while !outbox.is_due() {
            let Some(Transmit { address, ecn }) = self.poll_transmit(now, outbox.stage()) else {
                return true;
            };
            outbox.commit(way(address), ecn);
        }
        false
    }

    fn send(&mut self, id: Self::Id, lane: usize, message: &[u8]) -> Result<usize, SendError>;

    /// Ends what is sent on a lane.
    fn send_end(&mut self, id: Self::Id, lane: usize) -> Result<(), SendError>;

    fn recv(&mut self, id: Self::Id, lane: usize, buf: &mut [u8]) -> Result<usize, RecvError>;

    /// Whether there is a message on a lane.
    fn is_readable(&mut self, id: Self::Id, lane: usize) -> bool;

    /// Segments of a lane that have not arrived. If there are some, [`Notice::Writable`] comes when there are none.
    fn unacked(&mut self, id: Self::Id, lane: usize) -> usize;

    /// Has what waits for the next flush leave now.
    fn flush(&mut self, id: Self::Id);

    /// Ends one that nobody uses any more, when what was sent has arrived.
    fn release(&mut self, now: Time, id: Self::Id);

    /// Whether nothing is left to do for those that were released.
    fn is_idle(&self) -> bool;

    /// The same as [`recv`](Self::recv) of one that has ended.
    fn recv_remains(remains: &mut Self::Remains, lane: usize, buf: &mut [u8]) -> Result<usize, RecvError>;
}

/// What has happened to a peer or a session.
pub(super) enum Notice<R> {
    /// It is there.
    Up,
    Readable,
    /// A lane has room again, or what was sent on it has arrived.
    Writable,
    /// Something that only its user knows what to do about.
    Told(Event),
    Closed(Closed, R),
}

/// The end of a peer or a session.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    pub(super) error: Error,
    pub(super) undelivered: Undelivered,
}
