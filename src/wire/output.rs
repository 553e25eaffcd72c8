//! Where finished datagrams go.

use std::collections::VecDeque;

/// Takes the datagrams that a control block sends. Every `FnMut(&[u8])` is one.
pub trait Output {
    /// Takes one datagram of at most the configured mtu; it may be larger where the mtu was
    /// lowered while larger segments were waiting. A failed send is packet loss: no result.
    fn output(&mut self, datagram: &[u8]);
}

impl<F: FnMut(&[u8])> Output for F {
    fn output(&mut self, datagram: &[u8]) {
        self(datagram);
    }
}

/// An [`Output`] that keeps the datagrams until they are asked for: the same control block, polled
/// instead of called back.
///
/// The memory is bounded: a datagram that does not fit any more is dropped, which is packet loss,
/// and counted. Popping all of them before the next datagram comes in keeps it allocation-free.
#[derive(Clone, Debug)]
pub struct DatagramQueue {
    /// Made for the first datagram: most sessions of a big server are idle.
    waiting: Option<Box<Waiting>>,
    limit: usize,
    dropped: u64,
}

/// Datagrams one after another in one buffer.
#[derive(Clone, Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Where each of them ends in `bytes`.
    ends: VecDeque<usize>,
    /// Where the oldest starts.
    start: usize,
}

impl DatagramQueue {
    /// Most bytes that wait unless said otherwise: well over a window of 128 segments.
    pub const DEFAULT_LIMIT: usize = 1 << 20;

    /// An empty queue of at most [`Self::DEFAULT_LIMIT`] bytes. It owns no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// An empty queue of at most `limit` bytes.
    #[must_use]
    pub const fn with_limit(limit: usize) -> Self {
        Self { waiting: None, limit, dropped: 0 }
    }

    /// Takes the oldest datagram.
    pub fn pop(&mut self) -> Option<&[u8]> {
        let waiting = self.waiting.as_mut()?;
        let end = waiting.ends.pop_front()?;
        let start = std::mem::replace(&mut waiting.start, end);
        waiting.bytes.get(start..end)
    }

    /// Bytes of the oldest datagram.
    #[must_use]
    pub fn next_len(&self) -> Option<usize> {
        let waiting = self.waiting.as_ref()?;
        Some(waiting.ends.front()? - waiting.start)
    }

    /// Datagrams that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.as_ref().map_or(0, |waiting| waiting.ends.len())
    }

    /// Whether no datagram waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Datagrams dropped because the queue was full.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Bytes of the heap that the queue owns, used or not.
    #[must_use]
    pub fn memory(&self) -> usize {
        let waiting = |waiting: &Waiting| {
            size_of::<Waiting>() + waiting.bytes.capacity() + waiting.ends.capacity() * size_of::<usize>()
        };
        self.waiting.as_deref().map_or(0, waiting)
    }

    /// Gives the memory back when no datagram waits.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            self.waiting = None;
        }
    }
}

impl Default for DatagramQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl Output for DatagramQueue {
    fn output(&mut self, datagram: &[u8]) {
        let waiting = self.waiting.get_or_insert_default();
        waiting.compact();
        if waiting.bytes.len() - waiting.start + datagram.len() > self.limit {
            self.dropped += 1;
            return;
        }
        waiting.bytes.extend_from_slice(datagram);
        waiting.ends.push_back(waiting.bytes.len());
    }
}

impl Waiting {
    /// Closes the gap that popping left at the front, when it is at least half of the buffer: so
    /// each byte is moved once at most.
    fn compact(&mut self) {
        if self.start > 0 && self.start >= self.bytes.len() - self.start {
            self.bytes.drain(..self.start);
            for end in &mut self.ends {
                *end -= self.start;
            }
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_come_out_in_order_while_others_come_in() {
        let mut queue = DatagramQueue::new();
        let (mut sent, mut popped) = (0u32, 0u32);
        for round in 0..200 {
            for _ in 0..round % 7 {
                queue.output(&sent.to_le_bytes());
                sent += 1;
                let bytes = queue.waiting.as_ref().unwrap().bytes.len();
                assert!(bytes <= 4 * (2 * queue.len() + 1), "popped bytes stay");
            }
            for _ in 0..round % 5 {
                if let Some(datagram) = queue.pop() {
                    assert_eq!(datagram, popped.to_le_bytes());
                    popped += 1;
                }
            }
            assert_eq!(queue.len(), (sent - popped) as usize);
        }
        assert_eq!(queue.dropped(), 0);
    }

    #[test]
    fn a_full_queue_drops_the_newest_and_counts_it() {
        let mut queue = DatagramQueue::with_limit(10);
        queue.output(b"123456");
        queue.output(b"too much");
        queue.output(b"7890");
        assert_eq!(queue.next_len(), Some(6));
        assert_eq!(queue.pop(), Some(&b"123456"[..]));
        assert_eq!(queue.next_len(), Some(4));
        assert_eq!(queue.pop(), Some(&b"7890"[..]));
        assert_eq!(queue.pop(), None);
        assert_eq!(queue.dropped(), 1);
    }
}
