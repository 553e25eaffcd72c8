//! The packets and frames of a session: every value has exactly one encoding, and anything invalid is
//! rejected with its reason.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use proptest::prelude::*;
use whitewater::inside::session::wire::{
    Accept, AckFrame, CHALLENGE_LEN, CLOSE_TEXT_MAX, Challenge, Connect, DATA_MAX, DATAGRAM_MAX, DENY_LEN,
    Data, Deny, DenyReason, EcnFrame, FRAMES_MAX, Frame, FrameError, FrameWriter, Frames, HELLO_MIN, Hello,
    KcpPart, LossFrame, MESSAGE_MAX, Msg1, Msg2, Packet, PacketError, RESET_LEN, RekeyFrame, Reset,
    TICKET_LEN, TOKEN_MAX, USER_MAX, is_close_text,
};
use whitewater::packet::Seq16;

/// One of each kind, from the same numbers.
fn packets(
    numbers: (u16, u64, u64, u32),
    bytes: [u8; 16],
    token: &[u8],
    msg: &[u8],
    size: u16,
) -> Vec<Vec<u8>> {
    let (suite, protocol_id, cid, number) = numbers;
    let mut datagrams = vec![Vec::new(); 7];
    Hello { suite, protocol_id, cid, client_stamp: number, size }.encode(&mut datagrams[0]).unwrap();
    let challenge = Challenge { suite, cid, client_stamp: number, epoch: !number, cookie: bytes };
    challenge.encode(&mut datagrams[1]).unwrap();
    let (epoch, cookie, client_sid) = (number, bytes, number);
    let connect = Connect { suite, protocol_id, cid, epoch, cookie, client_sid, token, msg1: msg };
    connect.encode(&mut datagrams[2]).unwrap();
    Accept { suite, cid, msg2: msg }.encode(&mut datagrams[3]).unwrap();
    let reason = DenyReason::ALL[usize::from(bytes[0] % 6)];
    let deny = Deny { lowest: 1, highest: 1 + bytes[1] % 15, reason, cid, retry_after_ms: number };
    deny.encode(&mut datagrams[4]).unwrap();
    datagrams[5].extend_from_slice(&Data { phase: bytes[2] % 2 == 1, sid: number, pn: !number }.encode());
    datagrams[5].extend_from_slice(msg);
    Reset { sid: number, token: bytes }.encode(&mut datagrams[6]).unwrap();
    let mut expected = vec![
        Packet::Hello(Hello { suite, protocol_id, cid, client_stamp: number, size }),
        Packet::Challenge(challenge),
        Packet::Connect(connect),
        Packet::Accept(Accept { suite, cid, msg2: msg }),
        Packet::Deny(deny),
        Packet::Data(Data { phase: bytes[2] % 2 == 1, sid: number, pn: !number }, msg),
        Packet::Reset(Reset { sid: number, token: bytes }),
    ];
    for (datagram, expected) in datagrams.iter().zip(expected.drain(..)) {
        assert_eq!(Packet::decode(datagram), Ok(expected));
    }
    datagrams
}

fn numbers() -> impl Strategy<Value = (u16, u64, u64, u32)> {
    (any::<u16>(), any::<u64>(), any::<u64>(), any::<u32>())
}

fn bytes(len: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), len)
}

proptest! {
    #[test]
    fn every_packet_round_trips_and_nothing_shorter_or_longer_is_valid(
        numbers in numbers(),
        sixteen in any::<[u8; 16]>(),
        token in bytes(0..=TOKEN_MAX),
        msg in bytes(28..=MESSAGE_MAX),
        size in 512..=1200_u16,
    ) {
        for (kind, datagram) in packets(numbers, sixteen, &token, &msg, size).into_iter().enumerate() {
            prop_assert!(datagram.len() <= DATAGRAM_MAX);
            let any_length = kind == 0 || kind == 5; // the padding of a HELLO, and the sealed part
            for cut in (0..datagram.len()).step_by(7) {
                let cut = Packet::decode(&datagram[..cut]);
                prop_assert!(cut.is_err() || any_length);
            }
            let longer = [&datagram[..], &[0]].concat();
            prop_assert!(Packet::decode(&longer).is_err() || any_length);
            let most = if kind == 5 { DATA_MAX } else { DATAGRAM_MAX };
            let too_long = [&datagram[..], &vec![0; most]].concat();
            let have = too_long.len();
            prop_assert_eq!(Packet::decode(&too_long), Err(PacketError::Length { have }));
        }
    }

    #[test]
    fn the_payloads_of_the_handshake_round_trip(
        numbers in (any::<u32>(), any::<[u16; 3]>(), 1..=u32::MAX, any::<[u8; 16]>()),
        rejected in prop::option::of(any::<u16>()),
        ticket in prop::option::of(any::<[u8; TICKET_LEN]>()),
        user in bytes(0..=USER_MAX),
        channels in 0..=80_usize,
    ) {
        let (features, [max_datagram, rcv_wnd, keepalive_ms], sid, reset_token) = numbers;
        let mut payload = Vec::new();
        let shape = vec![7; 8 + 3 * channels];
        let msg1 = Msg1 { features, max_datagram, rcv_wnd, keepalive_ms, user: &user, shape: &shape };
        msg1.encode(&mut payload).unwrap();
        prop_assert_eq!(payload.len(), 16 + user.len() + shape.len());
        prop_assert_eq!(Msg1::decode(&payload), Ok(msg1));
        payload.push(0);
        prop_assert!(Msg1::decode(&payload).is_err());
        payload.clear();
        let ticket = ticket.filter(|_| rejected.is_none());
        let server_sid = if rejected.is_some() { 0 } else { sid };
        let msg2 =
            Msg2 { server_sid, said: Msg1 { shape: b"", ..msg1 }, rejected, reset_token, ticket };
        msg2.encode(&mut payload).unwrap();
        prop_assert_eq!(payload.len(), 32 + rejected.map_or(0, |_| 2) + ticket.map_or(0, |_| 20) + user.len());
        prop_assert_eq!(Msg2::decode(&payload), Ok(msg2));
    }
}

#[test]
fn packets_have_the_documented_lengths() {
    let datagrams = packets((0x201, 1, 2, 3), [4; 16], &[0; 384], &[0; 64], 1200);
    let lengths: Vec<_> = datagrams.iter().map(Vec::len).collect();
    assert_eq!(lengths, [1200, CHALLENGE_LEN, 496, 78, DENY_LEN, 73, RESET_LEN]);
    assert_eq!((CHALLENGE_LEN, DENY_LEN, RESET_LEN), (36, 16, 21));
    let least = packets((0, 1, 2, 3), [4; 16], &[], &[0; 28], 512);
    assert_eq!((least[2].len(), least[0].len()), (76, HELLO_MIN));
    let ticket = packets((0, 1, 2, 1 << 31 | 3), [4; 16], &[], &[0; 28], 512).swap_remove(2);
    assert_eq!(ticket.len(), HELLO_MIN, "with a ticket");
    let changed = [&ticket[..HELLO_MIN - 1], &[1]].concat();
    assert_eq!(Packet::decode(&changed), Err(PacketError::Reserved));
}

#[test]
fn every_invalid_packet_has_its_own_error() {
    let datagrams = packets((0x201, 1, 2, 3), [4; 16], &[0; 384], &[0; 64], 600);
    let [hello, challenge, connect, accept, deny, data, reset] = &datagrams[..] else { unreachable!() };
    let with = |datagram: &[u8], at: usize, to: u8| {
        let mut changed = datagram.to_vec();
        changed[at] = to;
        Packet::decode(&changed).map(|_| ())
    };
    assert_eq!(Packet::decode(&[]), Err(PacketError::Kind { found: 0 }));
    for kind in (0..=u8::MAX).filter(|kind| !(0xa1..=0xaa).contains(kind)) {
        assert_eq!(with(hello, 0, kind), Err(PacketError::Kind { found: kind }));
    }
    assert_eq!(Reset::decode(deny), Err(PacketError::Kind { found: 0xa5 }));
    for datagram in [hello, challenge, connect, accept] {
        assert_eq!(with(datagram, 1, 2), Err(PacketError::Version { found: 2 }));
    }
    let mut next = hello.clone();
    next[1] = 2;
    assert_eq!(Packet::cid_of_any_version(&next), Some(2), "a future version");
    assert_eq!(Packet::cid_of_any_version(&next[..511]), None);
    assert_eq!(Packet::cid_of_any_version(challenge), None);
    for at in [24, 300, 599] {
        assert_eq!(with(hello, at, 1), Err(PacketError::Reserved));
    }
    assert_eq!(Packet::decode(&hello[..511]), Err(PacketError::Length { have: 511 }));
    assert_eq!(with(connect, 44, 0x81), Err(PacketError::Length { have: 496 }));
    let versions = Err(PacketError::Field { field: "versions" });
    assert_eq!([0x00, 0x01, 0x10, 0x21].map(|found| with(deny, 1, found)), [versions; 4]);
    let reason = Err(PacketError::Field { field: "reason" });
    assert_eq!([0, 7, 255].map(|found| with(deny, 2, found)), [reason; 3]);
    assert_eq!(Packet::decode(&data[..12]), Err(PacketError::Length { have: 12 }));
    assert_eq!(Packet::decode(&reset[..20]), Err(PacketError::Length { have: 20 }));

    let long_token = [&connect[..44], &[1, 2], &[0; 513], &[28, 0], &[0; 28]].concat();
    assert_eq!(Packet::decode(&long_token), Err(PacketError::Field { field: "token" }));
    for len in [0, 27, 569_u16] {
        let msg = vec![0; len.into()];
        let connect = [&connect[..44], &[0, 0], &len.to_le_bytes(), &msg].concat();
        assert_eq!(Packet::decode(&connect), Err(PacketError::Field { field: "msg1" }));
        let accept = [&accept[..12], &len.to_le_bytes(), &msg].concat();
        assert_eq!(Packet::decode(&accept), Err(PacketError::Field { field: "msg2" }));
    }
}

#[test]
fn values_that_cannot_be_encoded_are_not_written() {
    let mut out = Vec::new();
    let hello = |size| Hello { suite: 0, protocol_id: 0, cid: 0, client_stamp: 0, size };
    assert!(hello(511).encode(&mut out).is_err() && hello(1201).encode(&mut out).is_err());
    let deny =
        |lowest, highest| Deny { lowest, highest, reason: DenyReason::Busy, cid: 0, retry_after_ms: 0 };
    for (lowest, highest) in [(0, 0), (0, 1), (2, 1), (1, 16)] {
        assert!(deny(lowest, highest).encode(&mut out).is_err());
    }
    for (token, msg1) in [(513, 28), (0, 27), (0, MESSAGE_MAX + 1)] {
        let (token, msg1) = (vec![0; token], vec![0; msg1]);
        let (cookie, epoch, client_sid) = ([0; 16], 0, 0);
        let connect = Connect {
            suite: 0,
            protocol_id: 0,
            cid: 0,
            epoch,
            cookie,
            client_sid,
            token: &token,
            msg1: &msg1,
        };
        assert!(connect.encode(&mut out).is_err());
    }
    let user = [0; USER_MAX + 1];
    let msg1 = Msg1 { features: 0, max_datagram: 0, rcv_wnd: 0, keepalive_ms: 0, user: &user, shape: b"" };
    assert_eq!(msg1.encode(&mut out), Err(PacketError::Field { field: "user" }));
    let said = Msg1 { user: &[], ..msg1 };
    let msg2 = |server_sid, rejected| Msg2 { server_sid, said, rejected, reset_token: [0; 16], ticket: None };
    for (sid, rejected) in [(0, None), (1, Some(0))] {
        assert_eq!(msg2(sid, rejected).encode(&mut out), Err(PacketError::Field { field: "server_sid" }));
    }
    let both = Msg2 { ticket: Some([1; TICKET_LEN]), ..msg2(0, Some(0)) };
    assert_eq!(both.encode(&mut out), Err(PacketError::Field { field: "ticket" }));
    assert!(out.is_empty(), "nothing was appended");
}

#[test]
fn nothing_secret_is_printed() {
    let datagrams = packets((0, 1, 2, 3), [77; 16], &[88; 50], &[99; 50], 600);
    for at in [2, 6] {
        let printed = format!("{:?}", Packet::decode(&datagrams[at]).unwrap());
        assert!(!["77", "88", "99"].iter().any(|secret| printed.contains(secret)), "{printed}");
    }
}

/// A frame that owns its content.
#[derive(Clone, Debug)]
enum Owned {
    Bytes(u8, Vec<u8>),
    Part(KcpPart, Vec<u8>),
    Fixed(Frame<'static>),
    Close(u16, String),
    Repair(u32, Vec<u8>),
}

impl Owned {
    fn frame(&self) -> Frame<'_> {
        match self {
            Self::Bytes(0, bytes) => Frame::Kcp(bytes),
            Self::Bytes(1, bytes) => Frame::Dgram(bytes),
            Self::Bytes(2, bytes) => Frame::Redirect(bytes),
            Self::Bytes(_, bytes) => Frame::Packed(bytes),
            Self::Part(part, bytes) => Frame::KcpPart(*part, bytes),
            Self::Fixed(frame) => *frame,
            Self::Close(reason, text) => Frame::Close(*reason, text),
            Self::Repair(first, payload) => Frame::Repair(*first, payload),
        }
    }
}

fn frame() -> impl Strategy<Value = Owned> {
    let fixed = prop_oneof![
        (any::<u16>(), any::<u32>(), any::<u16>()).prop_map(|(ack, bits, delay)| Frame::Ack(AckFrame {
            ack: Seq16(ack),
            bits,
            delay
        })),
        any::<[u32; 3]>().prop_map(|[unmarked, capable, congested]| Frame::Ecn(EcnFrame {
            unmarked,
            capable,
            congested
        })),
        (any::<u16>(), any::<u32>(), any::<u8>()).prop_map(|(newest, rebuilt, share)| Frame::Loss(
            LossFrame { newest: Seq16(newest), rebuilt, share }
        )),
        (any::<u16>(), any::<[u8; 32]>())
            .prop_map(|(phase, half)| Frame::Rekey(RekeyFrame { phase: Seq16(phase), half })),
        any::<u64>().prop_map(Frame::Ping),
        any::<u64>().prop_map(Frame::Pong),
        any::<[u8; 8]>().prop_map(Frame::PathChallenge),
        any::<[u8; 8]>().prop_map(Frame::PathResponse),
    ];
    prop_oneof![
        (0..4_u8, bytes(0..=40)).prop_map(|(kind, bytes)| Owned::Bytes(kind, bytes)),
        (any::<u16>(), any::<u8>(), 1..=255_u8, bytes(1..=40)).prop_map(|(number, id, last, bytes)| {
            Owned::Part(KcpPart { number: Seq16(number), id: id.min(last), last }, bytes)
        }),
        fixed.prop_map(Owned::Fixed),
        (any::<u32>(), bytes(0..=40)).prop_map(|(first, payload)| Owned::Repair(first, payload)),
        (any::<u16>(), "\\PC{0,32}").prop_map(|(reason, text)| Owned::Close(reason, text)),
    ]
}

proptest! {
    #[test]
    fn frames_round_trip_in_order(
        frames in prop::collection::vec(frame(), 0..80),
        pad in prop::option::of(1..50_usize),
        limit in 0..3000_usize,
    ) {
        let mut body = b"header".to_vec();
        let mut writer = FrameWriter::new(&mut body, 6 + limit);
        let frames: Vec<_> = frames.iter().map(Owned::frame).chain(pad.map(Frame::Pad)).collect();
        let mut written = Vec::new();
        for frame in &frames {
            let room = writer.room();
            let fits = writer.push(frame).is_ok();
            if let Frame::Kcp(bytes) | Frame::Dgram(bytes) | Frame::Packed(bytes) = frame {
                prop_assert_eq!(fits, room.is_some_and(|room| bytes.len() <= room));
            }
            if fits {
                written.push(*frame);
            }
        }
        prop_assert!(body.len() <= 6 + limit);
        let body = &body[6..];
        prop_assert_eq!(Frames::parse(body).unwrap().collect::<Vec<_>>(), written);
    }

    #[test]
    fn frames_that_decode_encode_to_the_same_bytes(
        body in prop::collection::vec(prop_oneof![0..17_u8, 0x80..0x8f_u8, any::<u8>()], 0..60),
    ) {
        if let Ok(frames) = Frames::parse(&body) {
            let mut again = Vec::new();
            let mut writer = FrameWriter::new(&mut again, body.len());
            for frame in frames {
                writer.push(&frame).unwrap();
            }
            prop_assert_eq!(again, body);
        }
    }
}

#[test]
fn an_invalid_body_is_rejected_as_a_whole_with_its_reason() {
    let refused = |body: &[u8]| Frames::parse(body).map(|_| ()).unwrap_err();
    let good = [4, 0, 0, 0, 0, 0, 0, 0, 0];
    let behind = |bytes: &[u8]| refused(&[&good[..], bytes].concat());
    for found in (0..=u8::MAX).filter(|found| !matches!(found, 0..=17 | 0x81 | 0x82 | 0x89..=0x8b | 0x8d)) {
        assert_eq!(behind(&[found, 0, 0, 0]), FrameError::Kind { found });
    }
    assert_eq!(behind(&[2, 3, 0, 1, 2]), FrameError::Truncated);
    assert_eq!(behind(&[2, 3]), FrameError::Truncated);
    assert_eq!(behind(&[2, 3, 0, 1, 2, 3]), FrameError::NotShortest, "it could extend to the end");
    assert_eq!(behind(&[5, 0, 0, 0, 0, 0, 0, 0]), FrameError::Truncated);
    for part in [&[0x8b, 0, 0, 0, 0, 9][..], &[0x8b, 0, 0, 2, 1, 9], &[0x8b, 0, 0, 0, 1]] {
        assert_eq!(behind(part), FrameError::Part);
    }
    assert_eq!(behind(&[0x8b, 0, 0, 0]), FrameError::Truncated);
    let repair = [0x8d, 1, 2, 3, 4, 5];
    assert_eq!(Frames::parse(&repair).unwrap().next(), Some(Frame::Repair(0x0403_0201, &[5])));
    assert_eq!(behind(&repair), FrameError::Repair);
    assert_eq!(refused(&repair[..4]), FrameError::Truncated);
    assert_eq!(behind(&[0, 0, 0, 1]), FrameError::Padding);
    assert_eq!(behind(&[8, 1, 0, 2, 0xff, 0xff]), FrameError::Text);
    assert_eq!(behind(&[8, 1, 0, 2, 0xc2, 0x9f]), FrameError::Text);
    let long = [&[8, 1, 0, 129][..], &[b'x'; 129]].concat();
    assert_eq!(behind(&long), FrameError::Text);
    let most = good.repeat(FRAMES_MAX);
    assert_eq!(Frames::parse(&most).unwrap().count(), FRAMES_MAX);
    assert_eq!(refused(&good.repeat(FRAMES_MAX + 1)), FrameError::TooMany);
    assert_eq!(Frames::parse(&[]).unwrap().count(), 0);
}

#[test]
fn a_text_has_no_control_characters_and_anything_else() {
    for text in (0..=0x2fff).filter_map(char::from_u32).chain(['\u{e002}', '\u{ff80}', '\u{10ffff}']) {
        let (alone, within) = (text.to_string(), format!("ä{text}Â{text}"));
        assert_eq!((is_close_text(&alone), is_close_text(&within)), (!text.is_control(), !text.is_control()));
    }
    assert!(is_close_text("") && is_close_text(&"x".repeat(128)) && !is_close_text(&"x".repeat(129)));
}

#[test]
fn a_writer_accepts_only_valid_bodies() {
    let mut body = Vec::new();
    let mut writer = FrameWriter::new(&mut body, 10_000);
    let text = "x".repeat(CLOSE_TEXT_MAX + 1);
    assert!(writer.push(&Frame::Close(0, &text)).is_err() && writer.push(&Frame::Close(0, "\n")).is_err());
    assert!(writer.push(&Frame::Pad(0)).is_err());
    assert_eq!((writer.count(), writer.room()), (0, Some(9_999)));
    for _ in 0..FRAMES_MAX {
        writer.push(&Frame::Dgram(b"")).unwrap();
    }
    assert!(writer.push(&Frame::Ping(0)).is_err() && writer.room().is_none());
    assert_eq!(body.len(), 3 * FRAMES_MAX - 2, "the last has no length");
    let mut body = Vec::new();
    let mut writer = FrameWriter::new(&mut body, 100);
    writer.push(&Frame::Pad(1)).unwrap();
    assert!(writer.push(&Frame::Ping(0)).is_err(), "nothing may follow padding");
}
