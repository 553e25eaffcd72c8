//! Bare KCP with a listener's table of peers and their timers.

use super::Side;
use std::marker::PhantomData;
use std::net::SocketAddr;
use whitewater::Time;
use whitewater::kcp::{Config as Kcp, Conv, PeerEvent, PeerId, Peers, PeersConfig, Recovery};
use whitewater::machine::Machine as _;
use whitewater_sim::SimRng;

pub(super) struct Bare<K> {
    peers: Peers,
    ids: Vec<PeerId>,
    buf: Vec<u8>,
    datagram: Vec<u8>,
    kind: PhantomData<K>,
}

/// How losses are detected.
pub(super) trait Kind {
    fn config() -> Kcp;
}

pub(super) struct Classic;

impl Kind for Classic {
    fn config() -> Kcp {
        Kcp::classic().nodelay(1, 10, 2, true)
    }
}

pub(super) struct ByTime;

impl Kind for ByTime {
    fn config() -> Kcp {
        Kcp { recovery: Recovery::default(), ..Classic::config() }
    }
}

impl<K: Kind> Bare<K> {
    pub(super) fn new(count: usize, seed: u32) -> Self {
        let config =
            PeersConfig { kcp: K::config(), max_peers: count, memory: 1 << 40, ..PeersConfig::registered() };
        let mut peers = Peers::new(&config, &mut random(seed)).expect("it is in range");
        let register = |index| peers.register(time(0), address(index), Conv(0x7777));
        let ids = (0..count).map(register).map(|id| id.expect("there is room")).collect();
        Self { peers, ids, buf: vec![0; 1500], datagram: Vec::new(), kind: PhantomData }
    }
}

impl<K: Kind> Side for Bare<K> {
    fn is_due(&self, now: u32) -> bool {
        self.peers.poll_timeout().is_some_and(|at| at <= time(now))
    }

    fn input(&mut self, now: u32, index: usize, datagram: &[u8]) {
        self.datagram.clear();
        self.datagram.extend_from_slice(datagram);
        self.peers.handle_datagram(time(now), address(index).into(), &mut self.datagram);
    }

    fn send(&mut self, _: u32, index: usize, message: &[u8]) {
        self.peers.peer(self.ids[index]).expect("it is up").send(message).expect("it has room");
    }

    fn update(&mut self, now: u32, mut out: impl FnMut(usize, &[u8])) {
        self.peers.handle_timeout(time(now));
        self.datagram.clear();
        while let Some(transmit) = self.peers.poll_transmit(time(now), &mut self.datagram) {
            out(index(transmit.address), &self.datagram);
            self.datagram.clear();
        }
    }

    fn recv(&mut self, _: u32, mut take: impl FnMut(&[u8])) {
        while let Some(event) = self.peers.poll_event() {
            let PeerEvent::Readable(id) = event else { continue };
            let peer = self.peers.peer(id).expect("it is up");
            while let Ok(len) = peer.recv_into(&mut self.buf) {
                take(&self.buf[..len]);
            }
        }
    }
}

pub(crate) fn random(seed: u32) -> SimRng {
    SimRng::new(seed.into(), 1)
}

pub(super) fn time(now: u32) -> Time {
    Time::from_millis(u64::from(now) + 1000)
}

pub(crate) fn address(index: usize) -> SocketAddr {
    let ip = 10 << 24 | u32::try_from(index).expect("thousands");
    SocketAddr::from((ip.to_be_bytes(), 1000))
}

pub(super) fn index(address: SocketAddr) -> usize {
    let SocketAddr::V4(address) = address else { panic!("{address}") };
    (u32::from(*address.ip()) & 0xff_ffff) as usize
}
