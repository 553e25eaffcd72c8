//! One of the addresses that an attempt tries at a time, and what has come from there.

use crate::session::random;
use crate::session::wire::{COOKIE_LEN, is_ticket};
use crate::time::Time;
use rand_core::CryptoRng;
use std::net::SocketAddr;
use std::time::Duration;

/// An address, the cookies from there, and what was sent there.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) address: SocketAddr,
    /// Those that came lately, or the ticket until one has come. Several: the server's period has changed, or somebody
    /// forges some.
    cookies: Vec<Cookie>,
    /// When the first one came.
    answered: Option<Time>,
    /// CONNECTs with a cookie that were sent there.
    connects: u32,
    /// Whether a CONNECT was sent there, with a cookie or without, so that an answer may come.
    pub(super) is_asked: bool,
    pub(super) has_denied: bool,
}

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

impl Candidate {
    pub(super) const fn new(address: SocketAddr) -> Self {
        Self { address, cookies: Vec::new(), answered: None, connects: 0, is_asked: false, has_denied: false }
    }

    /// Takes the ticket of a client in place of a cookie, if it is one.
    pub(super) fn take_ticket(&mut self, now: Time, ticket: &[u8]) {
        let Some((epoch, bytes)) = ticket.split_first_chunk() else { return };
        let Ok(bytes) = bytes.try_into() else { return };
        let epoch = u32::from_le_bytes(*epoch);
        if is_ticket(epoch) {
            self.cookies.push(Cookie { epoch, bytes, came: now, is_tried: false });
            self.answered = Some(now);
        }
    }

    /// Takes a cookie. Any other one that came lately stays, because either may be forged. Those of other addresses are
    /// not here, so whoever forges for one address pushes out none of another.
    pub(super) fn take_cookie(
        &mut self,
        now: Time,
        epoch: u32,
        bytes: [u8; COOKIE_LEN],
        rng: &mut dyn CryptoRng,
    ) {
        let stays = |it: &Cookie| {
            !is_ticket(it.epoch) && (it.epoch, it.bytes) != (epoch, bytes) && now.since(it.came) < COOKIE_LIFE
        };
        self.cookies.retain(stays);
        if self.cookies.len() == COOKIES_MAX {
            self.cookies.swap_remove(any_of(COOKIES_MAX, rng));
        }
        self.cookies.push(Cookie { epoch, bytes, came: now, is_tried: false });
        self.answered.get_or_insert(now);
    }

    /// A cookie, and its epoch, for a CONNECT that is sent now: one of those that were not tried yet, or of all if there
    /// are none of these.
    pub(super) fn next_cookie(&mut self, rng: &mut dyn CryptoRng) -> Option<(u32, [u8; COOKIE_LEN])> {
        let start = any_of(self.cookies.len(), rng);
        self.cookies.rotate_left(start);
        let fresh = self.cookies.iter().position(|cookie| !cookie.is_tried);
        let cookie = self.cookies.get_mut(fresh.unwrap_or_default())?;
        cookie.is_tried = true;
        self.connects = self.connects.wrapping_add(1);
        self.is_asked = true;
        Some((cookie.epoch, cookie.bytes))
    }

    /// Whether a cookie has come from there, or there is a ticket for it.
    pub(super) const fn has_cookie(&self) -> bool {
        self.answered.is_some()
    }

    pub(super) fn has_ticket(&self) -> bool {
        self.cookies.first().is_some_and(|cookie| is_ticket(cookie.epoch))
    }

    /// The candidate with the least is the next one to get a CONNECT: the one that has answered first, until it has had its
    /// turn or has denied. Were it sent to all, a connect token would be used at each of several servers.
    pub(super) fn standing(&self) -> (u32, Option<Time>) {
        (self.connects / CONNECTS_EACH + u32::from(self.has_denied), self.answered)
    }
}

/// A random number below this one.
fn any_of(count: usize, rng: &mut dyn CryptoRng) -> usize {
    if count < 2 { 0 } else { usize::from(u16::from_le_bytes(random(rng))) % count }
}

/// CONNECTs to a candidate before it is another one's turn.
const CONNECTS_EACH: u32 = 4;
/// Cookies that are kept, and how long each is tried after it last came: a good one comes again with each answer to a
/// HELLO until the server's period changes, and holds for 5 s after that.
const COOKIES_MAX: usize = 4;
const COOKIE_LIFE: Duration = Duration::from_secs(3);
