//! What the acknowledgements of one datagram tell together of the transmissions that they free.

use crate::arq::outgoing::Flight;
use crate::time::{Millis, Time};

/// What a datagram has freed so far.
#[derive(Debug)]
pub(in crate::arq) struct Arrivals {
    /// What a transmission would have as its token that left now.
    now: Millis,
    /// Shortest round trip measured, µs.
    min_rtt: u32,
    /// The newest transmission that an ACK names: its token, and how long ago it left, µs.
    newest: Option<(Millis, u32)>,
    /// ACKs that name one.
    named: u32,
    /// How long ago the oldest transmission left that has arrived for sure, µs.
    oldest: u32,
    /// Segments that had arrived before they were sent again.
    needless: u32,
    /// Whether a transmission has arrived that tells how long it takes: the segment was sent only once, or the transmission
    /// before left so long ago that it was lost.
    has_first: bool,
    /// Whether a resend has arrived, and perhaps the transmission before it as well.
    has_resend: bool,
}

impl Arrivals {
    pub(in crate::arq) fn new(now: Time, min_rtt: Option<u32>) -> Self {
        let min_rtt = min_rtt.unwrap_or(0);
        Self {
            now: now.token(),
            min_rtt,
            newest: None,
            named: 0,
            oldest: 0,
            needless: 0,
            has_first: false,
            has_resend: false,
        }
    }

    /// An ACK names the transmission with the token `ts`, which left `age` µs ago, of a segment that was last sent as `flight` says.
    pub(super) fn named(&mut self, ts: Millis, age: u32, flight: &Flight) {
        if self.newest.is_none_or(|(newest, _)| ts.since(newest) > 0) {
            self.newest = Some((ts, age));
        }
        self.named += 1;
        self.oldest = self.oldest.max(age);
        self.needless += u32::from(flight.ts != ts);
        if flight.xmit == 1 {
            self.has_first = true;
        } else if flight.ts == ts {
            let before = self.age(flight.resend_at);
            self.has_resend |= before < BEAT_MAX;
            self.has_first |= before >= BEAT_MAX;
        }
    }

    /// `una` has freed a segment that was last sent as `flight` says.
    #[inline]
    pub(in crate::arq) fn freed(&mut self, flight: &Flight) {
        let mut age = self.age(flight.ts);
        if flight.xmit == 1 {
            self.has_first = true;
        } else if self.is_needless(flight.ts, age) {
            self.needless += 1;
            age = self.age(flight.resend_at);
        }
        self.oldest = self.oldest.max(age);
    }

    /// How much longer than the newest transmission acknowledged the oldest one has been away, µs; `None`: no ACK names one.
    pub(super) fn spread(&self) -> Option<u32> {
        self.newest.map(|(_, age)| self.oldest.saturating_sub(age))
    }

    /// Whether all that has arrived may be resends, each of which hides when the transmission before it came.
    pub(super) fn are_unsure(&self) -> bool {
        self.has_resend && !self.has_first && self.needless == 0
    }

    /// Whether more ACKs came together than those of segments that had arrived together.
    pub(super) fn is_many(&self) -> bool {
        self.named >= MANY
    }

    /// Segments that had arrived before they were sent again.
    pub(super) fn needless(&self) -> u32 {
        self.needless
    }

    /// Whether a resend that left `age` µs ago as `ts` cannot be what has arrived: a round trip takes longer, or it left after the newest that
    /// has. Where one datagram does not hold all ACKs, the next one may name it.
    fn is_needless(&self, ts: Millis, age: u32) -> bool {
        age < self.min_rtt - self.min_rtt / 8
            || (self.named < NAMED_MAX && self.newest.is_some_and(|(newest, _)| ts.since(newest) > 0))
    }

    /// How long ago the transmission with the token `ts` left, µs; 0: the clock jumped.
    #[inline]
    fn age(&self, ts: Millis) -> u32 {
        let age = self.now.since(ts);
        if age > super::input::AGE_MAX { 0 } else { u32::try_from(age).unwrap_or(0) }
    }
}

/// For how long a peer may keep to itself that a transmission has arrived, the round trip included, µs.
const BEAT_MAX: u32 = 300_000;
/// ACKs in a datagram that an end which acknowledges at once seldom has.
const MANY: u32 = 4;
/// ACKs in a datagram from which on there may be more than fit.
const NAMED_MAX: u32 = 20;
