//! Rows of coefficients, as Gaussian elimination adds and scales them.

use super::gf256::{inverse, mul_add};

/// Most missing segments that equations are kept for, and so most equations: more of them would
/// depend on each other.
pub(super) const MISSING_MAX: usize = 96;

/// A sum of missing segments, and the sum of repairs that it equals, but for what is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    /// The missing segment, by its column, that no other row has; its coefficient is 1.
    pub(super) pivot: usize,
    /// The coefficients of the missing segments.
    pub(super) missing: Line,
    /// The coefficients of the repairs.
    pub(super) repairs: Line,
}

impl Row {
    /// Adds so much of `other` that its pivot vanishes from here.
    pub(super) fn eliminate(&mut self, other: &Self) {
        self.add(self.missing.at(other.pivot), other);
    }

    /// Adds `factor` times `other`.
    pub(super) fn add(&mut self, factor: u8, other: &Self) {
        if factor != 0 {
            mul_add(&mut self.missing.0, factor, &other.missing.0);
            mul_add(&mut self.repairs.0, factor, &other.repairs.0);
        }
    }

    /// Divides by `divisor`, which is not 0.
    pub(super) fn divided_by(&self, divisor: u8) -> Self {
        let mut quotient = Self { pivot: self.pivot, ..Self::default() };
        quotient.add(inverse(divisor).unwrap_or(0), self);
        quotient
    }

    /// Whether only the pivot is left.
    pub(super) fn is_solved(&self) -> bool {
        self.missing.0.iter().map(|&coefficient| u8::from(coefficient != 0)).sum::<u8>() == 1
    }
}

/// Coefficients by column; those of columns that there are not are 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line([u8; MISSING_MAX]);

impl Default for Line {
    fn default() -> Self {
        Self([0; MISSING_MAX])
    }
}

impl Line {
    /// The coefficient of a column.
    pub(super) fn at(&self, column: usize) -> u8 {
        self.0.get(column).copied().unwrap_or(0)
    }

    /// Sets the coefficient of a column that there may be.
    pub(super) fn set(&mut self, column: usize, coefficient: u8) {
        if let Some(at) = self.0.get_mut(column) {
            *at = coefficient;
        }
    }

    /// The first column that is not 0.
    pub(super) fn first(&self) -> Option<usize> {
        self.0.iter().position(|&coefficient| coefficient != 0)
    }

    /// Takes a column out; the `last` one moves to its place.
    pub(super) fn swap_remove(&mut self, column: usize, last: usize) {
        self.set(column, self.at(last));
        self.set(last, 0);
    }

    /// The columns that are not 0, with their coefficients.
    pub(super) fn nonzero(&self) -> impl Iterator<Item = (usize, u8)> {
        self.0.iter().copied().enumerate().filter(|&(_, coefficient)| coefficient != 0)
    }
}
