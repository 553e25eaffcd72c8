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

use super::reader::{Reader, Short};
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
        let Some(first) = datagram.first_chunk().map(|head| RawHeader::of(head).header()) else { return 0 };
        let Ok(first) = first else { return 0 };
        // It may answer a resend by a peer that has missed what was told.
        let answers = first.cmd == Command::Ack && first.sn.is_before(first.una);
        let tells_una = tells(first.una, &mut self.una, &mut self.una_left) || answers;
        let mut tells_wnd = tells(first.wnd, &mut self.wnd, &mut self.wnd_left);
        let mut tells = (tells_una, tells_wnd, channel > 0);
        let (mut from, mut to) = (0, 0);
        let (mut before, mut last) = (None, first);
        while let Some(head) = datagram.get(from..).and_then(<[u8]>::first_chunk::<HEADER_LEN>) {
            let head = RawHeader::of(head);
            let (Ok(header), Ok(len)) = (head.header(), u16::try_from(head.len())) else { return to };
            let (data, end) = (from + HEADER_LEN, from + HEADER_LEN + usize::from(len));
            let len = (end < datagram.len()).then_some(len);
            let asked = header.cmd == Command::Wins && end == data && !tells_wnd;
            tells_wnd |= asked;
            tells = (tells.0 || header.una != last.una, tells.1 || asked || header.wnd != last.wnd, tells.2);
            let knows_una = tells_una || tells.0;
            let head = Head::new(&header, tells, channel, (before, knows_una), len, end > data);
            for byte in head.bytes.iter().take(head.len) {
                if let Some(to) = datagram.get_mut(to) {
                    *to = *byte;
                }
                to += 1;
            }
            if end > datagram.len() {
                return to;
            }
            datagram.copy_within(data..end, to);
            to += end - data;
            before = (header.cmd == Command::Push).then_some(header);
            last = header;
            (tells, from) = ((false, false, false), end);
        }
        to
    }
}

/// A compact header.
struct Head {
    bytes: [u8; 16],
    len: usize,
}

impl Head {
    /// `tells`: `una`, `wnd`, and the channel. `before`: the PUSH before it, and whether the datagram tells `una`. `len`:
    /// of the data, if another segment follows.
    fn new(
        header: &Header,
        (una, wnd, has_channel): (bool, bool, bool),
        channel: u8,
        (before, knows_una): (Option<Header>, bool),
        len: Option<u16>,
        has_data: bool,
    ) -> Self {
        let continues = |before: Header| before.ts == header.ts && before.sn.0.wrapping_add(1) == header.sn.0;
        let kind = match header.cmd {
            Command::Push if before.is_some_and(continues) => NEXT,
            Command::Push => PUSH,
            Command::Ack if header.ts.0 > u16::MAX.into() => ACK_LATE,
            Command::Ack if knows_una && header.sn.0.wrapping_add(1) == header.una.0 => ACK_LAST,
            Command::Ack => ACK,
            Command::Wask => WASK,
            Command::Wins if has_data => REPAIR,
            Command::Wins => WINS,
        };
        let len = len.filter(|_| matches!(kind, PUSH | NEXT | REPAIR));
        let mut head = Self { bytes: [0; 16], len: 1 };
        let mut flags = kind;
        let mut field = |is_there: bool, flag: u8, bytes: &[u8]| {
            if is_there {
                flags |= flag;
                let to = head.bytes.iter_mut().skip(head.len);
                to.zip(bytes).for_each(|(to, byte)| *to = *byte);
                head.len += bytes.len();
            }
        };
        field(has_channel, HAS_CHANNEL, &[channel]);
        field(header.frg > 0, HAS_FRG, &[header.frg]);
        field(wnd, HAS_WND, &header.wnd.to_le_bytes());
        field(una, HAS_UNA, &low(header.una.0));
        field(has_ts(kind), 0, &token(header.ts));
        field(has_sn(kind), 0, &low(header.sn.0));
        field(len.is_some(), HAS_LEN, &len.unwrap_or(0).to_le_bytes());
        if let Some(first) = head.bytes.first_mut() {
            *first = flags;
        }
        head
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
        let flags = from.u8()?;
        let kind = flags & KIND;
        if flags & HAS_CHANNEL != 0 && (!is_first || from.u8()? == 0) {
            return Err(CompactError::Channel);
        }
        let frg = if flags & HAS_FRG != 0 { from.u8()? } else { 0 };
        if flags & HAS_FRG != 0 && frg == 0 {
            return Err(CompactError::Field);
        }
        let wnd = if flags & HAS_WND != 0 { Some(from.u16()?) } else { None };
        let una = if flags & HAS_UNA != 0 { Some(word(from)?) } else { None };
        let ts = if has_ts(kind) { from.u16()? } else { 0 };
        let sn = if has_sn(kind) { word(from)? } else { 0 };
        let has_data = matches!(kind, PUSH | NEXT | REPAIR);
        let data = match flags & HAS_LEN != 0 {
            true if !has_data => return Err(CompactError::Field),
            true => {
                let len = from.u16()?;
                let data = from.bytes(len)?;
                if from.rest().is_empty() {
                    return Err(CompactError::Field); // the last one has no length
                }
                data
            }
            false if has_data => from.take_rest(),
            false => &[],
        };
        if kind == REPAIR && data.is_empty() {
            return Err(CompactError::Field);
        }
        Ok(Self { kind, frg, wnd, una, ts, sn, data })
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

impl From<Short> for CompactError {
    fn from(_: Short) -> Self {
        Self::Truncated
    }
}

fn low(number: u32) -> [u8; 3] {
    let [first, second, third, _] = number.to_le_bytes();
    [first, second, third]
}

fn word(from: &mut Reader<'_>) -> Result<u32, Short> {
    let [first, second, third] = from.array()?;
    Ok(u32::from_le_bytes([first, second, third, 0]))
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
