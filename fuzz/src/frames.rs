//! A body of frames encodes to the bytes it was decoded from.

use whitewater::inside::session::wire::{
    AckFrame, CLOSE_TEXT_MAX, EcnFrame, FRAMES_MAX, Frame, FrameWriter, Frames, KcpPart, LossFrame, NewId,
    RekeyFrame,
};
use whitewater::packet::Seq16;

/// Decodes a body.
///
/// # Panics
///
/// If it encodes to other bytes, or has too many or too large frames.
pub fn frames_decode(body: &[u8]) {
    let Ok(frames) = Frames::parse(body) else {
        return;
    };
    let mut again = b"before".to_vec();
    let mut writer = FrameWriter::new(&mut again, 6 + body.len());
    for frame in frames {
        if let Frame::Close(_, text) = frame {
            assert!(text.len() <= CLOSE_TEXT_MAX);
        }
        writer.push(&frame).expect("it was decoded");
    }
    if body.len() < 65_536 {
        assert!(writer.push(&Frame::Pad(1)).is_err(), "the body is full");
    }
    assert!(frames.count() <= FRAMES_MAX);
    assert_eq!(again.strip_prefix(b"before"), Some(body));
}

/// Each frame alone, each before another, and many.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let frames = [
        Frame::Repair(0x0102_0304, &[1, 0, 4, 0, 0, 9, 9, 9, 9]),
        Frame::Kcp(b"segment"),
        Frame::Dgram(b""),
        Frame::Ack(AckFrame { ack: Seq16(5), bits: 6, delay: 7 }),
        Frame::Ping(1),
        Frame::Pong(2),
        Frame::PathChallenge([3; 8]),
        Frame::PathResponse([4; 8]),
        Frame::Close(5, "bye"),
        Frame::Redirect(b"token"),
        Frame::Packed(b"bits"),
        Frame::KcpPart(KcpPart { number: Seq16(6), id: 1, last: 2 }, b"segm"),
        Frame::Ecn(EcnFrame { unmarked: 1, capable: 2, congested: 3 }),
        Frame::Loss(LossFrame { newest: Seq16(7), rebuilt: 8, share: 9 }),
        Frame::Rekey(RekeyFrame { phase: Seq16(10), half: [11; 32] }),
        Frame::NewId(NewId { sid: 10, reset_token: [11; 16] }),
        Frame::Pad(3),
    ];
    let mut seeds = Vec::new();
    let mut add = |name: String, frames: &[Frame<'_>]| {
        let mut body = Vec::new();
        let mut writer = FrameWriter::new(&mut body, 1200);
        for frame in frames {
            writer.push(frame).expect("there is room");
        }
        seeds.push((name, body));
    };
    for (index, frame) in frames.iter().enumerate() {
        add(format!("alone-{index}"), &[*frame]);
        if !matches!(frame, Frame::Repair(..)) {
            add(format!("first-{index}"), &[Frame::Ping(9), *frame]);
        }
        if !matches!(frame, Frame::Pad(_)) {
            add(format!("last-{index}"), &[*frame, Frame::Dgram(b"last")]);
        }
    }
    add("all".to_owned(), &frames);
    add("copy".to_owned(), &[Frame::Copy(), Frame::Dgram(b"again")]);
    add("many".to_owned(), &[Frame::Dgram(b"x"); FRAMES_MAX]);
    seeds
}
