//! What both ends agree on, the network between them, and what their counters must show.

use super::{KEY, Program, counted};
use crate::exchange::{By, WINDOW};
use crate::relay::{Relay, network};
use rand::Rng;
use std::fmt::{self, Debug, Formatter};
use std::net::SocketAddr;
use std::sync::Arc;
use whitewater::kcp::{self, Config, Stats};
use whitewater_kcp_go::{self as kcp_go, Key, Mode, Shards};
use whitewater_sim::SimRng;

/// One conversation.
#[derive(Clone, Copy)]
pub struct Case {
    /// One of [`CIPHERS`](super::CIPHERS).
    pub crypt: &'static str,
    /// Data and parity shards; zeros: none.
    pub fec: (u8, u8),
    /// Share of datagrams lost in each direction.
    pub loss: f64,
    /// How our end detects losses.
    pub by: By,
    /// The seed of the network and of the data.
    pub seed: u64,
}

impl Case {
    /// With each cipher, with and without parity, without and with losses; with `aes`, also more shards and each kind
    /// of recovery.
    #[must_use]
    pub fn all(ciphers: &[&'static str]) -> Vec<Self> {
        let mut all = Vec::new();
        for &crypt in ciphers {
            let ways = if crypt == "aes" { &By::ALL[..] } else { &[By::Time] };
            let shards = if crypt == "aes" { &[(0, 0), (10, 3), (2, 1)][..] } else { &[(0, 0), (10, 3)] };
            for &by in ways {
                for &fec in shards {
                    let seed = 1 + all.len() as u64;
                    all.extend([0.0, 0.08].map(|loss| Self { crypt, fec, loss, by, seed }));
                }
            }
        }
        all
    }

    /// A relay in front of this server.
    #[must_use]
    pub fn relay(&self, server: SocketAddr) -> Relay {
        Relay::start(server, &network(self.loss), self.seed)
    }

    /// The config of our end.
    #[must_use]
    pub fn config(&self) -> Config {
        self.by.with(Config { snd_wnd: WINDOW, ..Mode::Fast2.config() })
    }

    /// What our end wraps around KCP.
    ///
    /// # Panics
    ///
    /// If there is no such cipher.
    #[must_use]
    pub fn wire(&self) -> kcp_go::Config {
        let (crypt, (data, parity)) = (self.crypt.parse().unwrap(), self.fec);
        let shards = (data > 0).then_some(Shards { data, parity });
        kcp_go::Config { crypt, shards, ..kcp_go::Config::kcptun(Key::kcptun(KEY)) }
    }

    /// Both, for a listener or a stream.
    #[must_use]
    pub fn limits(&self) -> kcp::PeersConfig {
        kcp::PeersConfig {
            kcp: self.config(),
            envelope: Some(Arc::new(self.wire())),
            ..kcp::PeersConfig::default()
        }
    }

    /// Random bytes to send.
    #[must_use]
    pub fn random(&self) -> Vec<u8> {
        let mut rng = SimRng::new(self.seed, 9);
        (0..BYTES / self.slowness()).map(|_| rng.next_u64().to_le_bytes()[0]).collect()
    }

    /// Checks and describes the counters of our end.
    ///
    /// # Panics
    ///
    /// If they are wrong.
    #[must_use]
    pub fn ours(&self, stats: &Stats, wire: kcp_go::Stats) -> String {
        assert_eq!(stats.rejected.total(), u64::from(stats.rejected.window), "{stats:?}");
        let kcp_go::Stats { unreadable, too_long, misplaced, malformed, not_recovered, recovered, .. } = wire;
        assert!(unreadable <= self.most_unreadable(), "{wire:?}");
        assert_eq!([too_long, misplaced, malformed, not_recovered], [0; 4], "{wire:?}");
        assert!(recovered >= self.least_recovered(), "{wire:?}");
        let (segments, resends) = (stats.snd_una.0, stats.resends_timeout + stats.resends_fast);
        assert!(resends <= segments, "{stats:?}");
        format!("{segments:3} segments, {resends:3} resends, {recovered:2} recovered")
    }

    /// Checks and describes the counters of their end.
    ///
    /// # Panics
    ///
    /// If they are wrong.
    #[must_use]
    pub fn theirs(&self, program: &mut Program) -> String {
        let counted = counted(program);
        let of = |name: &str| counted[name];
        assert!(of("InCsumErrors") <= self.most_unreadable(), "{counted:?}");
        assert_eq!(["InErrs", "KCPInErrors"].map(of), [0; 2], "{counted:?}");
        let [segments, resends, recovered] = ["OutSegs", "RetransSegs", "FECRecovered"].map(of);
        assert!(recovered >= self.least_recovered(), "{counted:?}");
        format!("{segments:3} segments, {resends:3} resends, {recovered:2} recovered")
    }

    /// How many lost datagrams must be recovered, at either end.
    fn least_recovered(&self) -> u64 {
        if self.loss > 0.0 && self.fec.1 > 0 { 6 / self.slowness() as u64 } else { 0 }
    }

    /// How much less is sent: our Twofish takes half a millisecond per datagram.
    fn slowness(&self) -> usize {
        if self.crypt == "twofish" { 3 } else { 1 }
    }

    /// Datagrams that their end may corrupt: its SM4 is not thread-safe, and even between two of theirs some of every
    /// hundred are damaged.
    fn most_unreadable(&self) -> u64 {
        if self.crypt == "sm4" { 100 } else { 0 }
    }
}

impl Debug for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { crypt, fec: (data, parity), loss, by, .. } = *self;
        write!(f, "{crypt:8} | {data:2},{parity} | {:.0} % loss | {:13}", loss * 100.0, format!("{by:?}"))
    }
}

const BYTES: usize = 300_000;
