//! Unreliable datagrams: those waiting to be sent, those known to have arrived, those waiting to be read.

use super::acks::low;
use super::memory::held;
use crate::channel::{DATAGRAMS, RecvError, SendError, cure};
use crate::ring::SequenceBuffer;
use crate::seq::Seq16;
use crate::session::config::SessionConfig;
use crate::session::event::DatagramId;
use crate::wire::{DatagramQueue, Output};
use bytes::Bytes;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Datagrams {
    /// Longest datagram that can be sent, bytes.
    max: u16,
    /// Created for the first datagram.
    queues: Option<Box<Queues>>,
}

#[derive(Debug)]
struct Queues {
    out: DatagramQueue,
    /// The id of the next datagram that leaves.
    leaves: u64,
    /// The id that the next datagram gets.
    next: u64,
    /// Which datagrams left in which packet.
    carried: SequenceBuffer<Carried>,
    delivered: VecDeque<DatagramId>,
    received: DatagramQueue,
}

#[derive(Clone, Copy, Debug)]
struct Carried {
    first: u64,
    count: u16,
}

impl Datagrams {
    pub(super) const fn new(max: u16) -> Self {
        Self { max, queues: None }
    }

    fn queues(&mut self, config: &SessionConfig) -> &mut Queues {
        let queue = |bytes: u32| DatagramQueue::with_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
        self.queues.get_or_insert_with(|| {
            Box::new(Queues {
                out: queue(config.datagrams_out),
                leaves: 0,
                next: 0,
                carried: SequenceBuffer::new(config.unacked),
                delivered: VecDeque::new(),
                received: queue(config.datagrams_in),
            })
        })
    }

    pub(super) fn send(&mut self, config: &SessionConfig, datagram: &[u8]) -> Result<DatagramId, SendError> {
        let (len, max) = (datagram.len(), usize::from(self.max));
        if len > max {
            return Err(SendError::TooLong { channel: DATAGRAMS, len, max, cure: cure::RELIABLE });
        }
        let Queues { out, next, .. } = self.queues(config);
        let dropped = out.dropped();
        out.output(datagram);
        if out.dropped() > dropped {
            return Err(SendError::Full { channel: DATAGRAMS });
        }
        *next += 1;
        Ok(DatagramId(*next - 1))
    }

    pub(super) fn next_len(&self) -> Option<usize> {
        self.queues.as_ref()?.out.next_len()
    }

    pub(super) fn pop(&mut self) -> Option<&[u8]> {
        let queues = self.queues.as_mut()?;
        let datagram = queues.out.pop()?;
        queues.leaves += 1;
        Some(datagram)
    }

    /// Notes that the last `count` datagrams popped left in the packet `pn`.
    pub(super) fn on_sent(&mut self, pn: u64, count: u16) {
        if let Some(queues) = &mut self.queues {
            queues.carried.insert(low(pn), Carried { first: queues.leaves - u64::from(count), count });
        }
    }

    pub(super) fn on_acked(&mut self, sequence: Seq16) {
        let Some(Queues { carried, delivered, .. }) = self.queues.as_deref_mut() else { return };
        let Some(Carried { first, count }) = carried.remove(sequence) else { return };
        for id in first..first + u64::from(count) {
            if delivered.len() >= DELIVERED_MAX {
                delivered.pop_front();
            }
            delivered.push_back(DatagramId(id));
        }
    }

    /// No packet before this one will be acknowledged.
    pub(super) fn forget_before(&mut self, sequence: Seq16) {
        if let Some(queues) = &mut self.queues {
            queues.carried.forget_before(sequence);
        }
    }

    pub(super) fn pop_delivered(&mut self) -> Option<DatagramId> {
        self.queues.as_mut()?.delivered.pop_front()
    }

    /// Queues a datagram of the peer; `false`: there is no room for it.
    pub(super) fn receive(&mut self, config: &SessionConfig, datagram: &[u8]) -> bool {
        let Queues { received, .. } = self.queues(config);
        let dropped = received.dropped();
        received.output(datagram);
        received.dropped() == dropped
    }

    /// Bytes of datagrams that were not read yet, and of their places.
    pub(super) fn unread(&self) -> usize {
        self.queues.as_ref().map_or(0, |queues| queues.received.held())
    }

    pub(super) fn recv(&mut self) -> Option<Bytes> {
        self.queues.as_mut()?.received.pop().map(Bytes::copy_from_slice)
    }

    pub(super) fn recv_into(&mut self, buf: &mut [u8]) -> Result<usize, RecvError> {
        let received = &mut self.queues.as_mut().ok_or(RecvError::Empty)?.received;
        let need = received.next_len().ok_or(RecvError::Empty)?;
        let have = buf.len();
        let room = buf.get_mut(..need).ok_or(RecvError::BufferTooSmall { have, need })?;
        let datagram = received.pop().ok_or(RecvError::Empty)?;
        room.copy_from_slice(datagram);
        Ok(need)
    }

    pub(super) fn memory(&self) -> usize {
        held(&self.queues, |Queues { out, carried, delivered, received, .. }| {
            let delivered = delivered.capacity() * size_of::<DatagramId>();
            out.memory() + received.memory() + carried.memory() + delivered
        })
    }

    pub(super) fn waiting(&self) -> usize {
        self.queues.as_ref().map_or(0, |queues| queues.out.len())
    }

    pub(super) fn shrink(&mut self) {
        if let Some(Queues { out, received, delivered, .. }) = self.queues.as_deref_mut() {
            out.shrink();
            received.shrink();
            delivered.shrink_to_fit();
        }
    }

    pub(super) fn forget(&mut self) {
        if let Some(queues) = &mut self.queues {
            queues.carried.reset();
        }
    }
}

/// Most ids of delivered datagrams that are kept until they are taken.
const DELIVERED_MAX: usize = 1024;
