//! All fields of all frames of sessions with a checksum.

use super::pcap::Captured;
use super::{addresses, hex, hexes, sessions, texts, tshark};
use crate::common::configs;
use crate::common::sessions::{
    Toward, World, client_address, client_config, forger, on, ordered, server_address, server_config,
};
use crate::common::{at, ms};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use whitewater::SessionConfig;
use whitewater::inside::compact::{Known, expand};
use whitewater::inside::session::wire::{
    AckFrame, Data, EcnFrame, Frame, FrameWriter, Frames, KcpPart, LossFrame, NewId, Packet, RekeyFrame, kind,
};
use whitewater::kcp::wire::{Command, Segment, segments};
use whitewater::kcp::{Config, Congestion, Conv, Millis, Sn};
use whitewater::packet::Seq16;
use whitewater::session::Suite;
use whitewater_sim::{Bottleneck, EcnPath, LinkConfig};

/// The fields of frames.
const FIELDS: [&str; 34] = [
    "ww.frame.type",
    "ww.frame.len",
    "ww.pad",
    "ww.kcp.sn",
    "ww.dgram",
    "ww.redirect",
    "ww.packed",
    "ww.ack",
    "ww.ack.bits",
    "ww.ack.delay",
    "ww.ping",
    "ww.path",
    "ww.close.reason",
    "ww.close.text",
    "ww.part.number",
    "ww.part.id",
    "ww.part.last",
    "ww.part",
    "ww.part.in",
    "ww.part.joined_in",
    "ww.ecn.unmarked",
    "ww.ecn.capable",
    "ww.ecn.congested",
    "ww.malformed",
    "kcp.malformed",
    "ww.repair.first",
    "ww.repair",
    "ww.loss.newest",
    "ww.loss.rebuilt",
    "ww.loss.share",
    "ww.rekey.phase",
    "ww.rekey",
    "ww.new_id.sid",
    "ww.new_id.token",
];

/// The session of a client whose send queue is full, while `rest` runs it for a number of ms.
fn bulk(
    config: &SessionConfig,
    link: &LinkConfig,
    seed: u64,
    rest: impl FnOnce(&mut World, &mut dyn FnMut(&mut World, u64)),
) -> Vec<Captured> {
    let mut world = World::new(seed, &server_config(config, Suite::Checked));
    world.taps = true;
    world.add(link, link, config, client_config(Suite::Checked));
    world.connect();
    let mut buf = vec![0; 20_000];
    let mut run = |world: &mut World, ms: u64| {
        world.run_until(ms, |world| {
            while world.client().send(on(0), &[7; 20_000]).is_ok() {}
            while world.session().recv_into(on(0), &mut buf).is_ok() {}
            false
        });
    };
    rest(&mut world, &mut run);
    world.tap
}

/// Searches for the path MTU, then narrows the path while the send queue is full: gives probes and parts of
/// frames.
pub(super) fn narrowed(seed: u64) -> Vec<Captured> {
    let channels = ordered([Config { snd_wnd: 64, snd_queue: 1024, ..configs::turbo() }]);
    let config = SessionConfig { path_mtu: Some(1472), channels, ..SessionConfig::default() };
    let path = |mtu: usize| {
        let bottleneck = Some(Bottleneck { rate: 4_000_000, queue: 128_000 });
        LinkConfig { mtu: Some(mtu + 28), bottleneck, ..LinkConfig::with_rtt(ms(60)) }
    };
    bulk(&config, &path(1472), seed, |world, run| {
        run(world, 1_000);
        assert_eq!(world.client().stats().mtu, 1472);
        world.set_links(0, &path(1200), &path(1472));
        run(world, 2_000);
    })
}

/// Both ends react to marks, and the path sets some.
pub(super) fn marked(seed: u64) -> Vec<Captured> {
    let channels = ordered([Config { congestion: Congestion::Kcp, ..configs::turbo() }]);
    let config = SessionConfig { ecn: true, channels, ..SessionConfig::default() };
    let bottleneck = Some(Bottleneck { rate: 2_000_000, queue: 20_000 });
    let link = LinkConfig { bottleneck, ecn: EcnPath::MarksAbove(8_000), ..LinkConfig::with_rtt(ms(20)) };
    bulk(&config, &link, seed, |world, run| {
        run(world, 1_500);
        assert!(world.client().stats().congestion_marks > 0);
    })
}

/// What should be shown of a datagram: the values of each of its fields.
type Shown = BTreeMap<&'static str, Vec<String>>;

/// Fields and their values, in order.
type Fields = Vec<(&'static str, Vec<String>)>;

/// The parts of a KCP frame in the order of sending: for each the number of the captured frame, the part
/// number and the bytes.
#[derive(Default)]
struct Whole(Vec<(usize, u8, Vec<u8>)>);

/// All split frames of a capture, by receiver and number.
type Wholes = BTreeMap<(SocketAddr, u16), Whole>;

/// The frames of a datagram if it is a DATA with a checksum.
fn frames(datagram: &[u8]) -> Option<Vec<Frame<'_>>> {
    let Ok(Packet::Data(_, sealed)) = Packet::decode(datagram) else { return None };
    Some(Frames::parse(&sealed[..sealed.len() - 4]).unwrap().collect())
}

fn wholes(captured: &[Captured]) -> Wholes {
    let mut wholes = Wholes::new();
    for ((_, _, to, datagram), number) in captured.iter().zip(1..) {
        for frame in frames(datagram).into_iter().flatten() {
            if let Frame::KcpPart(part, bytes) = frame {
                let Whole(parts) = wholes.entry((*to, part.number.0)).or_default();
                parts.push((number, part.id, bytes.to_vec()));
            }
        }
    }
    wholes
}

/// What should be shown for the part in frame `number` of the capture.
fn show_part(shown: &mut Shown, number: usize, part: KcpPart, Whole(parts): &Whole) {
    let Some((joined_in, id, _)) = parts.get(usize::from(part.last)) else { return };
    if (*joined_in, *id) != (number, part.id) {
        return shown.entry("ww.part.joined_in").or_default().push(joined_in.to_string());
    }
    let mut parts: Vec<_> = parts.iter().map(|(number, id, bytes)| (*id, *number, &bytes[..])).collect();
    parts.sort_unstable();
    shown.entry("ww.part.in").or_default().extend(parts.iter().map(|(_, number, _)| number.to_string()));
    let whole: Vec<u8> = parts.iter().flat_map(|(.., bytes)| bytes.iter().copied()).collect();
    shown.entry("ww.kcp.sn").or_default().extend(sns(&whole));
}

/// The low bits of the numbers of PUSHes, ACKs and repairs in a KCP frame.
fn sns(bytes: &[u8]) -> Vec<String> {
    let known = Known { conv: Conv(0), una: Sn(0), wnd: 0, next: Sn(0), is_rebuilt: false };
    let mut expanded = Vec::new();
    expand(bytes, &known, |_, _| Millis(0), usize::MAX, &mut expanded).unwrap();
    let numbered = |segment: &Segment<'_>| {
        matches!(segment.header.cmd, Command::Push | Command::Ack) || !segment.data.is_empty()
    };
    texts(segments(&expanded).map(Result::unwrap).filter(numbered).map(|found| found.header.sn.0 & 0xff_ffff))
}

/// What should be shown of a single frame: its type, the length of its content if that varies, and its
/// fields.
fn alone(frame: &Frame<'_>) -> (u8, Option<usize>, Fields) {
    let stamp = |stamp: u64| vec![("ww.ping", vec![format!("0x{stamp:016x}")])];
    let bytes = |field, bytes: &[u8]| vec![(field, hexes([bytes]))];
    match *frame {
        Frame::Pad(len) => (0, None, bytes("ww.pad", &vec![0; len - 1])),
        Frame::Kcp(content) => (1, Some(content.len()), vec![("ww.kcp.sn", sns(content))]),
        Frame::Dgram(content) => (2, Some(content.len()), bytes("ww.dgram", content)),
        Frame::Ack(AckFrame { ack, bits, delay }) => {
            let bits = vec![format!("0x{bits:08x}")];
            let [ack, delay] = [ack.0, delay].map(|value| texts([value]));
            (3, None, vec![("ww.ack", ack), ("ww.ack.bits", bits), ("ww.ack.delay", delay)])
        }
        Frame::Ping(number) => (4, None, stamp(number)),
        Frame::Pong(number) => (5, None, stamp(number)),
        Frame::PathChallenge(random) => (6, None, bytes("ww.path", &random)),
        Frame::PathResponse(random) => (7, None, bytes("ww.path", &random)),
        Frame::Close(reason, text) => {
            let text = texts((!text.is_empty()).then_some(text));
            (8, None, vec![("ww.close.reason", vec![format!("0x{reason:04x}")]), ("ww.close.text", text)])
        }
        Frame::Redirect(content) => (9, Some(content.len()), bytes("ww.redirect", content)),
        Frame::Packed(content) => (10, Some(content.len()), bytes("ww.packed", content)),
        Frame::KcpPart(KcpPart { number, id, last }, part) => {
            let mut fields = bytes("ww.part", part);
            fields.push(("ww.part.number", texts([number.0])));
            fields.extend([("ww.part.id", texts([id])), ("ww.part.last", texts([last]))]);
            (11, Some(4 + part.len()), fields)
        }
        Frame::Ecn(EcnFrame { unmarked, capable, congested }) => {
            let counts = [unmarked, capable, congested].map(|count| texts([count]));
            let names = ["ww.ecn.unmarked", "ww.ecn.capable", "ww.ecn.congested"];
            (12, None, names.into_iter().zip(counts).collect())
        }
        Frame::Repair(first, payload) => {
            let mut fields = bytes("ww.repair", payload);
            fields.push(("ww.repair.first", texts([first])));
            (13, Some(4 + payload.len()), fields)
        }
        Frame::Loss(LossFrame { newest, rebuilt, share }) => {
            let rebuilt = vec![format!("0x{rebuilt:08x}")];
            let fields = [("ww.loss.newest", texts([newest.0])), ("ww.loss.rebuilt", rebuilt)];
            let share = ("ww.loss.share", texts([share]));
            (14, None, fields.into_iter().chain([share]).collect())
        }
        Frame::Rekey(RekeyFrame { phase, half }) => {
            let mut fields = bytes("ww.rekey", &half);
            fields.push(("ww.rekey.phase", texts([phase.0])));
            (15, None, fields)
        }
        Frame::NewId(NewId { sid, reset_token }) => {
            let sid = ("ww.new_id.sid", vec![format!("0x{sid:08x}")]);
            (16, None, vec![sid, ("ww.new_id.token", hexes([&reset_token[..]]))])
        }
        Frame::Copy() => (17, None, Vec::new()),
        other => unreachable!("{other:?}"),
    }
}

fn expected(number: usize, to: SocketAddr, datagram: &[u8], wholes: &Wholes) -> Shown {
    let mut shown = Shown::new();
    let Some(frames) = frames(datagram) else { return shown };
    for (frame, place) in frames.iter().zip(1..) {
        let (code, of_any_length, mut fields) = alone(frame);
        fields.push(("ww.frame.type", texts([code])));
        fields.push(("ww.frame.len", texts(of_any_length.filter(|_| place < frames.len()))));
        for (field, values) in fields {
            shown.entry(field).or_default().extend(values);
        }
    }
    // Reassembled frames are shown after the others.
    for frame in &frames {
        if let Frame::KcpPart(part, _) = frame {
            show_part(&mut shown, number, *part, &wholes[&(to, part.number.0)]);
        }
    }
    shown
}

/// Compares all fields of all frames in a capture with what was sent. Returns how many frames of each type
/// there were.
fn hold(captured: &[Captured], rows: &[tshark::Row]) -> BTreeMap<String, usize> {
    let (wholes, mut types) = (wholes(captured), BTreeMap::new());
    for (((_, _, to, datagram), row), number) in captured.iter().zip(rows).zip(1..) {
        let mut shown = expected(number, *to, datagram, &wholes);
        for (field, values) in FIELDS.into_iter().zip(row) {
            let expected = shown.remove(field).unwrap_or_default();
            assert_eq!(*values, expected, "{field} of {number}: {}", hex(datagram));
        }
        assert!(shown.is_empty(), "{shown:?}");
        row[0].iter().for_each(|found| *types.entry(found.clone()).or_default() += 1);
    }
    types
}

#[test]
fn every_frame_of_a_session_is_shown_and_its_checksum_verified() {
    let captured = sessions::captured(1);
    let Some(rows) = tshark::show(&captured, &[], &FIELDS) else { return };
    assert_eq!(hold(&captured, &rows).len(), 15);
    let fields = ["ww.kind", "ww.sid", "ww.pn", "ww.checksum.status", "ww.unknown"];
    for ((.., datagram), row) in captured.iter().zip(tshark::show(&captured, &[], &fields).unwrap()) {
        let Ok(Packet::Data(Data { sid, pn, .. }, _)) = Packet::decode(datagram) else { continue };
        let kind = vec![format!("0x{:02x}", datagram[0])];
        assert_eq!(row, [kind, vec![format!("0x{sid:08x}")], texts([pn]), texts([1]), Vec::new()]);
    }
}

#[test]
fn probes_are_shown_and_parts_are_linked_to_their_frame() {
    let captured = narrowed(1);
    let Some(rows) = tshark::show_again(&captured, &[], &FIELDS) else { return };
    let types = hold(&captured, &rows);
    let [probes, parts] = ["0", "11"].map(|code| types[code]);
    assert!(probes >= 5 && parts >= 50, "{types:?}");
    let joined = rows.iter().filter(|row| !row[18].is_empty()).count();
    assert!(joined >= 25 && joined <= parts / 2, "{joined} of {parts} parts");
    // A single pass knows nothing of later datagrams, but shows everything else.
    let mut once = tshark::show(&captured, &[], &FIELDS).unwrap();
    assert!(once.iter().all(|row| row[19].is_empty()));
    once.iter_mut().zip(&rows).for_each(|(once, row)| once[19].clone_from(&row[19]));
    assert_eq!(once, rows);
}

#[test]
fn ecn_marks_and_their_counts_are_shown() {
    let captured = marked(1);
    let Some(rows) = tshark::show(&captured, &[], &FIELDS) else { return };
    let types = hold(&captured, &rows);
    assert!(types["12"] >= 10, "{types:?}");
    assert!(rows.iter().flat_map(|row| &row[22]).any(|congested| congested != "0"));
    let features = tshark::show(&captured, &[], &["ww.handshake.features.ecn"]).unwrap();
    let mut kinds = BTreeSet::new();
    for ((.., datagram), row) in captured.iter().zip(features) {
        if let [is_set] = &row[0][..] {
            assert!(["1", "True"].contains(&&is_set[..]));
            kinds.insert(datagram[0]);
        }
    }
    assert_eq!(kinds, [kind::CONNECT, kind::ACCEPT].into());
}

#[test]
fn a_part_with_a_wrong_checksum_is_not_reassembled() {
    let world = sessions::run(Suite::Checked, 7);
    let (forge, mut captured) = (forger(&world), world.tap);
    let start = captured.len();
    for (id, damage) in [(0, 0), (1, 1), (1, 0)] {
        let (mut body, number) = (Vec::new(), Seq16(7));
        let part = Frame::KcpPart(KcpPart { number, id, last: 1 }, b"part");
        FrameWriter::new(&mut body, 100).push(&part).unwrap();
        let mut datagram = forge(Toward::Client, &body);
        *datagram.last_mut().unwrap() ^= damage;
        captured.push((captured[start - 1].0, server_address(), client_address(1, 1000), datagram));
    }
    let fields = ["ww.checksum.status", "ww.part.id", "ww.part.in"];
    let Some(rows) = tshark::show(&captured, &[], &fields) else { return };
    let both = vec![start + 1, start + 3];
    for (row, (status, id, parts)) in rows[start..].iter().zip([(1, 0, vec![]), (0, 1, vec![]), (1, 1, both)])
    {
        assert_eq!(*row, [texts([status]), texts([id]), texts(parts)]);
    }
}

#[test]
fn mismatched_parts_are_flagged_and_parts_of_other_frames_are_not_mixed_in() {
    let ([from, to], server) = (addresses(), server_address());
    let mut captured = Vec::new();
    let mut send = |to, sid, number, parts: &[([u8; 2], &[u8])]| {
        let mut datagram = Data { phase: false, sid, pn: 1 }.encode().to_vec();
        let mut writer = FrameWriter::new(&mut datagram, 1000);
        for ([id, last], bytes) in parts {
            let part = KcpPart { number: Seq16(number), id: *id, last: *last };
            writer.push(&Frame::KcpPart(part, bytes)).unwrap();
        }
        datagram.extend_from_slice(&[0; 4]);
        captured.push((at(1), from, to, datagram));
    };
    let mut expected = Vec::new();
    for (place, found, len, is_misfit, parts) in [
        (to, [0, 2], 100, false, vec![]),
        (to, [1, 2], 99, true, vec![]),
        (to, [1, 1], 100, true, vec![]),
        (to, [2, 2], 101, true, vec![]),
        (server, [1, 2], 99, false, vec![]),
        (to, [2, 2], 3, false, vec![]),
        (to, [2, 2], 3, false, vec![]),
        (to, [1, 2], 100, false, vec![1, 8, 6]),
        (to, [0, 2], 100, false, vec![]),
    ] {
        send(place, 1, 5, &[(found, &[7; 101][..len])]);
        expected.push((is_misfit, texts(parts)));
    }
    // Another session; the same number with other content; and so much later that the first part belongs to
    // another frame.
    for (sid, number, found, byte, parts) in [
        (2, 5, [1, 2], 7, vec![]),
        (1, 5, [0, 1], 8, vec![]),
        (1, 21, [0, 1], 8, vec![]),
        (1, 5, [1, 1], 8, vec![]),
        (1, 5, [0, 1], 9, vec![14, 13]),
    ] {
        send(to, sid, number, &[(found, &[byte; 4])]);
        expected.push((false, texts(parts)));
    }
    // The last part first, which is longer than the others; and both in one datagram.
    send(to, 3, 1, &[([1, 1], b"last")]);
    send(to, 3, 1, &[([0, 1], b"any")]);
    send(to, 3, 2, &[([0, 1], b"any"), ([1, 1], b"any")]);
    expected.extend([(false, vec![]), (true, vec![]), (false, texts([17, 17]))]);
    // They are not segments, but it is enough that they were reassembled.
    let settings = ["ww.ports:4000,50002", "ww.assume_checked:TRUE"];
    let fields = ["ww.part.misfit", "ww.part.in"];
    let Some(rows) = tshark::show_again(&captured, &settings, &fields) else { return };
    for ((row, (is_misfit, parts)), number) in rows.into_iter().zip(expected).zip(1..) {
        assert_eq!((!row[0].is_empty(), &row[1]), (is_misfit, &parts), "{number}");
    }
}
