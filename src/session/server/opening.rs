//! A client gets its session, or is told that it gets none: the second message of the handshake.

use super::Server;
use super::graves::{Attempt, TIME_WAIT};
use super::peer::{ACCEPT_EACH, HalfOpen, Peer, Stage};
use super::refusal::Refusal;
use super::replies::Reply;
use super::tokens::Pass;
use crate::message::Message;
use crate::session::Suite;
use crate::session::connection::{Connection, Parts};
use crate::session::exchange::Responder;
use crate::session::random::hash_key;
use crate::session::seal::{Keys, Seal};
use crate::session::wire::{Accept, Msg1, Msg2};
use crate::time::Time;
use std::net::{IpAddr, SocketAddr};
use zeroize::Zeroizing;

/// A client that has shown that it may come in, and all that is known of it.
pub(super) struct Guest {
    pub(super) attempt: Attempt,
    /// What it counts against.
    pub(super) host: IpAddr,
    pub(super) suite: Suite,
    pub(super) client_sid: u32,
    pub(super) max_datagram: u16,
    pub(super) features: u32,
    pub(super) msg1_hash: u128,
    pub(super) user: Box<[u8]>,
    /// What its connect token said.
    pub(super) pass: Option<Pass>,
}

/// What it takes to read its message, beside the server's key.
pub(super) struct Secrets {
    pub(super) psk: Option<Zeroizing<[u8; 32]>>,
    /// Of which our half of the keys is made.
    pub(super) random: Zeroizing<[u8; 32]>,
}

/// A session that a client may have: its number is taken, and it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) id: u32,
    pub(super) attempt: Attempt,
    pub(super) host: IpAddr,
    /// When it is given up.
    pub(super) until: Time,
}

impl<M: Message> Server<M> {
    /// Takes a place for a guest.
    pub(super) fn take_place(&mut self, now: Time, guest: &Guest) -> Result<Place, Refusal> {
        let &Guest { attempt, host, .. } = guest;
        self.make_place(now, host);
        let id = self.sessions.next_id().ok_or(Refusal::Full)?;
        let place = Place { id, attempt, host, until: now + TIME_WAIT };
        self.attempts.insert(attempt, id);
        self.crowd.enter(id, host, place.until);
        Ok(place)
    }

    /// The client has been let in, and has as long again to confirm it.
    pub(super) fn renew(&mut self, now: Time, place: Place) -> Place {
        let renewed = Place { until: now + TIME_WAIT, ..place };
        self.crowd.renew(place.id, place.until, renewed.until);
        renewed
    }

    /// Gives a place back that nobody has confirmed. Its attempt is remembered for a while.
    pub(super) fn vacate(&mut self, now: Time, place: Place) {
        let Place { id, attempt, host, until } = place;
        self.sessions.remove(id);
        self.crowd.confirm(id, until);
        self.crowd.leave(host);
        self.attempts.remove(&attempt);
        self.graves.insert(now, attempt);
    }

    /// Makes the session, and its answer: the client's application is told `user`. `is_told`: our application knows of it.
    pub(super) fn open(
        &mut self,
        now: Time,
        place: Place,
        guest: Guest,
        responder: Responder,
        user: &[u8],
        is_told: bool,
    ) -> Result<(), Refusal> {
        let made = self.make(now, place, guest, responder, user, is_told);
        match made {
            Some(peer) => {
                self.sessions.insert(place.id, Box::new(peer));
                self.memory.admit();
            }
            None => {
                self.vacate(now, place);
                return Err(Refusal::Handshake);
            }
        }
        self.stats.accepted += 1;
        self.reply(now, Reply::Accept(place.id, place.attempt.0));
        self.recount(place.id);
        self.settle(now, place.id);
        Ok(())
    }

    fn make(
        &mut self,
        now: Time,
        place: Place,
        guest: Guest,
        responder: Responder,
        user: &[u8],
        is_told: bool,
    ) -> Option<Peer<M>> {
        let Place { id, attempt, host, until } = place;
        let payload = self.msg2(attempt.0.ip(), Ok(id), user)?;
        let (accept, keys) = answer(guest.suite, attempt, responder, &payload)?;
        let parts = Parts {
            seal: Seal::new(now, keys),
            peer_sid: guest.client_sid,
            peer: attempt.0,
            conv: id,
            max_datagram: guest.max_datagram,
            features: guest.features,
            moves: self.config.migration && guest.suite != Suite::Checked,
            is_client: false,
            seed: hash_key(&mut self.random),
            user: guest.user,
        };
        let connection = Connection::new(now, &self.session, parts).ok()?;
        let half_open =
            HalfOpen { accept, msg1_hash: guest.msg1_hash, until, again_from: now + ACCEPT_EACH, is_told };
        Some(Peer {
            connection,
            attempt,
            host,
            stage: Stage::HalfOpen(Box::new(half_open)),
            counted: 0,
            taken: 0,
            took: false,
            due: Time::NEVER,
            wake: None,
            is_listed: false,
            is_eventful: false,
            pass: guest.pass.map(Box::new),
        })
    }

    /// Says in the handshake, so that nobody else can have said it, that there is no session, and why.
    pub(super) fn turn_away(
        &mut self,
        now: Time,
        guest: &Guest,
        responder: Responder,
        code: u16,
        user: &[u8],
    ) {
        let Guest { attempt, host, suite, msg1_hash, .. } = *guest;
        let payload = self.msg2(guest.attempt.0.ip(), Err(code), user);
        self.graves.insert(now, attempt);
        if let Some((accept, _)) = payload.and_then(|payload| answer(suite, attempt, responder, &payload)) {
            self.rejections.insert(now, attempt, host, msg1_hash, accept);
            self.reply(now, Reply::Rejection(attempt));
        }
    }

    /// What the server says in the handshake: which session it is, or why there is none.
    fn msg2(&self, client: IpAddr, session: Result<u32, u16>, user: &[u8]) -> Option<Vec<u8>> {
        let Msg1 { features, max_datagram, rcv_wnd, keepalive_ms, .. } = self.config.session.said(user);
        let mut payload = Vec::new();
        let said = Msg2 {
            server_sid: session.unwrap_or(0),
            features,
            max_datagram,
            rcv_wnd,
            keepalive_ms,
            rejected: session.err(),
            reset_token: session
                .ok()
                .and_then(|id| Some(self.resets.as_ref()?.token(id, client)))
                .unwrap_or_default(),
            user,
        };
        said.encode(&mut payload).ok()?;
        Some(payload)
    }

    /// Writes the stored ACCEPT of a session that is still not confirmed.
    pub(super) fn write_accept(&self, id: u32, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        let peer = self.sessions.get(id)?;
        let Stage::HalfOpen(half_open) = &peer.stage else { return None };
        buf.extend_from_slice(&half_open.accept);
        Some(peer.attempt.0)
    }
}

/// The ACCEPT of an attempt, and the keys.
fn answer(
    suite: Suite,
    (_, cid): Attempt,
    responder: Responder,
    payload: &[u8],
) -> Option<(Box<[u8]>, Keys)> {
    let (mut msg2, mut accept) = (Vec::new(), Vec::new());
    let keys = responder.write_msg2(payload, &mut msg2).ok()?;
    Accept { suite: suite.code(), cid, msg2: &msg2 }.encode(&mut accept).ok()?;
    Some((accept.into(), keys))
}
