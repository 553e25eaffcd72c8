//! Damaged datagrams, and those of other protocols.

use super::pcap::Captured;
use super::{addresses, frames, hex, kcp, packets, sessions, tshark};
use crate::common::at;
use rand::Rng;
use whitewater::inside::compact::{Compactor, Known, expand};
use whitewater::inside::session::wire::{
    DATA_HEADER_LEN, Data, EcnFrame, Frame, FrameError, FrameWriter, Frames, KcpPart, Msg1, Msg2, Packet,
    PacketError,
};
use whitewater::kcp::wire::{conv_of, segments};
use whitewater::kcp::{Conv, Millis, Sn};
use whitewater::packet::Seq16;
use whitewater_sim::SimRng;

/// `count` of the datagrams, each damaged in some way: bytes changed, bits flipped, truncated, extended,
/// mixed with another.
fn damaged(from: &[Captured], count: usize, seed: u64) -> Vec<Captured> {
    let mut rng = SimRng::new(seed, 1);
    let mut below = |limit: usize| usize::try_from(rng.next_u64() % limit.max(1) as u64).unwrap();
    let mut damage = |(at, source, target, datagram): &Captured| {
        let mut bytes = datagram.clone();
        for _ in 0..=below(3) {
            // Headers are short and come first.
            let limit = if below(2) == 0 { bytes.len() } else { bytes.len().min(48) };
            let place = below(limit);
            match below(5) {
                0 if !bytes.is_empty() => bytes[place] = u8::try_from(below(256)).unwrap(),
                1 if !bytes.is_empty() => bytes[place] ^= 1 << below(8),
                2 => bytes.truncate(place),
                3 => bytes.extend((0..below(40)).map(|byte| byte.to_le_bytes()[0])),
                _ => {
                    let (.., other) = &from[below(from.len())];
                    bytes.truncate(place);
                    bytes.extend_from_slice(&other[below(other.len())..]);
                }
            }
        }
        bytes.truncate(1200);
        (*at, *source, *target, bytes)
    };
    // No dissector is shown an empty datagram.
    from.iter()
        .cycle()
        .step_by(7)
        .map(&mut damage)
        .filter(|(.., bytes)| !bytes.is_empty())
        .take(count)
        .collect()
}

/// Fails if what is shown as malformed differs from what our decoder rejects.
fn agree(captured: &[Captured], rows: &[tshark::Row], is_refused: impl Fn(&[u8]) -> bool) {
    let mut refused = 0;
    for ((.., datagram), row) in captured.iter().zip(rows) {
        let is_shown = row.iter().any(|values| !values.is_empty());
        assert_eq!(is_shown, is_refused(datagram), "{} {row:?}", hex(datagram));
        refused += usize::from(is_shown);
    }
    let share = captured.len() / 10;
    assert!((share..=captured.len() - share).contains(&refused), "{refused} of {}", captured.len());
}

#[test]
fn damaged_segments_are_shown_as_malformed_exactly_if_our_decoder_rejects_them() {
    let captured = damaged(&kcp::run(0.1, 4), 4000, 1);
    let Some(rows) = tshark::show(&captured, &["kcp.ports:50001-50002"], &["kcp.malformed"]) else { return };
    agree(&captured, &rows, |datagram| {
        let conv = conv_of(datagram);
        let is_good = |segment: Result<_, _>| {
            segment.is_ok_and(|found: whitewater::kcp::wire::Segment<'_>| Some(found.header.conv) == conv)
        };
        conv.is_none() || !segments(datagram).all(is_good)
    });
}

#[test]
fn damaged_session_packets_are_shown_as_malformed_exactly_if_our_decoders_reject_them() {
    let handshakes = |(.., datagram): &Captured| (0xa1..=0xa5).contains(&datagram[0]);
    let honest = sessions::captured(6);
    let mut from: Vec<_> = honest.iter().filter(|captured| handshakes(captured)).cloned().collect();
    from = from.into_iter().cycle().take(200).chain(honest).collect();
    let mut captured = damaged(&from, 4000, 2);
    captured.retain(|(.., datagram)| (0xa1..=0xa8).contains(&datagram[0]) && !is_text_at_fault(datagram));
    // Handshakes go last: nothing about sessions can be learnt from damaged ones.
    captured.sort_by_key(|captured| handshakes(captured));
    let settings = ["ww.ports:4000", "ww.assume_checked:TRUE"];
    let Some(rows) = tshark::show(&captured, &settings, &["ww.malformed", "ww.unknown"]) else { return };
    agree(&captured, &rows, is_refused);
}

#[test]
fn damaged_parts_paddings_and_mark_counts_are_shown_as_malformed_exactly_if_rejected() {
    let mut from = [frames::narrowed(3), frames::marked(3)].concat();
    from.retain(|(.., datagram)| {
        let Ok(Packet::Data(_, sealed)) = Packet::decode(datagram) else { return false };
        frames(sealed)
            .unwrap()
            .any(|frame| matches!(frame, Frame::KcpPart(..) | Frame::Pad(_) | Frame::Ecn(_)))
    });
    let mut captured = damaged(&from, 4000, 7);
    captured.retain(|(.., datagram)| datagram[0] == 0xa6 && !is_text_at_fault(datagram));
    let settings = ["ww.ports:4000", "ww.assume_checked:TRUE"];
    let Some(rows) = tshark::show(&captured, &settings, &["ww.malformed", "ww.unknown"]) else { return };
    agree(&captured, &rows, is_refused);
}

#[test]
fn any_changed_byte_in_a_short_body_is_shown_as_malformed_exactly_if_rejected() {
    let part = KcpPart { number: Seq16(5), id: 1, last: 2 };
    let ecn = Frame::Ecn(EcnFrame { unmarked: 1, capable: 2, congested: 3 });
    let bodies: [&[Frame<'_>]; 4] = [
        &[Frame::KcpPart(part, b"segm")],
        &[Frame::KcpPart(part, b"se"), ecn],
        &[ecn],
        &[Frame::Ping(7), Frame::Pad(4)],
    ];
    let ([from, to], mut captured) = (addresses(), Vec::new());
    for body in bodies {
        let mut bytes = Data { phase: false, sid: 1, pn: 1 }.encode().to_vec();
        let mut writer = FrameWriter::new(&mut bytes, 100);
        body.iter().for_each(|frame| writer.push(frame).unwrap());
        for place in DATA_HEADER_LEN..bytes.len() {
            for byte in 0..=u8::MAX {
                let mut other = bytes.clone();
                other[place] = byte;
                captured.push((at(1), from, to, [&other[..], &[0; 4]].concat()));
            }
            captured.push((at(1), from, to, [&bytes[..place], &[0; 4]].concat()));
        }
    }
    captured.retain(|(.., datagram)| !is_text_at_fault(datagram));
    let settings = ["ww.ports:50001-50002", "ww.assume_checked:TRUE"];
    let Some(rows) = tshark::show(&captured, &settings, &["ww.malformed", "ww.unknown"]) else { return };
    agree(&captured, &rows, is_refused);
}

/// Of frames that are none, the packet is accepted and the session ends.
#[test]
fn damaged_compact_segments_are_shown_as_malformed_exactly_if_our_decoder_rejects_them() {
    let [from, to] = addresses();
    let sealed = |frames: &[Frame<'_>]| {
        let mut bytes = Data { phase: false, sid: 1, pn: 1 }.encode().to_vec();
        let mut writer = FrameWriter::new(&mut bytes, 1400);
        frames.iter().for_each(|frame| writer.push(frame).unwrap());
        (at(1), from, to, [bytes, vec![0; 4]].concat())
    };
    let honest = kcp::run(0.1, 4).into_iter().enumerate().map(|(number, (.., mut datagram))| {
        let len = Compactor::default().compact(u8::try_from(number % 3).unwrap(), &mut datagram);
        (at(1), from, to, datagram[..len].to_vec())
    });
    let honest: Vec<_> = honest.filter(|(.., bytes)| !bytes.is_empty()).collect();
    let damaged = damaged(&honest, 3000, 11);
    let captured: Vec<_> = damaged.iter().map(|(.., bytes)| sealed(&[Frame::Kcp(bytes)])).collect();
    let settings = ["ww.ports:50001-50002", "ww.assume_checked:TRUE"];
    let Some(rows) = tshark::show(&captured, &settings, &["ww.kcp.malformed"]) else { return };
    let known = Known { conv: Conv(0), una: Sn(0), wnd: 0, next: Sn(0), is_rebuilt: false };
    agree(&captured, &rows, |datagram| {
        let mut frames = frames(&datagram[DATA_HEADER_LEN..]).unwrap();
        let Some(Frame::Kcp(bytes)) = frames.next() else { unreachable!() };
        expand(bytes, &known, |_, _| Millis(0), usize::MAX, &mut Vec::new()).is_err()
    });
}

/// Whether our decoders reject a session packet, as far as it is in the clear.
fn is_refused(datagram: &[u8]) -> bool {
    match Packet::decode(datagram) {
        Ok(Packet::Data(data, sealed)) => data.phase || frames(sealed).is_err(),
        Ok(Packet::Connect(connect)) => {
            !is_message(connect.suite, connect.msg1, |payload| Msg1::decode(payload).map(drop))
        }
        Ok(Packet::Accept(accept)) => {
            let is_clear = accept.suite == 0;
            !is_message(if is_clear { 0 } else { 0x0201 }, accept.msg2, |payload| {
                Msg2::decode(payload).map(drop)
            })
        }
        other => other.is_err(),
    }
}

/// The dissector does not check which characters the text of a CLOSE has.
fn is_text_at_fault(datagram: &[u8]) -> bool {
    matches!(Packet::decode(datagram), Ok(Packet::Data(_, sealed)) if frames(sealed).is_err_and(|error| error == FrameError::Text))
}

fn frames(sealed: &[u8]) -> Result<Frames<'_>, FrameError> {
    Frames::parse(&sealed[..sealed.len() - 4])
}

/// Whether the cleartext part of a handshake message is valid.
fn is_message(suite: u16, message: &[u8], decode: impl Fn(&[u8]) -> Result<(), PacketError>) -> bool {
    match suite >> 8 {
        0 if suite == 0 => decode(&message[8..message.len() - 4]).is_ok(),
        1 => message.get(32..).is_some_and(|payload| decode(payload).is_ok()),
        _ => message.len() >= 32,
    }
}

#[test]
fn damaged_packets_and_noise_cause_no_lua_error() {
    let mut captured = damaged(&packets::run(2), 2000, 3);
    let mut rng = SimRng::new(4, 1);
    let [from, to] = addresses();
    for _ in 0..4000 {
        let len = rng.next_u64() % 90;
        let mut datagram: Vec<u8> = (0..len).map(|_| rng.next_u64().to_le_bytes()[0]).collect();
        if let Some(kind) = datagram.first_mut() {
            *kind = 0xa0 + *kind % 16;
        }
        captured.push((at(1), from, to, datagram));
    }
    for setting in ["wwp.ports:50001-50002", "ww.ports:50001-50002", "kcp.ports:50001-50002"] {
        let Some(rows) = tshark::show(&captured, &[setting], &["frame.number"]) else { return };
        assert_eq!(rows.len(), captured.len());
    }
}

#[test]
fn datagrams_of_other_protocols_are_left_alone() {
    let mut rng = SimRng::new(5, 1);
    let [from, to] = addresses();
    let mut captured = Vec::new();
    for number in 0..6000 {
        let len = 1 + rng.next_u64() % 200;
        let mut datagram: Vec<u8> = (0..len).map(|_| rng.next_u64().to_le_bytes()[0]).collect();
        // Some begin like ours: with a kind and a version, or with a command where KCP has it.
        match (number % 4, &mut datagram[..]) {
            (0, [kind, version, ..]) => (*kind, *version) = (0xa1 + *kind % 8, 1),
            (1, [_, _, _, _, cmd, ..]) => *cmd = 81 + *cmd % 4,
            _ => {}
        }
        captured.push((at(number), from, to, datagram));
    }
    let Some(rows) = tshark::show(&captured, &[packets::SETTING], &["kcp", "ww", "wwp"]) else { return };
    for ((.., datagram), row) in captured.iter().zip(rows) {
        assert!(row.iter().all(Vec::is_empty), "{}", hex(datagram));
    }
}
