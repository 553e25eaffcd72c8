//! One attempt to connect to one address: what is sent, how often, and how answers are handled.

use super::config::{ClientConfig, ConnectError};
use crate::machine::Transmit;
use crate::session::exchange::{self, HandshakeError, Initiator};
use crate::session::seal::Keys;
use crate::session::shape::Shape;
use crate::session::wire::{
    Accept, COOKIE_LEN, Challenge, Connect, Deny, DenyReason, Hello, KEM_KEY_LEN, KemKey, Msg1, Msg2,
    is_ticket,
};
use crate::session::{Suite, random};
use crate::time::Time;
use rand_core::CryptoRng;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use zeroize::Zeroizing;

/// A cookie that came for an attempt, or a ticket from an earlier session.
#[derive(Debug)]
struct Cookie {
    /// Its period by the server's clock.
    epoch: u32,
    bytes: [u8; COOKIE_LEN],
    /// When it came last, and whether it was tried since.
    came: Time,
    is_tried: bool,
}

impl Cookie {
    const fn is_ticket(&self) -> bool {
        is_ticket(self.epoch)
    }

    /// The ticket of a client. `None`: it has none, or what it has is none.
    fn of_ticket(now: Time, ticket: &[u8]) -> Option<Self> {
        let (epoch, bytes) = ticket.split_first_chunk()?;
        let (epoch, bytes) = (u32::from_le_bytes(*epoch), bytes.try_into().ok()?);
        Some(Self { epoch, bytes, came: now, is_tried: false }).filter(Self::is_ticket)
    }
}

/// An attempt. Its number and its first message never change.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The addresses to try if this one fails.
    others: VecDeque<SocketAddr>,
    pub(super) address: SocketAddr,
    cid: u64,
    pub(super) client_sid: u32,
    /// The random bytes of the handshake, which can be begun again.
    random: Zeroizing<[u8; 32]>,
    initiator: Initiator,
    msg1: Vec<u8>,
    kem: Kem,
    /// Those that came lately, or the ticket until one has come. None: HELLO is sent. Several: the server's period has
    /// changed, or somebody forges some.
    cookies: Vec<Cookie>,
    began: Time,
    pub(super) deadline: Time,
    next_send: Time,
    /// Datagrams sent since the cookie arrived.
    sends: u32,
    denied: Option<DenyReason>,
    /// The same from an earlier address.
    denied_before: Option<DenyReason>,
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
    pub(super) keys: Keys,
    pub(super) payload: Vec<u8>,
}

printed_without_secrets! { Kem {} }

impl Attempt {
    pub(super) fn new(
        now: Time,
        config: &ClientConfig,
        mut addresses: VecDeque<SocketAddr>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, ConnectError> {
        let address = addresses.pop_front().ok_or(ConnectError::NoAddress)?;
        let (cid, client_sid) = (u64::from_le_bytes(random(rng)), u32::from_le_bytes(random(rng)));
        let random = Zeroizing::new(random(rng));
        let (initiator, msg1) = begin(config, cid, client_sid, &random)?;
        Ok(Self {
            others: addresses,
            address,
            cid,
            client_sid,
            random,
            initiator,
            msg1,
            kem: Kem::default(),
            cookies: Cookie::of_ticket(now, &config.ticket).into_iter().collect(),
            began: now,
            deadline: now + config.deadline,
            next_send: now,
            sends: 0,
            denied: None,
            denied_before: None,
        })
    }

    pub(super) fn next(&self, now: Time, config: &ClientConfig, rng: &mut dyn CryptoRng) -> Option<Self> {
        let next = Self::new(now, config, self.others.clone(), rng).ok()?;
        Some(Self { denied_before: self.denied(), ..next })
    }

    /// Why the server refuses, as far as we were told at any address.
    pub(super) fn denied(&self) -> Option<DenyReason> {
        self.denied.or(self.denied_before)
    }

    /// Takes a cookie. Returns whether it is for this attempt. An old or duplicated one does no harm: the next HELLO
    /// brings a fresh one. Nor does a forged one, because all that came lately are tried.
    pub(super) fn on_challenge(
        &mut self,
        now: Time,
        suite: Suite,
        challenge: &Challenge,
        rng: &mut dyn CryptoRng,
    ) -> bool {
        if challenge.cid != self.cid || challenge.suite != suite.code() {
            return false;
        }
        if !self.has_cookie() || self.has_ticket() {
            self.next_send = now;
            self.sends = 0;
        }
        let &Challenge { epoch, cookie: bytes, .. } = challenge;
        let stays = |it: &Cookie| {
            !it.is_ticket() && (it.epoch, it.bytes) != (epoch, bytes) && now.since(it.came) < COOKIE_LIFE
        };
        self.cookies.retain(stays);
        if self.cookies.len() == COOKIES_MAX {
            self.cookies.swap_remove(any_of(COOKIES_MAX, rng));
        }
        self.cookies.push(Cookie { epoch, bytes, came: now, is_tried: false });
        true
    }

    /// One of the cookies that were not tried yet, or of all if there are none of these.
    fn any_cookie(&mut self, rng: &mut dyn CryptoRng) -> Option<&mut Cookie> {
        let start = any_of(self.cookies.len(), rng);
        self.cookies.rotate_left(start);
        let fresh = self.cookies.iter().position(|cookie| !cookie.is_tried);
        self.cookies.get_mut(fresh.unwrap_or_default())
    }

    /// Whether a cookie has come, or there is a ticket.
    pub(super) const fn has_cookie(&self) -> bool {
        !self.cookies.is_empty()
    }

    /// Whether there is a ticket, and no cookie.
    fn has_ticket(&self) -> bool {
        self.cookies.first().is_some_and(Cookie::is_ticket)
    }

    /// Takes a hint that the server refuses. Returns whether it is for this attempt. It may be forged, so the attempt
    /// continues for a while.
    pub(super) fn on_deny(&mut self, now: Time, deny: &Deny) -> bool {
        // Before a cookie was sent, the server cannot have failed to read a message.
        let is_of_connect = matches!(deny.reason, DenyReason::Secret | DenyReason::Token);
        if deny.cid != self.cid || is_of_connect && !self.has_cookie() {
            return false;
        }
        if self.denied.is_none() {
            log::debug!("denied by {}, or by somebody on the way: {}", self.address, deny.reason);
            self.denied = Some(deny.reason);
            self.deadline = self.deadline.min(now + DENIED_FOR);
        }
        true
    }

    /// Takes the second message of the handshake. `None`: it does not answer ours; another one may.
    pub(super) fn on_accept(&mut self, config: &ClientConfig, accept: &Accept<'_>) -> Option<Answer> {
        let is_ours = accept.cid == self.cid && accept.suite == config.suite.code();
        if !is_ours || !self.has_cookie() {
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
        Some(Answer { keys, payload })
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
    pub(super) fn on_kem_key(&mut self, suite: Suite, key: &KemKey<'_>) -> Option<Answer> {
        if key.cid != self.cid || !suite.is_hybrid() {
            return None;
        }
        let Some(mut accepted) = self.kem.accepted.take() else {
            self.kem.key = Some(Box::new(*key.key));
            return None;
        };
        let sid = Msg2::decode(&accepted.answer.payload).map_or(0, |msg2| msg2.server_sid);
        if accepted.answer.keys.encapsulate(sid, key.key) {
            return Some(accepted.answer);
        }
        self.kem.accepted = Some(accepted);
        None
    }

    pub(super) fn check(&self) -> Time {
        self.next_send.min(self.deadline)
    }

    pub(super) fn poll(
        &mut self,
        now: Time,
        config: &ClientConfig,
        rng: &mut dyn CryptoRng,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if self.next_send > now {
            return None;
        }
        self.sends = self.sends.wrapping_add(1);
        let (suite, protocol_id, cid) = (config.suite.code(), config.session.protocol_id, self.cid);
        let pause = jittered(if now.since(self.began) < FAST_FOR { FAST } else { SLOW }, rng);
        let hello_each = if self.has_ticket() { HELLO_EACH_OF_TICKET } else { HELLO_EACH };
        let is_extra = self.has_cookie() && self.sends.is_multiple_of(hello_each);
        match if is_extra { None } else { self.any_cookie(rng) } {
            Some(Cookie { epoch, bytes, is_tried, .. }) => {
                *is_tried = true;
                let (epoch, cookie) = (*epoch, *bytes);
                let (client_sid, token, msg1) = (self.client_sid, config.sealed(), &self.msg1);
                let connect = Connect { suite, protocol_id, cid, epoch, cookie, client_sid, token, msg1 };
                connect.encode(buf).ok()?;
            }
            None => {
                let client_stamp = now.wire().0;
                let size = config.hello.min(config.session.max_datagram); // or a narrow path carries no HELLO
                Hello { suite, protocol_id, cid, client_stamp, size }.encode(buf).ok()?;
            }
        }
        // An extra HELLO does not delay the next CONNECT.
        self.next_send = if is_extra { now } else { now + pause };
        Some(self.address.into())
    }
}

/// A random number below this one.
fn any_of(count: usize, rng: &mut dyn CryptoRng) -> usize {
    if count < 2 { 0 } else { usize::from(u16::from_le_bytes(random(rng))) % count }
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

/// Time between two datagrams at first; how long that lasts; and the time after that.
const FAST: Duration = Duration::from_millis(100);
const FAST_FOR: Duration = Duration::from_secs(2);
const SLOW: Duration = Duration::from_millis(250);
/// With a cookie, every fourth datagram asks for a fresh one.
const HELLO_EACH: u32 = 4;
/// With a ticket, every second one does: a server without tickets answers nothing else.
const HELLO_EACH_OF_TICKET: u32 = 2;
/// Cookies that are kept, and how long each is tried after it last came: a good one comes again with each answer to a
/// HELLO until the server's period changes, and holds for 5 s after that.
const COOKIES_MAX: usize = 4;
const COOKIE_LIFE: Duration = Duration::from_secs(3);
/// How long to wait for a true answer after a refusal.
const DENIED_FOR: Duration = Duration::from_secs(2);
