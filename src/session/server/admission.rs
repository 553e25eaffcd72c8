//! The way into a server: nothing is stored, allocated or multiplied before the address is proven, and nothing is kept before the
//! client has shown that it may come in.

use super::graves::TIME_WAIT;
use super::peer::{HalfOpen, Peer, Stage};
use super::replies::Reply;
#[cfg(feature = "crypto")]
use super::tokens::{Pass, Tokens};
use super::{Attempt, Server};
use crate::message::Message;
use crate::rate::host;
use crate::session::Suite;
use crate::session::connection::{Connection, Parts};
use crate::session::cookie::{Claim, epoch_of};
#[cfg(feature = "crypto")]
use crate::session::event::code;
use crate::session::exchange::{self, Responder};
use crate::session::seal::{Keys, Seal};
#[cfg(feature = "crypto")]
use crate::session::token::{Grant, TokenError, Verifier};
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
    Token,
    Handshake,
    /// Said to the client already.
    #[cfg(feature = "crypto")]
    Rejected,
}

/// A client that may come in.
struct Guest {
    responder: Responder,
    suite: Suite,
    max_datagram: u16,
    user: Box<[u8]>,
    #[cfg(feature = "crypto")]
    pass: Option<Pass>,
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
        let &Connect { suite: number, protocol_id, cid, epoch, ref cookie, .. } = connect;
        let suite = self.check_offer(number, protocol_id)?;
        let claim = Claim { address: from, suite: number, protocol_id, cid };
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
        let guest = self.read_connect(now, from, suite, connect)?;
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
        let has_room = !self.sessions.is_full() && self.memory.left() > 0;
        if has_room { Ok(()) } else { Err(Refusal::Full) }
    }

    /// Reads the client's message. Of strangers only who knows what the suite asks for comes through.
    fn read_connect(
        &mut self,
        now: Time,
        from: SocketAddr,
        suite: Suite,
        connect: &Connect<'_>,
    ) -> Result<Guest, Refusal> {
        let &Connect { protocol_id, cid, client_sid, token, msg1, .. } = connect;
        let attempt = exchange::Attempt { suite, protocol_id, cid, client_sid, token };
        #[cfg(feature = "crypto")]
        let grant = self.open_token(now, suite, token)?;
        let psk = self.config.psk.as_ref();
        #[cfg(feature = "crypto")]
        let psk = grant.as_ref().map(|grant| &*grant.psk).or(psk);
        let psk = psk.filter(|_| suite.needs_psk());
        let server_key = self.config.server_key.as_ref().filter(|_| suite.needs_server_key());
        let mut payload = Vec::new();
        let responder =
            Responder::read_msg1(&attempt, psk, server_key, self.random.array(), msg1, &mut payload)
                .map_err(|_| Refusal::Handshake)?;
        let Msg1 { max_datagram, user, .. } = Msg1::decode(&payload).map_err(|_| Refusal::Handshake)?;
        #[cfg(feature = "crypto")]
        if self.use_token(now, grant.as_ref())? {
            self.reject(from, connect, responder, code::REPLACED);
            return Err(Refusal::Rejected);
        }
        #[cfg(not(feature = "crypto"))]
        if !token.is_empty() {
            log::debug!("{from} brings a connect token at {now}, which takes the feature crypto");
            return Err(Refusal::Token);
        }
        Ok(Guest {
            responder,
            suite,
            max_datagram,
            user: user.into(),
            #[cfg(feature = "crypto")]
            pass: grant.map(Pass::from),
        })
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
        let Guest { responder, suite, max_datagram, user, .. } = guest;
        let payload = self.msg2(Ok(id)).ok_or(Refusal::Handshake)?;
        let (accept, keys) = answer(connect, responder, &payload).ok_or(Refusal::Handshake)?;
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
            accept: accept.into_boxed_slice(),
            msg1_hash: self.hash(connect.msg1),
            until,
            again_from: now + ACCEPT_EACH,
        };
        let stage = Stage::HalfOpen(half_open);
        let peer = Peer {
            connection,
            attempt,
            host,
            stage,
            counted: 0,
            wake: None,
            is_listed: false,
            is_eventful: false,
            #[cfg(feature = "crypto")]
            pass: guest.pass,
        };
        self.sessions.insert(id, peer);
        self.attempts.insert(attempt, id);
        self.crowd.enter(id, host, until);
        self.stats.accepted += 1;
        self.reply(Reply::Accept(id));
        self.settle(now, id);
        Ok(())
    }

    /// What the server says in the handshake: which session it is, or why there is none.
    fn msg2(&self, session: Result<u32, u16>) -> Option<Vec<u8>> {
        let config = &self.config.session;
        let mut payload = Vec::new();
        let said = Msg2 {
            server_sid: session.unwrap_or(0),
            features: 0,
            max_datagram: config.max_datagram,
            rcv_wnd: config.lanes.first().map_or(0, |lane| lane.rcv_wnd),
            keepalive_ms: u16::try_from(config.keepalive.as_millis()).unwrap_or(u16::MAX),
            rejected: session.err(),
            reset_token: session
                .ok()
                .and_then(|id| Some(self.resets.as_ref()?.token(id)))
                .unwrap_or_default(),
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
            Refusal::Token => (&mut rejected.token, None),
            Refusal::Handshake => (&mut rejected.handshake, None),
            #[cfg(feature = "crypto")]
            Refusal::Rejected => (&mut rejected.outdated, None),
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

#[cfg(feature = "crypto")]
impl<M: Message> Server<M> {
    /// From now on only who brings a connect token that `verifier` takes comes in. It is `unix` seconds since 1970.
    ///
    /// Of two sessions of one client the one by the newer token stays.
    pub fn require_tokens(&mut self, now: Time, unix: u64, verifier: Verifier) {
        self.tokens = Some(Tokens::new(verifier, now, unix));
    }

    fn open_token(&self, now: Time, suite: Suite, token: &[u8]) -> Result<Option<Grant>, Refusal> {
        let Some(tokens) = &self.tokens else {
            return if token.is_empty() { Ok(None) } else { Err(Refusal::Token) };
        };
        tokens.open(now, suite, token).map(Some).map_err(|_| Refusal::Token)
    }

    /// Notes that a token was used; whether its client is in by a newer one.
    fn use_token(&mut self, now: Time, grant: Option<&Grant>) -> Result<bool, Refusal> {
        let (Some(tokens), Some(grant)) = (&mut self.tokens, grant) else { return Ok(false) };
        tokens.use_up(now, grant).map_err(|error| match error {
            TokenError::Full => Refusal::Full,
            _ => Refusal::Token,
        })?;
        Ok(tokens.is_outdated(grant))
    }

    /// Says in the handshake, so that nobody else can have said it, that there is no session; keeps nothing.
    fn reject(&mut self, to: SocketAddr, connect: &Connect<'_>, responder: Responder, code: u16) {
        let answer = self.msg2(Err(code)).and_then(|payload| answer(connect, responder, &payload));
        if let Some((accept, _)) = answer {
            self.reply(Reply::Rejection(to, accept.into()));
        }
    }
}

/// The ACCEPT of a CONNECT, and the keys.
fn answer(connect: &Connect<'_>, responder: Responder, payload: &[u8]) -> Option<(Vec<u8>, Keys)> {
    let (mut msg2, mut accept) = (Vec::new(), Vec::new());
    let keys = responder.write_msg2(payload, &mut msg2).ok()?;
    let packet = Accept { suite: connect.suite, cid: connect.cid, msg2: &msg2 };
    packet.encode(&mut accept).ok()?;
    Some((accept, keys))
}

/// Least time between two ACCEPTs of one session.
const ACCEPT_EACH: Duration = Duration::from_millis(50);
/// When a client that was refused may try again, ms.
const RETRY_AFTER: u32 = 5000;
