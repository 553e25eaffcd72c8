//! Asks for the peer's window while it is closed, and tells ours.

use super::packer::Packer;
use crate::time::Millis;
use crate::wire::{Command, Header, Output};

/// Window probes. Source: ikcp.c `ikcp_flush`, `ts_probe`, `probe_wait`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// When to ask next; while `wait` is 0, when to tell again.
    pub(super) at: Millis,
    /// Time between two questions, ms. 0: the peer's window is open.
    pub(super) wait: u32,
    /// A question is due.
    pub(super) ask: bool,
    /// The peer has asked for our window.
    pub(super) tell: bool,
    /// How often to tell again that the window has opened.
    again: u8,
}

/// How often to ask, ms: the first wait, which grows by half each time, and the longest.
pub(super) type Patience = (u32, u32);

/// Source: ikcp.c 2.1.1 `IKCP_PROBE_INIT`, 7000 up to 1.7.1, and `IKCP_PROBE_LIMIT`.
pub(super) const PATIENCE: Patience = (5000, 120_000);
/// For a peer that may have paused reading only for a moment.
pub(super) const PATIENCE_EARLY: Patience = (200, 2000);

impl Probe {
    /// Whether a question or a repeat is due, or was due a moment ago.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.wait != 0 || self.again != 0 || self.at != Millis(0)
    }

    /// Starts, continues or stops asking.
    pub(super) fn tick(&mut self, now: Millis, rmt_wnd: u16, patience: Patience) {
        if rmt_wnd != 0 {
            self.wait = 0;
            self.tick_open(now);
        } else if self.wait == 0 {
            (self.wait, _) = patience;
            self.at = now.add(self.wait);
        } else if self.ask_at(now, patience).is_due(now) {
            self.wait = (self.wait + self.wait / 2).min(patience.1);
            self.at = now.add(self.wait);
            self.ask = true;
        }
    }

    /// When to ask next while the peer's window is closed.
    pub(super) fn ask_at(&self, now: Millis, patience: Patience) -> Millis {
        not_after(self.at, now, patience.1)
    }

    /// Tells again that our window has opened, while the peer's is open.
    fn tick_open(&mut self, now: Millis) {
        if self.again == 0 {
            self.at = Millis(0);
            return;
        }
        if !self.tell && not_after(self.at, now, AGAIN_AFTER).is_due(now) {
            self.again -= 1;
            self.tell = true;
        }
        if self.tell {
            self.at = now.add(AGAIN_AFTER);
        }
    }

    /// Our window has opened. The news may get lost, and then the peer would wait for a probe, so it is sent more than
    /// once.
    pub(super) fn opened(&mut self, tells_again: bool) {
        self.tell = true;
        if tells_again {
            self.again = AGAIN;
        }
    }

    /// When to tell the peer again, whose window is `rmt_wnd`. Not before that window opens.
    pub(super) fn tell_again_at(&self, now: Millis, rmt_wnd: u16) -> Option<Millis> {
        (self.again > 0 && rmt_wnd != 0).then(|| not_after(self.at, now, AGAIN_AFTER))
    }

    /// Sends what is due. The segments keep the `sn` and `ts` of `header`.
    pub(super) fn flush<O: Output>(&mut self, header: &mut Header, packer: &mut Packer<'_, O>) {
        if self.ask {
            header.cmd = Command::Wask;
            packer.push(header, 0);
        }
        if self.tell {
            header.cmd = Command::Wins;
            packer.push(header, 0);
        }
        (self.ask, self.tell) = (false, false);
    }
}

/// `at`, or `now` if `at` is more than `longest` ms ahead: then the clock was set back.
fn not_after(at: Millis, now: Millis, longest: u32) -> Millis {
    if i64::from(at.since(now)) > i64::from(longest) { now } else { at }
}

/// How often the peer is told again that the window has opened.
const AGAIN: u8 = 3;
/// Time between two of those, ms.
const AGAIN_AFTER: u32 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_by_more_than_the_longest_wait_asks_at_once() {
        for (patience, back) in [(PATIENCE_EARLY, 3000), (PATIENCE, 130_000)] {
            let mut probe = Probe::default();
            probe.tick(Millis(500_000), 0, patience);
            probe.tick(Millis(500_000 - back / 4), 0, patience);
            assert!(!probe.ask);
            probe.tick(Millis(500_000 - back), 0, patience);
            assert!(probe.ask);
        }
    }
}
