//! Gives a client that may join its session, or rejects it: at once, or when the application has decided.

use super::admission::Pass;
use super::claims::Claims;
use super::seat::{Answer, Peer, Place, Seat, TIME_WAIT};
use super::stats::Refusal;
use super::{Server, SessionId, Suite};
use crate::rate::host;
use crate::session::connection::{Connection, Parts};
use crate::session::error::DecisionError;
use crate::session::event::{Event, code};
use crate::session::exchange::Responder;
use crate::session::seal::{Keys, Seal};
use crate::session::seats::Entry;
use crate::session::token::{NONCE_LEN, TokenId};
use crate::session::wire::{Accept, Msg2, USER_MAX};
use crate::session::{Secret, hash_key};
use crate::time::Time;
use std::net::SocketAddr;
use zeroize::Zeroizing;

/// A client that asks to join. Its address is proven, it knows what the suite requires, and its connect token, if one
/// is required, is good and used up.
///
/// Without tokens it may be a recording: whoever saw a client ask, even hours ago, can send the same again, and what
/// `user` says is the same. They cannot confirm the session, unless the suite is `Checked`. So do nothing in the
/// client's name before [`Event::Connected`], such as ending its older session or spending what it owns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The address that it asked from first. If somebody copied what it sent and was faster, that is theirs; the
    /// session will be where the client is.
    pub address: SocketAddr,
    /// How the session will be protected.
    pub suite: Suite,
    /// What its application says, at most 256 bytes.
    pub user: &'a [u8],
    /// The contents of its connect token.
    pub pass: Option<&'a Pass>,
    /// Which token that is, for servers that share tokens: this one has used it up, but the others do not know that.
    pub token: Option<TokenId>,
}

/// A client that has shown that it may join, with all that is known of it. This is its seat while the application is
/// being asked.
pub(super) struct Guest {
    pub(super) place: Place,
    pub(super) claims: Claims,
    /// Whether it receives packets at its address.
    pub(super) is_proven: bool,
    pub(super) suite: Suite,
    pub(super) cid: u64,
    pub(super) client_sid: u32,
    /// Its message as received, and what is needed to read it besides the server's key. It is read again when the
    /// application has decided, because that takes half the memory of keeping the result of the first reading.
    pub(super) token: Box<[u8]>,
    pub(super) msg1: Box<[u8]>,
    pub(super) psk: Option<Secret>,
    /// The random bytes for our half of the keys.
    pub(super) random: Zeroizing<[u8; 32]>,
    pub(super) max_datagram: u16,
    pub(super) features: u32,
    pub(super) user: Box<[u8]>,
    pub(super) pass: Option<Pass>,
    /// The nonce of its token, which is used up.
    pub(super) nonce: Option<[u8; NONCE_LEN]>,
}

printed_without_secrets! { Guest { place } }

impl Server {
    /// The request of a client that [asks to join](Event::Requested). `None`: there is none, or no longer.
    #[must_use]
    pub fn request(&self, id: SessionId) -> Option<Request<'_>> {
        let Guest { place, suite, user, pass, token, .. } = self.seats.asked(id.0)?;
        let token = TokenId::of(token);
        Some(Request { address: place.address, suite: *suite, user, pass: pass.as_ref(), token })
    }

    /// Admits a client that [asks](Event::Requested), and tells its application `user`. [`Event::Connected`] follows
    /// when the client confirms, or [`Event::Closed`] if it does not within 10 s.
    ///
    /// # Errors
    ///
    /// There is no such request any more, or `user` is too long. Nothing has changed then.
    pub fn admit(&mut self, now: Time, id: SessionId, user: &[u8]) -> Result<(), DecisionError> {
        let now = self.tick(now);
        let responder = self.read_request(now, id, user)?;
        let Some(Seat::Asked(mut guest)) = self.seats.leave(id.0) else {
            return Err(DecisionError::NoRequest);
        };
        guest.place.entry = Entry::at(now + TIME_WAIT);
        self.open(now, id.0, &mut guest, responder, user, true).map_err(|_| DecisionError::NoRequest)
    }

    /// Rejects a client that [asks](Event::Requested), with a code of the application and `user`, which the client gets
    /// from [`Client::rejection`](crate::session::Client::rejection). No event follows.
    ///
    /// # Errors
    ///
    /// There is no such request any more, `user` is too long, or `code` is not below [`code::RESERVED`]. Nothing has
    /// changed then.
    pub fn reject(&mut self, now: Time, id: SessionId, code: u16, user: &[u8]) -> Result<(), DecisionError> {
        let now = self.tick(now);
        if code >= code::RESERVED {
            return Err(DecisionError::Reserved { code });
        }
        let responder = self.read_request(now, id, user)?;
        let Some(Seat::Asked(guest)) = self.seats.free(id.0) else {
            return Err(DecisionError::NoRequest);
        };
        self.count(now, guest.place.address, Refusal::Declined);
        self.turn_away(now, &guest, responder, code, user);
        Ok(())
    }

    pub(super) fn ask(&mut self, now: Time, id: u32, guest: Guest) {
        self.seats.enter(now, id, Seat::Asked(Box::new(guest)));
        self.stats.requested += 1;
        self.notices.push_back((SessionId(id), Event::Requested));
    }

    /// Whether so many events wait that no more clients may ask.
    pub(super) fn is_unheard(&self) -> bool {
        self.notices.len() >= NOTICES_EACH * usize::from(self.config.max_sessions)
    }

    /// Reads the message of a request again, in order to answer it.
    fn read_request(&self, now: Time, id: SessionId, user: &[u8]) -> Result<Responder, DecisionError> {
        let len = user.len();
        if len > USER_MAX {
            return Err(DecisionError::TooLong { len, max: USER_MAX });
        }
        let guest = self.seats.asked(id.0).filter(|guest| guest.place.entry.due > now);
        guest.and_then(|guest| self.read_msg1(guest, &mut Vec::new()).ok()).ok_or(DecisionError::NoRequest)
    }

    /// Makes the session for an id that was taken for it, with its answer, in which the client's application is told
    /// `user`. `is_told`: our application knows about it. The guest stays where it is, so that its secrets are wiped
    /// there.
    pub(super) fn open(
        &mut self,
        now: Time,
        id: u32,
        guest: &mut Guest,
        responder: Responder,
        user: &[u8],
        is_told: bool,
    ) -> Result<(), Refusal> {
        let made = self.answer(now, guest, responder, Ok(id), user).and_then(|(answer, keys)| {
            let parts = Parts {
                seal: Seal::new(now, keys),
                peer_sid: guest.client_sid,
                own_sid: id,
                reset_token: [0; 16],
                ticket: None,
                peer: guest.place.address,
                conv: id,
                max_datagram: guest.max_datagram,
                features: guest.features,
                moves: self.config.migration && guest.suite != Suite::Checked,
                is_client: false,
                tail: 0,
                seed: hash_key(&mut *self.random.0),
                user: std::mem::take(&mut guest.user),
            };
            Some((answer, Connection::new(now, &self.session, parts).ok()?))
        });
        let Some((answer, connection)) = made else {
            self.seats.table.give_back(id);
            self.seats.bury(now, &guest.place);
            return Err(Refusal::Handshake);
        };
        let peer = Peer {
            place: guest.place,
            connection,
            half_open: Some(Box::new(Answer { is_told, ..answer })),
            counted: 0,
            loan: None,
            taken: 0,
            took: false,
            is_eventful: false,
            pass: guest.pass.take().map(Box::new),
        };
        self.seats.enter(now, id, Seat::Session(Box::new(peer)));
        self.stats.accepted += 1;
        self.stats.early += u64::from(!guest.is_proven);
        self.reply_answers(now, &guest.claims, guest.place.mark);
        Ok(())
    }

    /// Rejects a client inside the handshake, so that nobody can forge it, with the reason.
    pub(super) fn turn_away(
        &mut self,
        now: Time,
        guest: &Guest,
        responder: Responder,
        code: u16,
        user: &[u8],
    ) {
        let Place { mark, address, .. } = guest.place;
        let answer = self.answer(now, guest, responder, Err(code), user);
        self.seats.bury(now, &guest.place);
        if let Some((answer, _)) = answer {
            self.seats.rejections.insert(now, mark, host(address), answer);
            self.reply_answers(now, &guest.claims, mark);
        }
    }

    /// The ACCEPT for a guest, with the id of its session or the reason for the rejection; and the keys.
    fn answer(
        &self,
        now: Time,
        &Guest { place: Place { address, mark, .. }, suite, cid, nonce, is_proven, ref claims, .. }: &Guest,
        responder: Responder,
        session: Result<u32, u16>,
        user: &[u8],
    ) -> Option<(Answer, Keys)> {
        let token = |id| self.reset_key().token(id, address);
        let msg2 = Msg2 {
            server_sid: session.unwrap_or(0),
            said: self.config.session.said(user),
            rejected: session.err(),
            reset_token: session.ok().map(token).unwrap_or_default(),
            ticket: session.ok().filter(|_| is_proven).map(|_| self.ticket(now, address, mark)),
        };
        let [mut payload, mut message, mut accept] = [const { Vec::new() }; 3];
        msg2.encode(&mut payload).ok()?;
        let keys = responder.write_msg2(&payload, &mut message).ok()?;
        Accept { suite: suite.code(), cid, msg2: &message }.encode(&mut accept).ok()?;
        let claims = claims.answered(now);
        Some((Answer { accept: accept.into(), claims, is_proven, nonce, is_told: false }, keys))
    }
}

/// Events of requests that may wait, per possible session.
const NOTICES_EACH: usize = 4;
