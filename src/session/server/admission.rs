//! The way into a server: nothing is stored, allocated or multiplied before the address is proven, and nothing is kept before the
//! client has shown that it may come in.

use super::graves::TIME_WAIT;
use super::peer::{HalfOpen, Peer, Stage};
use super::rate::host;
use super::replies::Reply;
use super::{Attempt, Server};
use crate::message::Message;
use crate::session::Suite;
use crate::session::connection::{Connection, Parts};
use crate::session::cookie::{Claim, epoch_of};
use crate::session::exchange::{self, Responder};
use crate::session::seal::Seal;
use crate::session::wire::{Accept, Challenge, Connect, Deny, DenyReason, Hello, Msg1, Msg2, VERSION};
use crate::time::Time;
use siphasher::sip128::SipHasher24;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Why a CONNECT makes no session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Refusal {
    Protocol,
    Suite,
    Cookie,
    Repeated,
    Rate,
    PerAddress,
    Full,
    Handshake,
}

/// A client that may come in.
struct Guest {
    responder: Responder,
    suite: Suite,
    max_datagram: u16,
    user: Box<[u8]>,
}

impl<M: Message> Server<M> {
    /// Answers a HELLO with a cookie, and forgets it.
    pub(super) fn take_hello(&mut self, now: Time, from: SocketAddr, hello: &Hello) {
        let &Hello { suite, protocol_id, cid, client_stamp, size: _ } = hello;
        if let Err(refusal) = self.check_offer(suite, protocol_id) {
            return self.refuse(now, from, cid, refusal);
        }
        if !self.rates.challenges.take(now) {
            self.stats.rejected.challenge_rate += 1;
            return;
        }
        let epoch = epoch_of(now);
        let cookie = self.cookies.mint(epoch, &Claim { address: from, suite, protocol_id, cid });
        let challenge = Challenge { suite, cid, client_stamp, epoch, cookie };
        if let Some(reply) = Reply::short(from, &mut self.scratch, |buf| challenge.encode(buf)) {
            self.stats.challenges += 1;
            self.reply(reply);
        }
    }

    /// Makes a session of a CONNECT, if all is well.
    pub(super) fn take_connect(&mut self, now: Time, from: SocketAddr, connect: &Connect<'_>) {
        if let Err(refusal) = self.try_connect(now, from, connect) {
            self.refuse(now, from, connect.cid, refusal);
        }
    }

    fn try_connect(&mut self, now: Time, from: SocketAddr, connect: &Connect<'_>) -> Result<(), Refusal> {
        let &Connect { suite: code, protocol_id, cid, epoch, ref cookie, .. } = connect;
        let suite = self.check_offer(code, protocol_id)?;
        let claim = Claim { address: from, suite: code, protocol_id, cid };
        self.cookies.verify(now, epoch, cookie, &claim).map_err(|_| Refusal::Cookie)?;
        // From here on the client is where it says it is.
        let attempt = (from, cid);
        if let Some(&id) = self.attempts.get(&attempt) {
            return self.repeat_accept(now, id, connect.msg1);
        }
        if self.graves.holds(now, attempt) {
            return Err(Refusal::Repeated);
        }
        let host = host(from);
        self.check_room(now, host)?;
        let guest = self.read_connect(suite, connect)?;
        self.open(now, attempt, host, connect, guest)
    }

    /// Whether the server has what is asked for.
    fn check_offer(&self, suite: u16, protocol_id: u64) -> Result<Suite, Refusal> {
        if protocol_id != self.config.session.protocol_id {
            return Err(Refusal::Protocol);
        }
        Suite::from_code(suite).filter(|suite| self.config.suites.contains(suite)).ok_or(Refusal::Suite)
    }

    /// The answer to a CONNECT may have got lost: it is sent again, as it was.
    fn repeat_accept(&mut self, now: Time, id: u32, msg1: &[u8]) -> Result<(), Refusal> {
        let hash = self.hash(msg1);
        match self.sessions.get_mut(id).map(|peer| &mut peer.stage) {
            Some(Stage::HalfOpen(half_open))
                if half_open.msg1_hash == hash && half_open.again_from <= now =>
            {
                half_open.again_from = now + ACCEPT_EACH;
                self.stats.accepts_repeated += 1;
                self.reply(Reply::Accept(id));
                Ok(())
            }
            _ => Err(Refusal::Repeated),
        }
    }

    /// Whether there is room for one more from `host`; what is oldest and unconfirmed makes some.
    fn check_room(&mut self, now: Time, host: IpAddr) -> Result<(), Refusal> {
        if !self.rates.accepts.take(now, host) {
            return Err(Refusal::Rate);
        }
        if self.crowd.half_open_of(host) >= self.config.half_open_per_address {
            self.drop_oldest(now, Some(host));
        }
        if self.crowd.half_open() >= self.config.half_open.into() {
            self.drop_oldest(now, None);
        }
        if self.crowd.sessions_of(host) >= self.config.sessions_per_address {
            return Err(Refusal::PerAddress);
        }
        if self.sessions.is_full() {
            self.make_room(now);
        }
        if self.sessions.is_full() { Err(Refusal::Full) } else { Ok(()) }
    }

    /// Reads the client's message. Of strangers only who knows what the suite asks for comes through.
    fn read_connect(&mut self, suite: Suite, connect: &Connect<'_>) -> Result<Guest, Refusal> {
        let &Connect { protocol_id, cid, token, msg1, .. } = connect;
        let attempt = exchange::Attempt { suite, protocol_id, cid, token };
        let psk = self.config.psk.as_ref().filter(|_| suite.needs_psk());
        let server_key = self.config.server_key.as_ref().filter(|_| suite.needs_server_key());
        let mut payload = Vec::new();
        let responder =
            Responder::read_msg1(&attempt, psk, server_key, self.random.array(), msg1, &mut payload)
                .map_err(|_| Refusal::Handshake)?;
        let Msg1 { max_datagram, user, .. } = Msg1::decode(&payload).map_err(|_| Refusal::Handshake)?;
        Ok(Guest { responder, suite, max_datagram, user: user.into() })
    }

    /// Makes the session, and its answer.
    fn open(
        &mut self,
        now: Time,
        attempt: Attempt,
        host: IpAddr,
        connect: &Connect<'_>,
        guest: Guest,
    ) -> Result<(), Refusal> {
        let id = self.sessions.next_id().ok_or(Refusal::Full)?;
        let Guest { responder, suite, max_datagram, user } = guest;
        let mut msg2 = Vec::new();
        let payload = self.msg2(id).ok_or(Refusal::Handshake)?;
        let keys = responder.write_msg2(&payload, &mut msg2).map_err(|_| Refusal::Handshake)?;
        let mut accept = Vec::new();
        let packet = Accept { suite: connect.suite, cid: connect.cid, msg2: &msg2 };
        packet.encode(&mut accept).map_err(|_| Refusal::Handshake)?;
        let parts = Parts {
            seal: Seal::new(now, keys),
            peer_sid: connect.client_sid,
            peer: attempt.0,
            conv: id,
            max_datagram,
            moves: self.config.migration && suite != Suite::Checked,
            asks: false,
            seed: [self.random.u64(), self.random.u64()],
            user,
        };
        let connection = Connection::new(now, &self.config.session, parts).map_err(|_| Refusal::Handshake)?;
        let until = now + TIME_WAIT;
        let half_open = HalfOpen {
            accept: accept.into(),
            msg1_hash: self.hash(connect.msg1),
            until,
            again_from: now + ACCEPT_EACH,
        };
        let stage = Stage::HalfOpen(half_open);
        let peer =
            Peer { connection, attempt, host, stage, wake: None, is_listed: false, is_eventful: false };
        self.sessions.insert(id, peer);
        self.attempts.insert(attempt, id);
        self.crowd.enter(id, host, until);
        self.stats.accepted += 1;
        self.reply(Reply::Accept(id));
        self.settle(now, id);
        Ok(())
    }

    /// What the server says in the handshake.
    fn msg2(&self, id: u32) -> Option<Vec<u8>> {
        let session = &self.config.session;
        let mut payload = Vec::new();
        let said = Msg2 {
            server_sid: id,
            features: 0,
            max_datagram: session.max_datagram,
            rcv_wnd: session.lanes.first().map_or(0, |lane| lane.rcv_wnd),
            keepalive_ms: u16::try_from(session.keepalive.as_millis()).unwrap_or(u16::MAX),
            rejected: None,
            reset_token: self.resets.as_ref().map_or([0; 16], |key| key.token(id)),
            user: &self.config.user,
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

    fn drop_oldest(&mut self, now: Time, host: Option<IpAddr>) {
        if let Some(id) = self.crowd.oldest(host) {
            self.stats.unconfirmed += 1;
            self.bury(now, id);
        }
    }

    /// Tells a client of another version which ones there are.
    pub(super) fn refuse_version(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        self.stats.rejected.version += 1;
        if let Some(cid) = Hello::cid_of_any_version(datagram) {
            self.deny(now, from, cid, DenyReason::Version);
        }
    }

    /// Counts a refusal, and says so where that helps an honest client.
    fn refuse(&mut self, now: Time, from: SocketAddr, cid: u64, refusal: Refusal) {
        let rejected = &mut self.stats.rejected;
        let (counter, denial) = match refusal {
            Refusal::Protocol => {
                (&mut rejected.protocol, self.config.deny_protocol.then_some(DenyReason::Protocol))
            }
            Refusal::Suite => (&mut rejected.suite, Some(DenyReason::Suite)),
            Refusal::Cookie => (&mut rejected.cookie, None),
            Refusal::Repeated => (&mut rejected.repeated, None),
            Refusal::Rate => (&mut rejected.accept_rate, None),
            Refusal::PerAddress => (&mut rejected.per_address, Some(DenyReason::Busy)),
            Refusal::Full => (&mut rejected.full, Some(DenyReason::Busy)),
            Refusal::Handshake => (&mut rejected.handshake, None),
        };
        *counter += 1;
        if let Some(reason) = denial {
            self.deny(now, from, cid, reason);
        }
    }

    fn deny(&mut self, now: Time, to: SocketAddr, cid: u64, reason: DenyReason) {
        if !self.rates.denials.take(now) {
            return;
        }
        let deny = Deny { lowest: VERSION, highest: VERSION, reason, cid, retry_after_ms: RETRY_AFTER };
        if let Some(reply) = Reply::short(to, &mut self.scratch, |buf| {
            let _ = deny.encode(buf);
        }) {
            self.stats.denials += 1;
            self.reply(reply);
        }
    }

    fn hash(&self, msg1: &[u8]) -> u128 {
        SipHasher24::new_with_key(&self.hash_key).hash(msg1).as_u128()
    }
}

/// Least time between two ACCEPTs of one session.
const ACCEPT_EACH: Duration = Duration::from_millis(50);
/// When a client that was refused may try again, ms.
const RETRY_AFTER: u32 = 5000;
