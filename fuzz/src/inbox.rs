//! A naive model of a receiver: a list of what can be read and a map of what waits behind a gap.

use std::collections::{BTreeMap, VecDeque};
use whitewater::kcp::Sn;

/// A receiver that copies everything and searches for everything.
pub struct Inbox {
    nxt: Sn,
    /// Segments before `nxt` that were not read.
    queue: VecDeque<Segment>,
    /// Segments from `nxt` on, by the number of segments received in order before them.
    parked: BTreeMap<u64, Segment>,
    /// Number of segments received in order.
    count: u64,
    /// `frg` of the last of them.
    last_frg: u8,
}

struct Segment {
    frg: u8,
    data: Vec<u8>,
}

impl Inbox {
    /// An empty receiver that expects `nxt` first.
    #[must_use]
    pub const fn new(nxt: Sn) -> Self {
        Self { nxt, queue: VecDeque::new(), parked: BTreeMap::new(), count: 0, last_frg: 0 }
    }

    /// The number expected next, segments that can be read, segments that wait.
    #[must_use]
    pub fn state(&self) -> (Sn, usize, usize) {
        (self.nxt, self.queue.len(), self.parked.len())
    }

    /// Takes a PUSH if it is the first with its number, within the window, and its `frg` continues those of
    /// both neighbours.
    pub fn push(&mut self, sn: Sn, frg: u8, data: &[u8], rcv_wnd: u16) {
        let Ok(ahead) = u16::try_from(sn.distance(self.nxt)) else { return };
        let at = self.count + u64::from(ahead);
        if ahead >= rcv_wnd || self.parked.contains_key(&at) {
            return;
        }
        let frg_at = |at| self.parked.get(&at).map(|segment| segment.frg);
        let before = if ahead == 0 { self.last_frg } else { frg_at(at - 1).unwrap_or(0) };
        let goes_on = |before: u8, after: u8| before == 0 || before - 1 == after;
        if goes_on(before, frg) && frg_at(at + 1).is_none_or(|after| goes_on(frg, after)) {
            self.parked.insert(at, Segment { frg, data: data.to_vec() });
            self.deliver(rcv_wnd);
        }
    }

    /// Moves segments without a gap before them, as far as the window has room.
    pub fn deliver(&mut self, rcv_wnd: u16) {
        while self.queue.len() < rcv_wnd.into()
            && let Some(segment) = self.parked.remove(&self.count)
        {
            self.last_frg = segment.frg;
            self.queue.push_back(segment);
            self.count += 1;
            self.nxt = self.nxt.add(1);
        }
    }

    /// The next message, if it is complete.
    #[must_use]
    pub fn peek(&self) -> Option<Vec<u8>> {
        let last = usize::from(self.queue.front()?.frg);
        self.queue.get(last)?;
        Some(self.queue.iter().take(last + 1).flat_map(|segment| segment.data.iter().copied()).collect())
    }

    /// Removes the next message, if it is complete.
    pub fn pop(&mut self, rcv_wnd: u16) -> Option<Vec<u8>> {
        let message = self.peek()?;
        while self.queue.pop_front().is_some_and(|segment| segment.frg > 0) {}
        self.deliver(rcv_wnd);
        Some(message)
    }
}
