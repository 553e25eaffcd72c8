//! Segments inside of a session: what its packet or earlier segments tell is left out of their headers.
//!
//! ```text
//! flags | channel? | frg? | wnd u16? | una u24? | ts u16? | sn u24? | len u16? | data
//! ```
//!
//! Numbers are their low 24 bits and times their low 16. Whoever reads them knows the rest: a number is near the one
//! expected, and an echo is that of a transmission. A `una` or `wnd` that has been told often enough is left out until it
//! changes: whoever has missed all of them resends, or asks for the window, and is told again. Source of the idea: RFC 1144, and packet
//! numbers in RFC 9000, section 17.1; docs/WIRE.md, "Channels by KCP".

use super::reader::Reader;
use super::segment::{Command, HEADER_LEN, Header, RawHeader};
use crate::seq::{Conv, Sn};
use crate::time::Millis;

/// Writes the segments of a channel compactly.
#[derive(Clone, Copy, Debug)]
pub struct Compactor {
    una: Sn,
    wnd: u16,
    /// In how many more datagrams they are told.
    una_left: u8,
    wnd_left: u8,
}

/// Whether a datagram should tell `value`, if it was `told` before and should be told so often.
fn tells<T: PartialEq>(value: T, told: &mut T, left: &mut u8) -> bool {
    if *told != value {
        (*told, *left) = (value, TIMES);
    }
    let tells = *left > 0;
    *left = left.saturating_sub(1);
    tells
}

impl Default for Compactor {
    /// Nothing has been told yet.
    fn default() -> Self {
        Self { una: Sn(0), wnd: 0, una_left: TIMES, wnd_left: TIMES }
    }
}

/// What the reader of a datagram knows of the channel.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "not part of the API")]
pub struct Known {
    /// The conversation.
    pub conv: Conv,
    /// The peer's `una` and `wnd` as they are known: what a datagram does not tell has not changed.
    pub una: Sn,
    /// See `una`.
    pub wnd: u16,
    /// The number of the segment expected next.
    pub next: Sn,
    /// The datagram was rebuilt, so echoes of its times would measure nothing.
    pub is_rebuilt: bool,
}

impl Compactor {
    /// Makes the headers of the segments in a datagram of this channel compact, in place. Returns its new length.
    pub fn compact(&mut self, channel: u8, datagram: &mut [u8]) -> usize {
        let (mut from, mut to) = (0, 0);
        let mut told = (false, false);
        let mut last: Option<Header> = None;
        while let Some(head) = datagram.get(from..).and_then(<[u8]>::first_chunk::<HEADER_LEN>) {
            let head = RawHeader::of(head);
            let (Ok(header), Ok(len)) = (head.header(), u16::try_from(head.len())) else { return to };
            let (data, end) = (from + HEADER_LEN, from + HEADER_LEN + usize::from(len));
            if end > datagram.len() {
                return to;
            }
            let (una, wnd) = match &last {
                Some(last) => (header.una != last.una, header.wnd != last.wnd),
                None => self.tells(&header),
            };
            let answers_wask = header.cmd == Command::Wins && len == 0 && !told.1;
            let tells = (una, wnd || answers_wask);
            told = (told.0 || tells.0, told.1 || tells.1);
            let channel = (last.is_none() && channel > 0).then_some(channel);
            let mut out =
                Out { bytes: datagram, start: to, len: 1, flags: header.kind(last.as_ref(), told.0, len) };
            out.write(&header, tells, channel, (end < out.bytes.len()).then_some(len));
            to += out.len;
            datagram.copy_within(data..end, to);
            to += usize::from(len);
            (last, from) = (Some(header), end);
        }
        to
    }

    /// Whether a datagram that begins with this header tells its `una` and its `wnd`.
    fn tells(&mut self, first: &Header) -> (bool, bool) {
        // It may answer a resend by a peer that has missed what was told.
        let answers = first.cmd == Command::Ack && first.sn.is_before(first.una);
        let una = tells(first.una, &mut self.una, &mut self.una_left) || answers;
        (una, tells(first.wnd, &mut self.wnd, &mut self.wnd_left))
    }
}

impl Header {
    /// The kind of a compact segment. `last`: the segment before it. `knows_una`: the datagram tells `una`. `len`: of the
    /// data.
    fn kind(&self, last: Option<&Self>, knows_una: bool, len: u16) -> u8 {
        let continues = |last: &Self| {
            last.cmd == Command::Push && last.ts == self.ts && last.sn.0.wrapping_add(1) == self.sn.0
        };
        match self.cmd {
            Command::Push if last.is_some_and(continues) => NEXT,
            Command::Push => PUSH,
            Command::Ack if self.ts.0 > u16::MAX.into() => ACK_LATE,
            Command::Ack if knows_una && self.sn.0.wrapping_add(1) == self.una.0 => ACK_LAST,
            Command::Ack => ACK,
            Command::Wask => WASK,
            Command::Wins if len > 0 => REPAIR,
            Command::Wins => WINS,
        }
    }
}

/// A compact header that is written over the whole one, which it is always shorter than.
struct Out<'a> {
    bytes: &'a mut [u8],
    start: usize,
    len: usize,
    flags: u8,
}

impl Out<'_> {
    /// `tells`: `una` and `wnd`. `len`: of the data, if another segment follows.
    fn write(&mut self, header: &Header, (una, wnd): (bool, bool), channel: Option<u8>, len: Option<u16>) {
        let kind = self.flags;
        self.field::<1>(channel.is_some(), HAS_CHANNEL, channel.unwrap_or(0).into());
        self.field::<1>(header.frg > 0, HAS_FRG, header.frg.into());
        self.field::<2>(wnd, HAS_WND, header.wnd.into());
        self.field::<3>(una, HAS_UNA, header.una.0);
        self.field::<2>(has_ts(kind), 0, header.ts.0);
        self.field::<3>(has_sn(kind), 0, header.sn.0);
        let len = len.filter(|_| has_data(kind));
        self.field::<2>(len.is_some(), HAS_LEN, len.unwrap_or(0).into());
        if let Some(first) = self.bytes.get_mut(self.start) {
            *first = self.flags;
        }
    }

    /// Writes the low `LEN` bytes of a field. What is written beyond them, the next field or the data covers.
    #[inline]
    fn field<const LEN: usize>(&mut self, is_there: bool, flag: u8, value: u32) {
        if is_there {
            let at = self.start + self.len;
            if let Some(to) = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *to = value.to_le_bytes();
            }
            self.flags |= flag;
            self.len += LEN;
        }
    }
}

/// A compact segment as it is, without what others tell.
#[derive(Clone, Copy, Debug)]
struct Item<'a> {
    kind: u8,
    frg: u8,
    wnd: Option<u16>,
    una: Option<u32>,
    ts: u16,
    sn: u32,
    data: &'a [u8],
}

impl<'a> Item<'a> {
    fn read(from: &mut Reader<'a>, is_first: bool) -> Result<Self, CompactError> {
        let rest = from.rest();
        let mut padded = [0; WINDOW];
        let window = rest.first_chunk().unwrap_or_else(|| {
            padded.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
            &padded
        });
        let mut fields = Fields { window, at: 0 };
        let flags = fields.byte(true);
        let kind = flags & KIND;
        let has = |flag: u8| flags & flag != 0;
        if has(HAS_CHANNEL) && (!is_first || fields.byte(true) == 0) {
            return Err(CompactError::Channel);
        }
        let frg = fields.byte(has(HAS_FRG));
        let wnd = fields.short(has(HAS_WND));
        let una = fields.word(has(HAS_UNA));
        let ts = fields.short(has_ts(kind));
        let sn = fields.word(has_sn(kind));
        let len = fields.short(has(HAS_LEN));
        let data = rest.get(fields.at..).ok_or(CompactError::Truncated)?;
        if (has(HAS_FRG) && frg == 0) || (has(HAS_LEN) && !has_data(kind)) {
            return Err(CompactError::Field);
        }
        let (data, after) = if has(HAS_LEN) {
            data.split_at_checked(len.into()).ok_or(CompactError::Truncated)?
        } else if has_data(kind) {
            (data, Default::default())
        } else {
            (Default::default(), data)
        };
        if (has(HAS_LEN) && after.is_empty()) || (kind == REPAIR && data.is_empty()) {
            return Err(CompactError::Field); // the last one has no length
        }
        *from = Reader::new(after);
        Ok(Self {
            kind,
            frg,
            wnd: has(HAS_WND).then_some(wnd),
            una: has(HAS_UNA).then_some(una),
            ts,
            sn,
            data,
        })
    }
}

/// The fields of a compact header. They are read from a copy that is always long enough, which is quicker than to ask for
/// each whether it is there.
struct Fields<'a> {
    window: &'a [u8; WINDOW],
    at: usize,
}

impl Fields<'_> {
    #[inline]
    fn next<const LEN: usize>(&mut self, is_there: bool) -> u32 {
        if !is_there {
            return 0;
        }
        let bytes = self.window.get(self.at..).and_then(<[u8]>::first_chunk);
        self.at += LEN;
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    #[inline]
    fn byte(&mut self, is_there: bool) -> u8 {
        let [byte, ..] = self.next::<1>(is_there).to_le_bytes();
        byte
    }

    #[inline]
    fn short(&mut self, is_there: bool) -> u16 {
        let [low, high, ..] = self.next::<2>(is_there).to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    /// A number of 24 bits.
    #[inline]
    fn word(&mut self, is_there: bool) -> u32 {
        self.next::<3>(is_there) & LOW
    }
}

/// The channel that compact segments belong to.
pub fn channel_of(compact: &[u8]) -> Result<u8, CompactError> {
    match *compact {
        [] => Err(CompactError::Truncated),
        [flags, channel, ..] if flags & HAS_CHANNEL != 0 => Ok(channel),
        _ => Ok(0),
    }
}

/// Whether there is a PUSH among compact segments; an error ends them.
#[must_use]
pub fn has_push(compact: &[u8]) -> bool {
    let mut from = Reader::new(compact);
    let mut is_first = true;
    while !from.rest().is_empty() {
        match Item::read(&mut from, std::mem::take(&mut is_first)) {
            Ok(Item { kind: PUSH | NEXT, .. }) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

/// Appends segments to `to` as bare KCP has them. Fails if there would be more than `most` bytes. `echo`: when the
/// transmission of a segment left that has this time; `None`: not as far as is known.
pub fn expand(
    compact: &[u8],
    known: &Known,
    echo: impl Fn(Sn, Option<u16>) -> Millis,
    most: usize,
    to: &mut Vec<u8>,
) -> Result<(), CompactError> {
    let mut from = Reader::new(compact);
    let (mut una, mut wnd, mut told) = (known.una, known.wnd, false);
    let (mut before, mut is_first) = (None, true);
    while !from.rest().is_empty() {
        let item = Item::read(&mut from, std::mem::take(&mut is_first))?;
        wnd = item.wnd.unwrap_or(wnd);
        if let Some(low) = item.una {
            (una, told) = (Sn(near(known.una.0, low)), true);
        }
        // Only the peer understands its times. A time beyond 16 bits makes the answer one without an echo.
        let sent = Millis(if known.is_rebuilt { 1 << 16 } else { item.ts.into() });
        let named = Sn(near(known.una.0, item.sn));
        let (cmd, sn, ts) = match item.kind {
            PUSH => (Command::Push, Sn(near(known.next.0, item.sn)), sent),
            NEXT => {
                let (sn, ts): (Sn, Millis) = before.ok_or(CompactError::Field)?;
                (Command::Push, sn.add(1), ts)
            }
            ACK_LAST if !told => return Err(CompactError::Field),
            ACK_LAST => (Command::Ack, una.sub(1), echo(una.sub(1), Some(item.ts))),
            ACK => (Command::Ack, named, echo(named, Some(item.ts))),
            ACK_LATE => (Command::Ack, named, echo(named, None)),
            WASK => (Command::Wask, Sn(0), Millis(0)),
            WINS => (Command::Wins, Sn(0), Millis(0)),
            _ => (Command::Wins, Sn(near(known.next.0, item.sn)), sent),
        };
        before = (cmd == Command::Push).then_some((sn, ts));
        if to.len() + HEADER_LEN + item.data.len() > most {
            return Err(CompactError::TooLong);
        }
        let len = u32::try_from(item.data.len()).map_err(|_| CompactError::TooLong)?;
        let header = Header { conv: known.conv, cmd, frg: item.frg, wnd, ts, sn, una };
        to.extend_from_slice(&header.to_bytes(len));
        to.extend_from_slice(item.data);
    }
    Ok(())
}

errors! {
    /// Why bytes are not compact segments.
    CompactError {
        "a segment is cut off" Truncated,
        /// It is 0, or not that of the first segment.
        "a channel that may not be there" Channel,
        /// A field that may not be there, or one that is missing.
        "a field that may not be there, or refers to nothing" Field,
        "more segments than fit into a datagram" TooLong,
    }
}

/// The number with these low 24 bits that is nearest to `known`.
const fn near(known: u32, low: u32) -> u32 {
    let ahead = low.wrapping_sub(known) << 8;
    known.wrapping_add((ahead.cast_signed() >> 8).cast_unsigned())
}

/// The low bytes of a time, which a segment has and its answer echoes.
#[inline]
pub(crate) const fn token(ts: Millis) -> [u8; 2] {
    let [first, second, ..] = ts.0.to_le_bytes();
    [first, second]
}

const fn has_ts(kind: u8) -> bool {
    matches!(kind, PUSH | ACK_LAST | ACK | REPAIR)
}

const fn has_sn(kind: u8) -> bool {
    matches!(kind, PUSH | ACK | ACK_LATE | REPAIR)
}

const fn has_data(kind: u8) -> bool {
    matches!(kind, PUSH | NEXT | REPAIR)
}

/// Bytes that hold the longest compact header, of 15, and four to read of each field.
const WINDOW: usize = 20;
/// The low 24 bits of a number.
const LOW: u32 = (1 << 24) - 1;

/// The kinds of segments, in the low bits of the flags.
const KIND: u8 = 7;
const PUSH: u8 = 0;
/// A PUSH with the number after that of the PUSH before it, and its time.
const NEXT: u8 = 1;
/// An ACK of the segment before `una`, which the datagram tells.
const ACK_LAST: u8 = 2;
const ACK: u8 = 3;
/// An ACK that echoes no time: what it answers was rebuilt.
const ACK_LATE: u8 = 4;
const WASK: u8 = 5;
const WINS: u8 = 6;
/// A WINS with data.
const REPAIR: u8 = 7;
const HAS_FRG: u8 = 1 << 3;
const HAS_WND: u8 = 1 << 4;
const HAS_UNA: u8 = 1 << 5;
const HAS_LEN: u8 = 1 << 6;
const HAS_CHANNEL: u8 = 1 << 7;

/// In how many datagrams a value is told. If a tenth of them gets lost, all do once in 10,000 times.
const TIMES: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Segment, segments};
    use proptest::prelude::*;

    const KNOWN: Known =
        Known { conv: Conv(7), una: Sn(0x00ff_fffe), wnd: 128, next: Sn(u32::MAX), is_rebuilt: false };

    const AHEAD: u32 = 10_000_000;

    fn push(sn: u32, data: &[u8]) -> Segment<'_> {
        let (una, ts) = (KNOWN.una, Millis(1234));
        let header = Header { conv: KNOWN.conv, cmd: Command::Push, frg: 0, wnd: 128, ts, sn: Sn(sn), una };
        Segment { header, data }
    }

    fn ack(sn: Sn, ts: u32) -> Segment<'static> {
        let Segment { header, .. } = push(sn.0, b"");
        Segment { header: Header { cmd: Command::Ack, ts: Millis(ts), ..header }, data: b"" }
    }

    fn bytes(all: &[Segment<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        all.iter().for_each(|segment| segment.encode(&mut bytes));
        bytes
    }

    fn compacted<const CHANNEL: u8>(compactor: &mut Compactor, all: &[Segment<'_>]) -> Vec<u8> {
        let mut bytes = bytes(all);
        let len = compactor.compact(CHANNEL, &mut bytes);
        bytes.truncate(len);
        bytes
    }

    fn expanded(compact: &[u8], known: &Known) -> Result<Vec<u8>, CompactError> {
        let mut to = Vec::new();
        let echo = |_, token: Option<u16>| Millis(token.map_or(AHEAD, u32::from));
        expand(compact, known, echo, 1200, &mut to).map(|()| to)
    }

    #[test]
    fn what_was_told_four_times_is_left_out_until_it_changes() {
        let mut compactor = Compactor::default();
        let mut headers = Vec::new();
        for sn in 0..10 {
            let compact = compacted::<0>(&mut compactor, &[push(sn, b"hi")]);
            let first = bytes(&[push(sn, b"hi")]);
            assert_eq!(expanded(&compact, &Known { next: Sn(sn), ..KNOWN }), Ok(first));
            headers.push(compact.len() - 2);
        }
        assert_eq!(headers, [11, 11, 11, 11, 6, 6, 6, 6, 6, 6]);
        let mut opened = push(10, b"hi");
        opened.header.wnd = 127;
        assert_eq!(compacted::<0>(&mut compactor, &[opened]).len() - 2, 8);
    }

    #[test]
    fn whoever_has_missed_all_of_it_is_told_again() {
        let mut compactor = Compactor::default();
        (0..9).for_each(|sn| drop(compacted::<0>(&mut compactor, &[push(sn, b"hi")])));
        let missed = Known { una: KNOWN.una.sub(9), wnd: 0, next: Sn(9), ..KNOWN };
        let heard = |compact: &[u8]| {
            let found = expanded(compact, &missed).unwrap();
            let last = segments(&found).last().unwrap().unwrap().header;
            (last.una, last.wnd)
        };
        assert_eq!(heard(&compacted::<0>(&mut compactor, &[push(9, b"hi")])), (missed.una, 0));
        let mut wins = push(0, b"");
        (wins.header.cmd, wins.header.sn) = (Command::Wins, Sn(0));
        for before in [vec![], vec![ack(KNOWN.una.add(3), 7)], vec![push(9, b"hi")]] {
            let compact = compacted::<0>(&mut compactor, &[before, vec![wins]].concat());
            assert_eq!(heard(&compact), (missed.una, 128), "an answer to WASK");
        }
        for sn in [1, 2, 5] {
            let compact = compacted::<0>(&mut compactor, &[ack(KNOWN.una.sub(sn), 7)]);
            assert_eq!(heard(&compact), (KNOWN.una, 0), "an answer to a resend");
        }
    }

    #[test]
    fn segments_of_one_flush_share_what_they_have_in_common() {
        let mut compactor = Compactor::default();
        let all = [ack(KNOWN.una.sub(1), 4000), push(9, b"a"), push(10, b""), push(11, b"ccc")];
        let first = compacted::<3>(&mut compactor, &all);
        assert_eq!(channel_of(&first), Ok(3));
        assert_eq!(first.len(), (1 + 1 + 2 + 3 + 2) + (1 + 2 + 3 + 2 + 1) + (1 + 2) + (1 + 3));
        let known = Known { next: Sn(9), ..KNOWN };
        assert_eq!(expanded(&first, &known).map(|found| segments(&found).flatten().count()), Ok(4));
    }

    #[test]
    fn numbers_come_back_whole_around_the_wraps() {
        for (known, number) in [(u32::MAX, 3), (5, u32::MAX - 5), (1 << 24, (1 << 24) - 1), (0, 1 << 22)] {
            let known = Known { next: Sn(known), una: Sn(known), ..KNOWN };
            let compact = compacted::<0>(&mut Compactor::default(), &[push(number, b"x")]);
            let found = expanded(&compact, &known).unwrap();
            assert_eq!(segments(&found).next().unwrap().unwrap().header.sn, Sn(number));
        }
    }

    #[test]
    fn the_answer_to_a_rebuilt_segment_measures_no_round_trip() {
        let compact = compacted::<0>(&mut Compactor::default(), &[push(9, b"x")]);
        let found = expanded(&compact, &Known { is_rebuilt: true, next: Sn(9), ..KNOWN }).unwrap();
        let ts = segments(&found).next().unwrap().unwrap().header.ts;
        let answer = compacted::<0>(&mut Compactor::default(), &[ack(KNOWN.una.sub(1), ts.0)]);
        let found = expanded(&answer, &KNOWN).unwrap();
        let header = segments(&found).next().unwrap().unwrap().header;
        assert_eq!((header.sn, header.ts), (KNOWN.una.sub(1), Millis(AHEAD)));
    }

    #[test]
    fn each_fault_is_refused() {
        for (compact, error) in [
            (&[PUSH, 1, 2, 3][..], CompactError::Truncated),
            (&[NEXT], CompactError::Field),
            (&[ACK_LAST, 1, 2], CompactError::Field),
            (&[WINS | HAS_LEN, 0, 0, WINS], CompactError::Field),
            (&[WINS | HAS_FRG, 0], CompactError::Field),
            (&[REPAIR, 1, 2, 3, 4, 5], CompactError::Field),
            (&[PUSH | HAS_LEN, 1, 2, 3, 4, 5, 0, 0], CompactError::Field),
            (&[WINS | HAS_CHANNEL, 0], CompactError::Channel),
            (&[WINS, WINS | HAS_CHANNEL, 1], CompactError::Channel),
            (&[WINS; 51], CompactError::TooLong),
        ] {
            assert_eq!(expanded(compact, &KNOWN), Err(error), "{compact:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(found) = expanded(&bytes, &KNOWN) {
                let pushes = segments(&found).flatten().any(|segment| segment.header.cmd == Command::Push);
                prop_assert_eq!(has_push(&bytes), pushes);
            }
        }
    }
}
