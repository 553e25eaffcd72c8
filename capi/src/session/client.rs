//! A client and its socket.

use super::connection::{self, Inbox, ww_stats};
use super::event::ww_event;
use super::options::ww_options;
use super::{made, millis, text, timeout};
use crate::error::{WW_CLOSED, WW_MISUSE};
use crate::guard::{Object, bytes, bytes_mut, call, take_back};
use std::ffi::c_char;
use ww::net::Client;

/// The client's end of a session.
pub struct ww_client {
    client: Client,
    inbox: Inbox,
    broken: bool,
}

impl Object for ww_client {
    fn broken(&mut self) -> &mut bool {
        &mut self.broken
    }
}

/// Begins to connect to `address` ("host:port"): a client, that `WW_EVENT_CONNECTED` or `WW_EVENT_CLOSED` will come of. Null if there
/// is none to be had, and `*error`, unless that is null, says why.
///
/// # Safety
///
/// `address` is null or ends with a zero, `options` is null (all zero) or as they say, `error` is null or an int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_connect(
    address: *const c_char,
    options: *const ww_options,
    error: *mut i32,
) -> *mut ww_client {
    let connect = || {
        // SAFETY: as the caller says.
        let (target, config) =
            unsafe { options.as_ref().unwrap_or(&ww_options::DEFAULT).client(text(address)?)? };
        let client = Client::connect(target, &config).map_err(|error| connection::of_io(&error))?;
        let inbox = Inbox::new(&config.session);
        Ok(Box::into_raw(Box::new(ww_client { client, inbox, broken: false })))
    };
    // SAFETY: the same.
    unsafe { made(connect, error) }
}

/// Queues a message on a reliable lane: its length; `WW_AGAIN`: as much waits as may.
///
/// # Safety
///
/// `client` is null, or a client that is not freed; `message` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_send(
    client: *mut ww_client,
    lane: usize,
    message: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        let Some(message_bytes) = bytes(message, len) else { return WW_MISUSE };
        call(client, |client| {
            client
                .client
                .connection_mut()
                .map_or(WW_CLOSED, |connection| connection::send(connection, lane, message_bytes))
        })
    }
}

/// Takes the next message of a lane: its length; `WW_AGAIN`: none, `WW_TOO_LONG`: `size` is too small for it.
///
/// # Safety
///
/// `client` is null, or a client that is not freed; `buffer` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_recv(
    client: *mut ww_client,
    lane: usize,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        let Some(buffer_bytes) = bytes_mut(buffer, size) else { return WW_MISUSE };
        call(client, |client| {
            let ww_client { inbox, client, .. } = client;
            inbox.recv(client.connection_mut(), lane, buffer_bytes)
        })
    }
}

/// Queues an unreliable datagram: 0.
///
/// # Safety
///
/// `client` is null, or a client that is not freed; `datagram` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_send_datagram(
    client: *mut ww_client,
    datagram: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        let Some(datagram_bytes) = bytes(datagram, len) else { return WW_MISUSE };
        call(client, |client| {
            client
                .client
                .connection_mut()
                .map_or(WW_CLOSED, |connection| connection::send_datagram(connection, datagram_bytes))
        })
    }
}

/// Takes the next unreliable datagram: its length.
///
/// # Safety
///
/// `client` is null, or a client that is not freed; `buffer` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_recv_datagram(
    client: *mut ww_client,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        let Some(buffer_bytes) = bytes_mut(buffer, size) else { return WW_MISUSE };
        call(client, |client| {
            client
                .client
                .connection_mut()
                .map_or(WW_CLOSED, |connection| connection::recv_datagram(connection, buffer_bytes))
        })
    }
}

/// Stores a message of a channel, 1024 bytes at most: 0.
///
/// # Safety
///
/// `client` is null, or a client that is not freed; `message` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_send_message(
    client: *mut ww_client,
    channel: usize,
    message: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        let Some(message_bytes) = bytes(message, len) else { return WW_MISUSE };
        call(client, |client| {
            let now = client.client.now();
            client.client.connection_mut().map_or(WW_CLOSED, |connection| {
                connection::send_message(connection, now, channel, message_bytes)
            })
        })
    }
}

/// Stores a block of a channel: 0; `WW_AGAIN`: another one is under way.
///
/// # Safety
///
/// `client` is null, or a client that is not freed; `block` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_send_block(
    client: *mut ww_client,
    channel: usize,
    block: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        let Some(block_bytes) = bytes(block, len) else { return WW_MISUSE };
        call(client, |client| {
            client
                .client
                .connection_mut()
                .map_or(WW_CLOSED, |connection| connection::send_block(connection, channel, block_bytes))
        })
    }
}

/// Takes the next message or block of a channel: its length.
///
/// # Safety
///
/// `client` is null, or a client that is not freed; `buffer` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_recv_message(
    client: *mut ww_client,
    channel: usize,
    buffer: *mut u8,
    size: usize,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        let Some(buffer_bytes) = bytes_mut(buffer, size) else { return WW_MISUSE };
        call(client, |client| {
            let ww_client { inbox, client, .. } = client;
            inbox.recv_message(0, client.connection_mut(), channel, buffer_bytes)
        })
    }
}

/// How the session stands: 0.
///
/// # Safety
///
/// `client` is null, or a client that is not freed; `stats` is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_stats(client: *mut ww_client, stats: *mut ww_stats) -> i32 {
    let tell = |client: &mut ww_client| {
        client.client.connection_mut().map(|connection| connection::stats(connection))
    };
    // SAFETY: as the caller says.
    unsafe {
        call(client, |client| match (tell(client), stats.as_mut()) {
            (_, None) => WW_MISUSE,
            (None, _) => WW_CLOSED,
            (Some(told), Some(stats)) => {
                *stats = told;
                0
            }
        })
    }
}

/// Reads what came, does what is due and sends what came out: ms until the next call at the latest in `*next`, -1: for ever.
///
/// # Safety
///
/// `client` is null, or a client that is not freed; `next` is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_pump(client: *mut ww_client, next: *mut i64) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(client, |client| match client.client.pump() {
            Ok(wait) => {
                if let Some(next) = next.as_mut() {
                    *next = millis(wait);
                }
                0
            }
            Err(error) => connection::of_io(&error),
        })
    }
}

/// Pumps until there is an event, for so many ms at most, below zero: for ever. 1: there is one, 0: none.
///
/// # Safety
///
/// `client` is null, or a client that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_poll(client: *mut ww_client, timeout_ms: i64) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(client, |client| match client.client.poll(timeout(timeout_ms)) {
            Ok(is_there) => i32::from(is_there),
            Err(error) => connection::of_io(&error),
        })
    }
}

/// Takes the next event: 1, or 0: there is none.
///
/// # Safety
///
/// `client` is null, or a client that is not freed; `event` is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_event(client: *mut ww_client, event: *mut ww_event) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        call(client, |client| {
            if event.is_null() {
                return WW_MISUSE;
            }
            let taken = client.client.poll_event().map(|event| ww_event::of(None, event));
            event.write(taken.unwrap_or_default()); // what was there need not have been an event
            i32::from(taken.is_some())
        })
    }
}

/// Ends the session when what was sent has arrived, `WW_EVENT_CLOSED` tells when: 0.
///
/// # Safety
///
/// `client` is null, or a client that is not freed.
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

/// Frees it. What was not sent is not, and the other end finds out by silence: close and poll before.
///
/// # Safety
///
/// `client` is null, or is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_client_free(client: *mut ww_client) {
    // SAFETY: as the caller says.
    unsafe { take_back(client) }
}
