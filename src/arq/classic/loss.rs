//! Finding lost segments: by time, and by acknowledgements of later ones.
//!
//! [`due`] decides and changes nothing; the sender commits when budget and datagram allow it.

use crate::arq::config::Config;
use crate::arq::outgoing::{Due, Flight};
use crate::seq::Sn;
use crate::time::Millis;

/// Decides and changes nothing. Source: ikcp.c `ikcp_flush`.
#[inline]
pub(super) fn due(segment: &Flight, now: Millis, config: &Config) -> Due {
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

/// The acknowledgements since the last flush that passed segments over: one a datagram.
///
/// ikcp.c walks its send buffer at each datagram and counts in every segment. Here the datagrams
/// are noted, and one walk in the next flush counts them all.
#[derive(Debug, Default)]
pub(super) struct Passes {
    list: Vec<Pass>,
}

/// The newest number that a datagram acknowledged, and the time echoed for it.
#[derive(Clone, Copy, Debug)]
struct Pass {
    sn: Sn,
    ts: Millis,
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
        self.list.push(Pass { sn, ts });
        self.list.len() < PASSES_MAX
    }

    /// Makes the noted datagrams ready for questions about segments from `una` on, in their order.
    pub(super) fn sorted(&mut self, una: Sn) -> SortedPasses<'_> {
        // Mostly they are in order already: ACKs come back as the segments went out.
        self.list.sort_unstable_by_key(|pass| pass.sn.distance(una));
        let times = || self.list.iter().map(|pass| pass.ts);
        let oldest = times().reduce(Millis::earlier).unwrap_or_default();
        let newest = times().reduce(Millis::later).unwrap_or_default();
        SortedPasses { list: &self.list, oldest, newest }
    }
}

/// Noted datagrams by the number that they acknowledged, made by [`Passes::sorted`].
pub(super) struct SortedPasses<'a> {
    /// Those that passed over the segment asked about last.
    list: &'a [Pass],
    /// The oldest time echoed by any, and the newest.
    oldest: Millis,
    newest: Millis,
}

impl SortedPasses<'_> {
    /// The number at which, and after which, no segment was passed over.
    pub(super) fn end(&self, una: Sn) -> Sn {
        self.list.last().map_or(una, |pass| pass.sn)
    }

    /// How many datagrams passed over the segment `sn`, last sent at `ts`: acknowledged a later one
    /// that was not sent before it. To be asked in the order of the segments. Source: ikcp.c
    /// `ikcp_parse_fastack`, `IKCP_FASTACK_CONSERVE`.
    #[inline]
    pub(super) fn count(&mut self, sn: Sn, ts: Millis) -> u16 {
        while let [first, rest @ ..] = self.list
            && !sn.is_before(first.sn)
        {
            self.list = rest;
        }
        if self.list.is_empty() {
            return 0;
        }
        let count = if self.oldest.since(ts) >= 0 {
            self.list.len()
        } else if self.newest.since(ts) < 0 {
            0
        } else {
            self.list.iter().filter(|pass| pass.ts.since(ts) >= 0).count()
        };
        u16::try_from(count).unwrap_or(u16::MAX)
    }
}

/// Datagrams noted before they are counted.
const PASSES_MAX: usize = 256;
