//! A server and its socket.
#![expect(clippy::missing_safety_doc, reason = "the crate says it for all functions")]

use super::connection::{End, address, copy, done, failed, int, numbered, of_io, print, refused, ww_stats};
use super::event::ww_event;
use super::options::{NO_OPTIONS, ww_options};
use super::{made, text};
use crate::error::{WW_AGAIN, WW_CLOSED, WW_MISUSE, WW_TOO_LONG};
use crate::guard::{Object, array_mut, call, call_mut, call_with, take_back};
use std::ffi::c_char;
use std::io;
use std::time::Duration;
use ww::channel::SendError;
use ww::session::{Connection, DecisionError, RedirectError};
use ww::{Channel, CloseReason, Event, Server, SessionId};

/// The server's end of sessions.
pub struct ww_server {
    server: Server,
    channels: Vec<Channel>,
    /// Of the last `WW_EVENT_CLOSED`.
    closed: Option<CloseReason>,
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
        let (id, event) = self.server.poll_event()?;
        if let Event::Closed { reason, .. } = event {
            self.closed = Some(reason);
        }
        Some(ww_event::of(Some(id), event))
    }
}

/// Binds a server to `address` ("0.0.0.0:4000"). Returns the server; or null on failure, with the error in `*error` unless that is null, and in words
/// in `ww_error_text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_bind(
    address: *const c_char,
    options: *const ww_options,
    error: *mut i32,
) -> *mut ww_server {
    let bind = || {
        // SAFETY: as the caller says.
        let config = unsafe { options.as_ref().ok_or(NO_OPTIONS)?.server()? };
        // SAFETY: the same.
        let server = Server::bind(unsafe { text(address)? }, &config).map_err(|error| failed(&error))?;
        let channels = numbered(&config.session);
        Ok(Box::into_raw(Box::new(ww_server { server, channels, closed: None, broken: false })))
    };
    // SAFETY: the same.
    unsafe { made(bind, error) }
}

/// `ww_client_send` for a session of a server.
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

/// `ww_client_recv` for a session of a server. `WW_CLOSED`: there is no such session.
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

/// `ww_client_send_datagram` for a session of a server.
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

/// `ww_client_recv_datagram` for a session of a server.
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

/// `ww_client_is_delivered` for a session of a server.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_is_delivered(server: *mut ww_server, session: u32, channel: u32) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.is_delivered(session, channel)) }
}

/// Writes the state of a session to `*stats`. Returns 0, or `WW_CLOSED`: there is no such session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_stats(server: *mut ww_server, session: u32, stats: *mut ww_stats) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.stats(session, stats.as_mut())) }
}

/// Reads arrived datagrams, runs timers and sends what is due. Call it again after at most `*next` ms (-1: no limit); `next` may be null. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_pump(server: *mut ww_server, next: *mut i64) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.pump_once(next.as_mut())) }
}

/// Pumps until there is an event, for at most `timeout_ms`; a negative timeout waits forever. Returns 1 if there is an event, 0 if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_poll(server: *mut ww_server, timeout_ms: i64) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.poll_for(timeout_ms)) }
}

/// Takes the next event. Returns 1, or 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_poll_event(server: *mut ww_server, event: *mut ww_event) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.event(event)) }
}

/// Ends a session once everything sent has arrived; then `WW_EVENT_CLOSED` follows. Returns 0.
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

/// `ww_server_close` with a text for the client. Returns 0; `WW_MISUSE`: `message` is longer than 256 bytes or has control characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_close_with(
    server: *mut ww_server,
    session: u32,
    code: u16,
    message: *const c_char,
) -> i32 {
    let id = SessionId::from_bits(session);
    // SAFETY: as the caller says.
    unsafe {
        let close = |server: &mut ww_server, message| done(server.server.close_with(id, code, message));
        text(message).map_or(WW_MISUSE, |message| call(server, |server| close(server, message)))
    }
}

/// Ends a session at once: what has not arrived is lost. The client is told `code` and `message`. Returns 0, or as `ww_server_close_with`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_kick(
    server: *mut ww_server,
    session: u32,
    code: u16,
    message: *const c_char,
) -> i32 {
    let id = SessionId::from_bits(session);
    // SAFETY: as the caller says.
    unsafe {
        let kick = |server: &mut ww_server, message| done(server.server.kick(id, code, message));
        text(message).map_or(WW_MISUSE, |message| call(server, |server| kick(server, message)))
    }
}

/// Ends all sessions and pumps until that is done: until everything sent has arrived and the goodbyes are said, for a limited time. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_shutdown(server: *mut ww_server, code: u16) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.server.shutdown(code).map_or_else(|error| of_io(&error), |()| 0)) }
}

/// Queues a message for every connected client. Returns the number of clients that it could not be queued for, because their channel was full.
/// Other errors are those of `ww_client_send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_broadcast(
    server: *mut ww_server,
    channel: u32,
    message: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_with(server, message, len, |server, message| server.broadcast(None, channel, message)) }
}

/// `ww_server_broadcast` to all clients but `session`, such as the one that a message came from.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_broadcast_except(
    server: *mut ww_server,
    session: u32,
    channel: u32,
    message: *const u8,
    len: usize,
) -> i32 {
    let except = Some(SessionId::from_bits(session));
    // SAFETY: as the caller says.
    unsafe { call_with(server, message, len, |server, message| server.broadcast(except, channel, message)) }
}

/// Writes the sessions of connected clients to `sessions`, at most `count` of them, in no order. Returns how many clients are connected,
/// which may be more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_clients(server: *mut ww_server, sessions: *mut u32, count: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        let Some(sessions) = array_mut(sessions, count) else { return WW_MISUSE };
        call(server, |server| {
            let clients = server.server.clients();
            let connected = int(clients.len());
            sessions.iter_mut().zip(clients).for_each(|(session, id)| *session = id.to_bits());
            connected
        })
    }
}

/// Returns 1 if a session is up and can be sent to, 0 if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_is_connected(server: *mut ww_server, session: u32) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.server.is_connected(SessionId::from_bits(session)).into()) }
}

/// Writes the address of a client ("192.0.2.1:4000") to `buffer` as a text that ends with a zero. Returns its length without the zero;
/// `WW_CLOSED`: there is no such session; `WW_TOO_LONG`: `size` is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_peer_addr(
    server: *mut ww_server,
    session: u32,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call_mut(server, buffer, size, |server, buffer| {
            let address = server.server.peer_addr(SessionId::from_bits(session));
            address.map_or(WW_CLOSED, |address| print(&address, buffer))
        })
    }
}

/// Writes the address that the server is bound to, like `ww_server_peer_addr`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_local_addr(server: *mut ww_server, buffer: *mut u8, size: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_mut(server, buffer, size, |server, buffer| address(server.server.local_addr(), buffer)) }
}

/// Writes the reason of the last `WW_EVENT_CLOSED` that was taken, in words, for people to read, as a text that ends with a zero. Returns its
/// length without the zero; `WW_AGAIN`: there was no such event yet; `WW_TOO_LONG`: `size` is too small, 256 is enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_close_reason(server: *mut ww_server, buffer: *mut u8, size: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call_mut(server, buffer, size, |server, buffer| {
            server.closed.map_or(WW_AGAIN, |reason| print(&reason, buffer))
        })
    }
}

/// Writes the text that a client closed its session with, as a text that ends with a zero, until the next event is taken. Returns its length
/// without the zero; 0: there is none; `WW_CLOSED`: there is no such session; `WW_TOO_LONG`: `size` is too small, 257 is enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_close_text(
    server: *mut ww_server,
    session: u32,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call_mut(server, buffer, size, |server, buffer| {
            let connection = server.server.connection(SessionId::from_bits(session));
            connection.map_or(WW_CLOSED, |connection| print(&connection.close_text(), buffer))
        })
    }
}

/// Sends the client of a session to another server, by a connect token that is valid there. Returns 0; `WW_CLOSED`: there is no such session;
/// `WW_TOO_LONG`: the token does not fit into a datagram; `WW_MISUSE`: it is not a token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_redirect(
    server: *mut ww_server,
    session: u32,
    token: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call_with(server, token, len, |server, token| {
            match server.server.redirect(SessionId::from_bits(session), token) {
                Ok(()) => 0,
                Err(RedirectError::Closed) => WW_CLOSED,
                Err(RedirectError::TooLong { .. }) => WW_TOO_LONG,
                Err(_) => WW_MISUSE,
            }
        })
    }
}

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

/// Says goodbye to all clients and frees the server. It does not wait: what has not arrived is lost, see `ww_server_shutdown`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_free(server: *mut ww_server) {
    // SAFETY: as the caller says.
    unsafe { take_back(server) }
}

impl ww_server {
    fn broadcast(&mut self, except: Option<SessionId>, channel: u32, message: &[u8]) -> i32 {
        let Some(channel) = self.channel(channel) else { return WW_MISUSE };
        let failed = match except {
            None => self.server.broadcast(channel, message),
            Some(except) => self.server.broadcast_except(except, channel, message),
        };
        let error =
            failed.iter().find(|(_, error)| !matches!(error, SendError::Full { .. } | SendError::Closed));
        error.map_or(int(failed.len()), |(_, error)| refused(*error))
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
    use super::super::client::{ww_client_connect, ww_client_free, ww_client_poll, ww_client_poll_event};
    use super::super::event::{WW_EVENT_CONNECTED, ww_event};
    use super::super::options::WW_SUITE_PSK;
    use super::*;
    use crate::error::WW_MISUSE;
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
            ..ww_options::ZEROED
        };
        // SAFETY: all pointers are of what lives as long.
        unsafe {
            let server =
                ww_server_bind(c"127.0.0.1:0".as_ptr(), &raw const server_options, std::ptr::null_mut());
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
            let client = ww_client_connect(c"".as_ptr(), &raw const options, std::ptr::null_mut());
            assert!(!client.is_null());
            let (mut event, mut is_in) = (std::mem::zeroed::<ww_event>(), false);
            for _ in 0..500 {
                ww_server_pump(server, std::ptr::null_mut());
                ww_client_poll(client, 2);
                is_in |=
                    ww_client_poll_event(client, &raw mut event) == 1 && event.kind == WW_EVENT_CONNECTED;
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
        let options = ww_options { token: KEY.as_ptr(), token_len: KEY.len(), ..ww_options::ZEROED };
        let mut error = 0;
        // SAFETY: all pointers are of what lives as long.
        let client =
            unsafe { ww_client_connect(c"127.0.0.1:1".as_ptr(), &raw const options, &raw mut error) };
        assert!(client.is_null() && error == WW_MISUSE);
    }
}
