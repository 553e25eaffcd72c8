//! Plain copying as a [`Peer`]: what the harness itself costs, with the copies that every implementation
//! needs. It neither acknowledges nor resends, so use it only on a path without loss.

use crate::pipe::{HEADER_LEN, MTU, PUSH, Peer, Port, header};

pub(crate) struct Bare {
    queued: Slots,
    received: Slots,
    datagram: Vec<u8>,
    /// Segments per update: enough to keep a window in flight, as the others do over a round trip.
    pace: usize,
    port: Port,
}

impl Peer for Bare {
    const NAME: &'static str = "bare copying";

    fn new(window: u16, port: Port) -> Self {
        let count = 2 * usize::from(window);
        Self {
            queued: Slots::new(count),
            received: Slots::new(count),
            datagram: Vec::with_capacity(MTU),
            pace: window.div_ceil(6).into(),
            port,
        }
    }

    fn send(&mut self, message: &[u8]) {
        self.queued.push(message);
    }

    fn recv(&mut self, buf: &mut [u8]) -> Option<usize> {
        let message = self.received.pop()?;
        buf[..message.len()].copy_from_slice(message);
        Some(message.len())
    }

    fn input(&mut self, _now: u32, mut datagram: &[u8]) {
        while let Some((header, rest)) = datagram.split_first_chunk::<HEADER_LEN>() {
            let [.., a, b, c, d] = *header;
            let (message, rest) = rest.split_at(u32::from_le_bytes([a, b, c, d]) as usize);
            self.received.push(message);
            datagram = rest;
        }
    }

    fn update(&mut self, _now: u32) {
        for _ in 0..self.pace {
            let Some(message) = self.queued.pop() else { break };
            if self.datagram.len() + HEADER_LEN + message.len() > MTU {
                self.port.carry(&self.datagram);
                self.datagram.clear();
            }
            self.datagram.extend_from_slice(&header(PUSH, 0, 0, message.len()));
            self.datagram.extend_from_slice(message);
        }
        if !self.datagram.is_empty() {
            self.port.carry(&self.datagram);
            self.datagram.clear();
        }
    }

    fn wait_snd(&self) -> usize {
        self.queued.len
    }
}

/// A queue of messages of one size, in one block of memory.
struct Slots {
    bytes: Vec<u8>,
    size: usize,
    count: usize,
    first: usize,
    len: usize,
}

impl Slots {
    fn new(count: usize) -> Self {
        Self { bytes: Vec::new(), size: 0, count, first: 0, len: 0 }
    }

    fn push(&mut self, message: &[u8]) {
        if self.bytes.is_empty() {
            self.size = message.len();
            self.bytes = vec![0; self.size * self.count];
        }
        assert!(self.len < self.count);
        let slot = self.wrapped(self.first + self.len);
        self.bytes[slot * self.size..][..self.size].copy_from_slice(message);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<&[u8]> {
        self.len = self.len.checked_sub(1)?;
        let slot = self.first;
        self.first = self.wrapped(slot + 1);
        Some(&self.bytes[slot * self.size..][..self.size])
    }

    fn wrapped(&self, slot: usize) -> usize {
        if slot < self.count { slot } else { slot - self.count }
    }
}
