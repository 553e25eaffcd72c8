//! Messages that a session has not accepted yet.

use super::shared::Counts;
use crate::channel::{AnyChannel, ChannelKind, SendError};
use crate::session::{Connection, DATAGRAMS};
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Outgoing {
    /// `None`: an unreliable datagram.
    pub(super) channel: Option<AnyChannel>,
    pub(super) bytes: Vec<u8>,
    /// The length in bits.
    pub(super) bits: usize,
}

impl Outgoing {
    /// Its cost, bytes: its buffer and this struct.
    pub(super) const fn cost(&self) -> usize {
        self.bytes.capacity() + size_of::<Self>()
    }

    /// The channel, or [`DATAGRAMS`]. Messages of one way stay in order.
    pub(super) fn way(&self) -> u8 {
        self.channel.map_or(DATAGRAMS, AnyChannel::number)
    }

    /// Passes it to the session. Returns whether all of it was taken. It is an error if the session will never take
    /// it.
    fn send(&mut self, connection: &mut Connection) -> Result<bool, SendError> {
        let sent = match self.channel {
            Some(channel) if channel.kind() == ChannelKind::Stream => {
                connection.write_packed(channel.number(), &self.bytes).map(|taken| {
                    self.bytes.drain(..taken);
                    self.bytes.is_empty()
                })
            }
            Some(channel) => connection.send_packed(channel, &self.bytes, self.bits).map(|()| true),
            None => connection.send_datagram(&self.bytes).map(|_| true),
        };
        sent.or_else(|error| if error.is_full() { Ok(false) } else { Err(error) })
    }
}

/// Everything queued for one session. A full channel holds up no other.
#[derive(Debug)]
pub(super) struct Outbox {
    waiting: BTreeMap<u8, VecDeque<Outgoing>>,
    pub(super) counts: Arc<Counts>,
    /// Close with this code and text when nothing waits, or at this time at the latest.
    pub(super) close: Option<(u16, Box<str>, Time)>,
}

impl Outbox {
    pub(super) const fn new(counts: Arc<Counts>) -> Self {
        Self { waiting: BTreeMap::new(), counts, close: None }
    }

    pub(super) fn push(&mut self, outgoing: Outgoing) {
        self.waiting.entry(outgoing.way()).or_default().push_back(outgoing);
    }

    /// Passes on as much as the session takes. Returns whether anything moved.
    pub(super) fn send(&mut self, connection: &mut Connection) -> bool {
        let Self { waiting, counts, .. } = self;
        let mut has_moved = false;
        waiting.retain(|way, queue| {
            while let Some(outgoing) = queue.front_mut() {
                let cost = outgoing.cost();
                let is_taken = match outgoing.send(connection) {
                    Ok(false) => return true,
                    // The handle has checked what it can. Here, no packet on this path has room for it, or the
                    // session has ended.
                    sent => sent
                        .inspect_err(|error| log::debug!("a message to a session is dropped: {error}"))
                        .is_ok(),
                };
                queue.pop_front();
                has_moved = true;
                counts.sent(*way, cost, is_taken);
            }
            false
        });
        has_moved
    }

    /// Drops everything that waits.
    pub(super) fn clear(&mut self) {
        self.close = None;
        for (way, queue) in std::mem::take(&mut self.waiting) {
            queue.iter().for_each(|outgoing| self.counts.sent(way, outgoing.cost(), false));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
