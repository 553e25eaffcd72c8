//! Asking for the peer's window when it is closed, and telling ours.

use super::packer::Packer;
use crate::time::Millis;
use crate::wire::{Command, Header, Output};

/// Window probes. Source: ikcp.c `ikcp_flush`, `ts_probe`, `probe_wait`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// When to ask next; means nothing while `wait` is 0.
    pub(super) at: Millis,
    /// ms from the last question to the next; 0: the peer's window is open.
    pub(super) wait: u32,
    /// A question is due.
    pub(super) ask: bool,
    /// The peer wants to know our window.
    pub(super) tell: bool,
}

impl Probe {
    /// Starts, advances or stops the questions.
    pub(super) fn tick(&mut self, now: Millis, rmt_wnd: u16) {
        if rmt_wnd != 0 {
            self.wait = 0;
            self.at = Millis(0);
        } else if self.wait == 0 {
            self.wait = PROBE_INIT;
            self.at = now.add(self.wait);
        } else if self.at.is_due(now) {
            self.wait = (self.wait + self.wait / 2).min(PROBE_LIMIT);
            self.at = now.add(self.wait);
            self.ask = true;
        }
    }

    /// Sends what is due. The segments keep the `sn` and `ts` that `header` has.
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

/// First wait before a zero remote window is probed, ms. Source: ikcp.c 2.1.1 `IKCP_PROBE_INIT`;
/// 7000 up to 1.7.1, and the comment beside it still says so.
const PROBE_INIT: u32 = 5000;
/// Longest wait between two probes, ms. Source: ikcp.c `IKCP_PROBE_LIMIT`.
const PROBE_LIMIT: u32 = 120_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_start_at_5_s_and_slow_down_to_2_minutes() {
        let mut probe = Probe::default();
        let (mut asked, mut last) = (Vec::new(), 0);
        for ms in 0..600_000 {
            probe.tick(Millis(ms), 0);
            if std::mem::take(&mut probe.ask) {
                asked.push(ms - last);
                last = ms;
            }
        }
        assert_eq!(asked[..4], [5000, 7500, 11_250, 16_875]);
        assert_eq!(asked.last(), Some(&120_000));
        probe.tick(Millis(600_000), 1);
        assert_eq!(probe.wait, 0);
    }
}
