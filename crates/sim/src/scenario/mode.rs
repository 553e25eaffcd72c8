//! How the two ends of a session are configured and driven.

use crate::Drive;
use std::time::Duration;
use whitewater::kcp::{Config, Congestion, Modern, Recovery};
use whitewater::{ChannelConfig, Repairs};

/// How the two ends of a session are configured and driven, with a name for tables.
///
/// A mode is a value: create others with [`Mode::new`] or change the fields.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made for `Mode { .., ..Mode::fast() }`")]
pub struct Mode {
    /// Its name in tables.
    pub name: String,
    /// Alice's end and bob's end.
    pub ends: [EndMode; 2],
}

/// How one end is configured and driven.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made for `EndMode { .., ..EndMode::new(..) }`")]
pub struct EndMode {
    /// The settings.
    pub config: Config,
    /// When `update` and `flush` are called.
    pub drive: Drive,
    /// A channel over packets instead of a control block; the other fields are then ignored.
    pub channel: Option<ChannelMode>,
}

/// A channel over packets, and how often packets leave.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a channel and a time")]
pub struct ChannelMode {
    /// The channel, which must be reliable and ordered.
    pub channel: ChannelConfig,
    /// Least time between two packets of one end.
    pub spacing: Duration,
}

impl Mode {
    /// Configures both ends alike.
    #[must_use]
    pub fn new(name: impl Into<String>, config: Config, drive: Drive) -> Self {
        Self { name: name.into(), ends: [EndMode::new(config, drive); 2] }
    }

    /// The same with windows of `segments`, for more data in flight than a game has.
    #[must_use]
    pub fn with_window(mut self, segments: u16) -> Self {
        for end in &mut self.ends {
            (end.config.snd_wnd, end.config.rcv_wnd) = (segments, segments);
        }
        self
    }

    /// The same with another congestion control at both ends and another name.
    #[must_use]
    pub fn with_congestion(mut self, name: impl Into<String>, congestion: Congestion) -> Self {
        self.name = name.into();
        for end in &mut self.ends {
            end.config.congestion = congestion;
        }
        self
    }

    /// KCP (0, 10, 0, 0): with its congestion window, which is too small for 50 messages per second under
    /// loss.
    #[must_use]
    pub fn default_window() -> Self {
        Self::new("default", Config { congestion: Congestion::Kcp, ..normal() }, Drive::BEAT)
    }

    /// KCP (0, 10, 0, 1): `normal` in its test.cpp.
    #[must_use]
    pub fn normal() -> Self {
        Self::new("normal", normal(), Drive::BEAT)
    }

    /// KCP (1, 10, 2, 1): the reference for every comparison.
    #[must_use]
    pub fn fast() -> Self {
        Self::new("fast", Config { nodelay: 1, fast_resend: 2, ..normal() }, Drive::BEAT)
    }

    /// KCP (2, 10, 1, 1) with a minimum RTO of 10 ms: what newer versions of its test.cpp call `fast` at
    /// alice's end; older ones have [`Mode::fast`].
    #[must_use]
    pub fn turbo() -> Self {
        Self::new("turbo", turbo(), Drive::BEAT)
    }

    /// [`Mode::turbo`] with a flush after each message sent and each datagram received.
    #[must_use]
    pub fn turbo_flush() -> Self {
        Self::new("turbo + flush", turbo(), Drive::BEAT.flushing())
    }

    /// [`Recovery::Modern`] with these parts, at both ends.
    #[must_use]
    pub fn modern(parts: Modern) -> Self {
        let name = match parts.repairs {
            Repairs::Off => "by time".to_owned(),
            Repairs::Auto => "auto".to_owned(),
            Repairs::Budget(percent) => format!("repairs {percent} %"),
            Repairs::Deadline(within) => format!("deadline {within} ms"),
            _ => format!("{:?}", parts.repairs),
        };
        Self::new(name, Config { recovery: Recovery::Modern(parts), ..normal() }, Drive::CHECK)
    }

    /// Messages over acknowledged packets, at most one packet every 16 ms: like a game that sends one per
    /// frame.
    #[must_use]
    pub fn messages(name: impl Into<String>, channel: ChannelConfig) -> Self {
        let channel = Some(ChannelMode { channel, spacing: Duration::from_millis(16) });
        let end = EndMode { channel, ..EndMode::new(normal(), Drive::CHECK) };
        Self { name: name.into(), ends: [end; 2] }
    }

    /// The modes of KCP that others are compared with, slowest first.
    #[must_use]
    pub fn baselines() -> [Self; 5] {
        [Self::default_window(), Self::normal(), Self::fast(), Self::turbo(), Self::turbo_flush()]
    }
}

impl EndMode {
    /// An end that is a control block.
    #[must_use]
    pub const fn new(config: Config, drive: Drive) -> Self {
        Self { config, drive, channel: None }
    }
}

/// (0, 10, 0, 1), with the windows of test.cpp and an unlimited queue, as in ikcp.c.
fn normal() -> Config {
    Config {
        interval: 10,
        congestion: Congestion::None,
        snd_wnd: WINDOW,
        rcv_wnd: WINDOW,
        snd_queue: 1 << 24,
        snd_queue_bytes: 1 << 30,
        ..Config::classic()
    }
}

/// (2, 10, 1, 1) with a minimum RTO of 10 ms.
fn turbo() -> Config {
    Config { nodelay: 2, fast_resend: 1, min_rto: Some(10), ..normal() }
}

/// Segments. Source: KCP test.cpp.
const WINDOW: u16 = 128;
