//! A client gets its session, or is told that it gets none: the second message of the handshake.

use super::Server;
use super::refusal::Refusal;
use super::replies::Reply;
use super::seat::{ACCEPT_EACH, HalfOpen, Peer, Place, Seat};
use super::tokens::Pass;
use crate::message::Message;
use crate::session::Suite;
use crate::session::connection::{Connection, Parts};
use crate::session::exchange::Responder;
use crate::session::random::hash_key;
use crate::session::seal::{Keys, Seal};
use crate::session::seats::Name;
use crate::session::wire::{Accept, Msg1, Msg2};
use crate::time::Time;
use std::net::{IpAddr, SocketAddr};
use zeroize::Zeroizing;

/// A client that has shown that it may come in, and all that is known of it.
pub(super) struct Guest {
    pub(super) attempt: Name,
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

impl<M: Message> Server<M> {
    /// Makes the session of an id that was taken for it, and its answer: the client's application is told `user`. `is_told`: our
    /// application knows of it.
    pub(super) fn open(
        &mut self,
        now: Time,
        id: u32,
        guest: Guest,
        responder: Responder,
        user: &[u8],
        is_told: bool,
    ) -> Result<(), Refusal> {
        let attempt = guest.attempt;
        let Some(peer) = self.make(now, id, guest, responder, user, is_told) else {
            self.seats.give_back(now, id, attempt);
            return Err(Refusal::Handshake);
        };
        self.seats.enter(id, Seat::Session(Box::new(peer)));
        self.stats.accepted += 1;
        self.reply(now, Reply::Accept(id, attempt.0));
        Ok(())
    }

    fn make(
        &mut self,
        now: Time,
        id: u32,
        guest: Guest,
        responder: Responder,
        user: &[u8],
        is_told: bool,
    ) -> Option<Peer<M>> {
        let (place, attempt) = (Place::new(now, &guest), guest.attempt);
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
            HalfOpen { accept, msg1_hash: guest.msg1_hash, again_from: now + ACCEPT_EACH, is_told };
        Some(Peer {
            place,
            connection,
            half_open: Some(Box::new(half_open)),
            counted: 0,
            taken: 0,
            took: false,
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
        let Guest { attempt, suite, msg1_hash, .. } = *guest;
        let payload = self.msg2(guest.attempt.0.ip(), Err(code), user);
        self.seats.bury(now, attempt);
        if let Some((accept, _)) = payload.and_then(|payload| answer(suite, attempt, responder, &payload)) {
            self.rejections.insert(now, attempt, msg1_hash, accept);
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
        let peer = self.seats.peer(id)?;
        buf.extend_from_slice(&peer.half_open.as_ref()?.accept);
        Some(peer.place.attempt.0)
    }
}

/// The ACCEPT of an attempt, and the keys.
fn answer(suite: Suite, (_, cid): Name, responder: Responder, payload: &[u8]) -> Option<(Box<[u8]>, Keys)> {
    let (mut msg2, mut accept) = (Vec::new(), Vec::new());
    let keys = responder.write_msg2(payload, &mut msg2).ok()?;
    Accept { suite: suite.code(), cid, msg2: &msg2 }.encode(&mut accept).ok()?;
    Some((accept.into(), keys))
}
