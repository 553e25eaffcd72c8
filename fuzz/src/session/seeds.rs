//! Seed scripts: each kind of trouble alone, after the handshake and during it.

use super::{flag, op};
use whitewater::inside::session::wire::{Frame, FrameWriter};

/// The scripts and their names.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let back = op::BACK;
    let good = |ms: u16| [&[op::GOOD][..], &ms.to_le_bytes()].concat();
    let wait = |ms: u16| [&[op::WAIT][..], &ms.to_le_bytes()].concat();
    let sends: Vec<u8> =
        (0..5).flat_map(|what| [op::SEND, what, 40 * what, op::SEND | back, what, 200 - 40 * what]).collect();
    let takes = [op::TAKE, op::TAKE | back];
    let body = |end: u8, frame: &Frame<'_>| {
        let mut body = Vec::new();
        let is_written = FrameWriter::new(&mut body, 200).push(frame);
        is_written.expect("it fits");
        let len = u8::try_from(body.len()).unwrap_or_default();
        [&[op::BODY | end, len][..], &body].concat()
    };
    // Channel u8, command u8, frg u8, wnd u16, ts u32, sn + 8 u16, una + 8 u16, length u8, data.
    let segment = |end: u8, head: [u8; 3], sn: u8, una: u8| {
        let [channel, cmd, frg] = head;
        [op::FRAME | end, 0, channel, cmd, frg, 128, 0, 0, 0, 0, 0, 8 + sn, 0, 8 + una, 0, 3, 1, 2, 3]
            .to_vec()
    };
    let troubles: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", vec![]),
        ("loss", [op::LOSE, op::LOSE | back, op::ARRIVE, op::LOSE, op::ARRIVE | back].repeat(4)),
        ("again", [op::ARRIVE, op::AGAIN, 0, op::AGAIN, 1, op::ARRIVE | back, op::AGAIN | back, 0].to_vec()),
        ("silence", [wait(3000), wait(3000)].concat()),
        ("forgotten", wait(8000)),
        ("closed", [&[op::CLOSE, 7][..], &good(300), &wait(2000)].concat()),
        ("both-close", [op::CLOSE, 7, op::CLOSE | back, 8].to_vec()),
        ("moved", [&[op::MOVE][..], &good(500), &[op::MOVE, op::MOVE], &good(500)].concat()),
        ("flip", [op::FLIP, 0, 0, 1, op::FLIP | back, 12, 0, 0x80].to_vec()),
        ("damage", [op::DAMAGE, 1, 0, 1, op::DAMAGE | back, 6, 0, 0x40].to_vec()),
        ("close-frame", body(0, &Frame::Close(9, "bye"))),
        ("close-frame-back", body(back, &Frame::Close(9, ""))),
        ("path", [body(0, &Frame::PathChallenge([1; 8])), body(back, &Frame::PathResponse([1; 8]))].concat()),
        ("pong", [body(0, &Frame::Pong(1)), body(back, &Frame::Ping(u64::MAX))].concat()),
        ("redirect", body(back, &Frame::Redirect(b"token"))),
        (
            "repair",
            [
                body(0, &Frame::Repair(0, &[1, 0, 9, 9, 9, 9])),
                body(back, &Frame::Repair(9, &[64, 1, 0, 0, 0])),
            ]
            .concat(),
        ),
        (
            "rebuilt",
            [
                &[op::LOSE, op::LOSE | back][..],
                &sends,
                &good(100),
                &sends,
                &[op::LOSE, op::LOSE | back],
                &good(50),
            ]
            .concat(),
        ),
        (
            "loss-frame",
            [op::FRAME, 6, 3, 0xff, 0, 0, 0, 40, op::FRAME | back, 6, 1, 1, 0, 0, 0, 255].to_vec(),
        ),
        ("garbage", vec![op::BODY, 4, 0xff, 1, 2, 3]),
        ("ack", [op::FRAME, 1, 1, 0, 0xff, 0xff, 0xff, 0xff, 9, 0].to_vec()),
        ("ack-ahead", [op::FRAME | back, 1, 0xff, 0x7f, 0, 0, 0, 0, 0, 0].to_vec()),
        ("push", [segment(0, [0, 0, 0], 0, 0), segment(back, [1, 0, 3], 1, 0)].concat()),
        ("una-ahead", segment(0, [0, 1, 0], 0, 100)),
        (
            "part",
            [op::FRAME, 3, 5, 1, 1, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, op::FRAME | back, 3, 5, 2, 3, 1, 7]
                .to_vec(),
        ),
        ("wrong-channel", segment(back, [3, 2, 0], 0, 0)),
        ("beside", segment(back, [2, 0, 0], 0, 0)),
    ];
    let mut seeds = Vec::new();
    for (name, trouble) in troubles {
        let variants = [
            flag::CONNECTED,
            flag::CONNECTED | flag::CIPHER | flag::REKEYS,
            0,
            flag::CONNECTED | flag::CIPHER | flag::SEARCH,
            flag::CIPHER | flag::HYBRID,
            flag::CONNECTED | flag::ECN,
            flag::CONNECTED | flag::REPAIRS,
            flag::CONNECTED | flag::REPAIRS | flag::CIPHER | flag::SEARCH,
        ];
        for (variant, flags) in variants.into_iter().enumerate() {
            let start =
                if flags & flag::CONNECTED == 0 { [&trouble[..], &good(300)].concat() } else { vec![] };
            let script =
                [&[flags][..], &start, &sends, &trouble, &good(100), &takes, &sends, &good(200), &takes]
                    .concat();
            seeds.push((format!("{name}-{variant}"), script));
        }
    }
    seeds
}
