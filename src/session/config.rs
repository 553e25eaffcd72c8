//! The settings of a session: plain fields, checked once. Nothing is clamped.

use crate::channel::{CHANNELS_MAX, Carrier, Channel, ChannelConfig, ChannelKind, ChannelsConfig};
use crate::code::budget::Repairs;
use crate::config::{ConfigError, in_range, millis, time_in_range, unless};
use crate::kcp;
use crate::pace::MaxRate;
use crate::session::Suite;
use crate::session::wire::{FEATURE_ECN, FEATURE_MASKS, FEATURE_REPAIRS, Msg1};
use std::time::Duration;

settings! {
    /// The settings of one end of a session. Channels are part of the application's protocol: both ends must declare
    /// the same. docs/TUNING.md says when to change which setting.
    ///
    /// ```
    /// use whitewater::SessionConfig;
    ///
    /// // Shorter datagrams, for tunnels.
    /// let config = SessionConfig { max_datagram: 576, ..SessionConfig::default() };
    /// assert!(config.check().is_ok());
    /// // An error says what is wrong: here, that the windows of KCP need more memory for datagrams of 9000 bytes.
    /// let config = SessionConfig { path_mtu: Some(9000), ..SessionConfig::default() };
    /// assert_eq!(config.check().unwrap_err().field, "receive_memory");
    /// ```
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct SessionConfig {
        /// Identifies the application and its version: any number, the same at both ends. Datagrams of other protocols
        /// are dropped.
        pub protocol_id: u64 = 0;
        /// Largest datagram sent and accepted, bytes of UDP payload: 576 to 1200. The smaller value of both ends
        /// applies.
        pub max_datagram: u16 = 1200, DATAGRAM_MIN.into()..=DATAGRAM_MAX.into();
        /// Probe for longer datagrams, up to this many bytes of UDP payload, once one is full: 1200 to 9000. Most IPv4
        /// paths carry 1472, and most IPv6 paths 1452. The result applies to what KCP carries. Unreliable datagrams and
        /// packets of messages keep to `max_datagram`; with one below 1200, nothing is probed. The smaller limit of
        /// both ends applies. `None`: no probing.
        pub path_mtu: Option<u16> = Some(1472), DATAGRAM_MAX.into()..=9000;
        /// Mark datagrams as ECN-capable, and react when a queue on the path marks them because it is filling. Used if
        /// the peer does it as well and the path preserves the marks. A mark counts like a loss, but nothing is resent.
        /// Needs something that can slow down: `max_rate`, or congestion control of the channels. Off by default.
        pub ecn: bool = false;
        /// The channels, by number from 0, the most urgent first: 0 to 32. The default is one, `Channel::ordered(0)`,
        /// which carries bytes.
        pub channels: Vec<ChannelConfig> = vec![Channel::<[u8]>::ordered(0).config()], 0..=CHANNELS_MAX as u64;
        /// Bytes of unreliable datagrams that may wait to be sent: 1500 to 2^24.
        pub datagrams_out: u32 = 64 << 10, 1500..=1 << 24;
        /// Bytes of unreliable datagrams that may wait to be read: 1500 to 2^24. Datagrams beyond that are not
        /// acknowledged.
        pub datagrams_in: u32 = 64 << 10, 1500..=1 << 24;
        /// Bytes that messages carried by KCP may take until they are acknowledged, plus 32 per segment: 1500 to 2^30.
        /// A quarter is divided evenly among the channels and reserved for each; the rest is first come, first served.
        /// While a message of 16 KiB or more is being sent, only the part that KCP holds counts, up to two windows.
        pub send_memory: u32 = 256 << 10, 1500..=1 << 30;
        /// Bytes of segments that KCP holds until they are read: 200,000 to 2^30. A quarter is divided evenly among the
        /// channels; the rest is first come, first served. The advertised windows have room for full segments, so raise
        /// it for an `rcv_wnd` above 200. An incoming message of 16 KiB or more takes memory of its own, up to
        /// `max_message` of its channel.
        pub receive_memory: u32 = 256 << 10;
        /// Most packets that wait for acknowledgement, the newest ones: 64 to 32,768.
        pub unacked: u16 = 1024, 64..=1 << 15;
        /// The most datagrams with data to send per second, for channels and unreliable datagrams together, in good and
        /// bad mode; see [`pace`](crate::pace). `None`: no limit, except for the congestion control of channels by KCP.
        pub max_rate: Option<MaxRate> = None;
        /// How much to spend on repairs of packets, from which the peer rebuilds lost packets without a round trip. Used if
        /// both ends set it. Covers unreliable datagrams, channels in packets, and channels by KCP without
        /// [repairs of their own](crate::kcp::Modern::repairs). Off by default.
        pub repairs: Repairs = Repairs::Off;
        /// How long an acknowledgement may wait for data to ride with: up to 100 ms. That of unreliable datagrams, which
        /// are never sent again, may wait four times as long, but not more than 100 ms, unless repairs see that packets get lost.
        pub ack_delay: Duration = Duration::from_millis(10), 0..=100;
        /// While a session rests, its server sends a ping this often, and the client answers: 100 ms to 10 s, rounded down to
        /// 100 ms. While there is traffic, or if an answer is missing, either end sends one after a quarter of it, but at least
        /// 500 ms, or `keepalive` if that is shorter, without sending anything, or anything that tells the state of the path.
        pub keepalive: Duration = Duration::from_secs(2), 100..=10_000;
        /// The session ends after this much silence: 2 to 120 s, at least twice `keepalive`.
        pub timeout: Duration = Duration::from_secs(20);
        /// How long closing waits for what was sent to arrive: up to 60 s.
        pub drain: Duration = Duration::from_secs(5), 0..=60_000;
        /// How long the peer's window may stay closed while something waits for it, or reliable messages in packets may
        /// stay unacknowledged: 1 s to 1 h.
        pub slow_peer: Duration = Duration::from_secs(30), 1000..=3_600_000;
        /// Mask the numbers and key phases of packets, so that nobody on the way can count them or tell what was lost, and
        /// let a client that changes networks use [another number](crate::machine::Machine::path_changed) of the session,
        /// if the peer does it as well. Has no effect without encryption. On by default.
        pub mask_headers: bool = true;
        /// Packets in either direction after which a client starts an exchange of new keys: 64 to 2^20. It
        /// starts one at most once a second.
        pub key_update: u32 = 1 << 20, 64..=1 << 20;
    }
}

impl SessionConfig {
    /// Sessions of an application, with these channels; everything else is as by default.
    ///
    /// ```
    /// use whitewater::{Channel, SessionConfig};
    ///
    /// const CHAT: Channel = Channel::ordered(0);
    /// const POSITIONS: Channel = Channel::unreliable(1);
    ///
    /// let session = SessionConfig::new(0x7061_6464_6c65_0001, [CHAT.into(), POSITIONS.into()]);
    /// assert!(session.check().is_ok());
    /// ```
    #[must_use]
    pub fn new(protocol_id: u64, channels: impl Into<Vec<ChannelConfig>>) -> Self {
        Self { protocol_id, channels: channels.into(), ..Self::default() }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// The first field out of range, with its value and its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        for (number, channel) in (0..).zip(&self.channels) {
            channel.check()?;
            unless(
                channel.channel.number() != number,
                "channels",
                "their numbers are their places: 0, 1, 2 and so on",
            )?;
            self.lane(channel, DATAGRAM_MIN).check()?;
            self.lane(channel, self.datagram_taken()).check()?;
            let has_to_slow_down = self.ecn && self.max_rate.is_none() && channel.carrier == Carrier::Kcp;
            let is_unlimited = channel.kcp.congestion == kcp::Congestion::None && has_to_slow_down;
            unless(
                is_unlimited,
                "ecn",
                "needs something that slows down: set `max_rate`, or `congestion` of the channels",
            )?;
        }
        if let Some(channels) = self.channels(DATAGRAM_MIN) {
            channels.check()?;
        }
        let least = u64::from(RECEIVE_MIN) * u64::from(self.datagram_taken().max(DATAGRAM_MAX));
        in_range("receive_memory", self.receive_memory.into(), least / u64::from(DATAGRAM_MAX)..=1 << 30)?;
        self.max_rate.as_ref().map_or(Ok(()), MaxRate::check)?;
        self.repairs.check()?;
        let least = millis(self.keepalive).saturating_mul(2).max(2000);
        time_in_range("timeout", self.timeout, least..=120_000)
    }

    /// Checks that datagrams are long enough for a suite.
    pub(super) fn check_suite(&self, suite: Suite) -> Result<(), ConfigError> {
        let is_short = suite.is_hybrid() && self.max_datagram < DATAGRAM_MAX;
        unless(is_short, "max_datagram", "has to be 1200 for a hybrid suite, whose handshake is that long")
    }

    /// Bytes of the longest message that may come in parts.
    pub(super) fn longest_message(&self) -> u32 {
        let joins = |channel: &&ChannelConfig| {
            let kind = channel.channel.kind();
            kind.is_reliable() && kind != ChannelKind::Stream
        };
        self.channels.iter().filter(joins).map(|channel| channel.max_message).max().unwrap_or(0)
    }

    pub(super) fn datagram_taken(&self) -> u16 {
        let looks = self.max_datagram == DATAGRAM_MAX;
        self.max_datagram.max(self.path_mtu.filter(|_| looks).unwrap_or_default())
    }

    /// The features that this end announces in the handshake.
    pub(super) fn features(&self) -> u32 {
        let each = [
            (self.ecn, FEATURE_ECN),
            (self.repairs != Repairs::Off, FEATURE_REPAIRS),
            (self.mask_headers, FEATURE_MASKS),
        ];
        each.into_iter().filter(|(is_on, _)| *is_on).fold(0, |features, (_, bit)| features | bit)
    }

    /// Most bytes of KCP segments in one frame, in datagrams of `max_datagram` bytes.
    pub(super) const fn frame_max(max_datagram: u16) -> u16 {
        room(max_datagram) - FRAME_HEAD
    }

    /// The KCP config of a channel, in datagrams of `max_datagram` bytes.
    pub(super) fn lane(&self, channel: &ChannelConfig, max_datagram: u16) -> kcp::Config {
        let (mtu, rcv_mtu) = (Self::frame_max(max_datagram), Self::frame_max(self.datagram_taken()));
        let stream = channel.channel.kind() == ChannelKind::Stream;
        kcp::Config { mtu, rcv_mtu: rcv_mtu.max(mtu), stream, ..channel.kcp }
    }

    /// The channels in packets, in datagrams of `max_datagram` bytes. `None`: there are none.
    pub(super) fn channels(&self, max_datagram: u16) -> Option<ChannelsConfig> {
        let payload_max = Self::datagram_max(max_datagram);
        let packed = self.channels.iter().copied().filter(|channel| channel.carrier == Carrier::Packets);
        let (channels, packets) = (packed.collect::<Vec<_>>(), self.unacked.min(PACKETS_MAX));
        (!channels.is_empty()).then_some(ChannelsConfig { channels, payload_max, packets })
    }

    pub(super) fn said<'a>(&self, user: &'a [u8]) -> Msg1<'a> {
        let rcv_wnd = self.channels.first().map_or(0, |channel| channel.kcp.rcv_wnd);
        let keepalive_ms = u16::try_from(self.keepalive.as_millis()).unwrap_or(u16::MAX);
        let (features, max_datagram) = (self.features(), self.datagram_taken());
        Msg1 { features, max_datagram, rcv_wnd, keepalive_ms, user, shape: &[] }
    }

    /// Most bytes of an unreliable datagram that this end sends, whatever the other end accepts.
    #[cfg(feature = "net")]
    pub(crate) fn datagram_max_here(&self) -> usize {
        Self::datagram_max(self.max_datagram).into()
    }

    /// Most bytes of an unreliable datagram, in session datagrams of `max_datagram` bytes.
    pub(super) const fn datagram_max(max_datagram: u16) -> u16 {
        room(max_datagram) - FRAME_HEAD - ACK_FRAME
    }
}

/// A setting in µs. No setting of a session is longer than an hour.
pub(super) fn micros(knob: Duration) -> u32 {
    u32::try_from(knob.as_micros()).unwrap_or(u32::MAX)
}

/// Bytes for frames in a datagram of `max_datagram` bytes, with any suite.
const fn room(max_datagram: u16) -> u16 {
    max_datagram - OVERHEAD_MAX
}

/// Smallest `max_datagram`: every path carries it.
pub(super) const DATAGRAM_MIN: u16 = 576;
/// Largest datagram on an unknown path, bytes. Longer ones are only sent once they were acknowledged.
pub(super) const DATAGRAM_MAX: u16 = 1200;
/// Bytes that sealing adds to the frames of a datagram: kind, sid, packet number, tag.
pub(super) const OVERHEAD_MAX: u16 = 25;
/// Type and length of a frame, bytes.
pub(super) const FRAME_HEAD: u16 = 3;
/// Bytes of an ACK frame, type included.
pub(super) const ACK_FRAME: u16 = 9;
/// Three quarters of this hold the longest message that KCP carries in one piece: 127 segments of 1172 bytes,
/// headers included. Longer datagrams need more.
const RECEIVE_MIN: u32 = 200_000;
/// Most packets that channels remember: 64 messages each, half of the ids.
const PACKETS_MAX: u16 = 512;
