//! Bare KCP peers on a socket of their own, for the driver.

use super::super::error::Error;
use super::core::{Closed, Core, Member, Notice};
use crate::arq::RecvError;
use crate::machine::Machine as _;
use crate::session::raw::{CloseReason, Event, Peer, PeerId, Peers};
use crate::session::{SendError, Undelivered};
use crate::time::Time;
use std::time::Duration;

impl Core for Peers {
    type Id = PeerId;
    type Member = Peer;

    fn poll_notice(&mut self) -> Option<(PeerId, Notice<Peer>)> {
        Some(match self.poll_event()? {
            Event::Accepted(id) => (id, Notice::Up),
            Event::Readable(id) => (id, Notice::Readable),
            Event::Writable(id) => (id, Notice::Writable),
            Event::Closed { id, reason } => {
                let error = match reason {
                    CloseReason::DeadLink => Error::DeadLink { sends: self.config().kcp.dead_link },
                    CloseReason::Idle => Error::PeerSilent { waited: self.config().idle_timeout },
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
