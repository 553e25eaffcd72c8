//! What both ends agree on, the network between them, and what they have to count.

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
    /// Share of datagrams that get lost each way.
    pub loss: f64,
    /// How our end finds losses.
    pub by: By,
    /// Of the network and of what is sent.
    pub seed: u64,
}

impl Case {
    /// With each cipher, with and without parity, clean and lossy; with `aes` also more shards, and each way to find losses.
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

    /// The network before this server.
    #[must_use]
    pub fn relay(&self, server: SocketAddr) -> Relay {
        Relay::start(server, &network(self.loss), self.seed)
    }

    /// Of our end.
    #[must_use]
    pub fn config(&self) -> Config {
        self.by.with(Config { snd_wnd: WINDOW, ..Mode::Fast2.config() })
    }

    /// The same around KCP.
    ///
    /// # Panics
    ///
    /// When there is no such cipher.
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
            ..kcp::PeersConfig::open()
        }
    }

    /// Bytes of which no two places look alike.
    #[must_use]
    pub fn random(&self) -> Vec<u8> {
        let mut rng = SimRng::new(self.seed, 9);
        (0..BYTES / self.slowness()).map(|_| rng.next_u64().to_le_bytes()[0]).collect()
    }

    /// What our end has counted.
    ///
    /// # Panics
    ///
    /// When that is wrong.
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

    /// What their end has counted.
    ///
    /// # Panics
    ///
    /// When that is wrong.
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

    /// What has to be recovered of what is lost, at either end.
    fn least_recovered(&self) -> u64 {
        if self.loss > 0.0 && self.fec.1 > 0 { 6 / self.slowness() as u64 } else { 0 }
    }

    /// How much less is sent: a datagram takes our Twofish half a millisecond.
    fn slowness(&self) -> usize {
        if self.crypt == "twofish" { 3 } else { 1 }
    }

    /// Datagrams that their end has spoiled: its SM4 is not made for several threads, and even among themselves some of each hundred are.
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
