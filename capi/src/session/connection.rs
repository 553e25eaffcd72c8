//! What goes through a session that is up, for both ends alike.

use crate::error::{WW_AGAIN, WW_CLOSED, WW_MISUSE, WW_TOO_LONG};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use ww::message::channel::Received;
use ww::session::{Blob, Connection, SendDatagramError, SendError, SendMessageError, SessionConfig};
use ww::{RecvError, Time};

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

pub(super) fn send(connection: &mut Connection<Blob>, lane: usize, message: &[u8]) -> i32 {
    match connection.send(lane, message) {
        Ok(taken) => int(taken),
        Err(SendError::Lane(ww::SendError::TooLong { .. })) => WW_TOO_LONG,
        Err(SendError::Closed) => WW_CLOSED,
        Err(SendError::NoLane { .. }) => WW_MISUSE,
        Err(_) => WW_AGAIN,
    }
}

pub(super) fn send_datagram(connection: &mut Connection<Blob>, datagram: &[u8]) -> i32 {
    match connection.send_datagram(datagram) {
        Ok(_) => 0,
        Err(SendDatagramError::TooLong { .. }) => WW_TOO_LONG,
        Err(SendDatagramError::Closed) => WW_CLOSED,
        Err(_) => WW_AGAIN,
    }
}

pub(super) fn recv_datagram(connection: &mut Connection<Blob>, buf: &mut [u8]) -> i32 {
    taken(connection.recv_datagram(buf))
}

pub(super) fn send_message(
    connection: &mut Connection<Blob>,
    now: Time,
    channel: usize,
    message: &[u8],
) -> i32 {
    if message.len() > Blob::MAX {
        return WW_TOO_LONG;
    }
    sent(connection.send_message(channel, now, Blob(message.to_vec())).map(drop))
}

pub(super) fn send_block(connection: &mut Connection<Blob>, channel: usize, block: &[u8]) -> i32 {
    sent(connection.send_block(channel, block))
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

    /// The next message of a lane.
    pub(super) fn recv(&self, connection: Option<&mut Connection<Blob>>, lane: usize, buf: &mut [u8]) -> i32 {
        match connection {
            None => WW_CLOSED,
            Some(_) if lane >= self.lanes => WW_MISUSE,
            Some(connection) => taken(connection.recv(lane, buf)),
        }
    }

    /// Forgets what is kept for sessions that are over: a peer that leaves behind what nobody reads costs nothing for ever.
    pub(super) fn retain(&mut self, is_up: impl Fn(u32) -> bool) {
        self.kept.retain(|(of, _), _| is_up(*of));
    }

    /// The next one of a channel of `session`. A session that is gone has none.
    pub(super) fn recv_message(
        &mut self,
        session: u32,
        connection: Option<&mut Connection<Blob>>,
        channel: usize,
        buf: &mut [u8],
    ) -> i32 {
        let Some(connection) = connection else {
            self.retain(|of| of != session);
            return WW_CLOSED;
        };
        if channel >= self.channels {
            return WW_MISUSE;
        }
        let kept = self.kept.remove(&(session, channel));
        let next = || match connection.recv_message(channel)? {
            Received::Message(Blob(bytes)) | Received::Block(bytes) => Some(bytes),
        };
        let Some(bytes) = kept.or_else(next) else { return WW_AGAIN };
        match buf.get_mut(..bytes.len()) {
            Some(buf) => {
                buf.copy_from_slice(&bytes);
                int(bytes.len())
            }
            None => {
                self.kept.insert((session, channel), bytes);
                WW_TOO_LONG
            }
        }
    }
}

pub(super) fn stats(connection: &Connection<Blob>) -> ww_stats {
    let stats = connection.stats();
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    ww_stats {
        rtt_us: micros(stats.rtt),
        rttvar_us: micros(stats.rttvar),
        loss: stats.loss.unwrap_or(-1.0),
        sent: stats.sent,
        bytes_sent: stats.bytes_sent,
        received: stats.received,
        bytes_received: stats.bytes_received,
    }
}

/// Which error a failed socket, or a config that is none, is.
pub(super) fn of_io(error: &io::Error) -> i32 {
    match error.get_ref().and_then(|error| error.downcast_ref::<ww::net::Error>()) {
        Some(ww::net::Error::Config(_)) => crate::error::WW_CONFIG,
        Some(ww::net::Error::Connect(_)) => WW_MISUSE,
        _ => crate::error::WW_IO,
    }
}

fn sent(result: Result<(), SendMessageError>) -> i32 {
    use ww::message::SendError as Refused;
    match result {
        Ok(()) => 0,
        Err(SendMessageError::Closed) => WW_CLOSED,
        Err(SendMessageError::Channel(Refused::NoChannel { .. })) => WW_MISUSE,
        Err(SendMessageError::Channel(Refused::TooLarge { .. } | Refused::BlockLength { .. })) => WW_TOO_LONG,
        Err(_) => WW_AGAIN,
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
