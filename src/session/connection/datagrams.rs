//! Unreliable datagrams: those that wait to be sent, which of them arrived, those that wait to be read.

use super::super::error::SendDatagramError;
use super::super::event::DatagramId;
use super::acks::low;
use crate::arq::RecvError;
use crate::ring::SequenceBuffer;
use crate::seq::Seq16;
use crate::wire::{DatagramQueue, Output};
use std::collections::VecDeque;

/// The datagrams of one end, in both directions.
#[derive(Debug)]
pub(super) struct Datagrams {
    out: DatagramQueue,
    /// The id of the next datagram that leaves.
    leaves: u64,
    /// The id of the next one that is sent.
    next: u64,
    /// What left in which packet.
    carried: SequenceBuffer<Carried>,
    delivered: VecDeque<DatagramId>,
    received: DatagramQueue,
    max: usize,
}

/// Datagrams of one packet: so many from the first on.
#[derive(Clone, Copy, Debug)]
struct Carried {
    first: u64,
    count: u16,
}

impl Datagrams {
    pub(super) fn new(max: usize, out: u32, received: u32, unacked: u16) -> Self {
        let queue = |bytes: u32| DatagramQueue::with_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
        Self {
            out: queue(out),
            leaves: 0,
            next: 0,
            carried: SequenceBuffer::new(unacked),
            delivered: VecDeque::new(),
            received: queue(received),
            max,
        }
    }

    pub(super) fn send(&mut self, datagram: &[u8]) -> Result<DatagramId, SendDatagramError> {
        if datagram.len() > self.max {
            return Err(SendDatagramError::TooLong { len: datagram.len(), max: self.max });
        }
        let dropped = self.out.dropped();
        self.out.output(datagram);
        if self.out.dropped() > dropped {
            return Err(SendDatagramError::QueueFull { waiting: self.out.len() });
        }
        self.next += 1;
        Ok(DatagramId(self.next - 1))
    }

    /// Bytes of the next one to send.
    pub(super) fn next_len(&self) -> Option<usize> {
        self.out.next_len()
    }

    /// Takes the next one to send.
    pub(super) fn pop(&mut self) -> Option<&[u8]> {
        let datagram = self.out.pop()?;
        self.leaves += 1;
        Some(datagram)
    }

    /// The last `count` that were popped left in the packet `pn`.
    pub(super) fn on_sent(&mut self, pn: u64, count: u16) {
        self.carried.insert(low(pn), Carried { first: self.leaves - u64::from(count), count });
    }

    /// The packet `sequence` has arrived.
    pub(super) fn on_acked(&mut self, sequence: Seq16) {
        let Some(Carried { first, count }) = self.carried.remove(sequence) else { return };
        for id in first..first + u64::from(count) {
            if self.delivered.len() >= DELIVERED_MAX {
                self.delivered.pop_front();
            }
            self.delivered.push_back(DatagramId(id));
        }
    }

    pub(super) fn pop_delivered(&mut self) -> Option<DatagramId> {
        self.delivered.pop_front()
    }

    /// Takes one of the peer's; `false`: there is no room for it.
    pub(super) fn take(&mut self, datagram: &[u8]) -> bool {
        let dropped = self.received.dropped();
        self.received.output(datagram);
        self.received.dropped() == dropped
    }

    pub(super) fn recv(&mut self, buf: &mut [u8]) -> Result<usize, RecvError> {
        let need = self.received.next_len().ok_or(RecvError::NoMessage)?;
        let have = buf.len();
        let room = buf.get_mut(..need).ok_or(RecvError::BufferTooSmall { have, need })?;
        let datagram = self.received.pop().ok_or(RecvError::NoMessage)?;
        room.copy_from_slice(datagram);
        Ok(need)
    }

    /// Bytes of the heap.
    pub(super) fn memory(&self) -> usize {
        let delivered = self.delivered.capacity() * size_of::<DatagramId>();
        self.out.memory() + self.received.memory() + self.carried.memory() + delivered
    }

    /// How many wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.out.len()
    }

    pub(super) fn shrink(&mut self) {
        self.out.shrink();
        self.received.shrink();
        self.delivered.shrink_to_fit();
    }

    /// Forgets which packets carried what.
    pub(super) fn forget(&mut self) {
        self.carried.reset();
    }
}

/// Ids of delivered datagrams that nobody has asked for.
const DELIVERED_MAX: usize = 1024;
