//! A server and its socket.
#![expect(clippy::missing_safety_doc, reason = "the crate says it for all functions")]

mod admission;
mod peer;

pub use admission::*;
pub use peer::*;

use super::connection::{End, address, failed, int, numbered, of_io, print, refused};
use super::event::ww_event;
use super::options::{NO_OPTIONS, ww_options};
use super::{made, text};
use crate::error::{WW_AGAIN, WW_MISUSE};
use crate::guard::{Object, array_mut, call, call_mut, call_with, take_back};
use std::ffi::c_char;
use std::io;
use std::time::Duration;
use ww::channel::SendError;
use ww::session::Connection;
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

/// Ends all sessions and pumps until that is done: until everything sent has arrived and the goodbyes are said, for a limited time. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_server_shutdown(server: *mut ww_server, code: u16) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(server, |server| server.server.shutdown(code).map_or_else(|error| of_io(&error), |()| 0)) }
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
