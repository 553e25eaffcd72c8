//! A server and its socket.
#![expect(clippy::missing_safety_doc, reason = "the crate says it for all functions")]

use super::connection::{End, copy, numbered, of_io, ww_stats};
use super::event::ww_event;
use super::options::ww_options;
use super::{made, text};
use crate::error::WW_CLOSED;
use crate::guard::{Object, call, call_mut, call_with, take_back};
use std::ffi::c_char;
use std::io;
use std::time::Duration;
use ww::session::Connection;
use ww::{Channel, Server, SessionId};

/// The server's end of sessions.
pub struct ww_server {
    server: Server,
    channels: Vec<Channel>,
    broken: bool,
}

impl Object for ww_server {
    fn broken(&mut self) -> &mut bool {
        &mut self.broken
    }
}

impl End for ww_server {
    fn connection(&mut self, session: u32) -> Option<&mut Connection> {
        self.server.connection_mut(SessionId::from_bits(session))
    }

    fn channel(&self, number: u32) -> Option<Channel> {
        self.channels.get(usize::try_from(number).ok()?).copied()
    }

    fn pump(&mut self) -> io::Result<Option<Duration>> {
        self.server.pump()
    }

    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.server.poll(timeout)
    }

    fn poll_event(&mut self) -> Option<ww_event> {
        self.server.poll_event().map(|(id, event)| ww_event::of(Some(id), event))
    }
}

/// Creates a server on `address` ("0.0.0.0:4000"). Returns null if that fails, with the error code in `*error` unless
/// `error` is null. `options` null: all zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_bind(
    address: *const c_char,
    options: *const ww_options,
    error: *mut i32,
) -> *mut ww_server {
    let bind = || {
        // SAFETY: as the caller says.
        let config = unsafe { options.as_ref().unwrap_or(&ww_options::DEFAULT).server()? };
        // SAFETY: the same.
        let server = Server::bind(unsafe { text(address)? }, &config).map_err(|error| of_io(&error))?;
        let channels = numbered(&config.session);
        Ok(Box::into_raw(Box::new(ww_server { server, channels, broken: false })))
    };
    // SAFETY: the same.
    unsafe { made(bind, error) }
}

/// Queues a message on a channel of `session`. Returns 0; `WW_AGAIN`: the channel is full, `WW_TOO_LONG`: the message
/// is longer than the channel's `max_message`, or than a datagram on an unreliable channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_send(
    server: *mut ww_server,
    session: u32,
    channel: u32,
    message: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_with(server, message, len, |server, message| server.send(session, channel, message)) }
}

/// Reads the next message of a channel of `session`. Returns its length; `WW_AGAIN`: there is none, `WW_TOO_LONG`:
/// `size` is too small, and the message stays queued.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_recv(
    server: *mut ww_server,
    session: u32,
    channel: u32,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_mut(server, buffer, size, |server, buffer| server.recv(session, channel, buffer)) }
}

/// Queues an unreliable datagram for `session`. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_send_datagram(
    server: *mut ww_server,
    session: u32,
    datagram: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_with(server, datagram, len, |server, datagram| server.send_datagram(session, datagram)) }
}

/// Reads the next unreliable datagram of `session`. Returns its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_recv_datagram(
    server: *mut ww_server,
    session: u32,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_mut(server, buffer, size, |server, buffer| server.recv_datagram(session, buffer)) }
}

/// Writes the state of the session to `stats`. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_stats(server: *mut ww_server, session: u32, stats: *mut ww_stats) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.stats(session, stats.as_mut())) }
}

/// Reads what has arrived, does what is due, and sends the results. Writes to `*next` how many ms you may wait until
/// the next call; -1: forever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_pump(server: *mut ww_server, next: *mut i64) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.pump_once(next.as_mut())) }
}

/// Pumps until there is an event, for at most `timeout_ms`; negative: forever. Returns 1: there is one, 0: there is
/// none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_poll(server: *mut ww_server, timeout_ms: i64) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.poll_for(timeout_ms)) }
}

/// Takes the next event. Returns 1; 0: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_event(server: *mut ww_server, event: *mut ww_event) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.event(event)) }
}

/// Closes a session once everything sent has arrived; `WW_EVENT_CLOSED` follows. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_close(server: *mut ww_server, session: u32, code: u16) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(server, |server| {
            server.server.close(SessionId::from_bits(session), code);
            0
        })
    }
}

/// Admits a client that asks to join (`WW_EVENT_REQUESTED`). Returns 0; `WW_CLOSED`: it no longer asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_admit(server: *mut ww_server, session: u32) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(server, |server| {
            let decided = server.server.admit(SessionId::from_bits(session), &[]);
            decided.map_or(WW_CLOSED, |()| 0)
        })
    }
}

/// Rejects a client that asks to join, and tells it `code`. Returns 0; `WW_CLOSED`: it no longer asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_reject(server: *mut ww_server, session: u32, code: u16) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(server, |server| {
            let decided = server.server.reject(SessionId::from_bits(session), code, &[]);
            decided.map_or(WW_CLOSED, |()| 0)
        })
    }
}

/// Copies what a client, connected or asking to join, has sent as `user`. Returns its length; `WW_TOO_LONG`: `size` is
/// too small.
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

/// Returns the port that the server is bound to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_port(server: *mut ww_server) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(server, |server| match server.server.local_addr() {
            Ok(address) => address.port().into(),
            Err(error) => of_io(&error),
        })
    }
}

/// Frees it, and tells all clients that their session is over. What was sent may not arrive: to wait for it, close and poll first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_free(server: *mut ww_server) {
    // SAFETY: as the caller says.
    unsafe { take_back(server) }
}

#[cfg(test)]
#[cfg(feature = "crypto")]
mod tests {
    use super::super::client::{ww_client_connect, ww_client_event, ww_client_free, ww_client_poll};
    use super::super::event::{WW_EVENT_CONNECTED, ww_event};
    use super::super::options::WW_SUITE_PSK;
    use super::*;
    use crate::error::WW_MISUSE;
    use ww::session::Suite;
    use ww::session::token::{Order, ServerKey};

    const KEY: [u8; 32] = [5; 32];

    /// A matchmaker's token for a server on that port, sealed with a key.
    fn token(port: i32, key: [u8; 32]) -> Vec<u8> {
        let created = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() + 1;
        let order = Order {
            protocol_id: 7,
            suite: Suite::from_code(WW_SUITE_PSK).unwrap(),
            client_id: 42,
            match_id: [1; 16],
            created,
            expires: created + 45,
            addresses: &[([127, 0, 0, 1], u16::try_from(port).unwrap()).into()],
            server_key: None,
            user: b"",
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
            ..ww_options::DEFAULT
        };
        // SAFETY: every pointer is to something that lives long enough.
        unsafe {
            let server =
                ww_server_bind(c"127.0.0.1:0".as_ptr(), &raw const server_options, std::ptr::null_mut());
            assert!(!server.is_null());
            let token = token(ww_server_port(server), key);
            let options = ww_options {
                protocol_id: 7,
                repairs: 30,
                token: token.as_ptr(),
                token_len: token.len(),
                ..ww_options::DEFAULT
            };
            let client = ww_client_connect(c"".as_ptr(), &raw const options, std::ptr::null_mut());
            assert!(!client.is_null());
            let (mut event, mut is_in) = (std::mem::zeroed::<ww_event>(), false);
            for _ in 0..500 {
                ww_server_pump(server, std::ptr::null_mut());
                ww_client_poll(client, 2);
                is_in |= ww_client_event(client, &raw mut event) == 1 && event.kind == WW_EVENT_CONNECTED;
                if is_in {
                    break;
                }
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
        let options = ww_options { token: KEY.as_ptr(), token_len: KEY.len(), ..ww_options::DEFAULT };
        let mut error = 0;
        // SAFETY: every pointer is to something that lives long enough.
        let client =
            unsafe { ww_client_connect(c"127.0.0.1:1".as_ptr(), &raw const options, &raw mut error) };
        assert!(client.is_null() && error == WW_MISUSE);
    }
}
