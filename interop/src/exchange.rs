//! One conversation with another KCP: we send messages, they echo them, and we measure the cost at our end.

use crate::messages::{is_intact, messages};
use crate::ours::{self, Echo};
use crate::relay::{Relay, network};
use std::net::SocketAddr;
use whitewater::Repairs;
use whitewater::kcp::{self, Config, Modern, Recovery, Stats};

/// Windows of both ends, segments: a socket's buffer has room for this many.
pub const WINDOW: u16 = 48;
/// What each end can hold of the other's data, segments: more than the fragments of the longest message.
pub const RECEIVE_WINDOW: u16 = 256;
/// Larger than `i32::MAX`, and with four different bytes.
pub const CONV: u32 = 0xfeed_beac;
const MESSAGES: usize = 300;
const SEED: u64 = 8;

/// How our end detects losses.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// As ikcp.c does.
    Classic,
    /// By timing.
    Time,
    /// By timing, with copies sent ahead of losses.
    TimeAndCopies,
}

impl By {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Classic, Self::Time, Self::TimeAndCopies];

    /// The same config with this kind of recovery.
    #[must_use]
    pub fn with(self, config: Config) -> Config {
        match self {
            Self::Classic => Config { recovery: Recovery::Classic, ..config },
            Self::Time => config,
            Self::TimeAndCopies => {
                let modern = Modern { repairs: Repairs::Budget(100), ..Modern::default() };
                Config { recovery: Recovery::Modern(modern), ..config }
            }
        }
    }
}

/// The settings of both ends, and of the network between them.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The recovery of our end.
    pub by: By,
    /// Whether both ends carry a stream instead of messages.
    pub stream: bool,
    /// Share of datagrams lost in each direction.
    pub loss: f64,
}

impl Case {
    /// All cases; `streams`: with and without `stream`, if the other end supports that.
    #[must_use]
    pub fn all(streams: &[bool]) -> Vec<Self> {
        let mut all = Vec::new();
        for by in By::ALL {
            for &stream in streams {
                all.extend([0.0, 0.08].map(|loss| Self { by, stream, loss }));
            }
        }
        all
    }

    /// The config of our end.
    #[must_use]
    pub fn config(&self) -> Config {
        self.by.with(Config {
            snd_wnd: WINDOW,
            rcv_wnd: RECEIVE_WINDOW,
            stream: self.stream,
            snd_queue: 4096,
            ..Config::default()
        })
    }

    /// A relay in front of this server.
    #[must_use]
    pub fn relay(&self, server: SocketAddr) -> Relay {
        Relay::start(server, &network(self.loss), SEED)
    }

    /// Our socket asks their server.
    ///
    /// # Panics
    ///
    /// If the echo differs from what was sent, or costs too much.
    #[must_use]
    pub fn we_ask(&self, server: SocketAddr) -> String {
        let (relay, sent) = (self.relay(server), messages(MESSAGES));
        let (back, stats) = ours::ask(relay.address, CONV, &self.config(), &sent);
        assert!(is_intact(&sent, &back, self.stream), "something else came back");
        self.price(&stats)
    }

    /// Their client asks our listener through `ask`, which returns the echo.
    ///
    /// # Panics
    ///
    /// If the echo differs from what was sent, or costs too much.
    #[must_use]
    pub fn they_ask(&self, ask: impl FnOnce(SocketAddr, &[Vec<u8>]) -> Vec<Vec<u8>>) -> String {
        let limits = kcp::PeersConfig { kcp: self.config(), ..kcp::PeersConfig::default() };
        let (server, sent) = (Echo::start(&limits), messages(MESSAGES));
        let relay = self.relay(server.address);
        let back = ask(relay.address, &sent);
        assert!(is_intact(&sent, &back, self.stream), "something else came back");
        let counted = server.stop();
        assert_eq!(
            (counted.all.accepted, counted.all.garbage, counted.peers.len()),
            (1, 0, 1),
            "{counted:?}"
        );
        self.price(&counted.peers[0])
    }

    /// The cost at our end. A busy machine answers slowly, which causes resends, so the bounds are wide.
    ///
    /// # Panics
    ///
    /// If the cost is out of bounds, or something of theirs was refused.
    #[must_use]
    pub fn price(&self, stats: &Stats) -> String {
        let (resends, segments) = (stats.resends_fast + stats.resends_timeout, stats.snd_una.0);
        let bounds = if self.loss > 0.0 { segments / 50..=segments } else { 0..=segments / 2 };
        assert!(bounds.contains(&resends), "{resends} resends of {segments} segments: {stats:?}");
        assert_eq!(stats.rejected.total(), u64::from(stats.rejected.window), "{stats:?}");
        format!("{segments} segments, {resends} resends, {} duplicates came", stats.duplicates)
    }
}
