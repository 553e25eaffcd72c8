//! What a driver task and its handles want of the machine between them: bare KCP peers, or sessions.

use super::super::error::Error;
use crate::arq::RecvError;
use crate::machine::Machine;
use crate::session::raw::{self, Peer, PeerId, Peers};
use crate::session::{Event, SendError, Undelivered};
use crate::time::Time;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

/// Peers or sessions without I/O, each of them with an id and with lanes.
pub(super) trait Core: Machine + Send + 'static {
    /// Names one of them.
    type Id: Copy + Debug + Eq + Hash + Send + Sync + Unpin;
    type Member: Member;

    /// The next thing that has happened.
    fn poll_notice(&mut self) -> Option<(Self::Id, Notice<Self::Member>)>;

    /// One that has not ended.
    fn member(&mut self, id: Self::Id) -> Option<&mut Self::Member>;

    /// Ends one that nobody uses any more, when what was sent has arrived.
    fn release(&mut self, now: Time, id: Self::Id);

    /// Whether nothing is left to do for those that were released.
    fn is_idle(&self) -> bool;
}

/// A peer or a session. A bare KCP peer is one lane.
pub(super) trait Member: Send {
    /// Whether an empty message on a lane ends what the peer sends there. Where there is no end, what was sent waits for a flush.
    const HAS_END: bool;

    fn send(&mut self, lane: usize, message: &[u8]) -> Result<usize, SendError>;

    /// Ends what is sent on a lane, and has it leave now.
    fn send_end(&mut self, lane: usize) -> Result<(), SendError>;

    fn recv(&mut self, lane: usize, buf: &mut [u8]) -> Result<usize, RecvError>;

    /// Whether there is a message on a lane.
    fn is_readable(&self, lane: usize) -> bool;

    /// Segments of a lane that have not arrived. If there are some, [`Notice::Writable`] comes when there are none.
    fn unacked(&mut self, lane: usize) -> usize;

    /// Has what waits for the next flush leave now.
    fn flush(&mut self);
}

/// What has happened to a peer or a session.
pub(super) enum Notice<T> {
    /// It is there.
    Up,
    Readable,
    /// A lane has room again, or what was sent on it has arrived.
    Writable,
    /// Something that only its user knows what to do about.
    Told(Event),
    Closed(Closed<T>),
}

/// The end of a peer or a session.
pub(super) struct Closed<T> {
    pub(super) error: Error,
    pub(super) undelivered: Undelivered,
    /// What had arrived from it, to be read.
    pub(super) ended: Option<Box<T>>,
}

impl Core for Peers {
    type Id = PeerId;
    type Member = Peer;

    fn poll_notice(&mut self) -> Option<(PeerId, Notice<Peer>)> {
        Some(match self.poll_event()? {
            raw::PeerEvent::Accepted(id) => (id, Notice::Up),
            raw::PeerEvent::Readable(id) => (id, Notice::Readable),
            raw::PeerEvent::Writable(id) => (id, Notice::Writable),
            raw::PeerEvent::Closed { id, reason } => {
                let error = match reason {
                    raw::PeerCloseReason::DeadLink => Error::DeadLink { sends: self.config().kcp.dead_link },
                    raw::PeerCloseReason::Idle => Error::PeerSilent { waited: self.config().idle_timeout },
                };
                let ended = self.pop_ended().map(Box::new);
                let segments = ended.as_ref().map_or(0, |peer| peer.kcp().wait_snd());
                let undelivered = Undelivered { segments, ..Undelivered::default() };
                (id, Notice::Closed(Closed { error, undelivered, ended }))
            }
        })
    }

    fn member(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.peer(id)
    }

    fn release(&mut self, now: Time, id: PeerId) {
        self.close_within(now, id, LINGER);
    }

    fn is_idle(&self) -> bool {
        self.is_empty() && self.poll_timeout().is_none() // and nothing is left to say
    }
}

impl Member for Peer {
    const HAS_END: bool = false;

    fn send(&mut self, _: usize, message: &[u8]) -> Result<usize, SendError> {
        Ok(self.send(message)?)
    }

    fn send_end(&mut self, _: usize) -> Result<(), SendError> {
        self.flush();
        Ok(())
    }

    fn recv(&mut self, _: usize, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.recv(buf)
    }

    fn is_readable(&self, _: usize) -> bool {
        self.kcp().peek_size().is_some()
    }

    fn unacked(&mut self, _: usize) -> usize {
        if self.is_delivered() { 0 } else { self.kcp().wait_snd() }
    }

    fn flush(&mut self) {
        self.flush();
    }
}

/// How long what was sent to a peer may take to arrive when nobody uses the peer any more.
const LINGER: Duration = Duration::from_secs(5);
