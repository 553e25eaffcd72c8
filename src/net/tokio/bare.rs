//! Bare KCP peers on a socket of their own, for the driver.

use super::super::error::Error;
use super::core::{Closed, Core, Member, Notice};
use crate::arq::RecvError;
use crate::machine::{Arrival, Machine, Transmit};
use crate::session::raw::{CloseReason, Config, Event, Peer, PeerId, Peers};
use crate::session::{SendError, Undelivered};
use crate::time::Time;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// Peers, and those that nobody uses any more until what was sent to them has arrived.
#[derive(Debug)]
pub(super) struct Bare {
    pub(super) peers: Peers,
    idle_timeout: Duration,
    dead_link: u16,
    leaving: HashSet<PeerId>,
    /// When each of them is given up; they all have the same time.
    deadlines: VecDeque<(Time, PeerId)>,
}

impl Bare {
    pub(super) fn new(peers: Peers, config: &Config) -> Self {
        Self {
            peers,
            idle_timeout: config.idle_timeout,
            dead_link: config.kcp.dead_link,
            leaving: HashSet::new(),
            deadlines: VecDeque::new(),
        }
    }

    fn close(&mut self, now: Time, id: PeerId) {
        self.leaving.remove(&id);
        self.peers.close(now, id);
    }

    /// Whether a peer has left: then it is not talked about any more.
    fn has_left(&mut self, id: PeerId, now: Time) -> bool {
        if !self.leaving.contains(&id) {
            return false;
        }
        if self.peers.peer(id).is_none_or(Peer::is_delivered) {
            self.close(now, id);
        }
        true
    }
}

impl Machine for Bare {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        self.peers.handle_datagram(now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.peers.handle_timeout(now);
        while let Some((at, id)) = self.deadlines.front().copied()
            && (at <= now || !self.leaving.contains(&id))
        {
            self.deadlines.pop_front();
            self.close(now, id);
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        self.peers.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Time> {
        let given_up = self.deadlines.front().map(|(at, _)| *at);
        self.peers.poll_timeout().into_iter().chain(given_up).min()
    }

    fn shutdown(&mut self, now: Time, code: u16) -> bool {
        self.peers.shutdown(now, code)
    }
}

impl Core for Bare {
    type Id = PeerId;
    type Member = Peer;

    fn poll_notice(&mut self, now: Time) -> Option<(PeerId, Notice<Peer>)> {
        loop {
            let (id, notice) = match self.peers.poll_event()? {
                Event::Accepted(id) => (id, Notice::Up),
                Event::Readable(id) => (id, Notice::Readable),
                Event::Writable(id) => (id, Notice::Writable),
                Event::Closed { id, reason } => {
                    self.leaving.remove(&id);
                    let error = match reason {
                        CloseReason::DeadLink => Error::DeadLink { sends: self.dead_link },
                        CloseReason::Idle => Error::PeerSilent { waited: self.idle_timeout },
                    };
                    let ended = self.peers.pop_ended().map(Box::new);
                    let segments = ended.as_ref().map_or(0, |peer| peer.kcp().wait_snd());
                    let undelivered = Undelivered { segments, ..Undelivered::default() };
                    return Some((id, Notice::Closed(Closed { error, undelivered, ended })));
                }
            };
            if !self.has_left(id, now) {
                return Some((id, notice));
            }
        }
    }

    fn member(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.peers.peer(id)
    }

    fn release(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.peer(id) else { return };
        peer.flush();
        if peer.is_delivered() {
            self.close(now, id);
        } else if self.leaving.insert(id) {
            self.deadlines.push_back((now + LINGER, id));
        }
    }

    fn is_idle(&self) -> bool {
        self.peers.is_empty() && self.peers.poll_timeout().is_none() // and nothing is left to say
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
