//! What a matchmaker does.
#![expect(clippy::missing_safety_doc, reason = "the crate says it for all functions")]

use super::connection::copy;
use super::options::key;
use super::text;
use crate::error::{Failure, WW_CONFIG, WW_MISUSE, WW_PANIC};
use crate::guard::{bytes, bytes_mut};
use std::ffi::c_char;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::UNIX_EPOCH;
use ww::session::Suite;
use ww::session::token::{Order, ServerKey};

/// What a connect token should say. Start with all zeros.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ww_order {
    /// The game and its version, as in the options of the server.
    pub protocol_id: u64,
    /// The number of the server, as in its options.
    pub server_id: u64,
    /// The client: the server learns it by `ww_server_pass`.
    pub client_id: u64,
    /// The match, or anything else; for `ww_server_pass` as well.
    pub match_id: [u8; 16],
    /// The 32 bytes of `token_key` in the options of the server.
    pub token_key: *const u8,
    /// The addresses of the server, the best first, at most 4 with commas between: "192.0.2.1:4000,[2001:db8::1]:4000".
    pub addresses: *const c_char,
    /// Other data for the server, which the client cannot read: up to 256 bytes.
    pub user: *const u8,
    /// Length of `user`.
    pub user_len: usize,
    /// What each datagram of the client ends with, so that a proxy finds the server by it: up to 20 bytes, or null.
    pub routing_token: *const u8,
    /// Length of `routing_token`.
    pub routing_token_len: usize,
    /// s until it expires, up to 600; 0: 45.
    pub life_s: u32,
    /// One of `WW_SUITE_..` with a `psk`, as in the options of the server.
    pub suite: u16,
    /// As in the options of the server.
    pub key_id: u8,
}

/// Makes a connect token for one client and one server. Give it to that client over a connection that nobody else can read, as `token` of its options.
/// Returns its length, at most 577; `WW_TOO_LONG`: `size` is too small; `WW_CONFIG`, `WW_MISUSE`: `ww_error_text` says what is wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_token_mint(order: *const ww_order, buffer: *mut u8, size: usize) -> i32 {
    let mint = || {
        // SAFETY: as the caller says.
        let order = unsafe { order.as_ref() }.ok_or(Failure::misuse("the order is null"))?;
        // SAFETY: the same.
        unsafe { order.mint() }
    };
    // SAFETY: the same.
    let Some(buffer) = (unsafe { bytes_mut(buffer, size) }) else { return WW_MISUSE };
    let minted = catch_unwind(AssertUnwindSafe(mint));
    let minted =
        minted.unwrap_or_else(|_| Err(Failure::new(WW_PANIC, "a panic, which is a bug in the library")));
    match minted {
        Ok(token) => copy(&token, buffer),
        Err(failure) => {
            let code = failure.code;
            failure.keep();
            code
        }
    }
}

impl ww_order {
    /// # Safety
    ///
    /// Each pointer is null or as its field describes.
    unsafe fn mint(&self) -> Result<zeroize::Zeroizing<Vec<u8>>, Failure> {
        // SAFETY: as the caller says.
        let (token_key, addresses, user, routing_token) = unsafe {
            let user = bytes(self.user, self.user_len).ok_or(NO_USER)?;
            let routing_token = bytes(self.routing_token, self.routing_token_len).ok_or(NO_ROUTING_TOKEN)?;
            (key("token_key", self.token_key)?, text(self.addresses)?, user, routing_token)
        };
        let token_key = token_key.ok_or(NO_TOKEN_KEY)?;
        let addresses = addresses.split(',').map(str::parse).collect::<Result<Vec<SocketAddr>, _>>();
        let addresses = addresses.map_err(|_| UNKNOWN_ADDRESS)?;
        if self.server_id == 0 {
            return Err(NO_SERVER_ID);
        }
        let created = UNIX_EPOCH.elapsed().map_err(|error| Failure::new(WW_CONFIG, error))?.as_secs();
        let order = Order {
            protocol_id: self.protocol_id,
            suite: Suite::from_code(self.suite).filter(|suite| suite.needs_psk()).ok_or(UNKNOWN_SUITE)?,
            client_id: self.client_id,
            match_id: self.match_id,
            created,
            expires: created + if self.life_s > 0 { u64::from(self.life_s) } else { 45 },
            addresses: &addresses,
            server_key: None,
            routing_token,
            user,
        };
        let (mut psk, mut nonce) = ([0; 32], [0; 24]);
        for random in [&mut psk[..], &mut nonce[..]] {
            getrandom::fill(random).map_err(|error| Failure::new(crate::error::WW_IO, error))?;
        }
        let server = ServerKey::new(self.server_id, self.key_id, token_key);
        let token = server.mint(&order, psk, nonce).map_err(|error| Failure::new(WW_CONFIG, error))?;
        Ok(token.encode())
    }
}

const NO_TOKEN_KEY: Failure = Failure::config("`token_key` is null: set the 32 bytes that the server has");
const NO_SERVER_ID: Failure = Failure::config("`server_id` is 0: set the number of the server");
const NO_USER: Failure = Failure::misuse("`user` is null, but `user_len` is not 0");
const NO_ROUTING_TOKEN: Failure =
    Failure::misuse("`routing_token` is null, but `routing_token_len` is not 0");
const UNKNOWN_ADDRESS: Failure =
    Failure::misuse("`addresses` are not IP addresses with ports and commas between");
const UNKNOWN_SUITE: Failure = Failure::misuse("`suite` is none of WW_SUITE_.. with a `psk`");
