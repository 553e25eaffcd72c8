//! From a solved row to the segment that it determines.

use super::gf256::mul;
use super::history::History;
use super::repair::{COVER_MAX, Cover};
use super::row::Row;
use super::solver::Solver;
use super::sum::Sum;
use crate::seq::Sn;
use crate::time::Millis;

/// A segment that did not arrive, rebuilt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Recovered<'a> {
    /// Its number.
    pub sn: Sn,
    /// Fragments of the message that follow it.
    pub frg: u8,
    /// Its data.
    pub data: &'a [u8],
    /// The latest `ts` of the repairs that it was rebuilt from, to acknowledge it with.
    pub ts: Millis,
}

/// Why a row does not give a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// What comes out is no symbol: a repair was not made of the segments that it covers.
    Contradiction,
    /// It takes a segment that is no longer remembered.
    Stale,
}

/// Computes the missing segment `sn` as `row` says: its repairs, without the known segments that
/// they cover. The other missing segments cancel out.
pub(super) fn rebuild<'a>(
    sn: Sn,
    row: &Row,
    solver: &Solver,
    history: &History,
    sum: &'a mut Sum,
) -> Result<Recovered<'a>, Fault> {
    sum.clear();
    let mut covered = Covered::from_first(sn, solver.parts(row).map(|(_, repair)| repair.cover));
    let mut latest = None;
    for (factor, repair) in solver.parts(row) {
        sum.add(factor, repair.body.len(), |to| to.copy_from_slice(&repair.body));
        covered.add(factor, repair.cover)?;
        latest = Some(latest.map_or(repair.ts, |latest| repair.ts.later(latest)));
    }
    if covered.remove(sn) != 1 {
        return Err(Fault::Stale); // it arrived after one of the repairs, and was forgotten before another
    }
    for (known, coefficient) in covered.segments() {
        let held = history.find(known).ok_or(Fault::Stale)?;
        sum.add(coefficient, held.symbol_len(), |to| history.copy_symbol(held, to));
    }
    let (frg, data) = read_symbol(sum.result()).ok_or(Fault::Contradiction)?;
    Ok(Recovered { sn, frg, data, ts: latest.unwrap_or_default() })
}

/// The coefficients of the segments that a sum of repairs covers.
struct Covered {
    first: Sn,
    coefficients: [u8; SPAN_MAX],
    /// Segments from the first to the last covered.
    span: usize,
}

impl Covered {
    /// Nothing yet, from the first segment that `covers` cover. All are seen from `sn`.
    fn from_first(sn: Sn, covers: impl Iterator<Item = Cover>) -> Self {
        let first = covers.map(|cover| cover.first).min_by_key(|first| first.distance(sn)).unwrap_or(sn);
        Self { first, coefficients: [0; SPAN_MAX], span: 0 }
    }

    /// Adds `factor` times a repair.
    fn add(&mut self, factor: u8, cover: Cover) -> Result<(), Fault> {
        let most = SPAN_MAX - usize::from(COVER_MAX);
        let start = cover.first.0.wrapping_sub(self.first.0) as usize;
        let rest = self.coefficients.get_mut(start..).filter(|_| start <= most).ok_or(Fault::Stale)?;
        for sn in cover.segments() {
            if let Some(coefficient) = rest.get_mut(sn.0.wrapping_sub(cover.first.0) as usize) {
                *coefficient ^= mul(factor, cover.coefficient(sn));
            }
        }
        self.span = self.span.max(start + usize::from(cover.span()));
        Ok(())
    }

    /// Takes a segment out and returns its coefficient.
    fn remove(&mut self, sn: Sn) -> u8 {
        let at = sn.0.wrapping_sub(self.first.0) as usize;
        self.coefficients.get_mut(at).map_or(0, std::mem::take)
    }

    /// The segments whose coefficient is not 0, with it.
    fn segments(&self) -> impl Iterator<Item = (Sn, u8)> {
        let coefficients = self.coefficients.iter().copied().take(self.span);
        let segments = (0..).map(|offset| self.first.add(offset));
        segments.zip(coefficients).filter(|&(_, coefficient)| coefficient != 0)
    }
}

/// `frg` and data of a symbol; `None`: it is none, or there is more than zeros behind it.
fn read_symbol(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (&[low, high, frg], rest) = bytes.split_first_chunk()?;
    let (data, padding) = rest.split_at_checked(u16::from_le_bytes([low, high]).into())?;
    padding.iter().all(|&byte| byte == 0).then_some((frg, data))
}

/// Most segments from the first to the last that the repairs of a row cover. With more, some of them
/// are older than what is remembered.
const SPAN_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_says_how_long_it_is_and_only_zeros_follow() {
        assert_eq!(read_symbol(&[2, 0, 7, 8, 9]), Some((7, &[8, 9][..])));
        assert_eq!(read_symbol(&[2, 0, 7, 8, 9, 0, 0]), Some((7, &[8, 9][..])));
        assert_eq!(read_symbol(&[2, 0, 7, 8, 9, 0, 1]), None);
        assert_eq!(read_symbol(&[3, 0, 7, 8, 9]), None);
        assert_eq!(read_symbol(&[0, 1, 7, 8, 9]), None);
        assert_eq!(read_symbol(&[0, 0]), None);
    }
}
