//! Rebuilds missing segments from received segments and repairs.

use super::effort::{Effort, SAVED_MAX, of_bytes, of_rows};
use super::field::mul;
use super::history::History;
use super::repair::{COVER_MAX, Cover, RepairError, SYMBOL_HEAD};
use super::solver::{Row, Solver};
use super::sum::Sum;
use crate::seq::Sn;
use crate::time::{Millis, Time};

/// How much a [`Decoder`] may remember.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `DecoderConfig { .., ..DecoderConfig::default() }`")]
pub struct DecoderConfig {
    /// Most segments to remember: the ones received last. A repair is useful as long as every segment that it
    /// covers is either missing or remembered.
    pub segments: u16,
    /// Most bytes that these segments may take, including 7 bytes of overhead per segment.
    pub bytes: u32,
    /// Most data in one segment of the peer, bytes. A longer repair is refused; a longer segment is not
    /// remembered.
    pub mss: u16,
}

impl Default for DecoderConfig {
    /// 512 segments of up to 1400 bytes each, with no tighter limit on their total.
    fn default() -> Self {
        Self { segments: 512, bytes: 512 * (1400 + 7), mss: 1400 }
    }
}

/// Rebuilds missing segments from received segments and repairs.
///
/// Report every segment with [`received`](Self::received) and every repair with [`repair`](Self::repair).
/// After each, call [`recover`](Self::recover) until it returns `None`.
///
/// While nothing is missing, a segment costs one copy, and a repair is only read far enough to find out where
/// its coverage ends. No memory is allocated before the first segment; the module documentation lists the
/// bounds.
#[derive(Clone, Debug)]
pub struct Decoder {
    history: History,
    solver: Solver,
    sum: Sum,
    mss: u16,
    effort: Effort,
    stats: DecoderStats,
}

impl Decoder {
    /// Creates a decoder. It allocates nothing yet.
    pub fn new(config: &DecoderConfig) -> Self {
        let DecoderConfig { segments, bytes, mss } = *config;
        let history = History::new(segments, bytes);
        let (solver, sum) = (Solver::default(), Sum::default());
        Self { history, solver, sum, mss, effort: Effort::FULL, stats: DecoderStats::default() }
    }

    /// Bytes of memory that it owns: what it remembers, and the repairs that wait, at most 96 and their buffers.
    pub(crate) fn memory(&self) -> usize {
        self.history.memory() + self.solver.memory() + self.sum.memory()
    }

    /// Forgets all segments and repairs, and frees their memory.
    pub(crate) fn rest(&mut self) {
        self.history.clear();
        (self.solver, self.sum) = (Solver::default(), Sum::default());
    }

    /// Notes that a datagram of `bytes` bytes came, which pays for some work. Call this for each datagram,
    /// before passing on what is in it.
    pub fn earn(&mut self, now: Time, bytes: usize) {
        self.effort.earn(now, bytes);
    }

    /// Gives up on the missing segments before `sn`, and drops the repairs that cover any of them.
    pub fn give_up_before(&mut self, sn: Sn) {
        if self.solver.misses_before(sn) {
            let rows = self.solver.rows_to_give_up_before(sn);
            if rows.is_some_and(|rows| self.effort.spend(of_rows(rows))) {
                self.solver.give_up_before(sn);
            } else {
                self.solver.clear();
            }
        }
    }

    /// Remembers a received segment. Segments may come in any order, but every one must be reported: a repair
    /// that covers an unreported one is useless. Returns `false` if the segment was already known.
    #[inline]
    pub fn received(&mut self, sn: Sn, frg: u8, data: &[u8]) -> bool {
        if self.history.find(sn).is_some() {
            return false;
        }
        if data.len() <= self.mss.into() {
            self.history.push(sn, frg, data);
        }
        let Self { solver, effort, stats, .. } = self;
        learn(sn, solver, effort, stats);
        true
    }

    /// Takes the repair in the payload of a WINS segment with the numbers `sn` and `ts`.
    ///
    /// `nxt` is the next expected number: all segments before it have arrived, and none from `nxt + wnd` on
    /// can arrive. A repair that covers no missing segment is dropped at once; that is not an error. An error
    /// changes nothing but a counter.
    pub fn repair(
        &mut self,
        sn: Sn,
        ts: Millis,
        payload: &[u8],
        nxt: Sn,
        wnd: u16,
    ) -> Result<(), RepairError> {
        let result = self.check(sn, payload, nxt, wnd).and_then(|(cover, body, missing)| {
            if missing == 0 {
                self.stats.needless += 1;
                return Ok(());
            }
            if self.solver.misses_before(nxt) {
                self.solver.clear(); // the segment had arrived but was dropped from the history, or was never reported
            }
            let price = of_rows(self.solver.rows_to_insert(missing));
            if !self.effort.spend(price) {
                return Err(RepairError::TooMuchWork);
            }
            self.solver.insert(cover, ts, body, missing)
        });
        result.inspect_err(|error| self.stats.rejected.count(error))
    }

    /// Rebuilds one missing segment if possible, and remembers it as if it had arrived. Call this until it
    /// returns `None`. It may also do so because that would take more work than was paid for; then the segment is
    /// rebuilt after further datagrams.
    ///
    /// A segment that arrived behind a gap and has been dropped from the history counts as missing, so the
    /// receiver has to check for duplicates here as well.
    pub fn recover(&mut self) -> Option<Recovered<'_>> {
        let Self { history, solver, sum, stats, effort, .. } = self;
        let (sn, row) = solver.solved()?;
        let price = price_of(sn, row, solver).saturating_add(of_rows(solver.rows_to_learn()));
        if price > SAVED_MAX {
            stats.rejected.unpaid += 1;
            solver.clear(); // it can never be paid for
        }
        if !effort.spend(price) {
            return None;
        }
        let (sn, row) = solver.solved()?;
        match rebuild(sn, row, solver, history, sum) {
            Ok(recovered) => {
                history.push(sn, recovered.frg, recovered.data);
                if let Some(column) = solver.column_of(sn) {
                    solver.learn_column(column);
                }
                Some(recovered)
            }
            Err(fault) => {
                *match fault {
                    Fault::Contradiction => &mut stats.rejected.contradictory,
                    Fault::Stale => &mut stats.rejected.stale,
                } += 1;
                solver.clear(); // there is no telling which repair is wrong
                None
            }
        }
    }

    /// Drops the oldest segments before `sn`. The peer sends no more repairs for them.
    pub fn forget_before(&mut self, sn: Sn) {
        self.history.forget_before(sn);
    }

    /// What happened to the repairs so far.
    pub const fn stats(&self) -> DecoderStats {
        DecoderStats { work: self.effort.spent, ..self.stats }
    }

    /// Returns what a repair covers, its coded bytes, and which of the covered segments are missing.
    fn check<'a>(
        &self,
        sn: Sn,
        payload: &'a [u8],
        nxt: Sn,
        wnd: u16,
    ) -> Result<(Cover, &'a [u8], u64), RepairError> {
        let (cover, body) = Cover::decode(sn, payload)?;
        let max = SYMBOL_HEAD + usize::from(self.mss);
        if body.len() > max {
            return Err(RepairError::TooLong { have: body.len(), max });
        }
        Ok((cover, body, self.missing_of(cover, nxt, wnd)?))
    }

    /// Which of the covered segments are missing: one bit each, the lowest for the first.
    fn missing_of(&self, cover: Cover, nxt: Sn, wnd: u16) -> Result<u64, RepairError> {
        let last = cover.first.add(u32::from(cover.span()) - 1);
        if last.is_before(nxt) {
            return Ok(0);
        }
        if last.offset_in(nxt, wnd.into()).is_none() {
            return Err(RepairError::BeyondWindow { last });
        }
        let mut missing = 0;
        for sn in cover.segments() {
            if self.history.find(sn).is_some() {
                continue;
            }
            if sn.is_before(nxt) {
                return Err(RepairError::Forgotten { sn });
            }
            missing |= 1 << sn.0.wrapping_sub(cover.first.0);
        }
        Ok(missing)
    }
}

/// A missing segment that was rebuilt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Recovered<'a> {
    /// Its number.
    pub sn: Sn,
    /// How many fragments of the message follow this one.
    pub frg: u8,
    /// Its data.
    pub data: &'a [u8],
    /// The latest `ts` of the repairs that it was rebuilt from. Acknowledge the segment with it.
    pub ts: Millis,
}

/// Why a row yields no segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    /// The result is not a valid symbol: a repair was not made from the segments that it claims to cover.
    Contradiction,
    /// It needs a segment that is no longer remembered.
    Stale,
}

/// Notes that the segment `sn` is no longer missing. If nobody has paid for what follows from it, all repairs are
/// dropped.
#[inline]
fn learn(sn: Sn, solver: &mut Solver, effort: &mut Effort, stats: &mut DecoderStats) {
    let Some(column) = solver.column_of(sn) else { return };
    if effort.spend(of_rows(solver.rows_to_learn())) {
        solver.learn_column(column);
    } else {
        stats.rejected.unpaid += 1;
        solver.clear();
    }
}

/// The most that it takes to rebuild the segment `sn` from `row`.
fn price_of(sn: Sn, row: &Row, solver: &Solver) -> u32 {
    let (mut parts, mut bytes, mut longest, mut start, mut end) = (0, 0, 0, 0, 0);
    for (_, repair) in solver.parts(row) {
        parts += 1;
        bytes += of_bytes(repair.body.len());
        longest = longest.max(repair.body.len());
        let first = repair.cover.first.distance(sn);
        start = start.min(first);
        end = end.max(first.saturating_add(repair.cover.span().into()));
    }
    let span = u32::try_from(end.saturating_sub(start)).unwrap_or(0);
    of_bytes(longest).saturating_mul(span).saturating_add(bytes).saturating_add(of_rows(parts))
}

/// Computes the missing segment `sn` from `row`: the sum of its repairs minus the known segments that they
/// cover. The other missing segments cancel out.
fn rebuild<'a>(
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
        return Err(Fault::Stale); // it arrived after one of the repairs, and was dropped from the history before another
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
    /// An empty sum that begins at the first segment that any of `covers` covers, relative to `sn`.
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

    /// Takes a segment out of the sum and returns its coefficient.
    fn remove(&mut self, sn: Sn) -> u8 {
        let at = sn.0.wrapping_sub(self.first.0) as usize;
        self.coefficients.get_mut(at).map_or(0, std::mem::take)
    }

    /// The segments whose coefficient is not 0, each with its coefficient.
    fn segments(&self) -> impl Iterator<Item = (Sn, u8)> {
        let coefficients = self.coefficients.iter().copied().take(self.span);
        let segments = (0..).map(|offset| self.first.add(offset));
        segments.zip(coefficients).filter(|&(_, coefficient)| coefficient != 0)
    }
}

/// Reads `frg` and the data of a symbol. Returns `None` if it is invalid or its padding is not all zeros.
fn read_symbol(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (&[low, high, frg], rest) = bytes.split_first_chunk()?;
    let (data, padding) = rest.split_at_checked(u16::from_le_bytes([low, high]).into())?;
    padding.iter().all(|&byte| byte == 0).then_some((frg, data))
}

/// Most segments between the first and the last that the repairs of one row cover. Beyond that, some would be
/// older than anything remembered.
const SPAN_MAX: usize = 1024;

/// What happened to the repairs that a [`Decoder`](super::Decoder) was given.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct DecoderStats {
    /// Repairs that covered no missing segment.
    pub needless: u64,
    /// Repairs that were refused.
    pub rejected: RejectedRepairs,
    /// Work so far, in units of about 64 instructions.
    pub work: u64,
}

reasons! {
    /// Refused repairs, by reason.
    pub struct RejectedRepairs: u64, by RepairError {
        truncated: Truncated,
        span: Span,
        holes: Holes,
        too_long: TooLong,
        beyond_window: BeyondWindow,
        forgotten: Forgotten,
        too_many_missing: TooManyMissing,
        too_much_work: TooMuchWork,
        ;
        /// Times that repairs contradicted each other. All kept repairs were dropped.
        contradictory,
        /// Times that a repair was solved only after a segment that it covers had been dropped from the
        /// history. All kept repairs were dropped.
        stale,
        /// Times that using the kept repairs took more work than the datagrams so far had paid for. All were dropped.
        unpaid,
    }
}
