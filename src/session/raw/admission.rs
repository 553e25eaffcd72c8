//! Who may become a peer: what a first datagram has to look like, and who has just been sent away. Everything here has a fixed
//! bound.

use super::Peers;
use super::config::{Stats, Strangers};
use super::peer::{Event, Peer, PeerId};
use crate::rate::host;
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
enum Refused {
    Garbage,
    Stray,
    Stranger,
    Quarantined,
    Full,
    PerAddress,
    Rate,
}

impl Refused {
    const fn counter(self, stats: &mut Stats) -> &mut u64 {
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

impl Peers {
    /// A datagram of a stranger.
    pub(super) fn knock(&mut self, now: Time, key: Key, datagram: &[u8]) -> Option<PeerId> {
        let Some(refused) = self.refusal(now, key, datagram) else { return self.accept(now, key, datagram) };
        *refused.counter(&mut self.stats) += 1;
        log::trace!("dropped a datagram from {} with conv {}: {refused:?}", key.address, key.conv);
        None
    }

    /// Why `datagram` makes no peer. The question that costs a token comes last.
    fn refusal(&mut self, now: Time, key: Key, datagram: &[u8]) -> Option<Refused> {
        if self.config.strangers == Strangers::Refused {
            return Some(Refused::Stranger);
        }
        let fits = datagram.len() <= self.config.kcp.rcv_mtu.into();
        match opens(datagram, key.conv, self.config.kcp.rcv_wnd.into()) {
            Ok(true) if fits => {}
            Ok(_) if fits => return Some(Refused::Stray),
            _ => return Some(Refused::Garbage),
        }
        let host = host(key.address);
        if self.quarantine.holds(now, key) {
            return Some(Refused::Quarantined);
        }
        let unheeded = self.events.len() / EVENTS_EACH;
        if (self.peers.len() - self.registered).max(unheeded) >= self.config.max_peers {
            return Some(Refused::Full);
        }
        if self.by_host.get(&host).is_some_and(|&here| here >= self.config.max_peers_per_address) {
            return Some(Refused::PerAddress);
        }
        (!self.rate.take(now, host)).then_some(Refused::Rate)
    }

    fn accept(&mut self, now: Time, key: Key, datagram: &[u8]) -> Option<PeerId> {
        let kcp = self.control_block(key.conv).ok()?;
        let (host, proof) =
            (host(key.address), (self.config.strangers == Strangers::Proven).then(Box::default));
        let mut peer = self.with_envelope(Peer::new(now, kcp, key.address, Some(host), self.clock(), proof));
        if !peer.input(now, datagram) {
            self.stats.strays += 1;
            return None;
        }
        let is_readable = peer.kcp().peek_size().is_some();
        peer.told_readable = is_readable;
        let id = self.insert(key, peer);
        self.events.push_back(Event::Accepted(id));
        if is_readable {
            self.events.push_back(Event::Readable(id));
        }
        *self.by_host.entry(host).or_default() += 1;
        self.stats.accepted += 1;
        log::debug!("peer {id} at {} accepted, conv {}", key.address, key.conv);
        Some(id)
    }
}

/// Whether a fresh control block would take data from `datagram`: a whole KCP datagram of one
/// conv, from a peer that has acknowledged nothing, with data of the first window. That a first
/// datagram may be lost or late is why it need not be segment 0.
///
/// # Errors
///
/// It is not KCP.
fn opens(datagram: &[u8], conv: Conv, rcv_wnd: u32) -> Result<bool, DecodeError> {
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

/// Events of one peer that can wait at a time: accepted, readable, writable, closed. A program
/// that takes no events gets no strangers, so the list of events is bounded.
const EVENTS_EACH: usize = 4;

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
