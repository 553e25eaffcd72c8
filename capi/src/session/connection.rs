//! What both ends do with a session that is up.

use super::event::ww_event;
use super::{millis, text};
use crate::error::{Failure, WW_AGAIN, WW_CLOSED, WW_MISUSE, WW_TOO_LONG};
use crate::guard::{Object, call};
use std::ffi::c_char;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use ww::channel::{RecvError, SendError};
use ww::session::{CloseTextError, Connection};
use ww::{Channel, SessionConfig};

/// An unreliable message or datagram of this many bytes always fits, if the peer takes datagrams of 1200 bytes, as it does by default.
pub const WW_UNRELIABLE_MAX: usize = 1150;

/// The state of a session. Bytes are of UDP payload.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ww_stats {
    /// Smoothed round-trip time in microseconds; 0 before the first measurement.
    pub rtt_us: u64,
    /// Mean deviation of the round-trip time, microseconds.
    pub rttvar_us: u64,
    /// Share of the packets sent in the last 10 s that were lost, 0 to 1; -1: unknown, because too few were sent.
    pub loss: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Bytes received.
    pub bytes_received: u64,
}

/// A client or a server. A client has one session, whatever number is passed.
pub(super) trait End: Object {
    fn connection(&mut self, session: u32) -> Option<&mut Connection>;
    fn channel(&self, number: u32) -> Option<Channel>;
    fn pump(&mut self) -> io::Result<Option<Duration>>;
    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<bool>;
    fn poll_event(&mut self) -> Option<ww_event>;

    fn send(&mut self, session: u32, channel: u32, message: &[u8]) -> i32 {
        let Some(channel) = self.channel(channel) else { return WW_MISUSE };
        self.connection(session)
            .map_or(WW_CLOSED, |connection| connection.send(channel, message).map_or_else(refused, |()| 0))
    }

    fn recv(&mut self, session: u32, channel: u32, buf: &mut [u8]) -> i32 {
        let Some(channel) = self.channel(channel) else { return WW_MISUSE };
        self.connection(session).map_or(WW_CLOSED, |connection| taken(connection.recv_into(channel, buf)))
    }

    fn send_datagram(&mut self, session: u32, datagram: &[u8]) -> i32 {
        self.connection(session)
            .map_or(WW_CLOSED, |connection| connection.send_datagram(datagram).map_or_else(refused, |_| 0))
    }

    fn recv_datagram(&mut self, session: u32, buf: &mut [u8]) -> i32 {
        self.connection(session).map_or(WW_CLOSED, |connection| taken(connection.recv_datagram_into(buf)))
    }

    fn is_delivered(&mut self, session: u32, channel: u32) -> i32 {
        let Some(channel) = self.channel(channel) else { return WW_MISUSE };
        let connection = self.connection(session);
        connection.map_or(WW_CLOSED, |connection| connection.is_delivered(channel).into())
    }

    fn stats(&mut self, session: u32, stats: Option<&mut ww_stats>) -> i32 {
        match (self.connection(session), stats) {
            (_, None) => WW_MISUSE,
            (None, _) => WW_CLOSED,
            (Some(connection), Some(stats)) => {
                *stats = ww_stats::of(connection);
                0
            }
        }
    }

    fn pump_once(&mut self, next: Option<&mut i64>) -> i32 {
        let wait = match self.pump() {
            Ok(wait) => millis(wait),
            Err(error) => return of_io(&error),
        };
        if let Some(next) = next {
            *next = wait;
        }
        0
    }

    /// Below zero: forever.
    fn poll_for(&mut self, millis: i64) -> i32 {
        let timeout = u64::try_from(millis).ok().map(Duration::from_millis);
        self.poll(timeout).map_or_else(|error| of_io(&error), i32::from)
    }

    /// # Safety
    ///
    /// `event` is null, or points to room for one, initialised or not.
    unsafe fn event(&mut self, event: *mut ww_event) -> i32 {
        if event.is_null() {
            return WW_MISUSE;
        }
        let happened = self.poll_event();
        // SAFETY: as the caller says.
        unsafe { event.write(happened.unwrap_or_default()) };
        i32::from(happened.is_some())
    }
}

/// The channels of a session by number. In C all of them carry bytes.
pub(super) fn numbered(config: &SessionConfig) -> Vec<Channel> {
    config.channels.iter().filter_map(|config| config.channel.of().ok()).collect()
}

impl ww_stats {
    fn of(connection: &Connection) -> Self {
        let stats = connection.stats();
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self {
            rtt_us: micros(stats.rtt),
            rttvar_us: micros(stats.rttvar),
            loss: stats.loss.unwrap_or(-1.0),
            sent: stats.sent,
            bytes_sent: stats.bytes_sent,
            received: stats.received,
            bytes_received: stats.bytes_received,
        }
    }
}

/// Copies `bytes` to the caller's buffer. Returns their number, or that the buffer is too small.
pub(super) fn copy(bytes: &[u8], buf: &mut [u8]) -> i32 {
    buf.get_mut(..bytes.len()).map_or(WW_TOO_LONG, |buf| {
        buf.copy_from_slice(bytes);
        int(bytes.len())
    })
}

/// Writes `text` and a zero: its length, if there is room for both.
pub(crate) fn print(text: &dyn fmt::Display, buf: &mut [u8]) -> i32 {
    let text = text.to_string();
    let Some((end, rest)) = buf.get_mut(..=text.len()).and_then(<[u8]>::split_last_mut) else {
        return WW_TOO_LONG;
    };
    *end = 0;
    copy(text.as_bytes(), rest)
}

/// Writes the address of a socket.
pub(super) fn address(address: io::Result<SocketAddr>, buf: &mut [u8]) -> i32 {
    address.map_or_else(|error| of_io(&error), |address| print(&address, buf))
}

/// [`call`] with a text for the peer, which may be refused.
///
/// # Safety
///
/// As [`call`] and [`text`].
pub(super) unsafe fn say<T: Object>(
    end: *mut T,
    message: *const c_char,
    say: impl FnOnce(&mut T, &str) -> Result<(), CloseTextError>,
) -> i32 {
    // SAFETY: as the caller says.
    let Ok(message) = (unsafe { text(message) }) else { return WW_MISUSE };
    // SAFETY: the same.
    unsafe { call(end, |end| say(end, message).map_or(WW_MISUSE, |()| 0)) }
}

/// The error code for a failed socket or an invalid config.
pub(super) fn of_io(error: &io::Error) -> i32 {
    match error.get_ref().and_then(|error| error.downcast_ref::<ww::net::Error>()) {
        Some(ww::net::Error::Config(_)) => crate::error::WW_CONFIG,
        Some(ww::net::Error::Connect(_)) => WW_MISUSE,
        _ => crate::error::WW_IO,
    }
}

/// Why a socket could not be made.
pub(super) fn failed(error: &io::Error) -> Failure {
    Failure::new(of_io(error), error)
}

pub(super) const fn refused(error: SendError) -> i32 {
    match error {
        SendError::Full { .. } => WW_AGAIN,
        SendError::TooLong { .. } => WW_TOO_LONG,
        SendError::NotConnected | SendError::Closed => WW_CLOSED,
        _ => WW_MISUSE,
    }
}

fn taken(result: Result<usize, RecvError>) -> i32 {
    match result {
        Ok(len) => int(len),
        Err(RecvError::Empty) => WW_AGAIN,
        Err(RecvError::BufferTooSmall { .. }) => WW_TOO_LONG,
        Err(_) => WW_MISUSE,
    }
}

pub(super) fn int(size: usize) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}
