//! Who may join a server.
#![expect(clippy::missing_safety_doc, reason = "the crate says it for all functions")]

use super::super::connection::copy;
use super::ww_server;
use crate::error::{WW_CLOSED, WW_MISUSE, WW_TOO_LONG};
use crate::guard::{call, call_mut, call_with};
use ww::SessionId;
use ww::session::{DecisionError, Pass};

/// Admits a client that asks to join (`WW_EVENT_REQUESTED`), and tells its program `user`, up to 256 bytes. Returns 0; `WW_CLOSED`: the client
/// no longer asks; `WW_TOO_LONG`: `len` is more than 256.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_admit(
    server: *mut ww_server,
    session: u32,
    user: *const u8,
    len: usize,
) -> i32 {
    let id = SessionId::from_bits(session);
    // SAFETY: as the caller says.
    unsafe { call_with(server, user, len, |server, user| decided(server.server.admit(id, user))) }
}

/// Rejects a client that asks to join, and tells its program `code` and `user`, up to 256 bytes. Returns 0, or as `ww_server_admit`;
/// `WW_MISUSE`: `code` is 0xff00 or more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_reject(
    server: *mut ww_server,
    session: u32,
    code: u16,
    user: *const u8,
    len: usize,
) -> i32 {
    let id = SessionId::from_bits(session);
    // SAFETY: as the caller says.
    unsafe { call_with(server, user, len, |server, user| decided(server.server.reject(id, code, user))) }
}

/// Copies the `user` bytes of a session's client, or of one that asks to join. Returns their number; `WW_TOO_LONG`: `size` is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_user(
    server: *mut ww_server,
    session: u32,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call_mut(server, buffer, size, |server, buffer| {
            let id = SessionId::from_bits(session);
            let asks = server.server.request(id).map(|request| request.user);
            let user = asks.or_else(|| Some(server.server.connection(id)?.user()));
            user.map_or(WW_CLOSED, |user| copy(user, buffer))
        })
    }
}

/// What a matchmaker said about a client, in its connect token.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ww_pass {
    /// The client.
    pub client_id: u64,
    /// When the token was made, in seconds since 1970.
    pub created: u64,
    /// The match, or anything else that the matchmaker chose.
    pub match_id: [u8; 16],
    /// Its other data.
    pub user: [u8; 256],
    /// Length of `user`.
    pub user_len: u32,
}

/// Writes what is in the connect token of a session's client, or of one that asks to join, to `*pass`. Returns 0; `WW_CLOSED`: there is no such
/// session, or the server does not require tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_pass(server: *mut ww_server, session: u32, pass: *mut ww_pass) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(server, |server| {
            let found = server.server.pass(SessionId::from_bits(session)).map(ww_pass::of);
            match (pass.is_null(), found) {
                (true, _) => WW_MISUSE,
                (_, None) => WW_CLOSED,
                (_, Some(found)) => {
                    pass.write(found);
                    0
                }
            }
        })
    }
}

impl ww_pass {
    fn of(pass: &Pass) -> Self {
        let Pass { client_id, match_id, created, user: said, .. } = pass;
        let mut user = [0; 256];
        let len = copy(said, &mut user);
        let user_len = u32::try_from(len).unwrap_or_default(); // a token has no more than that
        Self { client_id: *client_id, created: *created, match_id: *match_id, user, user_len }
    }
}

fn decided(decision: Result<(), DecisionError>) -> i32 {
    match decision {
        Ok(()) => 0,
        Err(DecisionError::NoRequest) => WW_CLOSED,
        Err(DecisionError::TooLong { .. }) => WW_TOO_LONG,
        Err(_) => WW_MISUSE,
    }
}

#[cfg(test)]
#[cfg(feature = "crypto")]
mod tests {
    use super::super::{ww_server_bind, ww_server_clients, ww_server_free, ww_server_pump};
    use super::{ww_pass, ww_server_pass};
    use crate::error::{WW_CLOSED, WW_MISUSE};
    use crate::session::client::{ww_client_connect, ww_client_free, ww_client_poll, ww_client_poll_event};
    use crate::session::event::{WW_EVENT_CONNECTED, ww_event};
    use crate::session::options::{WW_SUITE_PSK, ww_options};
    use std::ptr::null_mut;
    use ww::session::Suite;
    use ww::session::token::{Order, ServerKey};

    const KEY: [u8; 32] = [5; 32];

    /// A matchmaker's token for a server on that port, sealed with a key.
    fn token(port: u16, key: [u8; 32]) -> Vec<u8> {
        let created = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() + 1;
        let order = Order {
            protocol_id: 7,
            suite: Suite::from_code(WW_SUITE_PSK).unwrap(),
            client_id: 42,
            match_id: [1; 16],
            created,
            expires: created + 45,
            addresses: &[([127, 0, 0, 1], port).into()],
            server_key: None,
            routing_token: b"",
            user: b"gold",
        };
        ServerKey::new(9, 1, key).mint(&order, [3; 32], [4; 24]).unwrap().encode().to_vec()
    }

    /// Whether a client with such a token can join.
    fn comes_in(key: [u8; 32]) -> bool {
        let server_options = ww_options {
            protocol_id: 7,
            suite: WW_SUITE_PSK,
            repairs: 30,
            token_key: KEY.as_ptr(),
            server_id: 9,
            key_id: 1,
            ..ww_options::ZEROED
        };
        // SAFETY: all pointers are of what lives as long.
        unsafe {
            let server = ww_server_bind(c"127.0.0.1:0".as_ptr(), &raw const server_options, null_mut());
            assert!(!server.is_null());
            let port = (*server).server.local_addr().unwrap().port();
            let token = token(port, key);
            let options = ww_options {
                protocol_id: 7,
                repairs: 30,
                token: token.as_ptr(),
                token_len: token.len(),
                ..ww_options::ZEROED
            };
            let client = ww_client_connect(c"".as_ptr(), &raw const options, null_mut());
            assert!(!client.is_null());
            let (mut event, mut is_in) = (std::mem::zeroed::<ww_event>(), false);
            for _ in 0..500 {
                ww_server_pump(server, null_mut());
                ww_client_poll(client, 2);
                is_in |=
                    ww_client_poll_event(client, &raw mut event) == 1 && event.kind == WW_EVENT_CONNECTED;
                if is_in {
                    break;
                }
            }
            let mut session = 0;
            if ww_server_clients(server, &raw mut session, 1) == 1 {
                let mut pass = std::mem::zeroed::<ww_pass>();
                assert_eq!(ww_server_pass(server, session, &raw mut pass), 0);
                assert_eq!((pass.client_id, pass.match_id), (42, [1; 16]));
                assert_eq!(pass.user.get(..5), Some(&b"gold\0"[..]));
                assert!(pass.user_len == 4 && pass.created > 1_700_000_000);
                assert_eq!(ww_server_pass(server, session, null_mut()), WW_MISUSE);
                assert_eq!(ww_server_pass(server, session ^ 1, &raw mut pass), WW_CLOSED);
            }
            ww_client_free(client);
            ww_server_free(server);
            is_in
        }
    }

    #[test]
    fn who_brings_a_token_of_the_servers_matchmaker_comes_in_and_nobody_else() {
        assert!(comes_in(KEY));
        assert!(!comes_in([6; 32]));
    }

    #[test]
    fn a_token_that_is_none_is_misuse() {
        let options = ww_options { token: KEY.as_ptr(), token_len: KEY.len(), ..ww_options::ZEROED };
        let mut error = 0;
        // SAFETY: all pointers are of what lives as long.
        let client =
            unsafe { ww_client_connect(c"127.0.0.1:1".as_ptr(), &raw const options, &raw mut error) };
        assert!(client.is_null() && error == WW_MISUSE);
    }
}
