//! Finding lost segments: by time, and by acknowledgements of later ones.
//!
//! [`due`] decides and changes nothing; the sender commits when budget and datagram allow it.

use super::config::Config;
use super::send::Outgoing;
use crate::seq::Sn;
use crate::time::Millis;

/// Whether and why a segment is to be sent again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    NotYet,
    Timeout,
    FastResend,
}

/// Decides and changes nothing. Source: ikcp.c `ikcp_flush`.
#[inline]
pub(super) fn due(segment: &Outgoing, now: Millis, config: &Config) -> Due {
    let fast = config.fast_resend;
    if segment.resend_at.is_due(now) {
        Due::Timeout
    } else if fast > 0
        && segment.fastack >= fast
        && (config.fast_limit == 0 || segment.xmit <= config.fast_limit)
    {
        Due::FastResend
    } else {
        Due::NotYet
    }
}

/// RTO of a segment after one more timeout, ms. Source: ikcp.c `ikcp_flush`, where it has no end
/// and the comparison of times flips at 2^31 ms.
pub(super) fn back_off(segment_rto: u32, rto: u32, nodelay: u8) -> u32 {
    let step = match nodelay {
        0 => segment_rto.max(rto),
        1 => segment_rto / 2,
        _ => rto / 2,
    };
    (segment_rto + step).min(BACK_OFF_MAX)
}

/// Longest RTO of a segment, ms: half the reach of the wire's clock.
const BACK_OFF_MAX: u32 = 1 << 30;

/// The acknowledgements since the last flush that passed segments over: one a datagram.
///
/// ikcp.c walks its send buffer at each datagram and counts in every segment. Here the datagrams
/// are noted, and one walk in the next flush counts them all.
#[derive(Debug, Default)]
pub(super) struct Passes {
    /// The newest number that a datagram acknowledged, and the time echoed for it.
    list: Vec<(Sn, Millis)>,
}

impl Passes {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Notes a datagram. `false`: no room for more, they are to be counted first.
    pub(super) fn push(&mut self, sn: Sn, ts: Millis) -> bool {
        self.list.push((sn, ts));
        self.list.len() < PASSES_MAX
    }

    /// What the noted datagrams have in common, for quick answers to most questions. Asked will be
    /// about numbers from `base` on.
    pub(super) fn summary(&self, base: Sn) -> PassSummary<'_> {
        let offsets = || self.list.iter().map(|(sn, _)| u32::try_from(sn.distance(base)).unwrap_or(0));
        let oldest = self.list.iter().map(|&(_, ts)| ts).reduce(Millis::earlier);
        PassSummary {
            list: &self.list,
            all_beyond: base.add(offsets().min().unwrap_or(0)),
            none_beyond: base.add(offsets().max().unwrap_or(0)),
            oldest: oldest.unwrap_or_default(),
        }
    }
}

/// Noted datagrams, made ready by [`Passes::summary`].
pub(super) struct PassSummary<'a> {
    list: &'a [(Sn, Millis)],
    all_beyond: Sn,
    /// No datagram acknowledged anything at or after this.
    pub(super) none_beyond: Sn,
    oldest: Millis,
}

impl PassSummary<'_> {
    /// How many datagrams passed over the segment `sn`, last sent at `ts`: acknowledged a later one
    /// that was not sent before it. Source: ikcp.c `ikcp_parse_fastack`, `IKCP_FASTACK_CONSERVE`.
    pub(super) fn count(&self, sn: Sn, ts: Millis) -> u16 {
        if !sn.is_before(self.none_beyond) {
            return 0;
        }
        let count = if sn.is_before(self.all_beyond) && self.oldest.since(ts) >= 0 {
            self.list.len()
        } else {
            self.list.iter().filter(|(newest, echo)| sn.is_before(*newest) && echo.since(ts) >= 0).count()
        };
        u16::try_from(count).unwrap_or(u16::MAX)
    }
}

/// Datagrams noted before they are counted.
const PASSES_MAX: usize = 64;
