//! A second path to the peer: what is urgent goes there as well, and what comes first counts.
//!
//! Each copy is a packet of its own, as in `copies`, so nobody can tell by its bytes that both paths carry the same session. A server learns the second
//! address of a client from the copies that come from there, asks it as any other address, and sends copies back for as long as they come.

use super::Connection;
use super::path::{Came, Path, Route, patience};
use super::question::{Candidate, Question};
use crate::pace::Rtt;
use crate::time::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::session) struct To {
    pub(in crate::session) address: SocketAddr,
    /// By the second path of the session.
    pub(in crate::session) is_second: bool,
}

impl From<SocketAddr> for To {
    fn from(address: SocketAddr) -> Self {
        Self { address, is_second: false }
    }
}

#[derive(Debug)]
pub(super) struct Second {
    /// The other address, and what it has paid for until it has answered.
    at: Candidate,
    /// Until when copies go there.
    until: Time,
    /// Packets in a row that say that the client has exchanged both.
    signs: u8,
    /// The frames of a packet that has left. The memory is kept for the next one.
    frames: Vec<u8>,
    has_copy: bool,
}

impl Second {
    const fn new(at: Candidate, until: Time) -> Self {
        Self { at, until, signs: 0, frames: Vec::new(), has_copy: false }
    }

    const fn route(&self) -> Route {
        self.at.question.route
    }

    pub(super) fn is_at(&self, address: SocketAddr) -> bool {
        self.route().address == address
    }

    fn is_used(&self, now: Time) -> bool {
        self.at.has_answered && now < self.until
    }

    /// Whether it has not answered in time, or nothing has come from there for long.
    pub(super) fn is_dead(&self, now: Time) -> bool {
        self.at.dies_at() <= now || now.since(self.until) >= FORGOTTEN
    }

    /// The question for it, while it has not answered.
    pub(super) fn answers(&mut self, answers: impl Fn(&Question) -> bool) {
        self.at.has_answered |= answers(&self.at.question);
    }

    pub(super) const fn candidate(&self) -> &Candidate {
        &self.at
    }

    pub(super) const fn candidate_mut(&mut self) -> &mut Candidate {
        &mut self.at
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(self) + self.frames.capacity()
    }
}

/// At either end.
impl Path {
    pub(super) fn second(&self) -> Option<&Second> {
        self.moving.as_ref()?.second.as_deref()
    }

    fn second_mut(&mut self) -> Option<&mut Second> {
        self.moving.as_mut()?.second.as_deref_mut()
    }

    /// Whether copies go to a second address.
    #[inline]
    pub(super) fn doubles(&self, now: Time) -> bool {
        self.second().is_some_and(|second| second.is_used(now))
    }

    /// A buffer for the frames of the next copy that goes there.
    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        self.second_mut().map_or_else(Vec::new, |second| std::mem::take(&mut second.frames))
    }

    /// Keeps the frames of a packet that leaves until they leave there, or only the buffer.
    pub(super) fn keep_buffer(&mut self, frames: Vec<u8>, has_copy: bool) {
        if let Some(second) = self.second_mut() {
            (second.frames, second.has_copy) = (frames, has_copy);
        }
    }

    pub(super) fn has_second_copy(&self) -> bool {
        self.second().is_some_and(|second| second.has_copy)
    }

    /// That copy, and where it goes. Give the buffer back.
    pub(super) fn pop_second_copy(&mut self) -> Option<(Route, Vec<u8>)> {
        let second = self.second_mut().filter(|second| second.has_copy)?;
        second.has_copy = false;
        Some((second.route(), std::mem::take(&mut second.frames)))
    }
}

/// At a server.
impl Path {
    /// Takes a packet, if the client has exchanged both of its paths: it sends by the second one now, or copies by the first. Returns where it was.
    pub(super) fn exchange(&mut self, now: Time, came: &Came, is_copy: bool) -> Option<SocketAddr> {
        let is_of_first = came.from == self.route.address;
        let moving = self.moving.as_mut().filter(|_| self.moves && came.is_newest)?;
        let may_switch = moving.may_switch(now) && moving.home.is_none();
        let is_there =
            |second: &&mut Box<Second>| second.at.has_answered && (is_of_first || second.is_at(came.from));
        let second = moving.second.as_mut().filter(is_there)?;
        second.signs = if is_copy == is_of_first { second.signs.saturating_add(1) } else { 0 };
        if second.signs < SIGNS || !may_switch {
            return None;
        }
        second.signs = 0;
        let first = std::mem::replace(&mut self.route, second.route());
        second.at.question.route = first;
        second.until = now + LASTS;
        moving.note_switch(now);
        (moving.candidate, moving.rival, moving.home) = (None, None, None);
        Some(first.address)
    }

    /// Takes a copy that came from another address than the client's: the client is there as well. Returns whether that is news.
    pub(super) fn on_second(&mut self, now: Time, came: &Came, rtt: &Rtt) -> bool {
        self.update(now);
        let Self { questions, moving, .. } = self;
        let moving = moving.get_or_insert_default();
        let until = now + LASTS;
        match &mut moving.second {
            Some(second) if second.is_at(came.from) => {
                second.until = until;
                second.at.on_paid(came);
                false
            }
            Some(second) if second.is_used(now) => false, // another address has to wait until this one is silent
            second => {
                let question = questions.next(now, came.route(), 3 * patience(rtt));
                *second = Some(Box::new(Second::new(Candidate::new(question, came), until)));
                true
            }
        }
    }
}

/// At a client.
impl Path {
    /// What is urgent goes by this route as well from now on, or only by the first.
    pub(super) fn set_second(&mut self, now: Time, route: Option<Route>) {
        let Self { questions, moving, .. } = self;
        let Some(route) = route else {
            moving.iter_mut().for_each(|moving| moving.second = None);
            return;
        };
        let at = Candidate::proven(questions.next(now, route, Duration::ZERO));
        moving.get_or_insert_default().second = Some(Box::new(Second::new(at, Time::NEVER)));
    }

    pub(super) fn second_route(&self) -> Option<Route> {
        self.second().map(Second::route)
    }
}

impl Connection {
    /// Whether the peer is at a second address as well.
    pub(in crate::session) fn has_second(&self) -> bool {
        self.path.second().is_some()
    }

    /// Where the second path leads.
    pub(in crate::session) fn second_addr(&self) -> Option<SocketAddr> {
        self.path.second_route().map(|route| route.address)
    }

    /// Notes by which path a packet came.
    #[inline]
    pub(super) fn note_path(&mut self, now: Time, came: &Came, is_copy: bool) {
        if let Some(old) = self.path.exchange(now, came, is_copy) {
            self.on_moved(now, old);
        } else if !is_copy || self.peer.is_server {
            self.path.on_packet(now, came, &self.measured.rtt);
        } else if came.from != self.path.route.address && self.path.on_second(now, came, &self.measured.rtt) {
            self.rest_mtu();
        }
    }
}

/// How long copies go to a client's second address after the last one that came from there.
const LASTS: Duration = Duration::from_secs(1);
/// So many packets in a row exchange both addresses: whoever sends one of them from the wrong one does not.
const SIGNS: u8 = 2;
/// How long it is remembered after that.
const FORGOTTEN: Duration = Duration::from_secs(10);
