//! The settings of sessions.

use crate::error::WW_MISUSE;
use crate::guard::{array, bytes};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use ww::channel::Carrier;
use ww::session::token::{PublicToken, ServerKey};
use ww::session::{RepairConfig, Suite};
use ww::{Channel, ChannelConfig, ClientConfig, ServerConfig, SessionConfig};

/// How a client connects or a server serves. All zeros: a session with one ordered channel and without encryption, for
/// local networks and tests. Each field that is zero has the library's default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ww_options {
    /// The game and its version: the same at both ends.
    pub protocol_id: u64,
    /// How sessions are protected, one of `WW_SUITE_..`: the same at both ends.
    pub suite: u16,
    /// At a server: most sessions at a time, up to 16,384.
    pub max_sessions: u16,
    /// ms of silence after which a session is over.
    pub timeout_ms: u32,
    /// ms without other traffic after which a ping is sent.
    pub keepalive_ms: u32,
    /// The channels by number from 0, the most urgent first: the same at both ends. Null: one `WW_CHANNEL_ORDERED`.
    pub channels: *const ww_channel,
    /// Number of channels, up to 32.
    pub channel_count: usize,
    /// 32 random bytes that both ends know, for `WW_SUITE_PSK`; or null.
    pub psk: *const u8,
    /// 32 bytes for `WW_SUITE_KEY`: at a server its private key, at a client what `ww_public_key` makes of it; or null.
    pub server_key: *const u8,
    /// At a client: what to tell the server's program, up to 256 bytes.
    pub user: *const u8,
    /// Length of `user`.
    pub user_len: usize,
    /// At a server: nonzero to be asked about each client; see `WW_EVENT_REQUESTED`.
    pub ask: u8,
    /// Most bytes of repairs for lost packets, in percent of all other bytes, up to 100; 0: none. Both ends must enable
    /// them.
    pub repairs: u8,
    /// At a client: a connect token from a matchmaker, or null. It contains the address of the server and how the
    /// session is protected: the address argument, `suite`, `psk` and `server_key` are then ignored.
    pub token: *const u8,
    /// Length of `token`.
    pub token_len: usize,
    /// At a server: the 32 bytes with which the matchmaker seals connect tokens, or null. With it, only clients with a
    /// token for this server can join. `suite` must be one with a `psk`, which is in the token. Tokens made before the
    /// server started are refused.
    pub token_key: *const u8,
    /// The number of this server in its tokens: unique to this process.
    pub server_id: u64,
    /// Distinguishes the keys of a server.
    pub key_id: u8,
}

/// Not encrypted, only a checksum: for local networks and tests.
pub const WW_SUITE_CHECKED: u16 = 0;
/// Encrypted with a secret that both ends know (`psk`).
pub const WW_SUITE_PSK: u16 = 0x201;
/// Encrypted, and the client verifies the server (`server_key`).
pub const WW_SUITE_KEY: u16 = 0x301;

/// A channel of a session. Each field that is zero has the library's default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ww_channel {
    /// How messages arrive, one of `WW_CHANNEL_..`.
    pub kind: u8,
    /// What carries it, one of `WW_CARRIER_..`.
    pub carrier: u8,
    /// Longest message, bytes, up to 2^26 (64 MiB); 0: 1 MiB. Unreliable messages must also fit into a datagram.
    pub max_message: u32,
}

/// All messages, in order.
pub const WW_CHANNEL_ORDERED: u8 = 0;
/// All messages, in any order.
pub const WW_CHANNEL_UNORDERED: u8 = 1;
/// The newest of the messages that arrive.
pub const WW_CHANNEL_SEQUENCED: u8 = 2;
/// Those messages that arrive, in any order.
pub const WW_CHANNEL_UNRELIABLE: u8 = 3;
/// All bytes in order, without message boundaries.
pub const WW_CHANNEL_STREAM: u8 = 4;

/// KCP for ordered channels and streams, packets for all others.
pub const WW_CARRIER_DEFAULT: u8 = 0;
/// KCP: a message is sent at once. For ordered channels and streams.
pub const WW_CARRIER_KCP: u8 = 1;
/// Packets, which many small messages share. For all kinds except streams.
pub const WW_CARRIER_PACKETS: u8 = 2;

impl ww_options {
    /// All zeros.
    // SAFETY: numbers and pointers.
    pub(super) const DEFAULT: Self = unsafe { std::mem::zeroed() };

    /// # Safety
    ///
    /// Each pointer is null or as its field describes.
    unsafe fn session(&self) -> Result<SessionConfig, i32> {
        let mut config = SessionConfig { protocol_id: self.protocol_id, ..SessionConfig::default() };
        let set = |to: &mut Duration, millis: u32| {
            if millis > 0 {
                *to = Duration::from_millis(millis.into());
            }
        };
        set(&mut config.timeout, self.timeout_ms);
        set(&mut config.keepalive, self.keepalive_ms);
        if self.repairs > 0 {
            config.repairs = Some(RepairConfig { percent: self.repairs, ..RepairConfig::default() });
        }
        // SAFETY: as the caller says.
        let channels = unsafe { array(self.channels, self.channel_count) }.ok_or(WW_MISUSE)?;
        if !channels.is_empty() {
            let numbered = (0..=u8::MAX).zip(channels);
            let channels =
                numbered.map(|(number, channel)| channel.config(number)).collect::<Option<Vec<_>>>();
            config.channels = channels.ok_or(WW_MISUSE)?;
        }
        Ok(config)
    }

    /// The addresses and the config of a client.
    ///
    /// # Safety
    ///
    /// As [`Self::session`].
    pub(super) unsafe fn client(&self, address: &str) -> Result<(Vec<SocketAddr>, ClientConfig), i32> {
        // SAFETY: as the caller says.
        unsafe {
            let session = self.session()?;
            let (addresses, config) = match bytes(self.token, self.token_len).ok_or(WW_MISUSE)? {
                [] => {
                    let (suite, psk, server_key) = (self.suite()?, key(self.psk), key(self.server_key));
                    let config = ClientConfig { suite, psk, server_key, ..ClientConfig::insecure(session) };
                    (address.to_socket_addrs().map_err(|_| WW_MISUSE)?.collect(), config)
                }
                token => {
                    let token = PublicToken::decode(token).map_err(|_| WW_MISUSE)?;
                    (token.addresses.clone(), ClientConfig::token(session, &token))
                }
            };
            let user = bytes(self.user, self.user_len).ok_or(WW_MISUSE)?.to_vec();
            Ok((addresses, ClientConfig { user, ..config }))
        }
    }

    /// # Safety
    ///
    /// As [`Self::session`].
    pub(super) unsafe fn server(&self) -> Result<ServerConfig, i32> {
        // SAFETY: as the caller says.
        unsafe {
            let (session, tokens) = (self.session()?, key(self.token_key));
            let tokens = tokens.map(|key| ServerKey::new(self.server_id, self.key_id, key));
            let config = match tokens {
                Some(key) => ServerConfig::tokens(session, key),
                None => ServerConfig { psk: key(self.psk), ..ServerConfig::insecure(session) },
            };
            let max_sessions = if self.max_sessions > 0 { self.max_sessions } else { config.max_sessions };
            Ok(ServerConfig {
                suites: vec![self.suite()?],
                server_key: key(self.server_key),
                max_sessions,
                ask: self.ask != 0,
                ..config
            })
        }
    }

    fn suite(&self) -> Result<Suite, i32> {
        Suite::from_code(self.suite).ok_or(WW_MISUSE)
    }
}

impl ww_channel {
    fn config(&self, number: u8) -> Option<ChannelConfig> {
        let channel: Channel = match self.kind {
            WW_CHANNEL_ORDERED => Channel::ordered(number),
            WW_CHANNEL_UNORDERED => Channel::unordered(number),
            WW_CHANNEL_SEQUENCED => Channel::sequenced(number),
            WW_CHANNEL_UNRELIABLE => Channel::unreliable(number),
            WW_CHANNEL_STREAM => Channel::stream(number),
            _ => return None,
        };
        let mut config = channel.config();
        config.carrier = match self.carrier {
            WW_CARRIER_DEFAULT => config.carrier,
            WW_CARRIER_KCP => Carrier::Kcp,
            WW_CARRIER_PACKETS => Carrier::Packets,
            _ => return None,
        };
        if self.max_message > 0 {
            config.max_message = self.max_message;
        }
        Some(config)
    }
}

/// # Safety
///
/// `key` is null or has 32 bytes.
pub(super) unsafe fn key(key: *const u8) -> Option<[u8; 32]> {
    // SAFETY: as the caller says.
    unsafe { bytes(key, 32) }?.try_into().ok()
}

/// Computes the public half of a server's key: 32 bytes each.
///
/// # Safety
///
/// Both are null or have 32 bytes.
#[cfg(feature = "crypto")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_public_key(private_key: *const u8, public_key: *mut u8) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        let (Some(private), Some(public)) = (key(private_key), crate::guard::bytes_mut(public_key, 32))
        else {
            return WW_MISUSE;
        };
        public.copy_from_slice(&ww::session::public_key(&private));
    }
    0
}
