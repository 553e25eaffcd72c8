//! The application decides who comes in: a client that may wait for its answer, which is yes, no, or not yet.

use super::opening::{Guest, Place, Secrets};
use super::refusal::Refusal;
use super::tokens::Pass;
use super::{Server, SessionId};
use crate::message::Message;
use crate::session::Suite;
use crate::session::error::DecisionError;
use crate::session::event::{CloseReason, Event, Undelivered};
use crate::session::exchange::{self, Responder};
use crate::session::wire::{Connect, USER_MAX};
use crate::time::Time;
use std::fmt;
use std::net::SocketAddr;

/// A client that asks to come in. Its address is proven, it knows what the suite asks for, and its connect token, if there has to be
/// one, is good and used up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Request<'a> {
    /// Where it is.
    pub address: SocketAddr,
    /// How the session will be protected.
    pub suite: Suite,
    /// What its application says, at most 256 bytes.
    pub user: &'a [u8],
    /// What its connect token says.
    pub pass: Option<&'a Pass>,
}

/// A request that is not answered yet.
pub(super) struct Pending {
    guest: Guest,
    letter: Letter,
    place: Place,
    /// When it is looked at.
    pub(super) wake: Option<Time>,
}

/// The client's message as it came. It is read again when the application has decided, for it takes half the room of what the first
/// reading leaves.
pub(super) struct Letter {
    token: Box<[u8]>,
    msg1: Box<[u8]>,
    secrets: Secrets,
}

impl Letter {
    pub(super) fn new(connect: &Connect<'_>, secrets: Secrets) -> Self {
        Self { token: connect.token.into(), msg1: connect.msg1.into(), secrets }
    }
}

impl<M: Message> Server<M> {
    /// What a client wants that [asks to come in](Event::Requested); `None`: it does not, or not any more.
    #[must_use]
    pub fn request(&self, id: SessionId) -> Option<Request<'_>> {
        let Guest { attempt: (address, _), suite, user, .. } = &self.requests.get(&id.0)?.guest;
        Some(Request { address: *address, suite: *suite, user, pass: self.pass(id) })
    }

    /// Lets a client in that [asks](Event::Requested), and tells its application `user`. [`Event::Connected`] follows when the client
    /// has heard of it, or [`Event::Closed`] if it does not say so within 10 s.
    ///
    /// # Errors
    ///
    /// There is no such request any more, or `user` is too long. Then nothing has changed.
    pub fn accept(&mut self, now: Time, id: SessionId, user: &[u8]) -> Result<(), DecisionError> {
        let now = self.tick(now);
        let (Pending { guest, place, .. }, responder) = self.take_request(now, id, user)?;
        let place = self.renew(now, place);
        self.open(now, place, guest, responder, user, true).map_err(|_| DecisionError::NoRequest)
    }

    /// Tells a client that [asks](Event::Requested) that it does not come in: why, by a code of the application's own, and `user`, which
    /// [`Session::rejection`](crate::session::Session::rejection) has there. Nothing follows.
    ///
    /// # Errors
    ///
    /// There is no such request any more, or `user` is too long. Then nothing has changed.
    pub fn reject(&mut self, now: Time, id: SessionId, code: u16, user: &[u8]) -> Result<(), DecisionError> {
        let now = self.tick(now);
        let (Pending { guest, place, .. }, responder) = self.take_request(now, id, user)?;
        self.vacate(now, place);
        self.count(now, place.attempt.0, Refusal::Declined);
        self.turn_away(now, &guest, responder, code, user);
        Ok(())
    }

    /// Has the application asked about a guest.
    pub(super) fn ask(&mut self, now: Time, guest: Guest, letter: Letter) -> Result<(), Refusal> {
        let place = self.take_place(now, &guest)?;
        let mut pending = Pending { guest, letter, place, wake: None };
        self.timers.arm(place.id, &mut pending.wake, place.until);
        self.requests.insert(place.id, Box::new(pending));
        self.stats.requested += 1;
        self.notices.push_back((SessionId(place.id), Event::Requested));
        Ok(())
    }

    /// A timer of `at` has come up that is no session's.
    pub(super) fn wake_request(&mut self, now: Time, id: u32, at: Time) {
        let Some(pending) = self.requests.get_mut(&id) else { return };
        if self.timers.has_gone_off(&mut pending.wake, at) {
            self.withdraw(now, id);
        }
    }

    /// Gives up a request that is not answered, if there is one.
    pub(super) fn withdraw(&mut self, now: Time, id: u32) -> bool {
        let Some(mut pending) = self.requests.remove(&id) else { return false };
        self.timers.clear(&mut pending.wake);
        self.vacate(now, pending.place);
        self.count(now, pending.place.attempt.0, Refusal::Unanswered);
        self.tell_that_nobody_came(id);
        true
    }

    /// The application knows of a client that will not come in.
    pub(super) fn tell_that_nobody_came(&mut self, id: u32) {
        let closed =
            Event::Closed { reason: CloseReason::ConnectTimeout, undelivered: Undelivered::default() };
        self.notices.push_back((SessionId(id), closed));
    }

    /// Whether so much waits to be told that nobody else may ask.
    pub(super) fn is_unheard(&self) -> bool {
        self.notices.len() >= NOTICES_EACH * usize::from(self.config.max_sessions)
    }

    pub(super) fn pass_of_request(&self, id: u32) -> Option<&Pass> {
        self.requests.get(&id)?.guest.pass.as_ref()
    }

    fn take_request(
        &mut self,
        now: Time,
        id: SessionId,
        user: &[u8],
    ) -> Result<(Pending, Responder), DecisionError> {
        let len = user.len();
        if len > USER_MAX {
            return Err(DecisionError::TooLong { len, max: USER_MAX });
        }
        let pending = self.requests.get(&id.0).filter(|pending| pending.place.until > now);
        let Pending { guest, letter: Letter { token, msg1, secrets }, .. } =
            &**pending.ok_or(DecisionError::NoRequest)?;
        let Guest { suite, client_sid, attempt: (_, cid), .. } = *guest;
        let protocol_id = self.config.session.protocol_id;
        let attempt = exchange::Attempt { suite, protocol_id, cid, client_sid, token };
        let responder = self.read_msg1(&attempt, secrets, msg1, &mut Vec::new());
        let responder = responder.ok_or(DecisionError::NoRequest)?;
        let mut pending = *self.requests.remove(&id.0).ok_or(DecisionError::NoRequest)?;
        self.timers.clear(&mut pending.wake);
        Ok((pending, responder))
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Events of requests that wait to be told, for each session that there may be.
const NOTICES_EACH: usize = 4;
