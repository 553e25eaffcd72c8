//! Bare KCP peers on a socket of their own, for the driver.

use super::super::batch::Fragments;
use super::super::error::Error;
use super::core::{Closed, Core, Notice};
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
    /// Peers that are closed and have datagrams to send.
    last_words: VecDeque<Peer>,
}

impl Bare {
    pub(super) fn new(peers: Peers, config: &Config) -> Self {
        Self {
            peers,
            idle_timeout: config.idle_timeout,
            dead_link: config.kcp.dead_link,
            leaving: HashSet::new(),
            deadlines: VecDeque::new(),
            last_words: VecDeque::new(),
        }
    }

    fn close(&mut self, now: Time, id: PeerId) {
        self.leaving.remove(&id);
        self.last_words.extend(self.peers.close(now, id));
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

    const fn error(&self, reason: CloseReason) -> Error {
        match reason {
            CloseReason::DeadLink => Error::DeadLink { sends: self.dead_link },
            CloseReason::Idle => Error::PeerSilent { waited: self.idle_timeout },
        }
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
        while let Some(peer) = self.last_words.front_mut() {
            if let Some(datagram) = peer.pop() {
                out.extend_from_slice(datagram);
                return Some(peer.address().into());
            }
            self.last_words.pop_front();
        }
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
    type Remains = Option<Peer>;
    const HAS_END: bool = false;
    const HAS_FLUSH: bool = true;
    const FRAGMENTS: Fragments = Fragments::Allowed;

    fn poll_notice(&mut self, now: Time) -> Option<(PeerId, Notice<Option<Peer>>)> {
        loop {
            let (id, notice) = match self.peers.poll_event()? {
                Event::Accepted(id) => (id, Notice::Up),
                Event::Readable(id) => (id, Notice::Readable),
                Event::Writable(id) => (id, Notice::Writable),
                Event::Closed { id, reason } => {
                    self.leaving.remove(&id);
                    let remains = self.peers.pop_ended();
                    let segments = remains.as_ref().map_or(0, |peer| peer.kcp().wait_snd());
                    let undelivered = Undelivered { segments, ..Undelivered::default() };
                    let closed = Closed { error: self.error(reason), undelivered };
                    return Some((id, Notice::Closed(closed, remains)));
                }
            };
            if !self.has_left(id, now) {
                return Some((id, notice));
            }
        }
    }

    fn send(&mut self, id: PeerId, _: usize, message: &[u8]) -> Result<usize, SendError> {
        Ok(self.peers.peer(id).ok_or(SendError::Closed)?.send(message)?)
    }

    fn send_end(&mut self, _: PeerId, _: usize) -> Result<(), SendError> {
        Ok(())
    }

    fn recv(&mut self, id: PeerId, _: usize, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.peers.peer(id).ok_or(RecvError::NoMessage)?.recv(buf)
    }

    fn is_readable(&mut self, id: PeerId, _: usize) -> bool {
        self.peers.peer(id).is_some_and(|peer| peer.kcp().peek_size().is_some())
    }

    fn unacked(&mut self, id: PeerId, _: usize) -> usize {
        let Some(peer) = self.peers.peer(id) else { return 0 };
        if peer.is_delivered() { 0 } else { peer.kcp().wait_snd() }
    }

    fn flush(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.peer(id) {
            peer.flush();
        }
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
        self.peers.is_empty() && self.last_words.is_empty()
    }

    fn recv_remains(remains: &mut Option<Peer>, _: usize, buf: &mut [u8]) -> Result<usize, RecvError> {
        remains.as_mut().ok_or(RecvError::NoMessage)?.recv(buf)
    }
}

/// How long what was sent to a peer may take to arrive when nobody uses the peer any more.
pub(super) const LINGER: Duration = Duration::from_secs(5);
