//! Bodies of DATA: every frame, and invalid bodies.

use crate::common::rogue::{Rogue, open_server};
use crate::line::{File, Line, bytes, count, value, variant};
use serde_json::Value;
use std::collections::BTreeSet;
use whitewater::inside::session::seal::Seal;
use whitewater::inside::session::wire::{
    AckFrame, EcnFrame, Frame, FrameError, FrameWriter, Frames, KcpPart, LossFrame, NewId, RekeyFrame,
};
use whitewater::packet::Seq16;
use whitewater::{CloseReason, ServerConfig, SessionConfig};

pub(crate) fn file() -> File {
    let ack = Frame::Ack(AckFrame { ack: Seq16(0xfffe), bits: 0x8000_0001, delay: 25 });
    let part = |id, last| KcpPart { number: Seq16(6), id, last };
    let longest = "x".repeat(128);
    let bodies = [
        ("nothing", Vec::new()),
        ("PAD of one byte", vec![Frame::Pad(1)]),
        ("PAD", vec![Frame::Pad(20)]),
        ("KCP: an ACK and a PUSH", vec![Frame::Kcp(&KCP)]),
        ("DGRAM", vec![Frame::Dgram(b"last")]),
        ("DGRAM without a byte", vec![Frame::Dgram(b"")]),
        ("ACK", vec![ack]),
        ("PING", vec![Frame::Ping(0x0102_0304_0506_0708)]),
        ("PONG", vec![Frame::Pong(0x0102_0304_0506_0708)]),
        ("PATH_CHALLENGE", vec![Frame::PathChallenge(count(0x30))]),
        ("PATH_RESPONSE", vec![Frame::PathResponse(count(0x30))]),
        ("CLOSE without words", vec![Frame::Close(0xff01, "")]),
        ("CLOSE", vec![Frame::Close(3, "bye, Zoë")]),
        ("CLOSE with all words that fit", vec![Frame::Close(0, &longest)]),
        ("REDIRECT", vec![Frame::Redirect(b"token")]),
        ("PACKED", vec![Frame::Packed(b"bits")]),
        ("KCP_PART: the first of two", vec![Frame::KcpPart(part(0, 1), b"segm")]),
        ("KCP_PART: the last of 256", vec![Frame::KcpPart(part(255, 255), b"e")]),
        ("ECN", vec![Frame::Ecn(EcnFrame { unmarked: 1, capable: u32::MAX, congested: 3 })]),
        ("REPAIR", vec![Frame::Repair(0xffff_fffe, b"sum")]),
        ("REPAIR before others", vec![Frame::Repair(1, b"sum"), Frame::Ping(9)]),
        ("LOSS", vec![Frame::Loss(LossFrame { newest: Seq16(0x0708), rebuilt: 0x8000_0001, share: 13 })]),
        ("REKEY", vec![Frame::Rekey(RekeyFrame { phase: Seq16(0x0102), half: count(0x40) })]),
        ("NEW_ID", vec![Frame::NewId(NewId { sid: 0x0e0f_1012, reset_token: count(0x40) })]),
        ("COPY of a packet with a DGRAM", vec![Frame::Copy(), Frame::Dgram(b"again")]),
        ("an ACK, a DGRAM and another", vec![ack, Frame::Dgram(b"first"), Frame::Dgram(b"last")]),
        ("a probe of the path", vec![Frame::Ping(9), Frame::Pad(40)]),
        (
            "each frame that has a length, with it",
            vec![
                Frame::Kcp(b"kcp"),
                Frame::Dgram(b""),
                Frame::Redirect(b"token"),
                Frame::Packed(b"bits"),
                Frame::KcpPart(part(1, 2), b"part"),
                Frame::Pong(9),
            ],
        ),
        ("64 frames", vec![Frame::Dgram(b""); 64]),
    ];
    let lines = bodies.into_iter().map(|(name, frames)| {
        let listed: Vec<_> = frames.iter().map(fields).collect();
        Line::named(name).list("frames", &listed).hex("body", &encoded(&frames))
    });
    File {
        name: "frames",
        about: "The body of a DATA packet, and the frames in it, in their order.",
        lines: lines.collect(),
    }
}

pub(crate) fn take(line: &Value) {
    let body = bytes(line, "body");
    let taken: Vec<_> = Frames::parse(&body).unwrap().collect();
    let listed: Vec<_> = taken.iter().map(|frame| value(&fields(frame))).collect();
    assert_eq!(line["frames"], Value::from(listed), "{line}");
    assert_eq!(encoded(&taken), body, "one encoding: {line}");
}

/// Every type of frame must have a vector, or other implementations cannot check it.
pub(crate) fn every_type_has_a_vector() {
    let is_known = |found: &u8| Frames::parse(&[*found]).err() != Some(FrameError::Kind { found: *found });
    let known: BTreeSet<_> = (0..=u8::MAX).filter(is_known).collect();
    let lines = file().lines;
    let frames = lines.iter().flat_map(|line| value(line)["frames"].as_array().unwrap().clone());
    let names: BTreeSet<_> = frames.map(|frame| frame["frame"].as_str().unwrap().to_owned()).collect();
    let there = lines.iter().flat_map(|line| types(&bytes(&value(line), "body"))).collect();
    assert_eq!(known, there, "with a length and without");
    assert_eq!(names.len(), known.iter().map(|found| found & 0x7f).collect::<BTreeSet<_>>().len());
}

/// The types in a body as they are encoded.
fn types(body: &[u8]) -> Vec<u8> {
    let frames: Vec<_> = Frames::parse(body).unwrap().collect();
    let before = |count: usize| {
        encoded(&[&frames[..count], &[Frame::Ping(0)]].concat()).len() - encoded(&[Frame::Ping(0)]).len()
    };
    (0..frames.len()).map(|index| body[before(index)]).collect()
}

fn encoded(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut writer = FrameWriter::new(&mut body, 1200);
    frames.iter().for_each(|frame| writer.push(frame).unwrap());
    body
}

/// The fields of a frame, by their names in docs/WIRE.md.
fn fields(frame: &Frame<'_>) -> Line {
    let named = |name: &str| Line::default().text("frame", name);
    match frame {
        Frame::Pad(len) => named("PAD").number("bytes", u32::try_from(*len).unwrap()),
        Frame::Kcp(content) => named("KCP").hex("content", content),
        Frame::Dgram(content) => named("DGRAM").hex("content", content),
        Frame::Ack(AckFrame { ack, bits, delay }) => {
            named("ACK").number("ack", ack.0).number("bits", *bits).number("delay", *delay)
        }
        Frame::Ping(stamp) => named("PING").hex("content", &stamp.to_le_bytes()),
        Frame::Pong(stamp) => named("PONG").hex("content", &stamp.to_le_bytes()),
        Frame::PathChallenge(random) => named("PATH_CHALLENGE").hex("content", random),
        Frame::PathResponse(random) => named("PATH_RESPONSE").hex("content", random),
        Frame::Close(why, text) => named("CLOSE").number("why", *why).text("text", text),
        Frame::Redirect(content) => named("REDIRECT").hex("content", content),
        Frame::Packed(content) => named("PACKED").hex("content", content),
        Frame::KcpPart(KcpPart { number, id, last }, content) => named("KCP_PART")
            .number("number", number.0)
            .number("id", *id)
            .number("last", *last)
            .hex("content", content),
        Frame::Ecn(EcnFrame { unmarked, capable, congested }) => {
            named("ECN").number("unmarked", *unmarked).number("ect0", *capable).number("ce", *congested)
        }
        Frame::Repair(first, content) => named("REPAIR").number("first", *first).hex("content", content),
        Frame::Loss(LossFrame { newest, rebuilt, share }) => {
            named("LOSS").number("newest", newest.0).number("rebuilt", *rebuilt).number("share", *share)
        }
        Frame::Rekey(RekeyFrame { phase, half }) => {
            named("REKEY").number("phase", phase.0).hex("content", half)
        }
        Frame::NewId(NewId { sid, reset_token }) => {
            named("NEW_ID").number("sid", *sid).hex("content", reset_token)
        }
        Frame::Copy() => named("COPY"),
        _ => panic!("a frame without a vector: {frame:?}"),
    }
}

/// Invalid bodies.
pub(crate) fn refused() -> File {
    let ping = [4, 0, 0, 0, 0, 0, 0, 0, 0];
    let behind = |bytes: &[u8]| [&ping[..], bytes].concat();
    let close = |text: &[u8]| behind(&[&[8, 1, 0, u8::try_from(text.len()).unwrap()], text].concat());
    let cases = [
        ("a type that there is not", behind(&[0x7f, 0, 0])),
        ("a PING up to the end", [&[0x84][..], &[0; 8]].concat()),
        ("a PAD up to the end", vec![0x80]),
        ("a PAD that is not zero", behind(&[0, 0, 1])),
        ("a PING cut off", behind(&[4, 0, 0, 0, 0, 0, 0, 0])),
        ("an ACK cut off", behind(&[3, 0, 0, 0, 0, 0, 0, 0])),
        ("an ECN cut off", behind(&[12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("a LOSS cut off", behind(&[14, 0, 0, 0, 0, 0, 0])),
        ("a REKEY cut off", behind(&[&[15, 1, 0][..], &[9; 31]].concat())),
        ("a NEW_ID cut off", behind(&[&[16][..], &[1; 19]].concat())),
        ("a COPY behind another frame", behind(&[17])),
        ("a COPY up to the end", vec![0x91]),
        ("a REPAIR without its first number", vec![0x8d, 0, 0, 0]),
        ("a REPAIR behind another frame", behind(&[0x8d, 0, 0, 0, 0, 1])),
        ("a DGRAM without its length", behind(&[2, 3])),
        ("a DGRAM shorter than its length", behind(&[2, 3, 0, 1, 2])),
        ("a DGRAM with a length, and nothing behind it", behind(&[2, 3, 0, 1, 2, 3])),
        ("a CLOSE cut off", behind(&[8, 1, 0, 3, b'b', b'y'])),
        ("a CLOSE whose text is no UTF-8", close(&[0xff])),
        ("a CLOSE with an end of line", close(b"\n")),
        ("a CLOSE with U+0085", close("\u{85}".as_bytes())),
        ("a CLOSE with 129 bytes", close(&[b'x'; 129])),
        ("a KCP_PART without its head", behind(&[0x8b, 0, 0, 0])),
        ("a KCP_PART without bytes", behind(&[0x8b, 0, 0, 0, 1])),
        ("a KCP_PART that is all of its frame", behind(&[0x8b, 0, 0, 0, 0, 9])),
        ("a KCP_PART after the last", behind(&[0x8b, 0, 0, 2, 1, 9])),
        ("65 frames", ping.repeat(65)),
    ];
    let lines = cases.into_iter().map(|(name, body)| {
        let error = Frames::parse(&body).map(|_| ()).unwrap_err();
        Line::named(name).text("error", &variant(&error)).hex("body", &body)
    });
    File {
        name: "refused-frames",
        about: "Bodies that are none. In an authentic packet each ends the session with the code 0xff01.",
        lines: lines.collect(),
    }
}

pub(crate) fn take_refused(line: &Value) {
    let body = bytes(line, "body");
    let error = Frames::parse(&body).map(|_| ()).unwrap_err();
    assert_eq!(line["error"], variant(&error), "{line}");
    let mut world = open_server(ServerConfig::insecure(SessionConfig::default()));
    let mut client = Rogue::connect(&mut world, 1).unwrap();
    let mut datagram = Vec::new();
    Seal::begin(&mut datagram);
    datagram.extend_from_slice(&body);
    client.seal_raw(&mut world, datagram);
    world.run(1100);
    assert_eq!(world.closed(), Some(CloseReason::Protocol), "{line}");
}

/// The segments in docs/WIRE.md.
const KCP: [u8; 50] =
    *b"\x44\x33\x22\x11\x52\x00\x7e\x00\x05\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\
\x44\x33\x22\x11\x51\x00\x7e\x00\x28\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00ok";
