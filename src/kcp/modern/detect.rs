//! Decides whether a transmission is lost. [`Rack::due`] decides and changes nothing.

use super::late::Lateness;
use crate::kcp::observe::Cause;
use crate::kcp::rtt::Rtt;
use crate::pace::Reordering;
use crate::seq::Sn;
use crate::time::Time;

/// What is known of the transmissions that have arrived. All times are in µs.
///
/// Source: RFC 8985 (RACK-TLP) for the time of the newest arrival and the allowance for reordering; RFC 9002 for the
/// timeout.
#[derive(Debug, Default)]
pub(in crate::kcp) struct Rack {
    /// The newest transmission known to have arrived, with its round trip.
    newest: Option<(Sent, u64)>,
    /// When that became known.
    newest_at: Time,
    /// When the path began to deliver again after a standstill. `Some` until a transmission that was sent after that
    /// has arrived.
    pub(super) held: Option<Time>,
    /// How much later than later transmissions one may arrive.
    pub(super) lateness: Lateness,
    /// The same with repairs, which rebuild much of what is lost before it is resent: the longest seen.
    pub(super) reordering: Reordering,
    /// Whether the peer rebuilds from repairs.
    pub(super) has_repairs: bool,
    /// When something was last acknowledged, or first sent after silence.
    progress: Time,
    /// While nothing is acknowledged: when to send the next few segments as probes.
    probe_at: Time,
    /// The longest timeout. `None`: unlimited.
    pub(super) impatience: Option<u64>,
    /// Whether there is no congestion window that timeouts would close.
    pub(super) is_open: bool,
    /// Whether the path loses nothing.
    pub(in crate::kcp) is_lossless: bool,
    /// Whether a controller holds segments back, so that acknowledgements come all the time, unless the path pauses.
    pub(super) is_bulk: bool,
    /// Datagrams in a row that acknowledged only resends.
    unsure: u8,
    /// How long an acknowledgement may wait at the peer.
    pub(super) ack_delay: u64,
    /// The last token.
    token: Option<Time>,
}

/// A transmission: when it was sent, and which segment. Segments sent together are in order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Sent {
    pub(super) at: Time,
    pub(super) sn: Sn,
}

impl Sent {
    fn is_before(self, other: Self) -> bool {
        self.at < other.at || (self.at == other.at && self.sn.is_before(other.sn))
    }
}

impl Rack {
    /// The token for what is sent at `now`. Each is unique.
    pub(in crate::kcp) fn token(&mut self, now: Time) -> Time {
        let token = self.token.map_or(now, |last| now.max(last.after(1)));
        self.token = Some(token);
        token
    }

    /// The path has changed: earlier arrivals say nothing about the new one.
    pub(super) fn path_changed(&mut self, now: Time) {
        *self = Self { token: self.token, ..Self::default() };
        self.progress(now);
    }

    /// Nothing that was sent so far will arrive, up to the segment `nxt`: all of it counts as overtaken.
    pub(super) fn path_died(&mut self, nxt: Sn) {
        self.newest = self.token.map(|at| (Sent { at, sn: nxt }, 0));
    }

    /// Whether the clock was set back since the last transmission, by more than `by` µs.
    pub(super) fn was_set_back(&self, now: Time, by: u64) -> bool {
        self.token.is_some_and(|last| last.micros_since(now) > by)
    }

    /// A transmission has arrived. `true`: it is the newest so far, and its round trip should be measured.
    pub(super) fn arrived(&mut self, sent: Sent, now: Time, rtt: &Rtt) -> bool {
        let age = now.micros_since(sent.at);
        match self.newest {
            Some((newest, newest_rtt)) if !newest.is_before(sent) => {
                if self.newest_at < now && sent.is_before(newest) {
                    let by = age.saturating_sub(newest_rtt);
                    let rtt_min = rtt.min().unwrap_or(0).into();
                    self.lateness.came_late(by, rtt_min);
                    self.reordering.came_late(by, rtt_min);
                }
                return false;
            }
            _ => {}
        }
        (self.newest, self.newest_at) = (Some((sent, age)), now);
        self.is_of_path(sent, age, now, rtt)
    }

    /// Whether the age of the newest transmission, µs, is a round trip of the path. It is not if a standstill delayed
    /// it, or if it was sent before the end of one. The first that was sent after it shows whether the path is that
    /// long now.
    fn is_of_path(&mut self, sent: Sent, age: u64, now: Time, rtt: &Rtt) -> bool {
        let is_told = match self.held {
            Some(end) if sent.at < end => return false,
            held => held.is_some(),
        };
        let is_late = age > u64::from(rtt.srtt) + DEVIATIONS * u64::from(rtt.rttvar) + STANDSTILL;
        self.held = (is_late && !is_told).then_some(now);
        self.held.is_none()
    }

    /// A datagram acknowledged only resends, or something else.
    pub(super) fn unsure(&mut self, is_unsure: bool) {
        self.unsure = if is_unsure { self.unsure.saturating_add(1) } else { 0 };
    }

    /// Something was acknowledged, or the first segment is about to be sent.
    pub(in crate::kcp) fn progress(&mut self, now: Time) {
        self.progress = now;
        self.probe_at = Time::ZERO;
    }

    pub(super) fn silence(&self, now: Time) -> u16 {
        u16::try_from(now.micros_since(self.progress) / 1_000_000).unwrap_or(u16::MAX)
    }

    /// Whether and why a transmission is lost.
    pub(super) fn due(&self, sent: Sent, now: Time, rtt: &Rtt) -> Option<Cause> {
        if self.overtaken_at(sent).is_some_and(|at| at <= now) {
            return Some(Cause::Overtaken);
        }
        (self.timeout_at(sent, rtt) <= now).then_some(Cause::Timeout)
    }

    /// When it will count as lost, if nothing arrives before.
    pub(super) fn due_at(&self, sent: Sent, rtt: &Rtt) -> Time {
        let at = self.timeout_at(sent, rtt);
        self.overtaken_at(sent).map_or(at, |overtaken| overtaken.min(at))
    }

    /// When a transmission times out. After a standstill, not while others that it held up still arrive. For bulk, not
    /// while anything arrives: then later ones show what is lost. Source: RFC 9002 (6.2.1).
    fn timeout_at(&self, sent: Sent, rtt: &Rtt) -> Time {
        let from = match self.held {
            _ if self.is_bulk => sent.at.max(self.progress),
            Some(_) => sent.at.max(self.newest_at),
            None => sent.at,
        };
        from.after(self.timeout(rtt)).max(self.probe_at)
    }

    /// Whether nothing has been acknowledged for so long that the path may be down, or a standstill has just ended and
    /// the path is unknown. With so many in flight as of bulk, a timeout is enough: they are not all lost.
    pub(super) fn is_silent(&self, now: Time, rtt: &Rtt) -> bool {
        let is_silent = 2 * now.micros_since(self.progress) > SILENT * self.timeout(rtt);
        is_silent || self.held.is_some() || self.is_bulk
    }

    /// A few timed-out segments were sent. The rest of those in flight wait for news of them.
    pub(super) fn tried(&mut self, now: Time, in_flight: u32, rtt: &Rtt) {
        let (timeout, silence) = (self.timeout(rtt), now.micros_since(self.progress));
        let wait = timeout.max(silence / PROBES).max(patience(timeout, silence, in_flight));
        self.probe_at = now.after(wait.min(PROBE_MAX));
    }

    /// How long a transmission may take to be acknowledged. Source: RFC 9002 (6.2.1).
    pub(super) fn timeout(&self, rtt: &Rtt) -> u64 {
        if self.is_lossless {
            return TIMEOUT_LOSSLESS.max(2 * u64::from(rtt.srtt)).min(TIMEOUT_MAX);
        }
        if rtt.measured().is_none() {
            return FIRST.max(u64::from(rtt.srtt) * 3 / 2); // an assumed round trip may be wrong
        }
        let deviation = u64::from(rtt.rttvar) * DEVIATIONS;
        let margin = deviation.max(GRANULARITY).max(self.allowance()) + self.ack_delay;
        // If every segment is sent twice, nothing measures how long the first takes. Source: P. Karn, C. Partridge
        // 1987, in part.
        let unsure = if self.is_open { UNSURE } else { UNSURE_CWND };
        let back_off = u32::from(self.unsure / unsure).min(BACK_OFF_MAX);
        let timeout = u64::from(rtt.srtt) + margin;
        let timeout = (timeout << back_off).min(timeout + BACK_OFF_BY).clamp(TIMEOUT_MIN, TIMEOUT_MAX);
        self.impatience.map_or(timeout, |longest| timeout.min(longest))
    }

    const fn allowance(&self) -> u64 {
        if self.has_repairs { self.reordering.allowance } else { self.lateness.allowance }
    }

    /// When a transmission counts as overtaken by the newest arrival, if it was sent before that.
    fn overtaken_at(&self, sent: Sent) -> Option<Time> {
        let (_, newest_rtt) = self.newest.filter(|(newest, _)| sent.is_before(*newest))?;
        Some(sent.at.after(newest_rtt + self.allowance()))
    }
}

/// Time between two probes, µs. Chosen so that these segments are resent no more often than by kcp-go, where each waits
/// half a timeout longer each time: it depends on the root of twice the timeout and the silence.
fn patience(timeout: u64, silence: u64, in_flight: u32) -> u64 {
    let waited = silence.saturating_sub(EAGER * timeout).min(PROBE_MAX * PROBES);
    (2 * timeout.max(TIMEOUT_KCP_GO) * waited).isqrt() / u64::from(in_flight.max(1))
}

/// Timeout before the first round trip is measured, µs. Longer if the assumed round trip needs that.
const FIRST: u64 = 200_000;
/// Shortest timeout, µs.
const TIMEOUT_MIN: u64 = 5000;
/// The same on a path that loses nothing, µs: TCP may need a few of its own timeouts before it goes on.
const TIMEOUT_LOSSLESS: u64 = 2_000_000;
/// Longest timeout, µs.
const TIMEOUT_MAX: u64 = 60_000_000;
/// How many mean deviations of the round trip the timeout lies above it.
const DEVIATIONS: u64 = 4;
/// Smallest distance of the timeout from the round trip, µs.
const GRANULARITY: u64 = 2000;
/// Number of datagrams that acknowledge only resends after which the timeout doubles: that many losses in a row are
/// rare. Fewer if a timeout closes the congestion window.
const UNSURE: u8 = 8;
const UNSURE_CWND: u8 = 2;
/// Most doublings.
const BACK_OFF_MAX: u32 = 6;
/// Most time that doubling adds, µs: the longest flush interval that KCPs have by default.
const BACK_OFF_BY: u64 = 100_000;
/// Delay beyond any jitter that counts as a standstill, µs. A first round trip below this, with half of it as its
/// deviation, gives a timeout of 2 s at most.
const STANDSTILL: u64 = 2_000_000 / 3;
/// Half timeouts without an acknowledgement after which the path may be down.
const SILENT: u64 = 5;
/// While nothing is acknowledged, two probes are at least this part of the silence apart.
const PROBES: u64 = 32;
/// Timeouts in a row during which probes do not get rarer, however little is in flight.
const EAGER: u64 = 4;
/// Shortest timeout of kcp-go with `nodelay`, µs.
const TIMEOUT_KCP_GO: u64 = 30_000;
/// Longest time between two probes, µs.
const PROBE_MAX: u64 = 60_000_000;
