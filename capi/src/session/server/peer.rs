//! One session of a server.
#![expect(clippy::missing_safety_doc, reason = "the crate says it for all functions")]

use super::super::connection::{End as _, print, say, ww_stats};
use super::ww_server;
use crate::error::{WW_CLOSED, WW_MISUSE, WW_TOO_LONG};
use crate::guard::{call, call_mut, call_with};
use std::ffi::c_char;
use ww::SessionId;
use ww::session::RedirectError;

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

/// Returns 1 if a session is up and can be sent to, 0 if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_is_connected(server: *mut ww_server, session: u32) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.server.is_connected(SessionId::from_bits(session)).into()) }
}

/// Writes the state of a session to `*stats`. Returns 0, or `WW_CLOSED`: there is no such session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_stats(server: *mut ww_server, session: u32, stats: *mut ww_stats) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.stats(session, stats.as_mut())) }
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

/// Ends a session once everything sent has arrived; then `WW_EVENT_CLOSED` follows. Returns 0; `WW_MISUSE`: `code` is 0xff00 or more, which
/// the library uses itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_close(server: *mut ww_server, session: u32, code: u16) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(server, |server| {
            server.server.close_with(SessionId::from_bits(session), code, "").map_or(WW_MISUSE, |()| 0)
        })
    }
}

/// `ww_server_close` with a text for the client. Returns 0; `WW_MISUSE`: as that says, or `message` is longer than 128 bytes or has control characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_close_with(
    server: *mut ww_server,
    session: u32,
    code: u16,
    message: *const c_char,
) -> i32 {
    let id = SessionId::from_bits(session);
    // SAFETY: as the caller says.
    unsafe { say(server, message, |server, message| server.server.close_with(id, code, message)) }
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
    unsafe { say(server, message, |server, message| server.server.kick(id, code, message)) }
}

/// Writes the text that a client closed its session with, as a text that ends with a zero, until the next event is taken. Returns its length
/// without the zero; 0: there is none; `WW_CLOSED`: there is no such session; `WW_TOO_LONG`: `size` is too small, 129 is enough.
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
