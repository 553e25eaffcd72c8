//! Who may become a peer: what a first datagram has to look like, and who has just been sent away. Everything here has a fixed
//! bound.

use super::config::Stats;
use crate::seq::{Conv, Sn};
use crate::time::Time;
use crate::wire::{self, Command, DecodeError};
use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// What a bare KCP peer is known by.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Key {
    pub(super) address: SocketAddr,
    pub(super) conv: Conv,
}

/// Why a datagram makes no peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refused {
    Garbage,
    Stray,
    Stranger,
    Quarantined,
    Full,
    PerAddress,
    Rate,
}

impl Refused {
    pub(super) const fn counter(self, stats: &mut Stats) -> &mut u64 {
        match self {
            Self::Garbage => &mut stats.garbage,
            Self::Stray => &mut stats.strays,
            Self::Stranger => &mut stats.refused_strangers,
            Self::Quarantined => &mut stats.quarantined,
            Self::Full => &mut stats.refused_full,
            Self::PerAddress => &mut stats.refused_per_address,
            Self::Rate => &mut stats.refused_rate,
        }
    }
}

/// Whether a fresh control block would take data from `datagram`: a whole KCP datagram of one
/// conv, from a peer that has acknowledged nothing, with data of the first window. That a first
/// datagram may be lost or late is why it need not be segment 0.
///
/// # Errors
///
/// It is not KCP.
pub(super) fn opens(datagram: &[u8], conv: Conv, rcv_wnd: u32) -> Result<bool, DecodeError> {
    let (mut fresh, mut data) = (true, false);
    for segment in wire::segments(datagram) {
        let header = segment?.header;
        fresh &= header.conv == conv && header.una == Sn(0) && header.cmd != Command::Ack;
        data |= header.cmd == Command::Push && header.sn.offset_in(Sn(0), rcv_wnd).is_some();
    }
    Ok(fresh && data)
}

/// Peers that were closed here and must not come back at once. It keeps the newest.
#[derive(Debug)]
pub(super) struct Quarantine {
    keys: HashSet<Key>,
    /// When each of them may come back, soonest first.
    until: VecDeque<(Time, Key)>,
    stay: Duration,
    limit: usize,
}

impl Quarantine {
    pub(super) fn new(stay: Duration, limit: usize) -> Self {
        Self { keys: HashSet::new(), until: VecDeque::new(), stay, limit }
    }

    pub(super) fn insert(&mut self, now: Time, key: Key) {
        self.release(now);
        if self.until.len() >= self.limit
            && let Some((_, oldest)) = self.until.pop_front()
        {
            self.keys.remove(&oldest);
        }
        if self.limit > 0 && self.keys.insert(key) {
            self.until.push_back((now + self.stay, key));
        }
    }

    pub(super) fn holds(&mut self, now: Time, key: Key) -> bool {
        self.release(now);
        self.keys.contains(&key)
    }

    fn release(&mut self, now: Time) {
        while let Some((until, key)) = self.until.front()
            && *until <= now
        {
            self.keys.remove(key);
            self.until.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_closed_session_stays_away_and_the_list_has_a_limit() {
        let mut quarantine = Quarantine::new(Duration::from_secs(10), 2);
        let key = |conv| Key { address: address("10.0.0.1:1"), conv: Conv(conv) };
        for conv in 1..=3 {
            quarantine.insert(Time::ZERO, key(conv));
        }
        let held = |quarantine: &mut Quarantine, ms| {
            (1..=3).map(|conv| quarantine.holds(Time::from_millis(ms), key(conv))).collect::<Vec<_>>()
        };
        assert_eq!(held(&mut quarantine, 9_999), [false, true, true]);
        assert_eq!(held(&mut quarantine, 10_000), [false; 3]);
    }
}
