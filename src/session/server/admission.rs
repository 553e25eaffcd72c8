//! The way into a server. Nothing is kept before the client has shown that it may join. Nothing is stored or multiplied
//! before its address is proven, but for a few clients that come with [a connect token at once](super::unproven).

use super::claims::{Claims, Mark};
use super::opening::Guest;
use super::relayed::direct;
use super::seat::{Place, TIME_WAIT};
use super::stats::{Refusal, Refused, Why};
use super::unproven::NOWHERE;
use super::{Server, ServerConfig, Suite};

use crate::machine::{Arrival, Underlay};
use crate::rate::{host, network};
use crate::session::config::DATAGRAM_MIN;
use crate::session::cookie::{Claim, ResetKey, epoch_of};
use crate::session::event::code;
use crate::session::exchange::{Attempt, HandshakeError, Responder};
use crate::session::random;
use crate::session::seats::{Entry, has_share};
use crate::session::token::{Grant, NONCE_LEN, TokenError, Verifier};
use crate::session::wire::{CHALLENGE_LEN, Challenge, Connect, DenyReason, Hello, Msg1, Packet, PacketError};
use crate::time::Time;
use siphasher::sip::SipHasher24;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::net::SocketAddr;
use zeroize::Zeroizing;

impl Server {
    /// Answers a HELLO with a cookie, and keeps no state for it.
    pub(super) fn on_hello(&mut self, now: Time, arrival: Arrival, hello: &Hello) {
        let &Hello { suite, protocol_id, cid, client_stamp, size } = hello;
        let from = arrival.address;
        if let Err(refused) = self.check_offer(suite, protocol_id, arrival.underlay) {
            self.count(now, from, refused);
            return self.refuse_offer(now, from, cid, refused);
        }
        let claim = Claim { address: from, suite, protocol_id, cid };
        self.greet(now, claim, client_stamp, size);
    }

    fn refuse_offer(&mut self, now: Time, from: SocketAddr, cid: u64, refused: Refused) {
        match refused.refusal {
            Refusal::Suite => self.deny(now, from, cid, DenyReason::Suite),
            _ if self.config.deny_protocol || from.ip().to_canonical().is_loopback() => {
                self.deny(now, from, cid, DenyReason::Protocol);
            }
            _ => {}
        }
    }

    /// Answers `size` bytes of a stranger with a cookie, and whoever came by the relay with another one directly.
    fn greet(&mut self, now: Time, claim: Claim, client_stamp: u32, size: u16) {
        self.challenge(now, claim, client_stamp);
        if let Some(address) = direct(claim.address).filter(|_| size >= PUNCHING_HELLO_MIN) {
            self.challenge(now, Claim { address, ..claim }, client_stamp);
        }
    }

    fn challenge(&mut self, now: Time, claim: Claim, client_stamp: u32) {
        let Claim { address: from, suite, cid, .. } = claim;
        if !self.rates.challenges.spend(now) {
            return self.count(now, from, Refusal::ChallengeRate);
        }
        let epoch = epoch_of(now);
        let cookie = self.cookies.mint(epoch, &claim);
        self.stats.challenges += 1;
        let challenge = Challenge { suite, cid, client_stamp, epoch, cookie };
        self.reply_short(now, from, |buf| _ = challenge.encode(buf));
    }

    /// Makes a session from a CONNECT, if everything is right. Without a good cookie there is no answer: a CONNECT is
    /// shorter than a HELLO, and a client that needs an answer also sends HELLOs. A CHALLENGE answers one whose ticket
    /// is not good, or that has no proof, so that it costs no time: these are as long as a HELLO.
    pub(super) fn on_connect(&mut self, now: Time, arrival: Arrival, connect: &Connect<'_>, size: u16) {
        let Err(refused) = self.try_connect(now, arrival, connect) else { return };
        let &Connect { suite, protocol_id, cid, .. } = connect;
        let from = arrival.address;
        self.count(now, from, refused);
        if !connect.has_proof() {
            return match refused.refusal {
                Refusal::Suite | Refusal::Protocol => self.refuse_offer(now, from, cid, refused),
                _ => self.greet(now, Claim { address: from, suite, protocol_id, cid }, 0, size),
            };
        }
        let reason = match refused.refusal {
            Refusal::PerAddress | Refusal::PerNetwork | Refusal::Full => DenyReason::Busy,
            Refusal::Handshake => DenyReason::Secret,
            Refusal::Token => DenyReason::Token,
            Refusal::Ticket => {
                return self.challenge(now, Claim { address: from, suite, protocol_id, cid }, 0);
            }
            _ => return,
        };
        self.deny(now, from, cid, reason);
    }

    fn try_connect(&mut self, now: Time, arrival: Arrival, connect: &Connect<'_>) -> Result<(), Refused> {
        let Arrival { address: from, underlay, .. } = arrival;
        let suite = self.check_offer(connect.suite, connect.protocol_id, underlay)?;
        let ticket = self.check_address(now, from, connect)?;
        let mark = self.mark(connect);
        let is_known = self.seats.knows(now, mark);
        if let Some(ticket) = ticket {
            self.use_ticket(ticket, from, mark, is_known)?;
        }
        if connect.has_proof() {
            self.prove(now, from, mark)?;
        } else {
            self.check_unproven(now, from, suite, connect, is_known.then_some(mark))?;
        }
        // From here on, the address of the client is proven, or need not be.
        if is_known {
            return Ok(self.repeat(now, from, mark)?);
        }
        if connect.has_proof() && !self.rates.accepts(now, from) {
            return Err(Refusal::AcceptRate.into());
        }
        let goes = self.find_room(now, from)?;
        let (mut guest, responder) = self.read_connect(now, from, suite, connect, mark)?;
        if let Some(goes) = goes {
            self.displace(now, goes);
        }
        let id = self.seats.table.next_id().ok_or(Refusal::Full)?;
        if self.config.ask {
            self.ask(now, id, guest);
            return Ok(());
        }
        let user = self.config.user.clone();
        Ok(self.open(now, id, &mut guest, responder, &user, false)?)
    }

    fn check_offer(&self, suite: u16, found: u64, underlay: Underlay) -> Result<Suite, Refused> {
        let ours = self.config.session.protocol_id;
        if found != ours {
            return Err(Refusal::Protocol.because(Why::Protocol { found, ours }));
        }
        let ServerConfig { suites, checked_in_tls, .. } = &self.config;
        let has_tls = *checked_in_tls && underlay.is_private;
        let is_allowed = |suite: &Suite| suites.contains(suite) || (has_tls && *suite == Suite::Checked);
        let suite = Suite::from_code(suite).filter(is_allowed);
        Ok(suite.ok_or(Refusal::Suite)?)
    }

    /// A known attempt: the answer to its CONNECT may have been lost, the client's address may have changed, or somebody
    /// has copied it. Each proven address gets the same answer, now or when there is one. Another address costs what an
    /// attempt from there costs.
    fn repeat(&mut self, now: Time, from: SocketAddr, mark: Mark) -> Result<(), Refusal> {
        let Self { seats, rates, .. } = self;
        let claims = seats.claims(now, mark).ok_or(Refusal::Repeated)?;
        if !claims.has(from) && !rates.accepts(now, from) {
            return Err(Refusal::AcceptRate);
        }
        if !claims.claim(now, from) || seats.answer(now, mark).is_none() {
            return Err(Refusal::Repeated);
        }
        self.stats.accepts_repeated += 1;
        self.reply_answer(now, from, mark);
        Ok(())
    }

    /// Whether there is room for another session from an address. Returns the unconfirmed one that goes for it, which
    /// it does not before the client has shown that it may join.
    pub(super) fn find_room(&mut self, now: Time, from: SocketAddr) -> Result<Option<u32>, Refusal> {
        let &ServerConfig { max_sessions, sessions_per_address, half_open, half_open_per_address, .. } =
            &self.config;
        if self.is_unheard() {
            return Err(Refusal::Full);
        }
        let of_host = self.seats.hosts.of(host(from));
        if self.seats.half_open.of_host(host(from)).len() >= half_open_per_address.into() {
            let own = self.seats.oldest_of(host(from)).filter(|_| of_host <= sessions_per_address.into());
            return own.map(Some).ok_or(Refusal::PerAddress);
        }
        if of_host >= sessions_per_address.into() {
            return Err(Refusal::PerAddress);
        }
        let of_network = self.seats.networks.of(network(from));
        let (taken, places) = (self.seats.table.len(), max_sessions.into());
        if self.tokens.is_none() && has_share(of_network, taken, places, sessions_per_address.into()) {
            return Err(Refusal::PerNetwork);
        }
        if self.seats.half_open.len() >= half_open.into() {
            return Ok(self.seats.half_open.crowding(random(&mut *self.random.0), |_| true));
        }
        if self.seats.table.is_full() {
            let chance = random(&mut *self.random.0);
            let ghost = self.seats.half_open.crowding(chance, |id| self.seats.is_ghost(now, id));
            let ghost = ghost.or_else(|| self.seats.half_open.of_host(host(NOWHERE)).next());
            return ghost.map(Some).ok_or(Refusal::Full);
        }
        Ok(None)
    }

    /// Reads the client's message. A stranger passes only if they know what the suite requires.
    fn read_connect(
        &mut self,
        now: Time,
        from: SocketAddr,
        suite: Suite,
        connect: &Connect<'_>,
        mark: Mark,
    ) -> Result<(Guest, Responder), Refused> {
        let &Connect { cid, client_sid, token, msg1, .. } = connect;
        let grant = self.open_token(now, suite, connect)?;
        let psk = grant.as_ref().map(|grant| grant.psk.clone());
        let mut guest = Guest {
            place: Place { mark, address: from, entry: Entry::at(now + TIME_WAIT) },
            is_proven: connect.has_proof(),
            claims: Claims::new(from, now),
            suite,
            cid,
            client_sid,
            token: token.into(),
            msg1: msg1.into(),
            psk: psk.or_else(|| self.config.psk.clone()),
            random: Zeroizing::new(random(&mut *self.random.0)),
            max_datagram: 0,
            features: 0,
            user: Box::default(),
            pass: None,
            nonce: None,
        };
        let strain = self.seats.strain(now, &self.config);
        if connect.has_proof() && !self.rates.handshake(now, from, strain) {
            return Err(Refusal::HandshakeRate.into());
        }
        let mut payload = Vec::new();
        let responder =
            self.read_msg1(&guest, &mut payload).map_err(|error| Refusal::Handshake.because(error))?;
        let said = Msg1::decode(&payload).map_err(|error| Refusal::Handshake.because(error))?;
        let Msg1 { max_datagram, features, user, shape, .. } = said;
        if max_datagram < DATAGRAM_MIN {
            return Err(Refusal::Handshake.because(PacketError::Field { field: "max_datagram" }));
        }
        (guest.max_datagram, guest.features, guest.user) = (max_datagram, features, user.into());
        let of_token = self.tokens.as_ref().zip(grant.as_ref());
        let is_outdated =
            of_token.is_some_and(|(tokens, grant)| tokens.is_outdated(grant.client_id, grant.created));
        let mismatch = self.shape.compare(shape);
        if !connect.has_proof() && (is_outdated || mismatch.is_some()) {
            return Err(Refusal::Unproven.into()); // it is told so once its address is proven
        }
        if let (Some(tokens), Some(grant)) = (&mut self.tokens, grant) {
            // The client has shown that the token is its own, so nobody may use it again.
            let used = tokens.unix(now).and_then(|unix| tokens.verifier.use_up(unix, &grant));
            used.map_err(|error| match error {
                TokenError::Full => Refusal::Full.into(),
                error => Refusal::Token.because(error),
            })?;
            if is_outdated {
                let user = self.config.user.clone();
                self.turn_away(now, &guest, responder, code::REPLACED, &user);
                return Err(Refusal::Outdated.into());
            }
            guest.nonce = Some(grant.nonce);
            guest.pass = Some(grant.into());
        }
        if let Some(mismatch) = mismatch {
            let ours = self.shape.clone();
            self.turn_away(now, &guest, responder, code::SHAPE, ours.bytes());
            return Err(Refusal::Shape.because(mismatch));
        }
        Ok((guest, responder))
    }

    /// Opens the connect token of a CONNECT, if tokens are required.
    pub(super) fn open_token(
        &self,
        now: Time,
        suite: Suite,
        connect: &Connect<'_>,
    ) -> Result<Option<Grant>, Refused> {
        match &self.tokens {
            Some(tokens) => {
                let open = |unix| tokens.verifier.open(unix, connect.protocol_id, suite, connect.token);
                let grant = tokens.unix(now).and_then(open);
                Ok(Some(grant.map_err(|error| Refusal::Token.because(error))?))
            }
            None if connect.token.is_empty() => Ok(None),
            None => Err(Refusal::Token.into()),
        }
    }

    /// Reads the first message of a handshake. An error: its sender does not know what the suite requires.
    pub(super) fn read_msg1(
        &self,
        guest: &Guest,
        payload: &mut Vec<u8>,
    ) -> Result<Responder, HandshakeError> {
        let &Guest { suite, cid, client_sid, ref token, ref msg1, ref psk, ref random, .. } = guest;
        let protocol_id = self.config.session.protocol_id;
        let attempt = Attempt { suite, protocol_id, cid, client_sid, token };
        let psk = psk.as_deref().filter(|_| suite.needs_psk());
        let server_key = self.config.server_key.as_deref().filter(|_| suite.needs_server_key());
        Responder::read_msg1(&attempt, psk, server_key, **random, msg1, payload)
    }

    /// Tells a client of another version which versions there are.
    pub(super) fn refuse_version(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        self.count(now, from, Refusal::Version);
        if let Some(cid) = Packet::cid_of_any_version(datagram) {
            self.deny(now, from, cid, DenyReason::Version);
        }
    }

    fn mark(&self, connect: &Connect<'_>) -> Mark {
        let &Connect { suite, protocol_id, cid, client_sid, token, msg1, epoch: _, cookie: _ } = connect;
        let mut hasher = SipHasher24::new_with_key(&self.hash_key);
        hasher.write_u16(suite);
        hasher.write_u64(protocol_id);
        hasher.write_u64(cid);
        hasher.write_u32(client_sid);
        hasher.write_usize(token.len());
        hasher.write(token);
        hasher.write(msg1);
        hasher.finish()
    }
}

/// Fewest bytes of a HELLO that is answered both by the relay and directly: both answers together are 0.07 of it at most.
const PUNCHING_HELLO_MIN: u16 = 1029;
const _: () = assert!(200 * CHALLENGE_LEN <= 7 * PUNCHING_HELLO_MIN as usize);

/// Verifies tokens, and knows which clients are connected: when the token of each was made, and its session.
#[derive(Debug)]
pub(super) struct Tokens {
    verifier: Verifier,
    /// When the server was first told the time. It has remembered used tokens since then.
    begun: Option<Time>,
    /// When it was last told the time, and that time in seconds since 1970.
    told: Option<(Time, u64)>,
    clients: BTreeMap<u64, (u64, u32)>,
}

/// What a matchmaker said about the client of a session, in its connect token.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Pass {
    /// The client.
    pub client_id: u64,
    /// The match, or anything else that the application chose.
    pub match_id: [u8; 16],
    /// When the token was made, in seconds since 1970.
    pub created: u64,
    /// The application's data.
    pub user: Vec<u8>,
}

impl Tokens {
    /// The token state of a server with that config, if it accepts tokens.
    pub(super) fn of(config: &ServerConfig) -> Option<Self> {
        let verifier = config.tokens.clone()?;
        Some(Self { verifier, begun: None, told: None, clients: BTreeMap::new() })
    }

    /// It is `unix` seconds since 1970, whatever it was before.
    pub(super) fn set_unix_time(&mut self, now: Time, unix: u64) {
        let begun = *self.begun.get_or_insert(now);
        self.told = Some((now, unix));
        self.verifier.set_age(unix, now.since(begun).as_secs());
    }

    /// Whether a client is connected with a token newer than the one made at `created`.
    pub(super) fn is_outdated(&self, client_id: u64, created: u64) -> bool {
        self.clients.get(&client_id).is_some_and(|(other, _)| *other > created)
    }

    /// The client has joined. Returns its older session, if there is one.
    pub(super) fn enter(&mut self, pass: &Pass, session: u32) -> Option<u32> {
        let (_, left) = self.clients.insert(pass.client_id, (pass.created, session))?;
        (left != session).then_some(left)
    }

    pub(super) fn leave(&mut self, pass: &Pass, session: u32) {
        if self.clients.get(&pass.client_id).is_some_and(|(_, known)| *known == session) {
            self.clients.remove(&pass.client_id);
        }
    }

    pub(super) fn reset_key(&self) -> Option<ResetKey> {
        self.verifier.reset_key()
    }

    /// The client of an attempt that had to make room did not join: its token is good for another try.
    pub(super) fn give_back(&self, nonce: &[u8; NONCE_LEN]) {
        self.verifier.give_back(nonce);
    }

    fn unix(&self, now: Time) -> Result<u64, TokenError> {
        let (then, unix) = self.told.ok_or(TokenError::NoTime)?;
        Ok(unix.saturating_add(now.since(then).as_secs()))
    }
}

impl From<Grant> for Pass {
    fn from(grant: Grant) -> Self {
        let Grant { client_id, match_id, created, user, .. } = grant;
        Self { client_id, match_id, created, user }
    }
}
