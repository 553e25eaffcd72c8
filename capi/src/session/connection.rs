//! What goes through a session that is up, for both ends alike.

use super::event::ww_event;
use super::millis;
use crate::error::{WW_AGAIN, WW_CLOSED, WW_MISUSE, WW_TOO_LONG};
use crate::guard::Object;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use ww::Time;
use ww::kcp::RecvError;
use ww::message::channel::Received;
use ww::session::{Blob, Connection, SendError, SessionConfig};

/// How a session stands. Bytes are of UDP payload.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ww_stats {
    /// Round trip, smoothed, microseconds; 0 before the first.
    pub rtt_us: u64,
    /// Its mean deviation.
    pub rttvar_us: u64,
    /// Share of the packets sent in the last 10 s that got lost on the way, 0 to 1; -1: not known, for too few were sent.
    pub loss: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of them.
    pub bytes_sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Bytes of them.
    pub bytes_received: u64,
}

/// A client or a server: what holds sessions. A client has one, whatever its number.
pub(super) trait End: Object {
    fn connection(&mut self, session: u32) -> Option<&mut Connection<Blob>>;
    fn inbox(&mut self) -> &mut Inbox;
    fn now(&self) -> Time;
    fn pump(&mut self) -> io::Result<Option<Duration>>;
    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<bool>;
    fn poll_event(&mut self) -> Option<ww_event>;

    fn send(&mut self, session: u32, lane: usize, message: &[u8]) -> i32 {
        self.connection(session)
            .map_or(WW_CLOSED, |connection| connection.send(lane, message).map_or_else(refused, int))
    }

    fn recv(&mut self, session: u32, lane: usize, buf: &mut [u8]) -> i32 {
        let lanes = self.inbox().lanes;
        match self.connection(session) {
            None => WW_CLOSED,
            Some(_) if lane >= lanes => WW_MISUSE,
            Some(connection) => taken(connection.recv(lane, buf)),
        }
    }

    fn send_datagram(&mut self, session: u32, datagram: &[u8]) -> i32 {
        self.connection(session)
            .map_or(WW_CLOSED, |connection| connection.send_datagram(datagram).map_or_else(refused, |_| 0))
    }

    fn recv_datagram(&mut self, session: u32, buf: &mut [u8]) -> i32 {
        self.connection(session).map_or(WW_CLOSED, |connection| taken(connection.recv_datagram(buf)))
    }

    fn send_message(&mut self, session: u32, channel: usize, message: &[u8]) -> i32 {
        let now = self.now();
        let Some(connection) = self.connection(session) else { return WW_CLOSED };
        if message.len() > Blob::MAX {
            return WW_TOO_LONG;
        }
        connection.send_message(channel, now, Blob(message.to_vec())).map_or_else(refused, |_| 0)
    }

    fn send_block(&mut self, session: u32, channel: usize, block: &[u8]) -> i32 {
        self.connection(session).map_or(WW_CLOSED, |connection| {
            connection.send_block(channel, block).map_or_else(refused, |()| 0)
        })
    }

    /// The next message or block of a channel. A session that is gone has none.
    fn recv_message(&mut self, session: u32, channel: usize, buf: &mut [u8]) -> i32 {
        if self.connection(session).is_none() {
            self.inbox().retain(|of| of != session);
            return WW_CLOSED;
        }
        if channel >= self.inbox().channels {
            return WW_MISUSE;
        }
        let kept = self.inbox().kept.remove(&(session, channel)).map(Received::Block);
        let next = kept.or_else(|| self.connection(session)?.recv_message(channel));
        let Some(Received::Message(Blob(bytes)) | Received::Block(bytes)) = next else { return WW_AGAIN };
        let answer = copy(&bytes, buf);
        if answer == WW_TOO_LONG {
            self.inbox().kept.insert((session, channel), bytes);
        }
        answer
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

    /// Below zero is for ever.
    fn poll_for(&mut self, millis: i64) -> i32 {
        let timeout = u64::try_from(millis).ok().map(Duration::from_millis);
        self.poll(timeout).map_or_else(|error| of_io(&error), i32::from)
    }

    /// # Safety
    ///
    /// `event` is null or one; what is there need not have been an event.
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

/// Messages and blocks that did not fit where they were to be read to, one a session and channel: they stay.
pub(super) struct Inbox {
    kept: BTreeMap<(u32, usize), Vec<u8>>,
    /// How many lanes and channels a session has.
    lanes: usize,
    channels: usize,
}

impl Inbox {
    pub(super) fn new(config: &SessionConfig) -> Self {
        let (lanes, channels) = (config.lanes.len(), config.channels.len());
        Self { kept: BTreeMap::new(), lanes, channels }
    }

    /// Forgets what is kept for sessions that are over: a peer that leaves behind what nobody reads costs nothing for ever.
    pub(super) fn retain(&mut self, is_up: impl Fn(u32) -> bool) {
        self.kept.retain(|(of, _), _| is_up(*of));
    }
}

impl ww_stats {
    fn of(connection: &Connection<Blob>) -> Self {
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

/// Copies `bytes` to where they are read to: how many, if there is room for them.
pub(super) fn copy(bytes: &[u8], buf: &mut [u8]) -> i32 {
    buf.get_mut(..bytes.len()).map_or(WW_TOO_LONG, |buf| {
        buf.copy_from_slice(bytes);
        int(bytes.len())
    })
}

/// Which error a failed socket, or a config that is none, is.
pub(super) fn of_io(error: &io::Error) -> i32 {
    match error.get_ref().and_then(|error| error.downcast_ref::<ww::net::Error>()) {
        Some(ww::net::Error::Config(_)) => crate::error::WW_CONFIG,
        Some(ww::net::Error::Connect(_)) => WW_MISUSE,
        _ => crate::error::WW_IO,
    }
}

fn refused(error: SendError) -> i32 {
    use ww::message::ChannelSendError as Channel;
    match error {
        SendError::Closed | SendError::NotConnected => WW_CLOSED,
        SendError::NoLane { .. } | SendError::Channel(Channel::NoChannel { .. }) => WW_MISUSE,
        SendError::Lane(ww::kcp::SendError::TooLong { .. }) | SendError::TooLong { .. } => WW_TOO_LONG,
        SendError::Channel(Channel::TooLarge { .. } | Channel::BlockLength { .. }) => WW_TOO_LONG,
        _ => WW_AGAIN,
    }
}

fn taken(result: Result<usize, RecvError>) -> i32 {
    match result {
        Ok(len) => int(len),
        Err(RecvError::BufferTooSmall { .. }) => WW_TOO_LONG,
        Err(_) => WW_AGAIN,
    }
}

fn int(size: usize) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}
