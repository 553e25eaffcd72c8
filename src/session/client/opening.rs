//! The end of the handshake: the answer of the server, and the session that follows.

use super::attempt::Answer;
use super::ways::Ways;
use super::{Client, State};
use crate::session::connection::{Connection, Parts};
use crate::session::event::{CloseReason, code};
use crate::session::seal::{Keys, Seal};
use crate::session::shape::{Mismatch, Shape};
use crate::session::wire::{Accept, DenyReason, KemKey, Msg2};
use crate::session::{Suite, hash_key};
use crate::time::Time;
use std::net::SocketAddr;
use std::sync::Arc;

impl Client {
    pub(super) fn on_accept(&mut self, now: Time, from: SocketAddr, accept: &Accept<'_>) -> bool {
        let State::Connecting(attempt) = &mut self.state else { return false };
        let Some(answer) = attempt.on_accept(from, &self.config, accept) else { return false };
        let payload = answer.payload.clone();
        let Ok(msg2) = Msg2::decode(&payload) else { return false };
        if msg2.rejected == Some(code::SHAPE) {
            let mismatch = Shape::of(&self.config.session).compare(msg2.said.user);
            let reason = DenyReason::Shape(mismatch.unwrap_or(Mismatch::UNNAMED));
            log::debug!("denied by {from}: {reason}");
            self.fail(CloseReason::Denied(reason));
            return true;
        }
        if let Some(code) = msg2.rejected {
            self.rejection = msg2.said.user.into();
            self.fail(CloseReason::Rejected(code));
            return true;
        }
        let Some(keys) = attempt.complete(accept, msg2.server_sid, answer) else { return true };
        self.go_up(now, from, keys, &msg2)
    }

    pub(super) fn on_kem_key(&mut self, now: Time, from: SocketAddr, key: &KemKey<'_>) -> bool {
        let State::Connecting(attempt) = &mut self.state else { return false };
        let Some(answer) = attempt.on_kem_key(from, self.config.suite, key) else { return false };
        let Answer { from, keys, payload } = answer;
        Msg2::decode(&payload).is_ok_and(|msg2| self.go_up(now, from, keys, &msg2))
    }

    /// The handshake is over.
    fn go_up(&mut self, now: Time, from: SocketAddr, keys: Keys, msg2: &Msg2<'_>) -> bool {
        let State::Connecting(attempt) = &mut self.state else { return false };
        let parts = Parts {
            seal: Seal::new(now, keys),
            peer_sid: msg2.server_sid,
            own_sid: attempt.client_sid,
            reset_token: msg2.reset_token,
            peer: from,
            conv: msg2.server_sid,
            max_datagram: msg2.said.max_datagram,
            features: msg2.said.features,
            moves: false, // a server keeps its address
            is_client: true,
            tail: u16::try_from(self.config.routing_token.len()).unwrap_or_default(),
            seed: hash_key(&mut *self.random.0),
            user: msg2.said.user.into(),
            ticket: msg2.ticket,
        };
        let session = Arc::new(self.config.session.clone());
        let Ok(connection) = Connection::new(now, &session, parts) else { return false };
        if self.config.is_routed() && self.config.suite != Suite::Checked {
            let ways = Ways::new(now, attempt.addresses(), true);
            self.ways = ways.is_choice().then(|| Box::new(ways));
        }
        self.state = State::Connected(Box::new(connection));
        self.use_networks(now);
        true
    }
}
