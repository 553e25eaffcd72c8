//! One conversation with another KCP: messages there, their echoes back, and what it has cost our end.

use crate::messages::{is_intact, messages};
use crate::ours::{self, Echo};
use crate::relay::{Relay, network};
use std::net::SocketAddr;
use whitewater::kcp::{self, Config, Modern, Recovery, Stats};

/// Of either end, segments: the buffer of a socket has room for as many.
pub const WINDOW: u16 = 48;
/// What either end can hold of the other's, segments: more than fragments of the longest message.
pub const RECEIVE_WINDOW: u16 = 256;
/// Larger than an `i32`, and none of its bytes like another.
pub const CONV: u32 = 0xfeed_beac;
const MESSAGES: usize = 300;
const SEED: u64 = 8;

/// How our end finds losses.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// As ikcp.c.
    Classic,
    /// By time.
    Time,
    /// By time, with copies ahead of losses.
    TimeAndCopies,
}

impl By {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Classic, Self::Time, Self::TimeAndCopies];

    /// The same config, that finds losses so.
    #[must_use]
    pub fn with(self, config: Config) -> Config {
        match self {
            Self::Classic => Config { recovery: Recovery::Classic, ..config },
            Self::Time => config,
            Self::TimeAndCopies => {
                let modern = Modern { repairs: 100, ..Modern::default() };
                Config { recovery: Recovery::Modern(modern), ..config }
            }
        }
    }
}

/// What both ends, and the network between them, are.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Ours.
    pub by: By,
    /// Of both ends; else messages.
    pub stream: bool,
    /// Share of datagrams that get lost each way.
    pub loss: f64,
}

impl Case {
    /// All of them, with and without `stream`, if theirs has that.
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

    /// Of our end.
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

    /// The network before this server.
    #[must_use]
    pub fn relay(&self, server: SocketAddr) -> Relay {
        Relay::start(server, &network(self.loss), SEED)
    }

    /// Our socket asks their server.
    ///
    /// # Panics
    ///
    /// When not all comes back as it was, or it costs too much.
    #[must_use]
    pub fn we_ask(&self, server: SocketAddr) -> String {
        let (relay, sent) = (self.relay(server), messages(MESSAGES));
        let (back, stats) = ours::ask(relay.address, CONV, &self.config(), &sent);
        assert!(is_intact(&sent, &back, self.stream), "something else came back");
        self.price(&stats)
    }

    /// Their client asks our listener, by `ask`, which returns what came back.
    ///
    /// # Panics
    ///
    /// When not all comes back as it was, or it costs too much.
    #[must_use]
    pub fn they_ask(&self, ask: impl FnOnce(SocketAddr, &[Vec<u8>]) -> Vec<Vec<u8>>) -> String {
        let limits = kcp::PeersConfig { kcp: self.config(), ..kcp::PeersConfig::open() };
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

    /// What it has cost our end. A machine that is busy is slow to answer, which costs resends: bounds are wide.
    ///
    /// # Panics
    ///
    /// Outside them, or when something of theirs was refused.
    #[must_use]
    pub fn price(&self, stats: &Stats) -> String {
        let (resends, segments) = (stats.resends_fast + stats.resends_timeout, stats.snd_una.0);
        let bounds = if self.loss > 0.0 { segments / 50..=segments } else { 0..=segments / 2 };
        assert!(bounds.contains(&resends), "{resends} resends of {segments} segments: {stats:?}");
        assert_eq!(stats.rejected.total(), u64::from(stats.rejected.window), "{stats:?}");
        format!("{segments} segments, {resends} resends, {} duplicates came", stats.duplicates)
    }
}
