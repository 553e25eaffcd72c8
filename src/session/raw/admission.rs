//! Who may become a peer: what a first datagram has to look like, and who has just been sent away. Everything here has a fixed
//! bound.

use super::config::{Stats, Strangers};
use super::peer::{Event, Peer, PeerId};
use super::{Peers, name};
use crate::rate::host;
use crate::seq::{Conv, Sn};
use crate::time::Time;
use crate::wire::{self, Command, DecodeError};
use std::net::SocketAddr;

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
    pub(super) fn knock(
        &mut self,
        now: Time,
        from: SocketAddr,
        conv: Conv,
        datagram: &[u8],
    ) -> Option<PeerId> {
        let Some(refused) = self.refusal(now, from, conv, datagram) else {
            return self.accept(now, from, conv, datagram);
        };
        *refused.counter(&mut self.stats) += 1;
        log::trace!("dropped a datagram from {from} with conv {conv}: {refused:?}");
        None
    }

    /// Why `datagram` makes no peer. The question that costs a token comes last.
    fn refusal(&mut self, now: Time, from: SocketAddr, conv: Conv, datagram: &[u8]) -> Option<Refused> {
        if self.config.strangers == Strangers::Refused {
            return Some(Refused::Stranger);
        }
        let fits = datagram.len() <= self.config.kcp.rcv_mtu.into();
        match opens(datagram, conv, self.config.kcp.rcv_wnd.into()) {
            Ok(true) if fits => {}
            Ok(_) if fits => return Some(Refused::Stray),
            _ => return Some(Refused::Garbage),
        }
        let host = host(from);
        if self.quarantine.holds(now, name(from, conv)) {
            return Some(Refused::Quarantined);
        }
        let unheeded = self.events.len() / EVENTS_EACH;
        if (self.peers.len() - self.registered).max(unheeded) >= self.config.max_peers {
            return Some(Refused::Full);
        }
        if self.hosts.of(host).all >= self.config.max_peers_per_address {
            return Some(Refused::PerAddress);
        }
        (!self.rate.spend(now, host)).then_some(Refused::Rate)
    }

    fn accept(&mut self, now: Time, from: SocketAddr, conv: Conv, datagram: &[u8]) -> Option<PeerId> {
        let kcp = self.control_block(conv).ok()?;
        let (host, proof) = (host(from), (self.config.strangers == Strangers::Proven).then(Box::default));
        let mut peer = Peer::new(now, kcp, from, Some(host), self.clock(), proof, self.envelope());
        if !peer.input(now, datagram) {
            self.stats.strays += 1;
            return None;
        }
        let is_readable = peer.kcp().peek_size().is_some();
        peer.told_readable = is_readable;
        let id = self.insert(name(from, conv), peer);
        self.events.push_back(Event::Accepted(id));
        if is_readable {
            self.events.push_back(Event::Readable(id));
        }
        self.stats.accepted += 1;
        log::debug!("peer {id} at {from} accepted, conv {conv}");
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

/// Events of one peer that can wait at a time: accepted, readable, writable, closed. A program
/// that takes no events gets no strangers, so the list of events is bounded.
const EVENTS_EACH: usize = 4;
