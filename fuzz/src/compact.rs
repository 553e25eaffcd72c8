//! Compact segments: what is read encodes to what is read again.

use whitewater::inside::compact::{Compactor, Known, channel_of, expand, has_push};
use whitewater::kcp::wire::{Command, Header, Segment, segments};
use whitewater::kcp::{Conv, Millis, Sn};

/// What can be expanded has the length and the conversation it should, and is the same after it was made compact and
/// expanded again, except for the times that ACKs echo: those are their reader's.
///
/// # Panics
///
/// If that does not hold.
pub fn compact(bytes: &[u8]) {
    let number =
        |at: usize| bytes.iter().rev().skip(at).take(4).fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    let known = Known { conv: Conv(7), una: Sn(number(0)), wnd: 128, next: Sn(number(1)), is_rebuilt: false };
    let echo = |sn: Sn, token: Option<u16>| Millis(sn.0 ^ u32::from(token.unwrap_or(7)));
    let mut expanded = Vec::new();
    let result = expand(bytes, &known, echo, MOST, &mut expanded);
    assert!(expanded.len() <= MOST, "{} bytes", expanded.len());
    if result.is_err() {
        return;
    }
    let first = all(&expanded);
    // An ACK_LAST of the farthest `una` acknowledges a number that 24 bits cannot name, as another kind would have to.
    let is_far =
        |header: &Header| header.sn.0.wrapping_sub(known.una.0).cast_signed().unsigned_abs() > 1 << 22;
    let names_far = first.iter().any(|segment| segment.header.cmd == Command::Ack && is_far(&segment.header));
    assert!(first.iter().all(|segment| segment.header.conv == known.conv), "of another conversation");
    assert_eq!(has_push(bytes), first.iter().any(|segment| segment.header.cmd == Command::Push));
    let Ok(channel) = channel_of(bytes) else { return };
    let mut again = expanded.clone();
    let len = Compactor::default().compact(channel, &mut again);
    assert!(expanded.is_empty() || channel_of(&again) == Ok(channel));
    let mut twice = Vec::new();
    let compact = again.get(..len).unwrap_or_default();
    assert_eq!(expand(compact, &known, echo, MOST, &mut twice), Ok(()));
    assert!(names_far || first == all(&twice), "{first:?} and {:?}", all(&twice));
    let rebuilt = Known { is_rebuilt: true, ..known };
    let mut late = Vec::new();
    assert_eq!(expand(compact, &rebuilt, echo, MOST, &mut late), Ok(()));
    assert_eq!(late.len(), expanded.len());
}

/// The segments, without the times of ACKs.
fn all(bytes: &[u8]) -> Vec<Segment<'_>> {
    let mut all = segments(bytes);
    let mut found: Vec<_> = all.by_ref().map(|segment| segment.expect("a whole segment")).collect();
    assert!(all.trailing().is_empty(), "a part of a segment");
    for segment in found.iter_mut().filter(|segment| segment.header.cmd == Command::Ack) {
        segment.header.ts = Millis(0);
    }
    found
}

/// As many bytes as the longest datagram.
const MOST: usize = 9000;
