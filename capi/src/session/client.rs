//! A client and its socket.
#![expect(clippy::missing_safety_doc, reason = "the crate says it for all functions")]

use super::connection::{End, numbered, of_io, ww_stats};
use super::event::ww_event;
use super::options::ww_options;
use super::{made, text};
use crate::guard::{Object, call, call_mut, call_with, take_back};
use std::ffi::c_char;
use std::io;
use std::time::Duration;
use ww::session::Connection;
use ww::{Channel, Client};

/// The client's end of a session.
pub struct ww_client {
    client: Client,
    channels: Vec<Channel>,
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
        self.client.poll_event().map(|event| ww_event::of(None, event))
    }
}

/// Creates a client that connects to `address` ("host:port"); `WW_EVENT_CONNECTED` or `WW_EVENT_CLOSED` will follow.
/// Returns null if that fails, with the error code in `*error` unless `error` is null. `options` null: all zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_connect(
    address: *const c_char,
    options: *const ww_options,
    error: *mut i32,
) -> *mut ww_client {
    let connect = || {
        // SAFETY: as the caller says.
        let (addresses, config) =
            unsafe { options.as_ref().unwrap_or(&ww_options::DEFAULT).client(text(address)?)? };
        let client = Client::connect(&*addresses, &config).map_err(|error| of_io(&error))?;
        let channels = numbered(&config.session);
        Ok(Box::into_raw(Box::new(ww_client { client, channels, broken: false })))
    };
    // SAFETY: the same.
    unsafe { made(connect, error) }
}

/// Queues a message on a channel. Returns 0; `WW_AGAIN`: the channel is full, `WW_TOO_LONG`: the message is longer than
/// the channel's `max_message`, or than a datagram on an unreliable channel.
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

/// Reads the next message of a channel. Returns its length; `WW_AGAIN`: there is none, `WW_TOO_LONG`: `size` is too
/// small, and the message stays queued.
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

/// Queues an unreliable datagram. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_send_datagram(
    client: *mut ww_client,
    datagram: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_with(client, datagram, len, |client, datagram| client.send_datagram(0, datagram)) }
}

/// Reads the next unreliable datagram. Returns its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_recv_datagram(
    client: *mut ww_client,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call_mut(client, buffer, size, |client, buffer| client.recv_datagram(0, buffer)) }
}

/// Writes the state of the session to `stats`. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_stats(client: *mut ww_client, stats: *mut ww_stats) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.stats(0, stats.as_mut())) }
}

/// Reads what has arrived, does what is due, and sends the results. Writes to `*next` how many ms you may wait until
/// the next call; -1: forever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_pump(client: *mut ww_client, next: *mut i64) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.pump_once(next.as_mut())) }
}

/// Pumps until there is an event, for at most `timeout_ms`; negative: forever. Returns 1: there is one, 0: there is
/// none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_poll(client: *mut ww_client, timeout_ms: i64) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.poll_for(timeout_ms)) }
}

/// Takes the next event. Returns 1; 0: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_event(client: *mut ww_client, event: *mut ww_event) -> i32 {
    // SAFETY: as the caller says.
    unsafe { call(client, |client| client.event(event)) }
}

/// Closes the session once everything sent has arrived; `WW_EVENT_CLOSED` follows. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_close(client: *mut ww_client, code: u16) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(client, |client| {
            client.client.close(code);
            0
        })
    }
}

/// Frees it, and tells the server that the session is over. What was sent may not arrive: to wait for it, close and poll first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_free(client: *mut ww_client) {
    // SAFETY: as the caller says.
    unsafe { take_back(client) }
}
