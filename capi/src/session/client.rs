//! A client and its socket.
#![expect(clippy::missing_safety_doc, reason = "the crate says it for all functions")]

use super::connection::{End, address, copy, failed, numbered, of_io, print, say, ww_stats};
use super::event::ww_event;
use super::options::{NO_OPTIONS, ww_options};
use super::{made, text};
use crate::error::{WW_AGAIN, WW_CLOSED, WW_MISUSE};
use crate::guard::{Object, call, call_mut, call_with, take_back};
use std::ffi::c_char;
use std::io;
use std::time::Duration;
use ww::session::Connection;
use ww::{Channel, Client, CloseReason, Event};
use zeroize::Zeroizing;

/// The client's end of a session.
pub struct ww_client {
    client: Client,
    channels: Vec<Channel>,
    /// Of the last `WW_EVENT_CLOSED`.
    closed: Option<CloseReason>,
    /// A token that the program has not read yet, because its buffer was too small.
    redirect: Zeroizing<Vec<u8>>,
    broken: bool,
}

impl Object for ww_client {
    fn broken(&mut self) -> &mut bool {
        &mut self.broken
    }
}

impl End for ww_client {
    fn connection(&mut self, _: u32) -> Option<&mut Connection> {
        self.client.connection_mut()
    }

    fn channel(&self, number: u32) -> Option<Channel> {
        self.channels.get(usize::try_from(number).ok()?).copied()
    }

    fn pump(&mut self) -> io::Result<Option<Duration>> {
        self.client.pump()
    }

    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.client.poll(timeout)
    }

    fn poll_event(&mut self) -> Option<ww_event> {
        let event = self.client.poll_event()?;
        if let Event::Closed { reason, .. } = event {
            self.closed = Some(reason);
        }
        Some(ww_event::of(None, event))
    }
}

impl ww_client {
    fn take_redirect(&mut self, buffer: &mut [u8]) -> i32 {
        if let Some(token) = self.client.take_redirect() {
            self.redirect = token;
        }
        if self.redirect.is_empty() {
            return WW_AGAIN;
        }
        let len = copy(&self.redirect, buffer);
        if len >= 0 {
            self.redirect = Zeroizing::default();
        }
        len
    }
}

/// Begins to connect to `address` ("host:port"). Returns a client, which reports `WW_EVENT_CONNECTED` or `WW_EVENT_CLOSED` later; or null on
/// failure, with the error in `*error` unless that is null, and in `ww_error_text` in words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_connect(
    address: *const c_char,
    options: *const ww_options,
    error: *mut i32,
) -> *mut ww_client {
    let connect = || {
        // SAFETY: as the caller says.
        let (addresses, config) = unsafe { options.as_ref().ok_or(NO_OPTIONS)?.client(text(address)?)? };
        let client = Client::connect(&*addresses, &config).map_err(|error| failed(&error))?;
        let channels = numbered(&config.session);
        Ok(Box::into_raw(Box::new(ww_client {
            client,
            channels,
            closed: None,
            redirect: Zeroizing::default(),
            broken: false,
        })))
    };
    // SAFETY: the same.
    unsafe { made(connect, error) }
}

/// Queues a message on a channel. Returns 0; `WW_AGAIN`: the channel is full, wait for `WW_EVENT_WRITABLE`; `WW_TOO_LONG`: the message is longer
/// than `max_message` of the channel or, on a channel that is not reliable, than a datagram; `WW_CLOSED`: the session is not up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_send(
    client: *mut ww_client,
    channel: u32,
    message: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_with(client, message, len, |client, message| client.send(0, channel, message)) }
}

/// Takes the next message of a channel. Returns its length, which is 0 for an empty message: read on until it is negative. `WW_AGAIN`: there is none;
/// `WW_TOO_LONG`: the message is longer than `size`, and stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_recv(
    client: *mut ww_client,
    channel: u32,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_mut(client, buffer, size, |client, buffer| client.recv(0, channel, buffer)) }
}

/// Queues an unreliable datagram. Returns 0, or the errors of `ww_client_send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_send_datagram(
    client: *mut ww_client,
    datagram: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_with(client, datagram, len, |client, datagram| client.send_datagram(0, datagram)) }
}

/// Takes the next unreliable datagram. Returns its length, or the errors of `ww_client_recv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_recv_datagram(
    client: *mut ww_client,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_mut(client, buffer, size, |client, buffer| client.recv_datagram(0, buffer)) }
}

/// Returns 1 if everything that was sent on a reliable channel is known to have arrived, 0 if not, and then `WW_EVENT_WRITABLE` follows;
/// `WW_CLOSED`: the session was never up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_is_delivered(client: *mut ww_client, channel: u32) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.is_delivered(0, channel)) }
}

/// Writes the state of the session to `*stats`. Returns 0, or `WW_CLOSED` if the session was never up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_stats(client: *mut ww_client, stats: *mut ww_stats) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.stats(0, stats.as_mut())) }
}

/// Reads arrived datagrams, runs timers and sends what is due. Call it again after at most `*next` ms (-1: no limit); `next` may be null. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_pump(client: *mut ww_client, next: *mut i64) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.pump_once(next.as_mut())) }
}

/// Pumps until there is an event, for at most `timeout_ms`; a negative timeout waits forever. Returns 1 if there is an event, 0 if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_poll(client: *mut ww_client, timeout_ms: i64) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.poll_for(timeout_ms)) }
}

/// Takes the next event. Returns 1, or 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_poll_event(client: *mut ww_client, event: *mut ww_event) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.event(event)) }
}

/// Call this when the machine has changed networks. An encrypted session goes on in the new one, from another port, and under another number if
/// there is a spare one. The client also notices by itself, within 250 ms while it is pumped. If the system tells you sooner, call this at once, so
/// that nothing leaves by the new network under the old number. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_path_changed(client: *mut ww_client) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(client, |client| {
            client.client.path_changed();
            0
        })
    }
}

/// Ends the session once everything sent has arrived; then `WW_EVENT_CLOSED` follows. Returns 0; `WW_MISUSE`: `code` is 0xff00 or more, which
/// the library uses itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_close(client: *mut ww_client, code: u16) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.client.close_with(code, "").map_or(WW_MISUSE, |()| 0)) }
}

/// `ww_client_close` with a text for the server's log. Returns 0; `WW_MISUSE`: as that says, or `message` is longer than 128 bytes or has
/// control characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_close_with(
    client: *mut ww_client,
    code: u16,
    message: *const c_char,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { say(client, message, |client, message| client.client.close_with(code, message)) }
}

/// Ends the session, or the attempt to connect, at once: what has not arrived is lost. Returns 0, or as `ww_client_close_with`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_kick(client: *mut ww_client, code: u16, message: *const c_char) -> i32 {
    // SAFETY: as the caller says.
    unsafe { say(client, message, |client, message| client.client.kick(code, message)) }
}

/// Ends the session and pumps until that is done: until everything sent has arrived and the goodbye is said, for a limited time. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_shutdown(client: *mut ww_client, code: u16) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.client.shutdown(code).map_or_else(|error| of_io(&error), |()| 0)) }
}

/// Returns 1 if the session is up and can be sent to, 0 if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_is_connected(client: *mut ww_client) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.client.is_connected().into()) }
}

/// Writes the server's address ("192.0.2.1:4000") to `buffer` as a text that ends with a zero. Returns its length without the zero; `WW_CLOSED`:
/// the session was never up; `WW_TOO_LONG`: `size` is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_peer_addr(client: *mut ww_client, buffer: *mut u8, size: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call_mut(client, buffer, size, |client, buffer| {
            client.client.peer_addr().map_or(WW_CLOSED, |address| print(&address, buffer))
        })
    }
}

/// Writes the address that the client's socket is bound to, like `ww_client_peer_addr`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_local_addr(client: *mut ww_client, buffer: *mut u8, size: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_mut(client, buffer, size, |client, buffer| address(client.client.local_addr(), buffer)) }
}

/// Writes the reason of the last `WW_EVENT_CLOSED` in words, for people to read, as a text that ends with a zero. Returns its length without the
/// zero; `WW_AGAIN`: there was no such event yet; `WW_TOO_LONG`: `size` is too small, 256 is enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_close_reason(client: *mut ww_client, buffer: *mut u8, size: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call_mut(client, buffer, size, |client, buffer| {
            client.closed.map_or(WW_AGAIN, |reason| print(&reason, buffer))
        })
    }
}

/// Writes the text that the server closed the session with, as a text that ends with a zero. Returns its length without the zero; 0: there is
/// none; `WW_TOO_LONG`: `size` is too small, 129 is enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_close_text(client: *mut ww_client, buffer: *mut u8, size: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call_mut(client, buffer, size, |client, buffer| {
            print(&client.client.connection().map_or("", Connection::close_text), buffer)
        })
    }
}

/// Copies what the server's program said with `ww_server_admit`. Returns the number of bytes, at most 256; `WW_CLOSED`: the session was never up;
/// `WW_TOO_LONG`: `size` is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_user(client: *mut ww_client, buffer: *mut u8, size: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call_mut(client, buffer, size, |client, buffer| {
            client.client.connection().map_or(WW_CLOSED, |connection| copy(connection.user(), buffer))
        })
    }
}

/// Takes what the server's program said with `ww_server_reject`. Returns the number of bytes, at most 256; `WW_TOO_LONG`: `size` is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_rejection(client: *mut ww_client, buffer: *mut u8, size: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_mut(client, buffer, size, |client, buffer| copy(client.client.rejection(), buffer)) }
}

/// Takes what saves a round trip when this player's next client connects to this server: give it to `ww_client_connect` in the options. Returns
/// its length, at most 64, or 0: there is none, or the session was not up yet; `WW_TOO_LONG`: `size` is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_ticket(client: *mut ww_client, buffer: *mut u8, size: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_mut(client, buffer, size, |client, buffer| copy(client.client.ticket(), buffer)) }
}

/// Takes the connect token of another server, after `WW_EVENT_REDIRECTED`: give it to `ww_client_connect` in the options of a new client.
/// Returns its length; `WW_AGAIN`: there is none; `WW_TOO_LONG`: `size` is too small, and the token stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_take_redirect(
    client: *mut ww_client,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_mut(client, buffer, size, ww_client::take_redirect) }
}

/// Says goodbye if the session is up, and frees the client. It does not wait: what has not arrived is lost, see `ww_client_shutdown`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_free(client: *mut ww_client) {
    // SAFETY: as the caller says.
    unsafe { take_back(client) }
}
