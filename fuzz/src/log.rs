//! Compares event logs with the counters.

use whitewater::Time;
use whitewater::events::Logged;
use whitewater::kcp::{self, Kcp, Sn};
use whitewater::machine::DatagramQueue;
use whitewater::session::{Connection, SessionEvent};

/// The log of a control block, added up.
#[derive(Debug)]
pub(crate) struct KcpBook {
    first: Sn,
    sent: u32,
    acked: u32,
    resends: u64,
    bytes: [u64; 2],
}

impl KcpBook {
    /// Switches on the log of a fresh control block.
    pub(crate) fn open(kcp: &mut Kcp<DatagramQueue>, now: Time) -> Self {
        kcp.log_events(now, MOST);
        Self { first: kcp.stats().snd_nxt, sent: 0, acked: 0, resends: 0, bytes: [0; 2] }
    }

    /// Reads the log and compares. Returns `false` if events are missing, so that there is nothing to compare
    /// any more.
    ///
    /// # Panics
    ///
    /// If a line is invalid, or the log disagrees with the statistics.
    pub(crate) fn check(&mut self, kcp: &mut Kcp<DatagramQueue>) -> bool {
        while let Some(logged) = kcp.poll_log() {
            check_line(&logged.to_string());
            match logged.event {
                kcp::Event::Lost { .. } => return false,
                kcp::Event::Send { sn, n, .. } => {
                    assert_eq!(sn, self.first.add(self.sent));
                    self.sent = self.sent.wrapping_add(n);
                }
                kcp::Event::Ack { n, .. } => self.acked = self.acked.wrapping_add(n),
                kcp::Event::Resend { .. } => self.resends += 1,
                kcp::Event::Out { bytes, .. } => self.bytes[0] += bytes,
                kcp::Event::In { bytes, .. } => self.bytes[1] += bytes,
                _ => {}
            }
        }
        let stats = kcp.stats();
        assert_eq!(self.first.add(self.sent), stats.snd_nxt);
        assert_eq!(self.sent.wrapping_sub(self.acked), stats.in_flight);
        assert_eq!(self.resends, u64::from(stats.resends_timeout) + u64::from(stats.resends_fast));
        assert_eq!(self.bytes, [stats.bytes_sent, stats.bytes_received]);
        true
    }
}

/// The log of a session, added up since it was switched on.
#[derive(Debug, Default)]
pub(crate) struct SessionBook {
    /// Datagrams sent and received by then, from the statistics.
    base: Option<[u64; 2]>,
    counts: [u64; 2],
    /// Events are missing, or the session was active before logging began.
    is_over: bool,
}

impl SessionBook {
    /// Switches on the log if it is off, reads it, and compares.
    ///
    /// # Panics
    ///
    /// When a line is none, or the log says other than the statistics.
    pub(crate) fn check(&mut self, connection: &mut Connection) {
        let stats = connection.stats();
        let Some(base) = self.base else {
            connection.log_events(MOST);
            self.base = Some([stats.sent, stats.received]);
            return;
        };
        while let Some(Logged { at, event }) = connection.poll_log() {
            check_line(&Logged { at, event }.to_string());
            match event {
                SessionEvent::Out { n, .. } => self.counts[0] += n,
                SessionEvent::In { .. } => self.counts[1] += 1,
                SessionEvent::Lost { .. } => self.is_over = true,
                _ => {}
            }
        }
        let since = [stats.sent - base[0], stats.received - base[1]];
        assert!(self.is_over || self.counts == since, "{self:?} {since:?}");
    }
}

/// Checks that a line is one flat JSON object.
fn check_line(line: &str) {
    assert!(line.starts_with("{\"t\":") && line.ends_with('}'), "{line}");
    let count = |what: char| line.chars().filter(|one| *one == what).count();
    assert!(count('{') == 1 && count('}') == 1 && count('"').is_multiple_of(2), "{line}");
    assert!(!line.chars().any(char::is_control), "{line:?}");
}

/// Most events kept between two checks.
const MOST: usize = 20_000;
