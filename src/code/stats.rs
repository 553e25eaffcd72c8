//! What became of repairs.

use super::rebuild::Fault;
use super::repair::RepairError;
use crate::counters::reasons;

/// What became of the repairs that a [`Decoder`](super::Decoder) was told of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct DecoderStats {
    /// Repairs that were taken, the needless ones included.
    pub repairs: u64,
    /// Repairs of which nothing was missing.
    pub needless: u64,
    /// Segments rebuilt.
    pub recovered: u64,
    /// What was refused.
    pub rejected: RejectedRepairs,
}

reasons! {
    /// Repairs refused, by the reason.
    pub struct RejectedRepairs: u64, by RepairError {
        truncated: Truncated,
        span: Span,
        holes: Holes,
        too_long: TooLong,
        beyond_window: BeyondWindow,
        forgotten: Forgotten,
        too_many_missing: TooManyMissing,
        ;
        /// Times that repairs together gave no possible segment; all that were kept were dropped.
        contradictory,
        /// Times that a repair was solved after a segment that it covers had been forgotten; all that
        /// were kept were dropped.
        stale,
    }
}

impl RejectedRepairs {
    pub(super) fn count_fault(&mut self, fault: Fault) {
        *match fault {
            Fault::Contradiction => &mut self.contradictory,
            Fault::Stale => &mut self.stale,
        } += 1;
    }
}
