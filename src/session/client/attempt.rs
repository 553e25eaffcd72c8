//! One attempt to connect, at up to four addresses at a time: what is sent, how often, and how answers are handled.

use super::candidate::Candidate;
use super::config::{ClientConfig, ConnectError};
use crate::machine::Transmit;
use crate::session::exchange::{self, HandshakeError, Initiator};
use crate::session::seal::Keys;
use crate::session::shape::Shape;
use crate::session::wire::{
    Accept, COOKIE_LEN, Challenge, Connect, Deny, DenyReason, Hello, KEM_KEY_LEN, KemKey, Msg1, Msg2,
    NO_PROOF,
};
use crate::session::{Suite, random};
use crate::time::Time;
use rand_core::CryptoRng;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;
use zeroize::Zeroizing;

/// An attempt. Its number and its first message never change.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The addresses that are tried now, all of one family: a client has one socket.
    candidates: Vec<Candidate>,
    /// Whether one is added from which the server answers: it is behind a NAT that gives it another port for this end.
    meets: bool,
    /// Whether each round asks for the session itself, and not for a cookie.
    is_early: bool,
    /// The addresses to try if these fail.
    others: Vec<SocketAddr>,
    cid: u64,
    pub(super) client_sid: u32,
    /// The random bytes of the handshake, which can be begun again.
    random: Zeroizing<[u8; 32]>,
    initiator: Initiator,
    msg1: Vec<u8>,
    kem: Kem,
    began: Time,
    pub(super) deadline: Time,
    next_send: Time,
    /// Rounds since the first cookie arrived. A round is a CONNECT with a cookie, or a greeting to each candidate.
    rounds: u32,
    /// The candidates that are still to get the greeting of this round: a HELLO, or a CONNECT without a proof.
    greets: Range<usize>,
    /// Why the first server that refused did so, as far as we were told at any address.
    pub(super) denied: Option<DenyReason>,
}

/// What has arrived of the answer of a hybrid suite, in any order.
#[derive(Default)]
struct Kem {
    /// An ACCEPT, what it says, and the keys, which are not complete.
    accepted: Option<Accepted>,
    /// The newest encapsulation key. It may be anybody's.
    key: Option<Box<[u8; KEM_KEY_LEN]>>,
}

struct Accepted {
    msg2: Box<[u8]>,
    answer: Answer,
}

/// What the server has answered: the keys, and the payload of the second message.
pub(super) struct Answer {
    pub(super) from: SocketAddr,
    pub(super) keys: Keys,
    pub(super) payload: Vec<u8>,
}

printed_without_secrets! { Kem {} }

impl Attempt {
    pub(super) fn new(
        now: Time,
        config: &ClientConfig,
        addresses: &[SocketAddr],
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, ConnectError> {
        let (mut candidates, others) = split(addresses);
        let first = candidates.first_mut().ok_or(ConnectError::NoAddress)?;
        let is_early = (addresses.len() == 1 || config.is_routed()) && config.may_begin();
        if !is_early {
            first.take_ticket(now, &config.ticket); // otherwise it saves nothing, and shows who the client is
        }
        let (cid, client_sid) = (u64::from_le_bytes(random(rng)), u32::from_le_bytes(random(rng)));
        let random = Zeroizing::new(random(rng));
        let (initiator, msg1) = begin(config, cid, client_sid, &random)?;
        Ok(Self {
            candidates,
            meets: config.is_routed(),
            is_early,
            others,
            cid,
            client_sid,
            random,
            initiator,
            msg1,
            kem: Kem::default(),
            began: now,
            deadline: now + config.deadline,
            next_send: now,
            rounds: 0,
            greets: 0..0,
            denied: None,
        })
    }

    pub(super) fn next(&self, now: Time, config: &ClientConfig, rng: &mut dyn CryptoRng) -> Option<Self> {
        let next = Self::new(now, config, &self.others, rng).ok()?;
        Some(Self { denied: self.denied, is_early: self.is_early, ..next })
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.candidates.iter().map(|candidate| candidate.address)
    }

    fn candidate(&mut self, address: SocketAddr) -> Option<&mut Candidate> {
        self.candidates.iter_mut().find(|candidate| candidate.address == address)
    }

    /// Whether a cookie has come from any candidate, or there is a ticket.
    pub(super) fn has_cookie(&self) -> bool {
        self.candidates.iter().any(Candidate::has_cookie)
    }

    /// Takes a cookie. Returns whether it is for this attempt. An old or duplicated one does no harm: the next HELLO
    /// brings a fresh one. Nor does a forged one, because all that came lately are tried.
    pub(super) fn on_challenge(
        &mut self,
        now: Time,
        from: SocketAddr,
        suite: Suite,
        challenge: &Challenge,
        rng: &mut dyn CryptoRng,
    ) -> bool {
        let (is_ours, is_first) = (challenge.cid == self.cid, !self.has_cookie());
        if !is_ours || challenge.suite != suite.code() {
            return false;
        }
        if self.meets && self.candidate(from).is_none() && self.candidates.len() < RACED + MET {
            self.candidates.push(Candidate::new(from));
        }
        let Some(candidate) = self.candidate(from) else { return false };
        let is_awaited = is_first || candidate.has_ticket();
        candidate.take_cookie(now, challenge.epoch, challenge.cookie, rng);
        if is_awaited {
            self.next_send = now;
            self.rounds = 0;
        }
        true
    }

    /// Takes a hint that the server refuses. Returns whether it is for this attempt. It may be forged, so the attempt
    /// continues: at the others, or for a while if all have refused.
    pub(super) fn on_deny(&mut self, now: Time, from: SocketAddr, deny: &Deny) -> bool {
        let is_ours = deny.cid == self.cid;
        // Before a CONNECT was sent, the server cannot have failed to read a message.
        let is_of_connect = matches!(deny.reason, DenyReason::Secret | DenyReason::Token);
        let Some(candidate) = self.candidate(from).filter(|it| is_ours && (!is_of_connect || it.is_asked))
        else {
            return false;
        };
        if !std::mem::replace(&mut candidate.has_denied, true) {
            log::debug!("denied by {from}, or by somebody on the way: {}", deny.reason);
            self.denied.get_or_insert(deny.reason);
            if self.candidates.iter().all(|candidate| candidate.has_denied) {
                self.deadline = self.deadline.min(now + DENIED_FOR);
            }
        }
        true
    }

    /// Takes the second message of the handshake. `None`: it does not answer ours; another one may.
    pub(super) fn on_accept(
        &mut self,
        from: SocketAddr,
        config: &ClientConfig,
        accept: &Accept<'_>,
    ) -> Option<Answer> {
        let is_ours = accept.cid == self.cid && accept.suite == config.suite.code();
        let is_asked = match self.candidate(from) {
            Some(candidate) => candidate.is_asked,
            None => self.meets && self.candidates.iter().any(|candidate| candidate.is_asked),
        };
        if !is_ours || !is_asked {
            return None;
        }
        if let Some(accepted) = &self.kem.accepted {
            if *accepted.msg2 == *accept.msg2 {
                return None;
            }
            // The server may have given our place to others, and then another one to us.
            (self.initiator, _) = begin(config, self.cid, self.client_sid, &self.random).ok()?;
        }
        let mut payload = Vec::new();
        let keys = self.initiator.read_msg2(accept.msg2, &mut payload).ok()?;
        if self.candidate(from).is_none() {
            self.candidates.push(Candidate::new(from)); // it is a way to the server
        }
        Some(Answer { from, keys, payload })
    }

    /// Completes the keys, or keeps the answer until the encapsulation key arrives.
    pub(super) fn complete(&mut self, accept: &Accept<'_>, sid: u32, mut answer: Answer) -> Option<Keys> {
        let is_complete = answer.keys.is_complete()
            || self.kem.key.as_ref().is_some_and(|key| answer.keys.encapsulate(sid, key));
        if is_complete {
            return Some(answer.keys);
        }
        self.kem.accepted = Some(Accepted { msg2: accept.msg2.into(), answer });
        None
    }

    /// Takes the server's encapsulation key. Returns whether it is for this attempt.
    pub(super) fn on_kem_key(&mut self, from: SocketAddr, suite: Suite, key: &KemKey<'_>) -> Option<Answer> {
        if key.cid != self.cid || !suite.is_hybrid() || !self.candidate(from)?.is_asked {
            return None;
        }
        if let Some(mut accepted) = self.kem.accepted.take() {
            let sid = Msg2::decode(&accepted.answer.payload).map_or(0, |msg2| msg2.server_sid);
            if accepted.answer.keys.encapsulate(sid, key.key) {
                return Some(accepted.answer);
            }
            self.kem.accepted = Some(accepted);
        }
        self.kem.key = Some(Box::new(*key.key));
        None
    }

    pub(super) fn check(&self) -> Time {
        if self.greets.is_empty() { self.next_send.min(self.deadline) } else { self.began }
    }

    pub(super) fn poll(
        &mut self,
        now: Time,
        config: &ClientConfig,
        rng: &mut dyn CryptoRng,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if self.greets.is_empty() {
            if self.next_send > now {
                return None;
            }
            self.rounds = self.rounds.wrapping_add(1);
            let pause = jittered(if now.since(self.began) < FAST_FOR { FAST } else { SLOW }, rng);
            let has_ticket = self.candidates.iter().any(Candidate::has_ticket);
            let hello_each = if has_ticket { HELLO_EACH_OF_TICKET } else { HELLO_EACH };
            let is_extra = self.rounds.is_multiple_of(hello_each);
            let asked =
                self.candidates.iter_mut().filter(|it| it.has_cookie()).min_by_key(|it| it.standing());
            if let Some(candidate) = asked.filter(|_| !is_extra) {
                self.next_send = now + pause;
                let (epoch, cookie) = candidate.next_cookie(rng)?;
                let address = candidate.address;
                self.connect(config, epoch, cookie).encode(buf).ok()?;
                return Some(address.into());
            }
            self.greets = 0..self.candidates.len();
            // An extra greeting does not delay the next CONNECT.
            self.next_send = if self.has_cookie() { now } else { now + pause };
        }
        let candidate = self.candidates.get_mut(self.greets.next()?)?;
        let address = candidate.address;
        if self.is_early {
            candidate.is_asked = true;
            self.connect(config, NO_PROOF, [0; COOKIE_LEN]).encode(buf).ok()?;
        } else {
            let (suite, protocol_id, cid) = (config.suite.code(), config.session.protocol_id, self.cid);
            let (client_stamp, size) = (now.wire().0, config.hello_len());
            Hello { suite, protocol_id, cid, client_stamp, size }.encode(buf).ok()?;
        }
        Some(address.into())
    }

    fn connect<'a>(&'a self, config: &'a ClientConfig, epoch: u32, cookie: [u8; COOKIE_LEN]) -> Connect<'a> {
        let &Self { cid, client_sid, ref msg1, .. } = self;
        let (suite, protocol_id, token) = (config.suite.code(), config.session.protocol_id, config.sealed());
        Connect { suite, protocol_id, cid, epoch, cookie, client_sid, token, msg1 }
    }
}

/// The next addresses to try at a time, and those that are left.
fn split(addresses: &[SocketAddr]) -> (Vec<Candidate>, Vec<SocketAddr>) {
    let is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut candidates, mut others) = (Vec::new(), Vec::new());
    for &address in addresses {
        if address.is_ipv6() == is_v6 && candidates.len() < RACED {
            candidates.push(Candidate::new(address));
        } else {
            others.push(address);
        }
    }
    (candidates, others)
}

/// The handshake up to the first message, which is the same for the same random bytes.
fn begin(
    config: &ClientConfig,
    cid: u64,
    client_sid: u32,
    random: &[u8; 32],
) -> Result<(Initiator, Vec<u8>), HandshakeError> {
    let (protocol_id, suite, token) = (config.session.protocol_id, config.suite, config.sealed());
    let attempt = exchange::Attempt { suite, protocol_id, cid, client_sid, token };
    let mut payload = Vec::new();
    let said = config.session.said(&config.user);
    Msg1 { shape: Shape::of(&config.session).bytes(), ..said }
        .encode(&mut payload)
        .map_err(|_| HandshakeError::Length)?;
    let (psk, server_key) = (config.psk.as_deref(), config.server_key.as_ref());
    let mut msg1 = Vec::new();
    let initiator = Initiator::new(&attempt, psk, server_key, *random, &payload, &mut msg1)?;
    Ok((initiator, msg1))
}

/// 90 to 110 % of a time, so that clients that were disconnected together do not return together.
fn jittered(time: Duration, rng: &mut dyn CryptoRng) -> Duration {
    time * (900 + u32::from_le_bytes(random(rng)) % 201) / 1000
}

/// Addresses that are tried at a time. Nobody can make a client send more HELLOs than that in a round.
const RACED: usize = 4;
/// Addresses that are added: somebody on the way may have forged one.
const MET: usize = 2;
/// Time between two rounds at first; how long that lasts; and the time after that.
const FAST: Duration = Duration::from_millis(100);
const FAST_FOR: Duration = Duration::from_secs(2);
const SLOW: Duration = Duration::from_millis(250);
/// With a cookie, every fourth round asks for a fresh one.
const HELLO_EACH: u32 = 4;
/// With a ticket, every second one does: a server without tickets answers nothing else.
const HELLO_EACH_OF_TICKET: u32 = 2;
/// How long to wait for a true answer after all have refused.
const DENIED_FOR: Duration = Duration::from_secs(2);
