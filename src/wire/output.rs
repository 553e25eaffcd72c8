//! Where finished datagrams go.

use std::collections::VecDeque;

/// Takes the datagrams that a control block sends. Every `FnMut(&[u8])` implements it.
pub trait Output {
    /// Takes one datagram of at most the configured mtu. It may be larger if the mtu was lowered while larger
    /// segments were waiting. There is no result: a failed send is packet loss.
    fn output(&mut self, datagram: &[u8]);

    /// Lends at least `len` bytes of the output's own memory, so that a datagram is written where it would
    /// otherwise be copied to. Returns `None` if the output wants the datagram by [`output`](Self::output).
    /// Room is void unless a datagram is [put](Self::put) into it next.
    fn room(&mut self, _len: usize) -> Option<&mut [u8]> {
        None
    }

    /// Takes the datagram in the first `len` bytes of the [room](Self::room) that was lent.
    fn put(&mut self, _len: usize) {}

    /// Whether so much is waiting to be sent that data sent for the first time should stay in the queue for
    /// now. It is asked only where a flush need not wait for the next interval. Everything else is still
    /// handed over.
    fn is_full(&mut self) -> bool {
        false
    }
}

impl<F: FnMut(&[u8])> Output for F {
    fn output(&mut self, datagram: &[u8]) {
        self(datagram);
    }
}

/// A packet that is being written. The first datagram of a flush is appended to it if it fits, instead of
/// going to the output of the control block.
#[derive(Debug)]
pub(crate) struct InPacket<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
    end: usize,
    is_written: bool,
}

impl<'a> InPacket<'a> {
    /// Appends to `buffer`, which may grow to `end` bytes.
    pub(crate) const fn new(buffer: &'a mut Vec<u8>, end: usize) -> Self {
        let start = buffer.len();
        Self { buffer, start, end, is_written: false }
    }

    /// Whether a datagram was appended, which `change` then makes shorter. If not, the buffer is restored.
    pub(crate) fn finish(self, change: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let Self { buffer, start, is_written, .. } = self;
        let len = buffer.get_mut(start..).filter(|_| is_written).map_or(0, change);
        buffer.truncate(start + len);
        is_written
    }
}

/// An output that appends the first datagram to a packet, and passes the others on.
#[derive(Debug)]
pub(crate) struct Before<'a, 'p, O> {
    pub(crate) ahead: Option<&'a mut InPacket<'p>>,
    pub(crate) output: &'a mut O,
}

impl<O: Output> Output for Before<'_, '_, O> {
    fn output(&mut self, datagram: &[u8]) {
        self.output.output(datagram);
    }

    #[inline]
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        let Some(InPacket { buffer, start, .. }) = &mut self.ahead else { return self.output.room(len) };
        if buffer.len() < *start + len {
            buffer.resize(*start + len, 0);
        }
        buffer.get_mut(*start..)
    }

    #[inline]
    fn put(&mut self, len: usize) {
        let Some(ahead) = self.ahead.take() else { return self.output.put(len) };
        let end = ahead.start + len;
        ahead.is_written = end <= ahead.end;
        if ahead.is_written {
            ahead.buffer.truncate(end);
        } else {
            self.output.output(ahead.buffer.get(ahead.start..end).unwrap_or_default());
        }
    }

    #[inline]
    fn is_full(&mut self) -> bool {
        self.output.is_full()
    }
}

/// An [`Output`] that queues datagrams, so that you can poll a control block instead of being called back.
///
/// The memory is bounded: a datagram that does not fit is dropped, which is packet loss, and counted. If you
/// pop all datagrams before the next one comes in, it allocates nothing.
#[derive(Clone, Debug)]
pub struct DatagramQueue {
    /// Allocated for the first datagram, because most sessions of a large server are idle.
    waiting: Option<Box<Waiting>>,
    limit: u32,
    /// Whether it reports itself full from [`BURST`] bytes on.
    is_in_bursts: bool,
    /// Whether it has reported itself full.
    was_full: bool,
    dropped: u64,
}

/// Datagrams, back to back in one buffer.
#[derive(Clone, Debug, Default)]
struct Waiting {
    /// The datagrams lie between `start` and `end`; the other bytes are stale.
    bytes: Vec<u8>,
    /// Where each datagram ends in `bytes`.
    ends: VecDeque<usize>,
    /// Where the oldest datagram starts.
    start: usize,
    /// Where the newest datagram ends.
    end: usize,
}

impl DatagramQueue {
    /// Default limit on the bytes waiting: well over a window of 128 segments.
    pub const DEFAULT_LIMIT: usize = 1 << 20;

    /// Creates an empty queue of at most [`Self::DEFAULT_LIMIT`] bytes. It allocates nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// Creates an empty queue of at most `limit` bytes, and never more than 4 GiB. The list of its datagrams, of 8 bytes
    /// each, has the same limit.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "clamped to 32 bits before the cast")]
    pub const fn with_limit(limit: usize) -> Self {
        let limit = if limit > u32::MAX as usize { u32::MAX } else { limit as u32 };
        Self { waiting: None, limit, is_in_bursts: false, was_full: false, dropped: 0 }
    }

    /// Makes a flush stop at about [`BURST`] bytes. The owner sends these before the next flush, while they
    /// are still in the cache.
    pub(crate) const fn in_bursts(mut self) -> Self {
        self.is_in_bursts = true;
        self
    }

    /// Whether the last flush had more to send. Resets the flag.
    pub(crate) const fn clear_full(&mut self) -> bool {
        std::mem::replace(&mut self.was_full, false)
    }

    /// Removes and returns the oldest datagram.
    pub fn pop(&mut self) -> Option<&[u8]> {
        self.pop_mut().map(|datagram| &*datagram)
    }

    /// [`pop`](Self::pop), so that the datagram can be changed in place.
    pub(crate) fn pop_mut(&mut self) -> Option<&mut [u8]> {
        let waiting = self.waiting.as_mut()?;
        let end = waiting.ends.pop_front()?;
        let start = std::mem::replace(&mut waiting.start, end);
        if waiting.ends.is_empty() {
            (waiting.start, waiting.end) = (0, 0);
        }
        waiting.bytes.get_mut(start..end)
    }

    /// Length of the oldest datagram, bytes.
    #[must_use]
    pub fn next_len(&self) -> Option<usize> {
        let waiting = self.waiting.as_ref()?;
        Some(waiting.ends.front()? - waiting.start)
    }

    /// Number of datagrams waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.as_ref().map_or(0, |waiting| waiting.ends.len())
    }

    /// Whether no datagram is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of datagrams dropped because the queue was full.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Bytes of the datagrams waiting, and of their places.
    pub(crate) fn held(&self) -> usize {
        let waiting =
            |waiting: &Waiting| waiting.end - waiting.start + waiting.ends.len() * size_of::<usize>();
        self.waiting.as_deref().map_or(0, waiting)
    }

    /// Bytes of heap memory that the queue owns, used or not.
    #[must_use]
    pub fn memory(&self) -> usize {
        let waiting = |waiting: &Waiting| {
            size_of::<Waiting>() + waiting.bytes.capacity() + waiting.ends.capacity() * size_of::<usize>()
        };
        self.waiting.as_deref().map_or(0, waiting)
    }

    /// Frees the memory if no datagram is waiting.
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
        if let Some(room) = self.room(datagram.len()).and_then(|room| room.get_mut(..datagram.len())) {
            room.copy_from_slice(datagram);
            self.put(datagram.len());
        } else {
            self.dropped += 1;
        }
    }

    #[inline]
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        let waiting = self.waiting.get_or_insert_default();
        let places = waiting.ends.len() * size_of::<usize>();
        if waiting.end - waiting.start + len > self.limit as usize || places >= self.limit as usize {
            return None; // empty datagrams take places as well
        }
        if waiting.bytes.len() - waiting.end < len {
            waiting.make_room(len);
        }
        waiting.bytes.get_mut(waiting.end..)
    }

    #[inline]
    fn put(&mut self, len: usize) {
        if let Some(waiting) = &mut self.waiting {
            waiting.end += len;
            waiting.ends.push_back(waiting.end);
        }
    }

    #[inline]
    fn is_full(&mut self) -> bool {
        let is_full = self.is_in_bursts
            && self.waiting.as_ref().is_some_and(|waiting| waiting.end - waiting.start >= BURST);
        self.was_full |= is_full;
        is_full
    }
}

impl Waiting {
    /// Closes the gap left by popped datagrams if it is at least as long as what is held, so
    /// that each byte is moved at most once. Otherwise allocates more memory.
    #[cold]
    fn make_room(&mut self, len: usize) {
        if self.start > 0 && self.start >= self.end - self.start {
            self.bytes.copy_within(self.start..self.end, 0);
            for end in &mut self.ends {
                *end -= self.start;
            }
            (self.start, self.end) = (0, self.end - self.start);
        }
        let need = self.end + len;
        if need > self.bytes.len() {
            self.bytes.reserve(need - self.bytes.len());
            self.bytes.resize(self.bytes.capacity(), 0);
        }
    }
}

/// Bytes of a [burst](DatagramQueue::in_bursts): as much as two system calls take, and a fraction of a core's
/// cache.
const BURST: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_come_out_in_order_while_others_come_in() {
        let mut queue = DatagramQueue::new();
        let (mut sent, mut popped, mut most) = (0u32, 0u32, 0);
        for round in 0..200 {
            for _ in 0..round % 7 {
                queue.output(&sent.to_le_bytes());
                sent += 1;
                most = most.max(4 * queue.len());
                let bytes = queue.waiting.as_ref().unwrap().bytes.len();
                assert!(bytes <= 4 * most + 8, "{bytes} bytes of {most}: popped bytes pile up");
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
