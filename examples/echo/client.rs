//! The measuring client: sends messages at a steady rate, and measures how long each takes to return.

use crate::args::Load;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use whitewater::kcp;

/// The progress of a client.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) sent: AtomicU32,
    pub(crate) delivered: AtomicU32,
}

/// The measurements of a client.
pub(crate) struct Outcome {
    pub(crate) sent: u32,
    /// Round trips of the messages that returned, shortest first.
    pub(crate) round_trips: Vec<Duration>,
    pub(crate) resends: u32,
    /// Bytes of datagrams sent per byte of messages.
    pub(crate) wire_per_byte: f64,
}

impl Outcome {
    /// The round trip that `percent` of all echoes did not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Option<Duration> {
        let last = self.round_trips.len().checked_sub(1)?;
        self.round_trips.get((last * percent).div_ceil(100)).copied()
    }
}

/// Sends `load` and waits for the echoes, for the last of them at most [`PATIENCE`].
pub(crate) fn run(socket: &mut kcp::Socket, load: Load, progress: &Progress) -> io::Result<Outcome> {
    let count =
        u32::try_from(load.time.as_millis() * u128::from(load.rate) / 1000).unwrap_or(u32::MAX).max(1);
    let start = Instant::now();
    let due = |number: u32| start + Duration::from_secs(number.into()) / load.rate;
    let end = due(count) + PATIENCE;
    let (mut sent, mut delivered, mut round_trips) = (0, 0, Vec::new());
    let (mut received, mut buf) = (Vec::new(), vec![0; 1 << 18]);
    while delivered < count && Instant::now() < end {
        while sent < count && due(sent) <= Instant::now() {
            send(socket, &message(sent, load.size))?;
            sent += 1;
        }
        let next = if sent < count { due(sent) } else { end };
        socket.set_read_timeout(Some(next.saturating_duration_since(Instant::now())));
        match socket.recv_blocking(&mut buf) {
            Ok(len) => received.extend_from_slice(buf.get(..len).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        while let Some(echo) = received.get(..load.size) {
            if echo != message(delivered, load.size) {
                return Err(io::Error::other(format!(
                    "the echo of message {delivered} is not what was sent"
                )));
            }
            round_trips.push(due(delivered).elapsed());
            delivered += 1;
            received.drain(..load.size);
        }
        progress.sent.store(sent, Relaxed);
        progress.delivered.store(delivered, Relaxed);
    }
    round_trips.sort_unstable();
    let stats = socket.stats();
    let payload = u64::from(sent) * load.size as u64;
    Ok(Outcome {
        sent,
        round_trips,
        resends: stats.resends_timeout + stats.resends_fast,
        wire_per_byte: stats.bytes_sent as f64 / payload as f64,
    })
}

/// Sends a whole message. A stream may take it in parts.
fn send(socket: &mut kcp::Socket, message: &[u8]) -> io::Result<()> {
    let mut rest = message;
    while !rest.is_empty() {
        let len = socket.send_blocking(rest)?;
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(())
}

/// Message `number`: its bytes differ from those of every other message.
fn message(number: u32, size: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().zip(0u8..=255).map(|(a, b)| a ^ b).cycle().take(size).collect()
}

/// How long to wait for the last echoes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
