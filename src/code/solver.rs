//! A system of equations over missing segments, kept solved as far as possible.

use super::field::{inverse, mul_add};
use super::repair::{Cover, RepairError};
use crate::seq::Sn;
use crate::time::Millis;

/// The useful repairs, and what follows from them.
///
/// The rows are in reduced row echelon form: each has a pivot, a missing segment that appears in no other
/// row. Only coefficients are computed; a row records which sum of repairs it stands for. There are as many
/// rows as repairs, and never more than missing segments: a redundant repair is dropped at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Solver {
    /// The missing segments, by their columns.
    missing: Vec<Sn>,
    /// The repairs, by their columns.
    repairs: Vec<Repair>,
    rows: Vec<Row>,
    /// Buffers of dropped repairs, for reuse.
    spare: Vec<Vec<u8>>,
    /// Scratch space for solving again.
    previous: Previous,
}

/// The previous missing segments and repairs while they are being solved again; otherwise empty.
#[derive(Clone, Debug, Default)]
struct Previous {
    missing: Vec<Sn>,
    repairs: Vec<Repair>,
}

/// A repair that is kept.
#[derive(Clone, Debug)]
pub(super) struct Repair {
    pub(super) cover: Cover,
    pub(super) ts: Millis,
    pub(super) body: Vec<u8>,
}

impl Solver {
    /// Takes a repair. `missing` has a bit for each covered segment that is missing.
    pub(super) fn insert(
        &mut self,
        cover: Cover,
        ts: Millis,
        body: &[u8],
        missing: u64,
    ) -> Result<(), RepairError> {
        let missing = || cover.segments_of(missing);
        let fresh = missing().filter(|sn| !self.missing.contains(sn)).count();
        if self.missing.len() + fresh > MISSING_MAX || self.repairs.len() == MISSING_MAX {
            return Err(RepairError::TooManyMissing { max: MISSING_MAX });
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.reserve_exact(body.len());
        kept.extend_from_slice(body);
        self.enter(Repair { cover, ts, body: kept }, missing());
        Ok(())
    }

    /// Adds a repair. There must be room for it.
    fn enter(&mut self, repair: Repair, missing: impl Iterator<Item = Sn>) {
        let mut row = Row::default();
        for sn in missing {
            row.missing.set(self.column(sn), repair.cover.coefficient(sn));
        }
        row.repairs.set(self.repairs.len(), 1);
        self.repairs.push(repair);
        for other in &self.rows {
            row.eliminate(other);
        }
        self.admit(row);
    }

    /// Additions of rows that [`insert`](Self::insert) takes at most.
    pub(super) fn rows_to_insert(&self, missing: u64) -> usize {
        // Looking for many missing segments among many takes as long as some additions.
        2 * (1 + self.rows.len()) + missing.count_ones() as usize * self.missing.len() / 256
    }

    /// Additions of rows that [`learn_column`](Self::learn_column) takes at most.
    pub(super) const fn rows_to_learn(&self) -> usize {
        1 + self.rows.len()
    }

    /// Additions of rows that [`give_up_before`](Self::give_up_before) takes at most. `None`: too many.
    pub(super) fn rows_to_give_up_before(&self, sn: Sn) -> Option<usize> {
        let others = self.repairs.iter().filter(|repair| !repair.cover.first.is_before(sn)).count();
        (others <= SOLVED_ANEW).then_some(others * (others + 1))
    }

    /// Gives up on the missing segments before `sn` and drops the repairs that cover any of them. The others are solved
    /// again.
    pub(super) fn give_up_before(&mut self, sn: Sn) {
        let is_old = |repair: &Repair| repair.cover.first.is_before(sn);
        let mut before = std::mem::take(&mut self.previous);
        std::mem::swap(&mut before.missing, &mut self.missing);
        std::mem::swap(&mut before.repairs, &mut self.repairs);
        self.rows.clear();
        for repair in before.repairs.drain(..) {
            if is_old(&repair) {
                self.spare.push(repair.body);
            } else {
                let cover = repair.cover;
                self.enter(repair, cover.segments().filter(|sn| before.missing.contains(sn)));
            }
        }
        before.missing.clear();
        self.previous = before;
    }

    pub(super) fn memory(&self) -> usize {
        let kept = self.repairs.iter().map(|repair| &repair.body).chain(&self.spare).map(Vec::capacity);
        let lists = (self.repairs.capacity() + self.previous.repairs.capacity()) * size_of::<Repair>()
            + self.spare.capacity() * size_of::<Vec<u8>>()
            + self.rows.capacity() * size_of::<Row>()
            + (self.missing.capacity() + self.previous.missing.capacity()) * size_of::<Sn>();
        kept.sum::<usize>() + lists
    }

    /// The column of a segment, if it is missing.
    #[inline]
    pub(super) fn column_of(&self, sn: Sn) -> Option<usize> {
        self.missing.iter().position(|missing| *missing == sn)
    }

    /// A missing segment that the equations determine, with the row that determines it.
    pub(super) fn solved(&self) -> Option<(Sn, &Row)> {
        let row = self.rows.iter().find(|row| row.is_solved())?;
        Some((*self.missing.get(row.pivot)?, row))
    }

    /// The repairs that a row sums up, with their coefficients.
    pub(super) fn parts(&self, row: &Row) -> impl Iterator<Item = (u8, &Repair)> {
        row.repairs.nonzero().filter_map(|(column, factor)| Some((factor, self.repairs.get(column)?)))
    }

    pub(super) fn misses_before(&self, sn: Sn) -> bool {
        self.missing.iter().any(|missing| missing.is_before(sn))
    }

    pub(super) fn clear(&mut self) {
        self.missing.clear();
        self.rows.clear();
        self.spare.extend(self.repairs.drain(..).map(|repair| repair.body));
    }

    /// The column of a missing segment, added if it is new.
    fn column(&mut self, sn: Sn) -> usize {
        self.column_of(sn).unwrap_or_else(|| {
            self.missing.push(sn);
            self.missing.len() - 1
        })
    }

    /// Notes that a segment is no longer missing: takes its column out of the equations. The row that had it as its pivot
    /// gets another one.
    #[inline(never)]
    pub(super) fn learn_column(&mut self, column: usize) {
        self.missing.swap_remove(column);
        let last = self.missing.len();
        let mut without_pivot = None;
        for (index, row) in self.rows.iter_mut().enumerate() {
            row.missing.swap_remove(column, last);
            if row.pivot == column {
                without_pivot = Some(index);
            } else if row.pivot == last {
                row.pivot = column;
            }
        }
        if let Some(index) = without_pivot {
            let row = self.rows.swap_remove(index);
            self.admit(row);
        }
    }

    /// Adds a row that contains none of the pivots. If it says nothing new, one repair is redundant.
    fn admit(&mut self, row: Row) {
        let Some(pivot) = row.missing.first() else { return self.drop_redundant(&row) };
        let row = Row { pivot, ..row.divided_by(row.missing.at(pivot)) };
        for other in &mut self.rows {
            other.eliminate(&row);
        }
        self.rows.push(row);
    }

    /// Drops a redundant repair. A row without missing segments says that one of its repairs is a sum of the
    /// others; replace it by them in every row.
    fn drop_redundant(&mut self, row: &Row) {
        let Some(column) = row.repairs.first() else { return };
        let row = row.divided_by(row.repairs.at(column));
        let gone = self.repairs.swap_remove(column);
        let last = self.repairs.len();
        for other in &mut self.rows {
            other.add(other.repairs.at(column), &row);
            other.repairs.swap_remove(column, last);
        }
        self.spare.push(gone.body);
    }
}

/// Most repairs that are solved again when older ones are given up.
const SOLVED_ANEW: usize = 16;

/// Most missing segments, and so most equations, that are kept. Further ones would depend on each other.
pub(super) const MISSING_MAX: usize = 96;

/// A sum of missing segments, and the sum of repairs that it equals, apart from the known segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    /// Column of the missing segment that no other row contains. Its coefficient is 1.
    pub(super) pivot: usize,
    /// The coefficients of the missing segments.
    pub(super) missing: Line,
    /// The coefficients of the repairs.
    pub(super) repairs: Line,
}

impl Row {
    /// Adds the multiple of `other` that cancels the pivot of `other` here.
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

    /// Divides by `divisor`, which must not be 0.
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

/// Coefficients by column; 0 for columns that do not exist.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line([u8; MISSING_MAX]);

impl Default for Line {
    fn default() -> Self {
        Self([0; MISSING_MAX])
    }
}

impl Line {
    pub(super) fn at(&self, column: usize) -> u8 {
        self.0.get(column).copied().unwrap_or(0)
    }

    /// Sets the coefficient of a column, if the column exists.
    pub(super) fn set(&mut self, column: usize, coefficient: u8) {
        if let Some(at) = self.0.get_mut(column) {
            *at = coefficient;
        }
    }

    /// The first column whose coefficient is not 0.
    pub(super) fn first(&self) -> Option<usize> {
        self.0.iter().position(|&coefficient| coefficient != 0)
    }

    /// Takes a column out; the `last` one takes its place.
    pub(super) fn swap_remove(&mut self, column: usize, last: usize) {
        self.set(column, self.at(last));
        self.set(last, 0);
    }

    /// The columns whose coefficient is not 0, with their coefficients.
    pub(super) fn nonzero(&self) -> impl Iterator<Item = (usize, u8)> {
        self.0.iter().copied().enumerate().filter(|&(_, coefficient)| coefficient != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn learn(solver: &mut Solver, sn: Sn) {
        let column = solver.column_of(sn).unwrap();
        solver.learn_column(column);
    }

    #[test]
    #[cfg_attr(miri, ignore = "equations of dozens of segments take minutes")]
    fn giving_up_drops_the_repairs_that_cover_old_segments_and_keeps_the_others() {
        let cover = |first, set| Cover { first: Sn(first), set, index: 0 };
        let mut solver = Solver::default();
        solver.insert(cover(5, 0b1011), Millis(0), &[0; 3], 0b11).unwrap(); // 5 and 6
        solver.insert(cover(6, 0b111), Millis(0), &[0; 3], 0b101).unwrap(); // 6 and 8
        assert!(!solver.misses_before(Sn(5)));
        solver.give_up_before(Sn(6));
        assert_eq!((solver.repairs.len(), &solver.missing[..]), (1, &[Sn(6), Sn(8)][..]));
        learn(&mut solver, Sn(8));
        assert_eq!(solver.solved().map(|(sn, _)| sn), Some(Sn(6)));
        for index in 0..30 {
            solver
                .insert(
                    Cover { first: Sn(7 + u32::from(index)), set: u64::MAX, index },
                    Millis(0),
                    &[0; 3],
                    u64::MAX,
                )
                .ok();
        }
        assert_eq!(solver.rows_to_give_up_before(Sn(7)), None, "too many to be solved again");
    }

    #[test]
    #[cfg_attr(miri, ignore = "equations of dozens of segments take minutes")]
    fn the_97th_missing_segment_is_refused_and_nothing_changes() {
        let mut solver = Solver::default();
        let mut insert = |first, set, index| {
            solver.insert(Cover { first: Sn(first), set, index }, Millis(0), &[0; 3], u64::MAX)
        };
        for index in 0..32 {
            for first in [0, 32, 64] {
                insert(first, u32::MAX.into(), index).unwrap();
            }
            assert_eq!(insert(95, 3, index), Err(RepairError::TooManyMissing { max: 96 }));
        }
        let rebuilt = std::iter::from_fn(|| {
            let (sn, _) = solver.solved()?;
            learn(&mut solver, sn);
            Some(sn.0)
        });
        assert!(rebuilt.collect::<BTreeSet<_>>().into_iter().eq(0..96));
    }
}
