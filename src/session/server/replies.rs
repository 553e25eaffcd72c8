//! Replies outside of sessions: how often strangers get one, and a few short ones that wait to be sent.

use super::stats::Refusal;
use super::{Server, ServerConfig};
use crate::rate::{AddressRate, Rate};
use crate::session::cookie::ResetKey;
use crate::session::seats::Name;
use crate::session::wire::{CHALLENGE_LEN, Deny, DenyReason, RESET_LEN, Reset, VERSION};
use crate::session::{concat, hash_key};
use crate::time::Time;
use rand_core::CryptoRng;
use std::net::SocketAddr;

#[derive(Clone, Debug)]
pub(super) enum Reply {
    Short {
        to: SocketAddr,
        len: usize,
        bytes: [u8; CHALLENGE_LEN],
    },
    /// The ACCEPT of an attempt.
    Answer(Name),
}

/// Limits how often strangers are answered.
#[derive(Debug)]
pub(super) struct Rates {
    pub(super) challenges: Rate,
    denials: Rate,
    resets: Rate,
    pub(super) accepts: AddressRate,
}

impl Rates {
    pub(super) fn new(config: &ServerConfig, rng: &mut dyn CryptoRng) -> Self {
        let each = |per_second: u32| Rate::new(per_second, per_second.div_ceil(10).max(10));
        let (accepts, burst) = (config.accepts_per_second, config.accept_burst);
        Self {
            challenges: each(config.challenges_per_second),
            denials: each(config.refusals_per_second),
            resets: each(config.refusals_per_second),
            accepts: AddressRate::new(accepts, burst, hash_key(rng)),
        }
    }
}

impl Server {
    pub(super) fn deny(&mut self, now: Time, to: SocketAddr, cid: u64, reason: DenyReason) {
        if self.rates.denials.spend(now) {
            let deny = Deny { lowest: VERSION, highest: VERSION, reason, cid, retry_after_ms: RETRY_AFTER };
            self.stats.denials += 1;
            self.reply_short(now, to, |buf| _ = deny.encode(buf));
        }
    }

    /// Tells the sender of `len` bytes to an unknown session so, in fewer bytes.
    pub(super) fn reset(&mut self, now: Time, to: SocketAddr, sid: u32, len: usize) {
        if len > RESET_LEN
            && self.rates.resets.spend(now)
            && let Some(key) = self.reset_key()
        {
            let reset = Reset { sid, token: key.token(sid, to) };
            self.stats.resets += 1;
            self.reply_short(now, to, |buf| _ = reset.encode(buf));
        }
    }

    /// What reset tokens are made with: the key that was set, or one that follows from that of connect tokens.
    pub(super) fn reset_key(&self) -> Option<ResetKey> {
        let of_tokens = || self.tokens.as_ref()?.reset_key();
        self.config.reset_key.map(ResetKey::new).or_else(of_tokens)
    }

    /// Replies with what `write` appends, at most as many bytes as a CHALLENGE.
    pub(super) fn reply_short(&mut self, now: Time, to: SocketAddr, write: impl FnOnce(&mut Vec<u8>)) {
        self.scratch.clear();
        write(&mut self.scratch);
        let (len, bytes) = (self.scratch.len(), concat(&[&self.scratch]));
        self.reply(now, to, Reply::Short { to, len, bytes });
    }

    pub(super) fn reply(&mut self, now: Time, to: SocketAddr, reply: Reply) {
        if self.replies.len() < REPLIES_MAX {
            self.replies.push_back(reply);
        } else {
            self.count(now, to, Refusal::Replies);
        }
    }

    pub(super) fn append_reply(&mut self, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        while let Some(reply) = self.replies.pop_front() {
            let (to, bytes) = match &reply {
                Reply::Short { to, len, bytes } => (*to, bytes.get(..*len)),
                Reply::Answer(attempt) => {
                    (attempt.0, self.seats.answer(self.now, attempt).map(|answer| &*answer.accept))
                }
            };
            if let Some(bytes) = bytes {
                buf.extend_from_slice(bytes);
                return Some(to);
            }
        }
        None
    }
}

/// Most replies that wait. A driver that drains after each datagram needs one.
pub(super) const REPLIES_MAX: usize = 64;
/// When a refused client may try again, ms.
const RETRY_AFTER: u32 = 5000;
