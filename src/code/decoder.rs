//! Segments and repairs in, missing segments out.

use super::history::History;
use super::repair::{COVER_MAX, Cover, RepairError, SYMBOL_HEAD};
use super::solver::{Row, Solver};
use super::sum::{Sum, mul};
use crate::seq::Sn;
use crate::time::Millis;

/// What a [`Decoder`] may remember.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `DecoderConfig { .., ..DecoderConfig::default() }`")]
pub struct DecoderConfig {
    /// Most segments remembered, the last that arrived. A repair is of use as long as all that it
    /// covers is missing or remembered.
    pub segments: u16,
    /// Most bytes of them, 7 a segment included.
    pub bytes: u32,
    /// Most data of a segment of the peer, bytes. A longer repair is refused, a longer segment not
    /// remembered.
    pub mss: u16,
}

impl Default for DecoderConfig {
    /// 512 segments, of up to 1400 bytes, without another limit to their bytes.
    fn default() -> Self {
        Self { segments: 512, bytes: 512 * (1400 + 7), mss: 1400 }
    }
}

/// Rebuilds missing segments from those that arrived and from repairs.
///
/// Tell it of every segment that is [`received`](Self::received) and every
/// [`repair`](Self::repair); after either, take out what can be [`recover`](Self::recover)ed.
///
/// With nothing missing it copies each segment once, and looks at no more of a repair than where it
/// ends. It owns no memory before the first segment; the bounds are in the module's
/// documentation.
#[derive(Clone, Debug)]
pub struct Decoder {
    history: History,
    solver: Solver,
    sum: Sum,
    mss: u16,
    stats: DecoderStats,
}

impl Decoder {
    /// A decoder that owns no memory yet.
    pub fn new(config: &DecoderConfig) -> Self {
        let DecoderConfig { segments, bytes, mss } = *config;
        let history = History::new(segments, bytes);
        Self { history, solver: Solver::default(), sum: Sum::default(), mss, stats: DecoderStats::default() }
    }

    /// Bytes of memory of the segments that are remembered.
    pub(crate) const fn memory(&self) -> usize {
        self.history.memory()
    }

    /// Bytes of all memory that it owns.
    pub(crate) fn memory_in_all(&self) -> usize {
        self.history.memory() + self.solver.memory() + self.sum.memory()
    }

    /// Gives up the missing segments before `sn`, and what repairs that cover any so old would have been good for.
    pub fn give_up_before(&mut self, sn: Sn) {
        self.solver.give_up_before(sn);
    }

    /// Remembers a segment that arrived, in any order. All of them must be told, or repairs that
    /// cover them are lost. `false`: it is remembered already.
    #[inline]
    pub fn received(&mut self, sn: Sn, frg: u8, data: &[u8]) -> bool {
        if self.history.find(sn).is_some() {
            return false;
        }
        if data.len() <= self.mss.into() {
            self.history.push(sn, frg, data);
        }
        self.solver.learn(sn);
        true
    }

    /// Takes the repair in the payload of a WINS segment with the numbers `sn` and `ts`.
    ///
    /// `nxt` is the number expected next: all segments before it have arrived, none from `nxt` +
    /// `wnd` on can. A repair of which nothing is missing is dropped at once, which is no error.
    /// After an error nothing has changed but a counter.
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
                self.solver.clear(); // it arrived and was forgotten, or nobody told
            }
            self.solver.insert(cover, ts, body, missing)
        });
        result.inspect_err(|error| self.stats.rejected.count(error))
    }

    /// Rebuilds one missing segment, if that is possible, and remembers it as if it had arrived.
    /// Call again until there is none.
    ///
    /// One that arrived behind a gap and was forgotten since counts as missing, so the receiver has to
    /// look for duplicates here, too.
    pub fn recover(&mut self) -> Option<Recovered<'_>> {
        let Self { history, solver, sum, stats, .. } = self;
        let (sn, row) = solver.solved()?;
        match rebuild(sn, row, solver, history, sum) {
            Ok(recovered) => {
                history.push(sn, recovered.frg, recovered.data);
                solver.learn(sn);
                Some(recovered)
            }
            Err(fault) => {
                *match fault {
                    Fault::Contradiction => &mut stats.rejected.contradictory,
                    Fault::Stale => &mut stats.rejected.stale,
                } += 1;
                solver.clear(); // which of them is to blame cannot be told
                None
            }
        }
    }

    /// Forgets the oldest segments before `sn`, for which the peer will send no more repairs.
    pub fn forget_before(&mut self, sn: Sn) {
        self.history.forget_before(sn);
    }

    /// What became of the repairs so far.
    pub const fn stats(&self) -> DecoderStats {
        self.stats
    }

    /// What a repair covers, its coded bytes, and which of the segments covered are missing.
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

    /// Which of the segments covered are missing: a bit each, the lowest for the first.
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
enum Fault {
    /// What comes out is no symbol: a repair was not made of the segments that it covers.
    Contradiction,
    /// It takes a segment that is no longer remembered.
    Stale,
}

/// Computes the missing segment `sn` as `row` says: its repairs, without the known segments that
/// they cover. The other missing segments cancel out.
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

/// What became of the repairs that a [`Decoder`](super::Decoder) was told of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct DecoderStats {
    /// Repairs of which nothing was missing.
    pub needless: u64,
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
