//! How sessions are set up.

use crate::error::WW_MISUSE;
use crate::guard::bytes;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use ww::message::channel::ChannelConfig;
use ww::session::token::{PublicToken, ServerKey};
use ww::session::{ClientConfig, RepairConfig, ServerConfig, SessionConfig, Suite};

/// How a client connects or a server serves. All zero is a session of one lane that is not encrypted: for local networks and tests. What is
/// zero is as the library has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ww_options {
    /// The game and its version, the same at both ends.
    pub protocol_id: u64,
    /// How sessions are protected, one of `WW_SUITE_..`: the same at both ends.
    pub suite: u16,
    /// Reliable lanes, up to 16.
    pub lanes: u8,
    /// At a server: sessions at a time, up to 16,384.
    pub max_sessions: u16,
    /// ms after which a session that nothing is heard of is over.
    pub timeout_ms: u32,
    /// ms after which something is said when there is nothing to say.
    pub keepalive_ms: u32,
    /// The channels, each one of `WW_CHANNEL_..`, the same at both ends.
    pub channels: *const u8,
    /// How many they are, up to 64.
    pub channel_count: usize,
    /// 32 random bytes that both ends know, for `WW_SUITE_PSK`; or null.
    pub psk: *const u8,
    /// Null, or 32 bytes for `WW_SUITE_KEY`: at a server its private key, at a client what `ww_public_key` makes of it.
    pub server_key: *const u8,
    /// At a client, what the server's program is told of it: up to 256 bytes.
    pub user: *const u8,
    /// How many.
    pub user_len: usize,
    /// At a server, unless it is 0: ask about each client, see `WW_EVENT_REQUESTED`.
    pub ask: u8,
    /// Most bytes of repairs of lost packets, in percent of the others, up to 100; 0: none. Both ends have to want them.
    pub repairs: u8,
    /// At a client, a connect token as a matchmaker hands it out; or null. It says where the server is and how the session is protected: the address,
    /// `suite`, `psk` and `server_key` are not looked at then.
    pub token: *const u8,
    /// Its bytes.
    pub token_len: usize,
    /// At a server, the 32 bytes that the matchmaker seals connect tokens with, or null: only clients with a token for this server come in
    /// then, of a `suite` with a `psk`, which is in the token. Tokens from before the server was made do not count.
    pub token_key: *const u8,
    /// The number of this server in its tokens, of this process alone.
    pub server_id: u64,
    /// What tells the keys of a server apart.
    pub key_id: u8,
}

/// Not encrypted: a checksum, for local networks and tests.
pub const WW_SUITE_CHECKED: u16 = 0;
/// Encrypted by a secret that both ends know (`psk`).
pub const WW_SUITE_PSK: u16 = 0x201;
/// Encrypted, and the client knows that it is the server (`server_key`).
pub const WW_SUITE_KEY: u16 = 0x301;

/// All messages, in order.
pub const WW_CHANNEL_RELIABLE_ORDERED: u8 = 0;
/// All messages, as they come.
pub const WW_CHANNEL_RELIABLE_UNORDERED: u8 = 1;
/// What arrives, as it comes.
pub const WW_CHANNEL_UNRELIABLE: u8 = 2;
/// The newest of what arrives.
pub const WW_CHANNEL_UNRELIABLE_SEQUENCED: u8 = 3;
/// All messages in order, and blocks of up to 256 KiB.
pub const WW_CHANNEL_BLOCKS: u8 = 4;

impl ww_options {
    /// All zero.
    // SAFETY: numbers and pointers.
    pub(super) const DEFAULT: Self = unsafe { std::mem::zeroed() };

    /// # Safety
    ///
    /// The pointers are null or have what is said of them.
    unsafe fn session(&self) -> Result<SessionConfig, i32> {
        let mut config = SessionConfig { protocol_id: self.protocol_id, ..SessionConfig::default() };
        if let (1.., Some(lane)) = (self.lanes, config.lanes.first()) {
            config.lanes = vec![*lane; self.lanes.into()];
        }
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
        let channels = unsafe { bytes(self.channels, self.channel_count) }.ok_or(WW_MISUSE)?;
        config.channels =
            channels.iter().map(|kind| channel(*kind)).collect::<Option<_>>().ok_or(WW_MISUSE)?;
        Ok(config)
    }

    /// Where a client is to connect to, and how.
    ///
    /// # Safety
    ///
    /// As `session`.
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
    /// As `session`.
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

fn channel(kind: u8) -> Option<ChannelConfig> {
    Some(match kind {
        WW_CHANNEL_RELIABLE_ORDERED => ChannelConfig::reliable_ordered(),
        WW_CHANNEL_RELIABLE_UNORDERED => ChannelConfig::reliable_unordered(),
        WW_CHANNEL_UNRELIABLE => ChannelConfig::unreliable(),
        WW_CHANNEL_UNRELIABLE_SEQUENCED => ChannelConfig::unreliable_sequenced(),
        WW_CHANNEL_BLOCKS => ChannelConfig::blocks(),
        _ => return None,
    })
}

/// # Safety
///
/// `key` is null or has 32 bytes.
pub(super) unsafe fn key(key: *const u8) -> Option<[u8; 32]> {
    // SAFETY: as the caller says.
    unsafe { bytes(key, 32) }?.try_into().ok()
}

/// The public half of a server's key: 32 bytes each.
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
