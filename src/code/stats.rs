//! What became of repairs.

use super::rebuild::Fault;
use super::repair::RepairError;

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

/// Repairs refused, by the reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RejectedRepairs {
    /// [`RepairError::Truncated`].
    pub truncated: u64,
    /// [`RepairError::Span`].
    pub span: u64,
    /// [`RepairError::Holes`].
    pub holes: u64,
    /// [`RepairError::TooLong`].
    pub too_long: u64,
    /// [`RepairError::BeyondWindow`].
    pub beyond_window: u64,
    /// [`RepairError::Forgotten`].
    pub forgotten: u64,
    /// [`RepairError::TooManyMissing`].
    pub too_many_missing: u64,
    /// Times that repairs together gave no possible segment; all that were kept were dropped.
    pub contradictory: u64,
    /// Times that a repair was solved after a segment that it covers had been forgotten; all that
    /// were kept were dropped.
    pub stale: u64,
}

impl RejectedRepairs {
    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { truncated, span, holes, too_long, beyond_window, .. } = *self;
        let Self { forgotten, too_many_missing, contradictory, stale, .. } = *self;
        let of_one = truncated + span + holes + too_long + beyond_window + forgotten + too_many_missing;
        of_one + contradictory + stale
    }

    /// The sum, reason by reason.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            truncated: self.truncated + other.truncated,
            span: self.span + other.span,
            holes: self.holes + other.holes,
            too_long: self.too_long + other.too_long,
            beyond_window: self.beyond_window + other.beyond_window,
            forgotten: self.forgotten + other.forgotten,
            too_many_missing: self.too_many_missing + other.too_many_missing,
            contradictory: self.contradictory + other.contradictory,
            stale: self.stale + other.stale,
        }
    }

    pub(super) fn count_error(&mut self, error: RepairError) {
        *match error {
            RepairError::Truncated { .. } => &mut self.truncated,
            RepairError::Span { .. } => &mut self.span,
            RepairError::Holes => &mut self.holes,
            RepairError::TooLong { .. } => &mut self.too_long,
            RepairError::BeyondWindow { .. } => &mut self.beyond_window,
            RepairError::Forgotten { .. } => &mut self.forgotten,
            RepairError::TooManyMissing { .. } => &mut self.too_many_missing,
        } += 1;
    }

    pub(super) fn count_fault(&mut self, fault: Fault) {
        *match fault {
            Fault::Contradiction => &mut self.contradictory,
            Fault::Stale => &mut self.stale,
        } += 1;
    }
}
