//! What happens to sessions: their datagrams, their timers, their end.

use super::graves;
use super::opening::Place;
use super::peer::{Peer, Stage};
use super::refusal::Refusal;
use super::replies::Reply;
use super::{Server, list};
use crate::machine::Arrival;
use crate::message::Message;
use crate::session::event::CloseReason;
use crate::session::wire::{RESET_LEN, Reset};
use crate::time::Time;
use std::net::SocketAddr;
use std::time::Duration;

impl<M: Message> Server<M> {
    /// Gives DATA to its session.
    pub(super) fn take_data(
        &mut self,
        now: Time,
        Arrival { address: from, ecn }: Arrival,
        id: u32,
        datagram: &mut [u8],
    ) {
        self.stats.datagrams += 1;
        self.stats.bytes_received += datagram.len() as u64;
        if datagram.len() > self.config.session.datagram_taken().into() {
            return self.count(now, from, Refusal::Malformed);
        }
        self.lend(id);
        let Some(peer) = self.sessions.get_mut(id) else {
            self.count(now, from, Refusal::Unknown);
            return self.reset(now, from, id, datagram.len());
        };
        if !peer.connection.handle_data(now, from, ecn, datagram) {
            self.stats.dropped += 1;
            return;
        }
        list(&mut self.outbox, id, peer);
        if let Stage::HalfOpen(half_open) = &peer.stage {
            let until = half_open.until;
            peer.stage = Stage::Confirmed;
            self.crowd.confirm(id, until);
            self.stats.confirmed += 1;
            self.replace(now, id);
        }
        self.settle(now, id);
    }

    /// The client of a token is in: its older session ends.
    fn replace(&mut self, now: Time, id: u32) {
        let Some(peer) = self.sessions.get_mut(id) else { return };
        let (Some(tokens), Some(pass)) = (&mut self.tokens, &peer.pass) else { return };
        if tokens.is_outdated(pass.client_id, pass.created) {
            return peer.connection.fail(now, CloseReason::Replaced); // it waited while a newer one came in
        }
        if let Some(left) = tokens.enter(pass, id)
            && let Some(peer) = self.sessions.get_mut(left)
        {
            peer.connection.fail(now, CloseReason::Replaced);
            list(&mut self.outbox, left, peer);
        }
    }

    /// A timer of `at` has come up.
    pub(super) fn wake(&mut self, now: Time, id: u32, at: Time) {
        let Some(peer) = self.sessions.get_mut(id) else { return self.wake_request(now, id, at) };
        if !self.timers.has_gone_off(&mut peer.wake, at) {
            return;
        }
        match &peer.stage {
            Stage::HalfOpen(half_open) if half_open.until <= now => return self.bury(now, id),
            Stage::HalfOpen(_) => {}
            Stage::Confirmed if peer.due > now && !peer.is_listed => {} // it was put off since
            Stage::Confirmed => {
                peer.connection.handle_timeout(now);
                list(&mut self.outbox, id, peer);
            }
            Stage::Over { until } if *until <= now && !peer.connection.has_events() => {
                return self.bury(now, id);
            }
            Stage::Over { .. } => {}
        }
        self.settle(now, id);
    }

    /// Sees to it that a session is looked at again when it has to be, and tells what it has to tell.
    pub(super) fn settle(&mut self, now: Time, id: u32) {
        let Some(peer) = self.sessions.get_mut(id) else { return };
        if matches!(peer.stage, Stage::Confirmed) && peer.connection.is_closed() && !peer.is_listed {
            peer.stage = Stage::Over { until: now + LINGER };
            peer.connection.shrink();
            self.over.push_back(id);
        }
        if !peer.is_half_open() && !peer.is_eventful && peer.connection.has_events() {
            peer.is_eventful = true;
            self.eventful.push_back(id);
        }
        if peer.is_listed {
            return; // and it is looked at when it has been polled
        }
        let at = match &peer.stage {
            Stage::HalfOpen(half_open) => half_open.until,
            Stage::Confirmed => peer.due,
            Stage::Over { until } => (*until).max(now + OVER_AGAIN),
        };
        if at != Time::NEVER {
            self.timers.arm(id, &mut peer.wake, at);
        }
    }

    /// Takes a session out. Its attempt is remembered for a while.
    pub(super) fn bury(&mut self, now: Time, id: u32) {
        let Some(mut peer) = self.sessions.remove(id) else { return };
        while self.over.front().is_some_and(|id| self.sessions.get(*id).is_none()) {
            self.over.pop_front();
        }
        let Peer { attempt, host, .. } = *peer;
        let mut until = now;
        if let Stage::HalfOpen(half_open) = &peer.stage {
            until = half_open.until;
            self.stats.unconfirmed += 1;
            if half_open.is_told {
                self.tell_that_nobody_came(id);
            }
        }
        self.uncount(&peer);
        if let (Some(tokens), Some(pass)) = (&mut self.tokens, &peer.pass) {
            tokens.leave(pass, id);
        }
        self.timers.clear(&mut peer.wake);
        self.vacate(now, Place { id, attempt, host, until });
    }

    /// Makes room for a session by taking out one that is over and has told so, if there is one.
    pub(super) fn make_room(&mut self, now: Time) {
        while let Some(id) = self.over.pop_front() {
            match self.sessions.get(id).map(|peer| &**peer) {
                Some(Peer { stage: Stage::Over { .. }, connection, .. }) if connection.has_events() => {
                    self.over.push_front(id);
                    return;
                }
                Some(Peer { stage: Stage::Over { .. }, .. }) => return self.bury(now, id),
                _ => {}
            }
        }
    }

    /// Tells who sends to a session that is not there so, in fewer bytes than he sent.
    fn reset(&mut self, now: Time, to: SocketAddr, id: u32, len: usize) {
        let Some(key) = self.resets.as_ref().filter(|_| len > RESET_LEN && self.rates.resets.take(now))
        else {
            return;
        };
        let reset = Reset { sid: id, token: key.token(id, to.ip()) };
        if let Some(reply) = Reply::short(to, &mut self.scratch, |buf| reset.encode(buf)) {
            self.stats.resets += 1;
            self.reply(now, reply);
        }
    }

    pub(super) fn reply(&mut self, now: Time, reply: Reply) {
        let to = reply.to();
        if !self.replies.push(reply) {
            self.count(now, to, Refusal::Replies);
        }
    }
}

/// How long what has arrived can still be read when a session is over.
const LINGER: Duration = Duration::from_secs(1);
/// When a session that is over is looked at again, if nobody has asked for its end.
const OVER_AGAIN: Duration = Duration::from_millis(100);

const _: () = assert!(LINGER.as_secs() < graves::TIME_WAIT.as_secs());
