//! Many bare KCP peers on one transport, without a socket.

mod admission;
mod config;
mod end;
mod envelope;
mod memory;
mod peer;
mod proof;

pub use config::{PeersConfig, PeersStats, RegisterError, Strangers};
pub use peer::{Peer, PeerCloseReason, PeerEvent, PeerId};

use super::hash_key;
use super::seats::{Agenda, Graves, Hosts, Name, TIMERS_EACH};
use crate::config::ConfigError;
use crate::hash::{Given, Keyed};
use crate::kcp::Envelope;
use crate::machine::{Arrival, Machine, Transmit};
use crate::rate::{AddressRate, network};
use crate::seq::Conv;
use crate::time::Time;
use crate::wire::{DatagramQueue, conv_of};
use memory::Memory;
use proof::Proofs;
use rand_core::CryptoRng;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Many bare KCP peers without a socket, which may be any KCP implementation. A [`Machine`] with events.
///
/// Bare KCP has no handshake, no encryption and no end of a conversation: a peer is an address and a conv that both
/// ends know from elsewhere. So [register](Peers::register) the peers to serve; [`Strangers`] are refused unless the
/// config allows them. `kcp::Listener` adds a socket.
///
/// ```
/// use whitewater::Time;
/// use whitewater::kcp::{self, Config, Conv};
/// use whitewater::machine::Machine;
/// use whitewater::rand_core::UnwrapErr;
///
/// let limits = kcp::PeersConfig { kcp: Config::default(), ..kcp::PeersConfig::registered() };
/// let mut peers = kcp::Peers::new(&limits, &mut UnwrapErr(getrandom::SysRng))?;
/// let (now, address) = (Time::from_millis(1), "10.0.0.1:1000".parse()?);
/// let id = peers.register(now, address, Conv(7))?;
///
/// let mut client = kcp::Link::new("10.0.0.2:4000".parse()?, Conv(7), &Config::default())?;
/// client.kcp_mut().send(b"hello")?;
/// client.handle_timeout(now);
/// let mut datagram = Vec::new();
/// while client.poll_transmit(now, &mut datagram).is_some() {
///     peers.handle_datagram(now, address.into(), &mut datagram);
///     datagram.clear();
/// }
/// assert_eq!(peers.poll_event(), Some(kcp::PeerEvent::Readable(id)));
/// let message = peers.peer(id).ok_or("gone")?.recv().ok_or("nothing")?;
/// assert_eq!(message, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Peers {
    config: PeersConfig,
    envelope: Option<Box<dyn Envelope>>,
    /// Boxed, because half of a large table may be empty.
    peers: HashMap<PeerId, Box<Peer>, Given>,
    by_name: HashMap<Name, PeerId, Keyed>,
    memory: Memory,
    /// The peer that the program used last, whose memory may have changed since it was counted.
    lent: Option<PeerId>,
    /// The peer of the last datagram: the next is often from the same.
    last: Option<(Name, PeerId)>,
    registered: usize,
    /// The strangers of each address, and of each network.
    hosts: Hosts,
    networks: Hosts,
    next_id: u64,
    agenda: Agenda<PeerId>,
    events: VecDeque<PeerEvent>,
    /// Peers whose end was not reported yet, oldest first, and then the one whose end was reported last.
    ended: VecDeque<Peer>,
    told: Option<Peer>,
    /// Datagrams that peers which were closed here are still to be sent.
    last_words: VecDeque<(SocketAddr, DatagramQueue)>,
    rate: AddressRate,
    rate_of_networks: AddressRate,
    proofs: Proofs,
    quarantine: Graves<Name>,
    stats: PeersStats,
    now: Time,
}

impl Peers {
    /// Makes a machine without peers. Nobody may be able to predict `rng`: keys of tables and the proofs of addresses
    /// come from it.
    ///
    /// # Errors
    ///
    /// A field of `config` is out of range.
    pub fn new(config: &PeersConfig, rng: &mut impl CryptoRng) -> Result<Self, ConfigError> {
        config.check()?;
        let mut config = config.clone();
        if let Some(envelope) = &config.envelope {
            config.kcp = envelope.inside(&config.kcp)?;
        }
        let envelope = config.envelope.as_ref().map(|config| config.envelope(rng));
        let proofs = Proofs::new(rng);
        let mut key = || hash_key(rng);
        Ok(Self {
            proofs,
            peers: HashMap::default(),
            by_name: HashMap::with_hasher(Keyed(key())),
            memory: Memory::new(&config),
            lent: None,
            last: None,
            hosts: Hosts::default(),
            networks: Hosts::default(),
            registered: 0,
            next_id: 0,
            agenda: Agenda::default(),
            events: VecDeque::new(),
            ended: VecDeque::new(),
            told: None,
            last_words: VecDeque::new(),
            rate: AddressRate::new(config.accepts_per_second, config.accept_burst, key()),
            rate_of_networks: AddressRate::new(
                config.accepts_per_second.saturating_mul(OF_NETWORK),
                config.accept_burst.saturating_mul(OF_NETWORK),
                key(),
            ),
            quarantine: Graves::new(config.quarantine, config.max_peers, config.max_peers),
            stats: PeersStats::default(),
            now: Time::ZERO,
            config,
            envelope,
        })
    }

    /// Adds a peer with an address and a conv that were agreed elsewhere. It is removed when it says nothing for
    /// `idle_timeout`.
    ///
    /// # Errors
    ///
    /// It is a peer already, or there is no room.
    pub fn register(&mut self, now: Time, address: SocketAddr, conv: Conv) -> Result<PeerId, RegisterError> {
        self.now = now;
        let (name, max) = (name(address, conv), self.config.max_peers);
        if self.by_name.contains_key(&name) {
            return Err(RegisterError::Taken { address, conv });
        }
        let peer = Peer::new(self, now, address, conv, None).filter(|_| self.registered < max);
        Ok(self.insert(name, peer.ok_or(RegisterError::Full { max })?))
    }

    /// Takes a KCP datagram. Returns the peer that accepted it.
    #[inline]
    fn route(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Option<PeerId> {
        let Some(conv) = conv_of(datagram) else {
            self.stats.garbage += 1;
            log::trace!("dropped {} bytes from {from}: no KCP header", datagram.len());
            return None;
        };
        let name = name(from, conv);
        if let Some((_, id)) = self.last.filter(|(last, _)| *last == name) {
            return self.deliver(now, id, datagram);
        }
        match self.by_name.get(&name) {
            Some(&id) => {
                self.last = Some((name, id));
                self.deliver(now, id, datagram)
            }
            None => self.knock(now, from, conv, datagram),
        }
    }

    /// Takes the oldest event. Events of one peer are in order. While nobody takes events, no stranger becomes a peer.
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        self.told = None;
        let event = self.events.pop_front()?;
        match event {
            PeerEvent::Closed { .. } => {
                self.told = self.ended.pop_front();
                self.told.iter_mut().for_each(|peer| self.memory.dismiss(peer));
            }
            PeerEvent::Readable(id) => _ = self.peers.get_mut(&id).map(|peer| peer.told_readable = false),
            PeerEvent::Writable(id) => _ = self.peers.get_mut(&id).map(|peer| peer.told_writable = false),
            PeerEvent::Accepted(_) => {}
        }
        Some(event)
    }

    /// The peer whose end the last event reported. Messages that had arrived can still be read from it.
    pub const fn pop_ended(&mut self) -> Option<Peer> {
        self.told.take()
    }

    /// Whether there is an event to take.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// A peer to use. `None`: it is gone. What is sent to it leaves when the machine is next drained.
    pub fn peer(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.settle();
        let peer = self.peers.get_mut(&id)?;
        peer.is_touched = true;
        self.agenda.list(id, &mut peer.entry);
        self.memory.grant(peer);
        self.lent = Some(id);
        Some(peer)
    }

    /// The current peers, in no particular order.
    pub fn ids(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// The number of peers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The limits, and the config of every control block.
    #[must_use]
    pub const fn config(&self) -> &PeersConfig {
        &self.config
    }

    /// What was accepted, ended and dropped.
    #[must_use]
    pub const fn stats(&self) -> PeersStats {
        let Memory { used, limited, .. } = self.memory;
        PeersStats { memory: used, limited, ..self.stats }
    }

    /// The envelope around KCP; see [`PeersConfig::envelope`].
    #[must_use]
    pub fn envelope(&self) -> Option<&dyn Envelope> {
        self.envelope.as_deref()
    }

    fn deliver(&mut self, now: Time, id: PeerId, datagram: &[u8]) -> Option<PeerId> {
        self.settle();
        let peer = self.peers.get_mut(&id)?;
        peer.take(datagram.len());
        let is_to_count = peer.is_to_count();
        if is_to_count {
            self.memory.grant(peer);
        }
        if !peer.input(now, datagram) {
            self.stats.rejected += 1;
            return None;
        }
        if is_to_count || peer.has_outgrown() {
            self.memory.count(peer);
        }
        peer.heard = now;
        peer.shrunk = false;
        changed(&mut self.agenda, &mut self.events, id, peer);
        Some(id)
    }

    /// Counts what the program has sent, if it is much: others may need to know before the turn of that peer.
    #[inline]
    fn settle(&mut self) {
        if let Some(peer) = self.lent.take().and_then(|id| self.peers.get_mut(&id))
            && peer.is_to_count()
        {
            self.memory.count(peer);
        }
    }

    fn insert(&mut self, name: Name, mut peer: Peer) -> PeerId {
        self.memory.count(&mut peer);
        let id = PeerId(self.next_id);
        self.next_id += 1;
        self.agenda.list(id, &mut peer.entry);
        match peer.host {
            Some(host) => {
                self.hosts.enter(host);
                self.networks.enter(network(name.0));
            }
            None => self.registered += 1,
        }
        self.peers.insert(id, Box::new(peer));
        self.by_name.insert(name, id);
        id
    }
}

impl Machine for Peers {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        self.now = now;
        self.stats.datagrams += 1;
        self.open(now, from.address, datagram);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        for _ in 0..TIMERS_EACH {
            let Some(id) = self.agenda.pop(now) else { break };
            if let Some(peer) = self.peers.get_mut(&id)
                && self.agenda.fired(now, id, &mut peer.entry)
            {
                peer.is_touched = true;
                self.agenda.list(id, &mut peer.entry);
            }
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        if let Some((question, to)) = self.proofs.pop() {
            out.extend_from_slice(question);
            return Some(to.into());
        }
        'seats: loop {
            while let Some((to, datagrams)) = self.last_words.front_mut() {
                if let Some(datagram) = datagrams.pop() {
                    out.extend_from_slice(datagram);
                    return Some((*to).into());
                }
                self.forget_last_words();
            }
            let Some(id) = self.agenda.first() else {
                self.lent = None; // it had its turn
                return None;
            };
            let Some(peer) = self.peers.get_mut(&id) else {
                self.agenda.end_turn(None);
                continue;
            };
            if peer.has_left(now) {
                self.close(now, id);
                continue;
            }
            while std::mem::take(&mut peer.is_touched) || peer.has_left_more() {
                let gone = peer.serve(now, id, &self.config, self.envelope.as_deref_mut(), &mut self.events);
                if peer.is_to_count() {
                    self.memory.count(peer);
                }
                if let Some(reason) = gone {
                    self.end(id, reason);
                    continue 'seats;
                }
            }
            let to = peer.peer_addr();
            let sent = peer.pop().map(|datagram| {
                out.extend_from_slice(datagram);
                datagram.len()
            });
            if let Some(len) = sent {
                peer.take(len);
                if peer.goes_on() {
                    if self.agenda.sent(len) && peer.is_to_count() {
                        self.memory.count(peer);
                    }
                    return Some(to.into());
                }
            }
            if peer.trim() {
                self.memory.count(peer);
            }
            self.agenda.end_turn(Some(&mut peer.entry));
            self.agenda.put_off(id, &mut peer.entry);
            if sent.is_some() {
                return Some(to.into());
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.proofs.has_questions() || !self.last_words.is_empty() {
            return Some(self.now);
        }
        self.agenda.poll_timeout(self.now)
    }

    /// Bare KCP has no goodbye. It is done when everything sent has been acknowledged.
    fn shutdown(&mut self, _: Time, _: u16) -> bool {
        self.last_words.is_empty() && self.peers.values().all(|peer| peer.kcp().wait_snd() == 0)
    }
}

fn changed(agenda: &mut Agenda<PeerId>, events: &mut VecDeque<PeerEvent>, id: PeerId, peer: &mut Peer) {
    peer.flush |= peer.flushes_acks;
    peer.is_touched = true;
    agenda.list(id, &mut peer.entry);
    if !peer.told_readable && peer.kcp().peek_size().is_some() {
        peer.told_readable = true;
        events.push_back(PeerEvent::Readable(id));
    }
}

/// How many strangers may come from a network, for each that may come from an address.
const OF_NETWORK: u32 = 8;

fn name(address: SocketAddr, conv: Conv) -> Name {
    Name(address, conv.0)
}
