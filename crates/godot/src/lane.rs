//! Which channel of a session carries which transfer mode and channel of Godot.

use whitewater::{Channel, ChannelConfig, kcp};

/// How a packet travels, as Godot's `TransferMode`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// Each arrives, in order.
    Reliable,
    /// The newest arrives.
    UnreliableOrdered,
    /// It arrives or not.
    Unreliable,
}

/// A transfer mode on a transfer channel. Each is a channel of a session: nothing is added to a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Lane {
    pub(crate) mode: Mode,
    /// 0 to 9.
    pub(crate) channel: u8,
}

impl Lane {
    /// All of a session with that many transfer channels, in the order of their numbers.
    pub(crate) fn all(channels: u8) -> impl Iterator<Item = Self> {
        (0..channels).flat_map(|channel| MODES.map(|mode| Self { mode, channel }))
    }

    /// Those of a session that has these channels.
    pub(crate) fn of(channels: &[ChannelConfig]) -> Vec<Self> {
        Self::all(CHANNELS_MAX).take(channels.len()).collect()
    }

    /// The one that carries what is too long for a datagram.
    pub(crate) const fn for_long(self) -> Self {
        Self { mode: Mode::Reliable, ..self }
    }

    pub(crate) const fn handle(self) -> Channel {
        let first = self.channel * MODES_LEN;
        match self.mode {
            Mode::Reliable => Channel::ordered(first),
            Mode::UnreliableOrdered => Channel::sequenced(first + 1),
            Mode::Unreliable => Channel::unreliable(first + 2),
        }
    }

    pub(crate) fn config(self) -> ChannelConfig {
        let config = self.handle().config();
        match self.mode {
            Mode::Reliable => ChannelConfig {
                max_message: PACKET_MAX,
                kcp: kcp::Config { snd_queue: WAITING_MAX, snd_queue_bytes: BYTES_MAX, ..config.kcp },
                ..config
            },
            _ => ChannelConfig { send_buffer: DATAGRAMS_MAX, receive_buffer: DATAGRAMS_MAX, ..config },
        }
    }
}

const MODES: [Mode; 3] = [Mode::Reliable, Mode::UnreliableOrdered, Mode::Unreliable];
const MODES_LEN: u8 = 3;

/// Most transfer channels: a session has 32 channels, and each takes three.
pub(crate) const CHANNELS_MAX: u8 = 10;

/// The longest packet, bytes, as that of ENetMultiplayerPeer.
pub(crate) const PACKET_MAX: u32 = 1 << 24;

/// What may wait for a peer on a reliable channel. Scripts do not look at what `rpc` returns, so a session with more to send ends.
pub(crate) const BYTES_MAX: u32 = 64 << 20;
const WAITING_MAX: u32 = 1 << 18;

/// What may be sent and read at once on a channel that is not reliable, in packets.
const DATAGRAMS_MAX: u16 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_of_each_channel_has_a_channel_of_its_own_at_the_place_of_its_number() {
        for channels in 0..=CHANNELS_MAX {
            let numbers: Vec<_> = Lane::all(channels).map(|lane| lane.handle().number()).collect();
            assert_eq!(numbers, (0..channels * 3).collect::<Vec<_>>());
        }
    }
}
