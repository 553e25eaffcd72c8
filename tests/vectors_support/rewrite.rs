//! Rewrites datagrams that `Kcp` refuses into acceptable ones with the effect that the originals have on
//! ikcp.c.

use std::collections::BTreeMap;

use whitewater::kcp::wire::{Command, HEADER_LEN, Header, Segment, segments};
use whitewater::kcp::{Conv, Millis, Sn, Stats};

use super::deviations::Rule;

/// The oldest echo that counts as a round trip, ms.
const ECHO_MAX: i32 = 120_000;

/// The datagram whose effect on us, in the state `stats` at `now`, equals that of `datagram` on ikcp.c.
///
/// In ikcp.c, an `una` beyond `snd_nxt` frees what is in flight, or nothing if it wraps to before `snd_una`;
/// an ACK beyond `snd_nxt` is one round trip, like one before `snd_una`; of a PUSH before `rcv_nxt` only `sn`
/// and `ts` count.
pub(super) fn believable(datagram: &[u8], stats: &Stats, now: Millis) -> Vec<u8> {
    let Stats { snd_una: una, snd_nxt: nxt, rcv_nxt, .. } = *stats;
    let mut taken = Vec::new();
    if newest_ack(datagram).is_some_and(|ack| !ack.sn.is_before(nxt)) {
        hide_acks(datagram, una, now, &mut taken);
    }
    let mut rest = datagram;
    while let Ok((mut segment, after)) = Segment::decode(rest) {
        let header = &mut segment.header;
        if nxt.is_before(header.una) {
            header.una = if una.is_before(header.una) { nxt } else { una };
        }
        match header.cmd {
            Command::Ack if !header.sn.is_before(nxt) => header.sn = una.sub(1),
            Command::Push if header.sn.is_before(rcv_nxt) => header.frg = 0,
            _ => {}
        }
        segment.encode(&mut taken);
        rest = after;
    }
    taken.extend(rest);
    taken
}

/// The datagram whose effect on us equals that of `datagram` on ikcp.c if `input` stops after it and so skips
/// the fast-ack pass and the growth of the window; `None` if the window would grow.
pub(super) fn without_end(datagram: &[u8], una: Sn, now: Millis) -> Option<Vec<u8>> {
    let moves_una =
        |header: Header| una.is_before(header.una) || (header.cmd == Command::Ack && header.sn == una);
    if segments(datagram).flatten().any(|segment| moves_una(segment.header)) {
        return None;
    }
    let mut taken = Vec::new();
    hide_acks(datagram, una, now, &mut taken);
    taken.extend(datagram);
    Some(taken)
}

/// Begins a datagram with an ACK that hides all others from the fast-ack pass: its number is before
/// everything in flight, its time later than all. It is no RTT sample either.
fn hide_acks(datagram: &[u8], una: Sn, now: Millis, taken: &mut Vec<u8>) {
    if let Some(ack) = newest_ack(datagram) {
        let header = Header { sn: una.sub(1), una, ts: now.add(1 << 30), ..ack };
        Segment { header, data: &[] }.encode(taken);
    }
}

/// Whether `datagram`, received in the recorded state `want`, contains what `rule` is about. `None`: a
/// datagram cannot show that, so the rule depends on the name of the recording.
pub(super) fn shows(rule: Rule, datagram: &[u8], want: &BTreeMap<String, i64>) -> Option<bool> {
    let recorded = |field| u32::try_from(want[field]).expect("a field of 32 bits");
    let (nxt, now) = (Sn(recorded("snd_nxt")), Millis(recorded("current")));
    let is_it = |header: Header| match rule {
        Rule::UnaAhead => nxt.is_before(header.una),
        Rule::AckUnsent => header.cmd == Command::Ack && !header.sn.is_before(nxt),
        Rule::AckTooOld => header.cmd == Command::Ack && now.since(header.ts) > ECHO_MAX,
        _ => false,
    };
    let shows = segments(datagram).flatten().any(|segment| is_it(segment.header));
    matches!(rule, Rule::UnaAhead | Rule::AckUnsent | Rule::AckTooOld).then_some(shows)
}

/// Where the first segment starts for which ikcp.c's `input` returns an error. Computed here, independently
/// of the code under test.
pub(super) fn bad_segment(datagram: &[u8], conv: Conv) -> Option<usize> {
    let mut rest = datagram;
    loop {
        let at = datagram.len() - rest.len();
        let Some((header, data)) = rest.split_first_chunk::<HEADER_LEN>() else {
            return (at == 0).then_some(0);
        };
        let [c0, c1, c2, c3, cmd, .., l0, l1, l2, l3] = *header;
        let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if u32::from_le_bytes([c0, c1, c2, c3]) != conv.0 || len > data.len() || !(81..=84).contains(&cmd) {
            return Some(at);
        }
        rest = &data[len..];
    }
}

/// The ACK that decides ikcp.c's fast-ack pass: the first, or a later one newer in both number and time.
fn newest_ack(datagram: &[u8]) -> Option<Header> {
    let acks = segments(datagram).flatten().map(|segment| segment.header);
    acks.filter(|header| header.cmd == Command::Ack).reduce(|newest, ack| {
        let is_newer = newest.sn.is_before(ack.sn) && ack.ts.since(newest.ts) > 0;
        if is_newer { ack } else { newest }
    })
}
