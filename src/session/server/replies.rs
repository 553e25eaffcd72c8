//! Replies outside of sessions: how often strangers get one, and a few short ones that wait to be sent.

use super::claims::{Claims, Mark};
use super::stats::Refusal;
use super::{Server, ServerConfig};
use crate::rate::{AddressRate, Rate, Turns, host, network, region};
use crate::session::cookie::ResetKey;
use crate::session::wire::{CHALLENGE_LEN, Deny, DenyReason, RESET_LEN, Reset, VERSION};
use crate::session::{concat, hash_key};
use crate::time::Time;
use rand_core::CryptoRng;
use std::net::SocketAddr;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(super) enum Reply {
    Short {
        len: usize,
        bytes: [u8; CHALLENGE_LEN],
    },
    /// The ACCEPT of an attempt, to one of the addresses that it came from.
    Answer(Mark),
    /// The encapsulation key of its session.
    KemKey(Mark),
}

/// Limits how often strangers are answered.
#[derive(Debug)]
pub(super) struct Rates {
    pub(super) challenges: Rate,
    denials: Rate,
    resets: Rate,
    accepts: AddressRate,
    networks: AddressRate,
    handshakes: Rate,
    /// Handshakes of clients whose address is not proven.
    pub(super) unproven: Rate,
    turns_of_networks: Turns,
    turns_of_regions: Turns,
    /// Exchanges of new keys inside of sessions. Whoever asks beyond that waits.
    pub(super) renewals: Rate,
}

impl Rates {
    pub(super) fn new(config: &ServerConfig, rng: &mut dyn CryptoRng) -> Self {
        let each = |per_second: u32| Rate::new(per_second, per_second.div_ceil(10).max(10));
        let (accepts, burst, key) = (config.accepts_per_second, config.accept_burst, hash_key(rng));
        Self {
            challenges: each(config.challenges_per_second),
            denials: each(config.refusals_per_second),
            resets: each(config.refusals_per_second),
            accepts: AddressRate::new(accepts, burst, key),
            networks: AddressRate::new(OF_NETWORK * accepts, OF_NETWORK * burst, key),
            handshakes: Rate::new(OF_ALL * accepts, OF_ALL / 10 * burst),
            unproven: Rate::new(OF_ALL / 10 * accepts, OF_ALL / 100 * burst),
            turns_of_networks: Turns::new(NETWORKS, key),
            turns_of_regions: Turns::new(REGIONS, key),
            renewals: each(RENEWALS),
        }
    }

    /// Whether an address may make an attempt. An address that asks too often uses up nothing of its network's, and a
    /// network nothing of an address's.
    pub(super) fn accepts(&mut self, now: Time, from: SocketAddr) -> bool {
        let (host, network) = (host(from), network(from));
        self.accepts.has(now, host) && self.networks.spend(now, network) && self.accepts.spend(now, host)
    }

    /// The same without a change.
    pub(super) fn may_accept(&mut self, now: Time, from: SocketAddr) -> bool {
        self.accepts.has(now, host(from)) && self.networks.has(now, network(from))
    }

    /// How short time for handshakes is; see [`Rate::strain`].
    pub(super) fn strain(&self, now: Time) -> u32 {
        self.handshakes.strain(now)
    }

    /// Whether there is time for the handshake of an attempt, given how short places are. Under load,
    /// networks that have waited longest since their last handshake go first: the higher the load, the longer
    /// each waits. Newcomers do not wait.
    pub(super) fn handshake(&mut self, now: Time, from: SocketAddr, strain: u32) -> bool {
        let strain = strain.max(self.handshakes.strain(now));
        let wait = WAIT_MAX * (strain * strain) / (256 * 256);
        let (network, region) = (network(from), region(from));
        let Self { handshakes, turns_of_networks, turns_of_regions, .. } = self;
        let is_due = turns_of_networks.is_due(now, network, wait)
            && turns_of_regions.is_due(now, region, wait / OF_REGION)
            && handshakes.spend(now);
        if is_due {
            turns_of_networks.take(now, network);
            turns_of_regions.take(now, region);
        }
        is_due
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

    /// Tells the sender of `len` bytes to an unknown session so, in fewer bytes. Nobody is told of a number that another
    /// one of the same session has replaced lately.
    pub(super) fn reset(&mut self, now: Time, to: SocketAddr, sid: u32, len: usize) {
        if len > RESET_LEN && !self.seats.retired.has(now, sid) && self.rates.resets.spend(now) {
            let reset = Reset { sid, token: self.reset_key().token(sid, to) };
            self.stats.resets += 1;
            self.reply_short(now, to, |buf| _ = reset.encode(buf));
        }
    }

    /// The key of reset tokens: the one that was set, or one derived from the key of connect tokens, or one
    /// that is lost when the process ends.
    pub(super) fn reset_key(&self) -> ResetKey {
        let of_tokens = || self.tokens.as_ref()?.reset_key();
        let own = || ResetKey::derived(&self.hash_key);
        self.config.reset_key.map(ResetKey::new).or_else(of_tokens).unwrap_or_else(own)
    }

    /// Replies with what `write` appends, at most as many bytes as a CHALLENGE.
    pub(super) fn reply_short(&mut self, now: Time, to: SocketAddr, write: impl FnOnce(&mut Vec<u8>)) {
        self.scratch.clear();
        write(&mut self.scratch);
        let (len, bytes) = (self.scratch.len(), concat(&[&self.scratch]));
        self.reply(now, to, Reply::Short { len, bytes });
    }

    pub(super) fn reply(&mut self, now: Time, to: SocketAddr, reply: Reply) {
        if self.replies.len() >= REPLIES_MAX {
            return self.count(now, to, Refusal::Replies);
        }
        match self.proxies.as_ref().map_or(Some(to), |proxies| proxies.way(to)) {
            Some(way) => self.replies.push_back((way, reply)),
            None => self.count(now, to, Refusal::Way),
        }
    }

    /// Replies to a CONNECT with the ACCEPT of its attempt.
    pub(super) fn reply_answer(&mut self, now: Time, to: SocketAddr, mark: Mark) {
        self.reply(now, to, Reply::Answer(mark));
        if self.seats.kem_key(mark).is_some() {
            self.reply(now, to, Reply::KemKey(mark));
        }
    }

    /// The same for all addresses that it came from.
    pub(super) fn reply_answers(&mut self, now: Time, claims: &Claims, mark: Mark) {
        claims.addresses().for_each(|to| self.reply_answer(now, to, mark));
    }

    pub(super) fn append_reply(&mut self, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        while let Some((to, reply)) = self.replies.pop_front() {
            let bytes = match &reply {
                Reply::Short { len, bytes } => bytes.get(..*len),
                Reply::Answer(mark) => self.seats.answer(self.now, *mark).map(|answer| &*answer.accept),
                Reply::KemKey(mark) => self.seats.kem_key(*mark),
            };
            if let Some(bytes) = bytes {
                buf.extend_from_slice(bytes);
                return Some(to);
            }
        }
        None
    }
}

/// How much more often than one address a network may make attempts, and all together, who share the cost of
/// handshakes: 2000 a second by default.
const OF_NETWORK: u32 = 8;
const OF_ALL: u32 = 200;
/// How long a network waits for its next handshake when all time or room is used up.
const WAIT_MAX: Duration = Duration::from_secs(64);
/// How many networks of a region take turns as if each were alone.
const OF_REGION: u32 = 64;
/// Entries of the tables of turns, which take 256 KiB and 64 KiB.
const NETWORKS: usize = 1 << 14;
const REGIONS: usize = 1 << 12;
/// Exchanges of new keys a second, which are a tenth of what a core can do. 100,000 sessions need as many.
const RENEWALS: u32 = 1000;
/// Most replies that wait. A driver that drains after each datagram needs one.
pub(super) const REPLIES_MAX: usize = 64;
/// When a refused client may try again, ms.
const RETRY_AFTER: u32 = 5000;
