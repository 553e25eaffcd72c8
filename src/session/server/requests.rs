//! The application decides who comes in: a client that may wait for its answer, which is yes, no, or not yet.

use super::opening::{Guest, Secrets};
use super::refusal::Refusal;
use super::seat::{Asked, Place, Seat};
use super::tokens::Pass;
use super::{Server, SessionId};
use crate::message::Message;
use crate::session::Suite;
use crate::session::error::DecisionError;
use crate::session::event::Event;
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
        let Guest { attempt: (address, _), suite, user, .. } = &self.seats.asked(id.0)?.guest;
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
        let responder = self.read_request(now, id, user)?;
        let Some(Seat::Asked(asked)) = self.seats.leave(id.0) else { return Err(DecisionError::NoRequest) };
        self.open(now, id.0, asked.guest, responder, user, true).map_err(|_| DecisionError::NoRequest)
    }

    /// Tells a client that [asks](Event::Requested) that it does not come in: why, by a code of the application's own, and `user`, which
    /// [`Session::rejection`](crate::session::Session::rejection) has there. Nothing follows.
    ///
    /// # Errors
    ///
    /// There is no such request any more, or `user` is too long. Then nothing has changed.
    pub fn reject(&mut self, now: Time, id: SessionId, code: u16, user: &[u8]) -> Result<(), DecisionError> {
        let now = self.tick(now);
        let responder = self.read_request(now, id, user)?;
        let Some(Seat::Asked(asked)) = self.seats.free(now, id.0) else {
            return Err(DecisionError::NoRequest);
        };
        self.count(now, asked.guest.attempt.0, Refusal::Declined);
        self.turn_away(now, &asked.guest, responder, code, user);
        Ok(())
    }

    /// Has the application asked about a guest.
    pub(super) fn ask(&mut self, now: Time, id: u32, guest: Guest, letter: Letter) {
        let asked = Asked { place: Place::new(now, &guest), guest, letter };
        self.seats.enter(id, Seat::Asked(Box::new(asked)));
        self.stats.requested += 1;
        self.notices.push_back((SessionId(id), Event::Requested));
    }

    /// Whether so much waits to be told that nobody else may ask.
    pub(super) fn is_unheard(&self) -> bool {
        self.notices.len() >= NOTICES_EACH * usize::from(self.config.max_sessions)
    }

    /// Reads the message of a request again, which is about to be answered.
    fn read_request(&self, now: Time, id: SessionId, user: &[u8]) -> Result<Responder, DecisionError> {
        let len = user.len();
        if len > USER_MAX {
            return Err(DecisionError::TooLong { len, max: USER_MAX });
        }
        let asked = self.seats.asked(id.0).filter(|asked| asked.place.entry.due > now);
        let Asked { guest, letter: Letter { token, msg1, secrets }, .. } =
            asked.ok_or(DecisionError::NoRequest)?;
        let Guest { suite, client_sid, attempt: (_, cid), .. } = *guest;
        let protocol_id = self.config.session.protocol_id;
        let attempt = exchange::Attempt { suite, protocol_id, cid, client_sid, token };
        let responder = self.read_msg1(&attempt, secrets, msg1, &mut Vec::new());
        responder.ok_or(DecisionError::NoRequest)
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Events of requests that wait to be told, for each session that there may be.
const NOTICES_EACH: usize = 4;
