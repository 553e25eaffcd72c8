//! The settings of a control block.

use super::congestion::Congestion;
use crate::code::budget::Repairs;
use crate::code::{REPAIR_HEAD, SYMBOL_HEAD};
use crate::config::{ConfigError, in_range};
use crate::wire::{DatagramQueue, HEADER_LEN};

settings! {
    /// The settings of a control block: plain fields, checked once by [`Kcp::new`] and [`Kcp::configure`]. Nothing is
    /// clamped: a value out of range is a [`ConfigError`].
    ///
    /// The default suits games: loss is detected by timing, everything is sent at once, and there is no congestion
    /// control. [`classic`](Self::classic) has the settings of `ikcp_create`. docs/TUNING.md explains and measures the
    /// effect of each setting on latency and bytes.
    ///
    /// ```
    /// use whitewater::kcp::Config;
    /// let config = Config { mtu: 1200, snd_wnd: 256, rcv_wnd: 256, ..Config::default() };
    /// # config.check().unwrap();
    /// ```
    ///
    /// [`Kcp::new`]: super::Kcp::new
    /// [`Kcp::configure`]: super::Kcp::configure
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Config {
        /// Largest datagram sent, bytes, headers included: 50 to 65,507.
        pub mtu: u16 = 1400, 50..=MTU_MAX.into();
        /// Largest datagram accepted from the peer, bytes: `mtu` to 65,507. Together with `rcv_wnd` it limits the
        /// memory that a peer can fill: to less than 3 x `rcv_wnd` x `rcv_mtu` bytes of messages.
        pub rcv_mtu: u16 = 1500;
        /// Most segments in flight: 1 to 65,535.
        pub snd_wnd: u16 = 128, 1..=u16::MAX.into();
        /// Size of the receive queue in segments, and how far ahead of the next expected segment one may arrive: 128 to
        /// 65,535. A message of more fragments than this cannot be received.
        pub rcv_wnd: u16 = WND_RCV_MIN, WND_RCV_MIN.into()..=u16::MAX.into();
        /// How the retransmission timeout (RTO) of a segment grows. 0: it doubles at each timeout, is at least 100 ms,
        /// and the first has 1/8 added. 1: it grows by half, from at least 30 ms. 2: it grows by half of the
        /// connection's RTO, from at least 30 ms.
        pub nodelay: u8 = 1, 0..=2;
        /// Time between two flushes by [`Kcp::update`](super::Kcp::update), ms: 10 to 5000.
        pub interval: u16 = 10, 10..=5000;
        /// Resend a segment once this many datagrams have acknowledged later ones. 0: never.
        pub fast_resend: u16 = 2;
        /// What limits the segments in flight, besides `snd_wnd` and the peer's window.
        pub congestion: Congestion = Congestion::None;
        /// Carry a stream of bytes instead of messages: small sends share segments.
        pub stream: bool = false;
        /// Smallest RTO, ms: up to 60,000. `None`: 100, or 30 with `nodelay`.
        pub min_rto: Option<u16> = None, 0..=RTO_MAX.into();
        /// Fast resend no longer applies to a segment that has been sent more often than this. 0: no limit.
        pub fast_limit: u16 = 5;
        /// When the link counts as dead: 1 to 65,535. Classic recovery: after a segment has been sent this many times.
        /// Modern: after this many seconds in which nothing in flight was acknowledged.
        pub dead_link: u16 = 20, 1..=u16::MAX.into();
        /// Segments that may wait to be sent: 1 to 2^24.
        pub snd_queue: u32 = 1024, 1..=1 << 24;
        /// Bytes of messages that may wait to be sent: `mtu` to 2^30.
        pub snd_queue_bytes: u32 = 4 << 20;
        /// How loss is detected and repaired.
        pub recovery: Recovery = Recovery::default();
    }
}

/// How loss is detected and repaired. This changes the decisions of this end, never the wire format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Recovery {
    /// The decisions of ikcp.c 2.1.1, except for what docs/DEVIATIONS.md lists.
    Classic,
    /// Detects loss by timing and sends at once. Ignores the settings `nodelay`, `interval`, `fast_resend`, `min_rto`
    /// and `fast_limit`. docs/BEHAVIOUR.md describes it, docs/TUNING.md measures it.
    Modern(Modern),
}

settings! {
    /// The settings of [`Recovery::Modern`]. docs/TUNING.md measures the effect of each.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Modern {
        /// Send and acknowledge at once, whenever [`Kcp::update`](super::Kcp::update) is called. Otherwise, once per
        /// `interval`.
        pub at_once: bool = true;
        /// How much to spend on protecting segments before they are lost. If the peer has this on too, repairs are sent,
        /// from which it rebuilds lost segments without a round trip. To any other peer, segments of up to 400 bytes are
        /// sent twice, or nothing is with `Auto`. Whoever can forge a datagram can forge what is rebuilt from it as well.
        pub repairs: Repairs = Repairs::Auto;
    }
}

impl Default for Recovery {
    /// Modern recovery, at once, with automatic repairs.
    fn default() -> Self {
        Self::Modern(Modern::default())
    }
}

impl Config {
    /// The settings of `ikcp_create`, with limits where ikcp.c has none: [`Recovery::Classic`], windows of 32 and 128
    /// segments, a flush every 100 ms, the delays of TCP, and KCP's congestion window. [`nodelay`](Self::nodelay) and
    /// [`wndsize`](Self::wndsize) change these settings.
    ///
    /// ```
    /// use whitewater::kcp::Config;
    /// let config = Config::classic().nodelay(1, 10, 2, true).wndsize(128, 128);
    /// # config.check().unwrap();
    /// ```
    #[must_use]
    pub fn classic() -> Self {
        Self {
            snd_wnd: WND_SND,
            nodelay: 0,
            interval: 100,
            fast_resend: 0,
            congestion: Congestion::Kcp,
            snd_queue: 4096,
            recovery: Recovery::Classic,
            ..Self::default()
        }
    }

    /// The default with congestion control by delay, for bulk beside a game: it takes what the path has left, and keeps
    /// the queue short. The windows are 192 segments, which fit into the memory of a session's default config.
    ///
    /// docs/CHANNELS.md has figures for a channel of a session. Where the path carries more than 192 segments per round
    /// trip, raise the windows.
    ///
    /// ```
    /// use whitewater::kcp;
    /// use whitewater::{Channel, ChannelConfig};
    ///
    /// const LEVELS: Channel = Channel::unordered(3);
    /// let levels = ChannelConfig { kcp: kcp::Config::bulk(), ..LEVELS.config() };
    /// # levels.check().unwrap();
    /// ```
    #[must_use]
    pub fn bulk() -> Self {
        Self { congestion: Congestion::Delay, ..Self::default() }.wndsize(BULK_WND, BULK_WND)
    }

    /// The four settings of `ikcp_nodelay`: `nodelay`, `interval` in ms, `fast_resend`, and `nc`: no congestion window.
    #[must_use]
    pub const fn nodelay(self, nodelay: u8, interval: u16, resend: u16, nc: bool) -> Self {
        let congestion = if nc { Congestion::None } else { Congestion::Kcp };
        Self { nodelay, interval, fast_resend: resend, congestion, ..self }
    }

    /// The windows as in `ikcp_wndsize`, segments: `snd_wnd` and `rcv_wnd`.
    #[must_use]
    pub const fn wndsize(self, snd: u16, rcv: u16) -> Self {
        Self { snd_wnd: snd, rcv_wnd: rcv, ..self }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// The first field out of range, with its value and its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        in_range("rcv_mtu", self.rcv_mtu, self.mtu..=MTU_MAX)?;
        in_range("snd_queue_bytes", self.snd_queue_bytes, self.mtu.into()..=1 << 30)?;
        match &self.recovery {
            Recovery::Modern(modern) => modern.check_ranges().and(modern.repairs.check()),
            Recovery::Classic => Ok(()),
        }
    }

    /// Largest payload of a segment, bytes. A longer message is cut into segments that are 5 bytes shorter if repairs are
    /// on, so that a repair of them fits into a datagram.
    #[inline]
    #[must_use]
    pub fn mss(&self) -> u16 {
        self.mtu.wrapping_sub(OVERHEAD) // a checked mtu is larger than this
    }

    /// Payload of the segments that a longer message or a stream is cut into, bytes.
    #[inline]
    pub(crate) fn cut(&self) -> u16 {
        self.mss().wrapping_sub(if self.has_repairs() { REPAIR_OVERHEAD } else { 0 })
    }

    /// A queue with room for what one flush can send of a full window, so that it drops nothing that the window allows.
    /// Without an interval between flushes, it is filled in bursts.
    pub(crate) fn datagram_queue(&self) -> DatagramQueue {
        let window = usize::from(self.snd_wnd).saturating_mul(self.mtu.into());
        DatagramQueue::with_limit(window.clamp(DatagramQueue::DEFAULT_LIMIT, QUEUE_MAX)).in_bursts()
    }

    /// Whether recovery is modern. Round trips are then kept in µs, otherwise in ms.
    #[inline]
    pub(super) const fn is_by_time(&self) -> bool {
        matches!(self.recovery, Recovery::Modern(_))
    }

    #[inline]
    pub(super) const fn has_repairs(&self) -> bool {
        match self.recovery {
            Recovery::Modern(Modern { repairs, .. }) => !matches!(repairs, Repairs::Off),
            Recovery::Classic => false,
        }
    }

    /// Whether what is due is sent at once, without waiting for the next interval.
    #[inline]
    pub(crate) const fn is_at_once(&self) -> bool {
        matches!(self.recovery, Recovery::Modern(Modern { at_once: true, .. }))
    }

    /// Smallest RTO in force, ms. Source: ikcp.c `ikcp_nodelay`.
    pub(super) fn rto_min(&self) -> u32 {
        match (self.min_rto, self.nodelay) {
            (Some(ms), _) => ms,
            (None, 0) => RTO_MIN,
            (None, _) => RTO_NODELAY,
        }
        .into()
    }
}

/// Most bytes that wait for a socket whose send buffer is full.
const QUEUE_MAX: usize = 64 << 20;
/// Bytes that a segment adds to its payload.
#[expect(clippy::cast_possible_truncation, reason = "24")]
pub(super) const OVERHEAD: u16 = HEADER_LEN as u16;
/// Bytes that a repair adds to the largest segment that it covers.
#[expect(clippy::cast_possible_truncation, reason = "5")]
pub(super) const REPAIR_OVERHEAD: u16 = (REPAIR_HEAD + SYMBOL_HEAD) as u16;
/// Largest UDP payload over IPv4, bytes.
const MTU_MAX: u16 = 65_507;
/// Windows of [`Config::bulk`], segments. 300 KB then take no more round trips than with the default, which sends a window
/// of 128 at once.
const BULK_WND: u16 = 192;
/// Send window of [`Config::classic`], segments. Source: ikcp.c `IKCP_WND_SND`.
const WND_SND: u16 = 32;
/// Smallest receive window, segments. Source: ikcp.c `IKCP_WND_RCV`, "must >= max fragment size".
pub(super) const WND_RCV_MIN: u16 = 128;
/// Smallest RTO, ms. Source: ikcp.c `IKCP_RTO_MIN`.
const RTO_MIN: u16 = 100;
/// Smallest RTO with nodelay, ms. Source: ikcp.c `IKCP_RTO_NDL`.
const RTO_NODELAY: u16 = 30;
/// Largest RTO that round trips can lead to, ms. Source: ikcp.c `IKCP_RTO_MAX`.
pub(super) const RTO_MAX: u16 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_field_value_and_range() {
        let error = Config { interval: 9, ..Config::default() }.check().unwrap_err();
        assert_eq!(
            error,
            ConfigError { field: "interval", value: 9, min: 10, max: 5000, unit: "", cure: "" }
        );
        assert_eq!(error.to_string(), "`interval` is 9, outside 10 to 5000");
        let default = Config::default();
        for (config, field) in [
            (Config { mtu: 49, ..default }, "mtu"),
            (Config { mtu: 65_508, rcv_mtu: 65_508, ..default }, "mtu"),
            (Config { rcv_mtu: 1399, ..default }, "rcv_mtu"),
            (Config { snd_wnd: 0, ..default }, "snd_wnd"),
            (Config { rcv_wnd: 127, ..default }, "rcv_wnd"),
            (Config { nodelay: 3, ..default }, "nodelay"),
            (Config { interval: 5001, ..default }, "interval"),
            (Config { min_rto: Some(60_001), ..default }, "min_rto"),
            (Config { dead_link: 0, ..default }, "dead_link"),
            (Config { snd_queue: 0, ..default }, "snd_queue"),
            (Config { snd_queue_bytes: 1399, ..default }, "snd_queue_bytes"),
        ] {
            assert_eq!(config.check().map_err(|error| error.field), Err(field));
        }
    }
}
