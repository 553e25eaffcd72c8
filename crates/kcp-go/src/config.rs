//! The settings that both ends must agree on, and kcptun's presets.

use super::crypt::Crypt;
use super::datagram::{HEAD, MOST, SIZE};
use super::key::Key;
use super::shield;
use crate::envelope::Envelope;
use whitewater::ConfigError;
use whitewater::kcp::{self, Congestion, EnvelopeConfig, Modern, Recovery, in_range};
use whitewater::rand_core::CryptoRng;

/// What two ends of kcp-go wrap around KCP, and when they send. `crypt` and `key` must be the same at both
/// ends. So must the shards: an end of ours without shards accepts data shards, but a kcptun without them
/// takes parity for data and breaks its stream.
///
/// With this config, [`kcp::Config::mtu`] means the same as in kcp-go: the length of the whole datagram, at
/// most 1500. The wrapping is subtracted from it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `Config { .., ..Config::plain() }`")]
pub struct Config {
    /// How datagrams are protected.
    pub crypt: Crypt,
    /// The key of the cipher, if it has one.
    pub key: Key,
    /// Parity to send and to accept; `None`: none. Data shards of the peer are accepted in either case.
    pub shards: Option<Shards>,
    /// Acknowledge as soon as something arrives, like kcp-go's `SetACKNoDelay(true)`; otherwise every
    /// `interval`, or with data. On by default.
    pub ack_no_delay: bool,
    /// Send only every `interval`, like kcp-go's `SetWriteDelay(true)`, which packs more into a datagram;
    /// otherwise as soon as there is something to send. Off by default.
    pub write_delay: bool,
}

/// Reed-Solomon parity over groups of datagrams: any `data` of the `data` + `parity` datagrams in a group
/// suffice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "two numbers with names")]
pub struct Shards {
    /// Data shards per group: 1 to 255.
    pub data: u8,
    /// Parity shards per group: 1 to 255, and at most 256 together with `data`.
    pub parity: u8,
}

impl Shards {
    /// Shards per group, of both kinds.
    pub(super) const fn all(self) -> usize {
        self.data as usize + self.parity as usize
    }
}

impl Config {
    /// Nothing around KCP, like kcp-go without a block cipher and shards.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            crypt: Crypt::Null,
            key: Key::new([0; 32]),
            shards: None,
            ack_no_delay: true,
            write_delay: false,
        }
    }

    /// kcptun's defaults, except for the key: AES, ten data shards and three parity shards.
    #[must_use]
    pub fn kcptun(key: Key) -> Self {
        Self { crypt: Crypt::Aes, key, shards: Some(Shards { data: 10, parity: 3 }), ..Self::plain() }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// If a field is out of range. The error names the field, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { crypt: _, key: _, shards, ack_no_delay: _, write_delay: _ } = self;
        if let Some(shards) = shards {
            in_range("data", shards.data, 1..=u8::MAX)?;
            in_range("parity", shards.parity, 1..=u8::MAX)?;
            in_range("data + parity", shards.all() as u64, 2..=256)?;
        }
        Ok(())
    }

    /// Whether nothing waits for the next interval.
    pub(super) const fn is_at_once(&self) -> bool {
        self.ack_no_delay && !self.write_delay
    }

    /// Bytes that are added around KCP.
    const fn around(&self) -> u16 {
        #[expect(clippy::cast_possible_truncation, reason = "8")]
        let shard = if self.shards.is_some() { (HEAD + SIZE) as u16 } else { 0 };
        shield::overhead(self.crypt) + shard
    }
}

impl EnvelopeConfig for Config {
    fn inside(&self, kcp: &kcp::Config) -> Result<kcp::Config, ConfigError> {
        self.check()?;
        kcp.check()?;
        let around = self.around();
        #[expect(clippy::cast_possible_truncation, reason = "1500")]
        in_range("mtu", kcp.mtu, around + MTU_MIN..=MOST as u16)?;
        let recovery = match kcp.recovery {
            Recovery::Modern(modern) if !self.is_at_once() => {
                Recovery::Modern(Modern { at_once: false, ..modern })
            }
            recovery => recovery,
        };
        Ok(kcp::Config { mtu: kcp.mtu - around, recovery, ..*kcp })
    }

    fn envelope(&self, rng: &mut dyn CryptoRng) -> Box<dyn kcp::Envelope> {
        let mut seed = [0; 16];
        rng.fill_bytes(&mut seed);
        Box::new(Envelope::new(self, seed))
    }
}

/// kcptun's `--mode`: names for how often KCP sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Mode {
    /// `normal`: (0, 40, 2, 1).
    Normal,
    /// `fast`, the default of kcptun: (0, 30, 2, 1).
    Fast,
    /// `fast2`: (1, 20, 2, 1).
    Fast2,
    /// `fast3`: (1, 10, 2, 1).
    Fast3,
}

impl Mode {
    /// The settings of that mode, as a stream, with kcptun's mtu and the windows of its client. Loss recovery
    /// is ours, by timing, which has no such settings: with [`Recovery::Classic`] it does what kcp-go does.
    #[must_use]
    pub fn config(self) -> kcp::Config {
        let (nodelay, interval) = match self {
            Self::Normal => (0, 40),
            Self::Fast => (0, 30),
            Self::Fast2 => (1, 20),
            Self::Fast3 => (1, 10),
        };
        kcp::Config {
            mtu: 1350,
            snd_wnd: 128,
            rcv_wnd: 512,
            nodelay,
            interval,
            fast_resend: 2,
            congestion: Congestion::None,
            stream: true,
            snd_queue: 4096,
            ..kcp::Config::default()
        }
    }
}

/// Least mtu of a control block.
const MTU_MIN: u16 = 50;
