//! Who may become a peer: what a first datagram must look like, and who was sent away recently. Everything here has a
//! fixed bound.

use super::config::{PeersConfig, PeersStats, Strangers};
use super::peer::{Peer, PeerEvent, PeerId};
use super::{Peers, name};
use crate::rate::{host, network};
use crate::seq::{Conv, Sn};
use crate::session::seats::{Name, has_share};
use crate::time::Time;
use crate::wire::{self, Command, DecodeError};
use std::net::SocketAddr;

/// Why a datagram does not make a peer: a field of the statistics, and its name.
type Refused = (&'static str, fn(&mut PeersStats) -> &mut u64);

macro_rules! refused {
    ($field:ident) => {
        Err((stringify!($field), |stats| &mut stats.$field))
    };
}

/// What a good datagram of a stranger leads to.
enum Next {
    /// The stranger becomes a peer.
    Accept,
    /// The stranger has to prove their address first.
    Ask,
}

impl Peers {
    pub(super) fn knock(
        &mut self,
        now: Time,
        from: SocketAddr,
        conv: Conv,
        datagram: &[u8],
    ) -> Option<PeerId> {
        let name = name(from, conv);
        let (reason, counter) = match self.judge(now, &name, conv, datagram) {
            Ok(Next::Accept) => return self.accept(now, from, conv, datagram),
            Ok(Next::Ask) => self.ask(now, &name, conv, datagram).err()?,
            Err(refused) => refused,
        };
        *counter(&mut self.stats) += 1;
        log::trace!("dropped a datagram from {from} with conv {conv}: {reason}");
        None
    }

    /// Decides on a datagram. Only a stranger who becomes a peer spends a token.
    fn judge(&mut self, now: Time, name: &Name, conv: Conv, datagram: &[u8]) -> Result<Next, Refused> {
        let strangers = self.config.strangers;
        if strangers == Strangers::Refused {
            return refused!(refused_strangers);
        }
        let is_good = opens(datagram, conv, self.config.kcp.rcv_wnd.into());
        if is_good.is_err() || datagram.len() > self.config.kcp.rcv_mtu.into() {
            return refused!(garbage);
        }
        let has_proven = strangers == Strangers::Proven && self.proofs.is_answered(now, name, datagram);
        if is_good == Ok(false) && !has_proven {
            return refused!(strays);
        }
        if self.quarantine.get(now, name).is_some() {
            return refused!(quarantined);
        }
        let (taken, unheeded) = (self.peers.len() - self.registered, self.events.len() / EVENTS_EACH);
        let &PeersConfig { max_peers, max_peers_per_address, .. } = &self.config;
        if taken.max(unheeded) >= max_peers {
            return refused!(refused_full);
        }
        let host = host(name.0);
        if self.hosts.of(host) >= max_peers_per_address {
            return refused!(refused_per_address);
        }
        let of_network = self.networks.of(network(name.0));
        if has_share(of_network, taken, max_peers, max_peers_per_address) {
            return refused!(refused_per_network);
        }
        if strangers == Strangers::Proven && !has_proven {
            return Ok(Next::Ask);
        }
        // A network cannot use up what addresses of others share buckets with.
        let network = network(name.0);
        if self.rate.has(now, host) && self.rate_of_networks.spend(now, network) && self.rate.spend(now, host)
        {
            Ok(Next::Accept)
        } else {
            refused!(refused_rate)
        }
    }

    /// Asks a stranger to prove their address, or says why not.
    fn ask(&mut self, now: Time, name: &Name, conv: Conv, datagram: &[u8]) -> Result<(), Refused> {
        let (wnd, envelope) = (self.config.kcp.rcv_wnd, self.envelope.as_deref_mut());
        if !self.proofs.ask(now, name, conv, wnd, envelope) {
            return refused!(refused_questions);
        }
        self.proofs.keep(now, name, datagram);
        self.stats.asked += 1;
        Ok(())
    }

    fn accept(&mut self, now: Time, from: SocketAddr, conv: Conv, datagram: &[u8]) -> Option<PeerId> {
        let mut peer = Peer::new(self, now, from, conv, Some(host(from)))?;
        self.memory.grant(&mut peer);
        if !peer.input(now, datagram) {
            self.stats.strays += 1;
            return None;
        }
        if let Some(first) = self.proofs.take(now, &name(from, conv)) {
            peer.input(now, &first);
        }
        let is_readable = peer.kcp().peek_size().is_some();
        peer.told_readable = is_readable;
        let id = self.insert(name(from, conv), peer);
        self.events.push_back(PeerEvent::Accepted(id));
        if is_readable {
            self.events.push_back(PeerEvent::Readable(id));
        }
        self.stats.accepted += 1;
        log::debug!("peer {id} at {from} accepted, conv {conv}");
        Some(id)
    }
}

/// Whether a new control block would take data from `datagram`: a whole KCP datagram of one conv, from a peer that has
/// acknowledged nothing, with data within the first window. It need not be segment 0, because the first datagram may be
/// lost or late.
///
/// # Errors
///
/// The datagram is not KCP.
fn opens(datagram: &[u8], conv: Conv, rcv_wnd: u32) -> Result<bool, DecodeError> {
    let (mut fresh, mut data) = (true, false);
    for segment in wire::segments(datagram) {
        let header = segment?.header;
        fresh &= header.conv == conv && header.una == Sn(0) && header.cmd != Command::Ack;
        data |= header.cmd == Command::Push && header.sn.offset_in(Sn(0), rcv_wnd).is_some();
    }
    Ok(fresh && data)
}

/// Events of one peer that can wait at a time: accepted, readable, writable, closed. While a program takes no events,
/// no strangers become peers, so the list of events is bounded.
const EVENTS_EACH: usize = 4;
