//! Challenges for addresses where the peer may be.

use super::path::Route;
use crate::hash::Keyed;
use crate::time::Time;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::time::Duration;

/// Challenges, derived from a key: nobody without it can predict the next one.
pub(super) struct Questions {
    key: [u64; 2],
    count: u32,
}

printed_without_secrets! { Questions { count } }

/// Whether the peer is at an address. The challenge is sent nowhere else, so whoever repeats it has received it there.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) route: Route,
    pub(super) challenge: [u8; 8],
    /// When it is asked next.
    pub(super) ask_at: Time,
    pub(super) dies_at: Time,
}

impl Questions {
    pub(super) const fn new(key: [u64; 2]) -> Self {
        Self { key, count: 0 }
    }

    /// Random, and known to nobody else.
    pub(super) const fn key(&self) -> Keyed {
        Keyed(self.key)
    }

    pub(super) fn next(&mut self, now: Time, route: Route, patience: Duration) -> Question {
        let mut hasher = SipHasher24::new_with_keys(self.key[0], self.key[1]);
        hasher.write_u64(self.count.into());
        self.count = self.count.wrapping_add(1);
        Question { route, challenge: hasher.finish().to_le_bytes(), ask_at: now, dies_at: now + patience }
    }
}

impl Question {
    pub(super) fn ask(&mut self, now: Time) -> (Route, [u8; 8]) {
        self.ask_at = now + ASK_AGAIN;
        (self.route, self.challenge)
    }
}

/// An address is asked again after this time, a candidate if it has paid for it.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(100);
