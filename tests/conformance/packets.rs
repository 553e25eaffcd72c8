//! Every packet except the sealed part of DATA, and the two payloads of the handshake.

use crate::line::{File, Line, bytes, count, value, variant};
use crate::{CID, PROTOCOL};
use serde_json::Value;
use std::collections::BTreeSet;
use whitewater::inside::session::wire::{
    Accept, Challenge, Connect, DATAGRAM_MAX, Data, Deny, DenyReason, HELLO_MIN, Hello, KEM_KEY_LEN,
    KEM_SEALED_LEN, KemCiphertext, KemKey, MESSAGE_MAX, MESSAGE_MIN, Msg1, Msg2, NO_PROOF, Packet,
    PacketError, Reset, SHAPE_MAX, TICKET, TOKEN_MAX, USER_MAX,
};

pub(crate) fn file() -> File {
    let (suite, protocol_id, cid) = (0x0201, PROTOCOL, CID);
    let hello = |size: usize| Hello {
        suite,
        protocol_id,
        cid,
        client_stamp: 1000,
        size: u16::try_from(size).unwrap(),
    };
    let mut lines = vec![
        packet("the shortest HELLO", &Packet::Hello(hello(HELLO_MIN))),
        packet("the longest HELLO", &Packet::Hello(hello(DATAGRAM_MAX))),
        packet(
            "CHALLENGE",
            &Packet::Challenge(Challenge { suite, cid, client_stamp: 1000, epoch: 7, cookie: count(0x10) }),
        ),
    ];
    for (name, suite, epoch, token, msg1) in [
        ("the shortest CONNECT", suite, 7, 0, MESSAGE_MIN),
        ("CONNECT with a token", suite, 7, 384, 64),
        ("the longest CONNECT", suite, 7, TOKEN_MAX, MESSAGE_MAX),
        ("CONNECT of a hybrid suite", 0x8201, 7, 384, 64),
        ("CONNECT with a ticket", suite, TICKET | 7, 0, 64),
        ("CONNECT with a ticket and a token", suite, TICKET | 7, 400, 64),
        ("CONNECT of a hybrid suite with a ticket", 0x8201, TICKET | 7, 0, 64),
        ("CONNECT without a proof", suite, NO_PROOF, 384, 64),
        ("the longest CONNECT without a proof", suite, NO_PROOF, TOKEN_MAX, MESSAGE_MAX),
    ] {
        let (token, msg1) = (filled(0x30, token), filled(0x70, msg1));
        let cookie = if epoch == NO_PROOF { [0; 16] } else { count(0x10) };
        let client_sid = 0x0a0b_0c0d;
        let connect =
            Connect { suite, protocol_id, cid, epoch, cookie, client_sid, token: &token, msg1: &msg1 };
        lines.push(packet(name, &Packet::Connect(connect)));
    }
    for (name, len) in [("the shortest ACCEPT", MESSAGE_MIN), ("the longest ACCEPT", MESSAGE_MAX)] {
        lines.push(packet(name, &Packet::Accept(Accept { suite, cid, msg2: &filled(0x50, len) })));
    }
    for reason in DenyReason::ALL {
        let deny = Deny { lowest: 1, highest: 3, reason, cid, retry_after_ms: 3000 };
        lines.push(packet(&format!("DENY: {reason:?}"), &Packet::Deny(deny)));
    }
    for phase in [false, true] {
        let data = Data { phase, sid: 0x0e0f_1011, pn: 0xffff_fffe };
        lines.push(packet(
            &format!("DATA in key phase {}", u8::from(phase)),
            &Packet::Data(data, &filled(0x90, 20)),
        ));
    }
    lines.push(packet("RESET", &Packet::Reset(Reset { sid: 0x0e0f_1011, token: count(0xb0) })));
    let (key, sealed) = (filled(0x11, KEM_KEY_LEN), filled(0x22, KEM_SEALED_LEN));
    lines.push(packet("KEM_KEY", &Packet::KemKey(KemKey { cid, key: key[..].try_into().unwrap() })));
    let ciphertext = KemCiphertext { sid: 0x0e0f_1011, sealed: sealed[..].try_into().unwrap() };
    lines.push(packet("KEM_CIPHERTEXT", &Packet::KemCiphertext(ciphertext)));
    File {
        name: "packets",
        about: "A datagram and its fields. What is sealed in DATA, and the messages of the handshake, are any bytes here.",
        lines,
    }
}

/// What the datagram of a line decodes to.
pub(crate) fn take(line: &Value) {
    let datagram = bytes(line, "bytes");
    let taken = Packet::decode(&datagram).unwrap();
    let (kind, fields) = fields(&taken);
    assert_eq!((line["packet"].as_str(), &line["fields"]), (Some(kind), &value(&fields)), "{line}");
}

/// Every kind of packet must have a vector, or other implementations cannot check it.
pub(crate) fn every_kind_has_a_vector() {
    let known: BTreeSet<_> = (0..=u8::MAX)
        .filter(|kind| !matches!(Packet::decode(&[*kind]), Err(PacketError::Kind { .. })))
        .collect();
    let lines = file().lines;
    let there: BTreeSet<_> = lines.iter().map(|line| bytes(&value(line), "bytes")[0]).collect();
    assert_eq!(there, known);
}

fn packet(name: &str, packet: &Packet<'_>) -> Line {
    let (kind, fields) = fields(packet);
    Line::named(name).text("packet", kind).object("fields", &fields).hex("bytes", &encoded(packet))
}

fn encoded(packet: &Packet<'_>) -> Vec<u8> {
    let mut datagram = Vec::new();
    match packet {
        Packet::Hello(hello) => hello.encode(&mut datagram).unwrap(),
        Packet::Challenge(challenge) => challenge.encode(&mut datagram).unwrap(),
        Packet::Connect(connect) => connect.encode(&mut datagram).unwrap(),
        Packet::Accept(accept) => accept.encode(&mut datagram).unwrap(),
        Packet::Deny(deny) => deny.encode(&mut datagram).unwrap(),
        Packet::Data(data, sealed) => datagram = [&data.encode(), *sealed].concat(),
        Packet::Reset(reset) => reset.encode(&mut datagram).unwrap(),
        Packet::KemKey(key) => key.encode(&mut datagram),
        Packet::KemCiphertext(ciphertext) => ciphertext.encode(&mut datagram),
        _ => panic!("a packet without a vector: {packet:?}"),
    }
    datagram
}

/// The kind, and the fields by their names in docs/WIRE.md.
fn fields(packet: &Packet<'_>) -> (&'static str, Line) {
    let line = Line::default();
    match packet {
        Packet::Hello(Hello { suite, protocol_id, cid, client_stamp, size }) => {
            let line = line.number("suite", *suite).wide("protocol_id", *protocol_id).wide("cid", *cid);
            ("HELLO", line.number("stamp", *client_stamp).number("size", *size))
        }
        Packet::Challenge(Challenge { suite, cid, client_stamp, epoch, cookie }) => {
            let line = line.number("suite", *suite).wide("cid", *cid).number("stamp", *client_stamp);
            ("CHALLENGE", line.number("epoch", *epoch).hex("cookie", cookie))
        }
        Packet::Connect(Connect { suite, protocol_id, cid, epoch, cookie, client_sid, token, msg1 }) => {
            let line = line.number("suite", *suite).wide("protocol_id", *protocol_id).wide("cid", *cid);
            let line = line.number("epoch", *epoch).hex("cookie", cookie).number("sid", *client_sid);
            ("CONNECT", line.hex("token", token).hex("msg1", msg1))
        }
        Packet::Accept(Accept { suite, cid, msg2 }) => {
            ("ACCEPT", line.number("suite", *suite).wide("cid", *cid).hex("msg2", msg2))
        }
        Packet::Deny(Deny { lowest, highest, reason, cid, retry_after_ms }) => {
            let why =
                (1_u16..).zip(DenyReason::ALL).find(|(_, known)| known == reason).map_or(0, |(why, _)| why);
            let line = line.number("lowest", *lowest).number("highest", *highest).number("why", why);
            ("DENY", line.wide("cid", *cid).number("retry_ms", *retry_after_ms))
        }
        Packet::Data(Data { phase, sid, pn }, sealed) => {
            let line = line.number("phase", u8::from(*phase)).number("sid", *sid).number("pn", *pn);
            ("DATA", line.hex("sealed", sealed))
        }
        Packet::Reset(Reset { sid, token }) => ("RESET", line.number("sid", *sid).hex("token", token)),
        Packet::KemKey(KemKey { cid, key }) => ("KEM_KEY", line.wide("cid", *cid).hex("key", *key)),
        Packet::KemCiphertext(KemCiphertext { sid, sealed }) => {
            ("KEM_CIPHERTEXT", line.number("sid", *sid).hex("sealed", *sealed))
        }
        _ => panic!("a packet without a vector: {packet:?}"),
    }
}

pub(crate) fn payloads() -> File {
    let (rcv_wnd, keepalive_ms) = (128, 500);
    let mut lines = Vec::new();
    for (name, features, user, shape) in [
        ("msg1", 0, 0, 0),
        ("msg1: one channel", 0, 0, 11),
        ("msg1: ECN and repairs, all that fits", 3, USER_MAX, SHAPE_MAX),
    ] {
        let (user, shape) = (filled(0x61, user), filled(0x71, shape));
        let msg1 = Msg1 { features, max_datagram: 1200, rcv_wnd, keepalive_ms, user: &user, shape: &shape };
        let mut bytes = Vec::new();
        msg1.encode(&mut bytes).unwrap();
        lines.push(
            Line::named(name).number("message", 1_u8).object("fields", &of_msg1(&msg1)).hex("bytes", &bytes),
        );
    }
    for (name, server_sid, rejected, ticket, user) in [
        ("msg2", 0x0e0f_1011, None, None, 0),
        ("msg2: a ticket", 1, None, Some(count(0xd0)), 5),
        ("msg2: all that fits", 1, None, Some(count(0xd0)), USER_MAX),
        ("msg2: rejected", 0, Some(77), None, 5),
        ("msg2: rejected, all that fits", 0, Some(0xff05), None, USER_MAX),
    ] {
        let (reset_token, user) = (count(0xb0), filled(0x61, user));
        let said = Msg1 { features: 0, max_datagram: 1472, rcv_wnd, keepalive_ms, user: &user, shape: b"" };
        let msg2 = Msg2 { server_sid, said, rejected, reset_token, ticket };
        let mut bytes = Vec::new();
        msg2.encode(&mut bytes).unwrap();
        lines.push(
            Line::named(name).number("message", 2_u8).object("fields", &of_msg2(&msg2)).hex("bytes", &bytes),
        );
    }
    File { name: "payloads", about: "What is inside of msg1 and msg2 of a handshake, of every suite.", lines }
}

pub(crate) fn take_payload(line: &Value) {
    let bytes = bytes(line, "bytes");
    let fields = match line["message"].as_u64() {
        Some(1) => of_msg1(&Msg1::decode(&bytes).unwrap()),
        _ => of_msg2(&Msg2::decode(&bytes).unwrap()),
    };
    assert_eq!(line["fields"], value(&fields), "{line}");
}

fn of_msg1(Msg1 { features, max_datagram, rcv_wnd, keepalive_ms, user, shape }: &Msg1<'_>) -> Line {
    let line = Line::default().number("features", *features).number("max_datagram", *max_datagram);
    line.number("rcv_wnd", *rcv_wnd)
        .number("keepalive_ms", *keepalive_ms)
        .hex("user", user)
        .hex("shape", shape)
}

fn of_msg2(msg2: &Msg2<'_>) -> Line {
    let Msg2 { server_sid, said, rejected, reset_token, ticket } = msg2;
    let Msg1 { features, max_datagram, rcv_wnd, keepalive_ms, user, .. } = said;
    let line = Line::default().number("sid", *server_sid).number("features", *features);
    let line = line
        .number("max_datagram", *max_datagram)
        .number("rcv_wnd", *rcv_wnd)
        .number("keepalive_ms", *keepalive_ms);
    let line = if let Some(why) = rejected { line.number("rejected", *why) } else { line };
    let line = if let Some(ticket) = ticket { line.hex("ticket", ticket) } else { line };
    line.hex("reset_token", reset_token).hex("user", user)
}

/// Invalid datagrams and payloads.
pub(crate) fn refused() -> File {
    let good = |name: &str| {
        let lines = file().lines;
        let line = lines.iter().map(value).find(|line| line["name"] == name).unwrap();
        bytes(&line, "bytes")
    };
    let [hello, challenge, reset, deny] =
        ["the shortest HELLO", "CHALLENGE", "RESET", "DENY: Busy"].map(good);
    let [connect, accept, data] =
        ["the shortest CONNECT", "the shortest ACCEPT", "DATA in key phase 0"].map(good);
    let [hybrid, unproven, key, ciphertext] =
        ["CONNECT of a hybrid suite", "CONNECT without a proof", "KEM_KEY", "KEM_CIPHERTEXT"].map(good);
    let with =
        |datagram: &[u8], at: usize, to: &[u8]| [&datagram[..at], to, &datagram[at + to.len()..]].concat();
    let longer = |datagram: &[u8]| [datagram, &[0]].concat();
    let msg = |before: &[u8], len: u16| [before, &len.to_le_bytes(), &filled(0x70, len.into())].concat();
    let token = [&connect[..44], &513_u16.to_le_bytes(), &filled(0x30, 513), &connect[46..]].concat();
    let cases = [
        ("nothing", Vec::new()),
        ("a kind that there is not", with(&hello, 0, &[0xa0])),
        ("another one", with(&hello, 0, &[0xab])),
        ("HELLO of version 2", with(&hello, 1, &[2])),
        ("HELLO that is too short", hello[..511].to_vec()),
        ("HELLO that is too long", [&hello[..], &[0; 689]].concat()),
        ("HELLO whose padding is not zero", with(&hello, 511, &[1])),
        ("CHALLENGE of version 0", with(&challenge, 1, &[0])),
        ("CHALLENGE cut off", challenge[..35].to_vec()),
        ("CHALLENGE and a byte", longer(&challenge)),
        ("CONNECT of version 2", with(&connect, 1, &[2])),
        ("CONNECT cut off", connect[..connect.len() - 1].to_vec()),
        ("CONNECT and a byte", longer(&connect)),
        ("CONNECT with a token of 513 bytes", token),
        ("CONNECT with a msg1 of 27 bytes", msg(&connect[..46], 27)),
        ("CONNECT with a msg1 of 569 bytes", msg(&connect[..46], 569)),
        ("ACCEPT of version 2", with(&accept, 1, &[2])),
        ("ACCEPT cut off", accept[..accept.len() - 1].to_vec()),
        ("ACCEPT and a byte", longer(&accept)),
        ("ACCEPT with a msg2 of 27 bytes", msg(&accept[..12], 27)),
        ("ACCEPT with a msg2 of 569 bytes", msg(&accept[..12], 569)),
        ("DENY cut off", deny[..15].to_vec()),
        ("DENY and a byte", longer(&deny)),
        ("DENY by a server of versions 0 to 1", with(&deny, 1, &[0x01])),
        ("DENY by a server of versions 2 to 1", with(&deny, 1, &[0x21])),
        ("DENY for reason 0", with(&deny, 2, &[0, 0])),
        ("DENY for reason 7", with(&deny, 2, &[7, 0])),
        ("DATA of 12 bytes", data[..12].to_vec()),
        ("RESET cut off", reset[..20].to_vec()),
        ("RESET and a byte", longer(&reset)),
        ("CONNECT of a hybrid suite without padding", with(&connect, 2, &[1, 0x82])),
        ("CONNECT with a ticket without padding", with(&connect, 23, &[0x80])),
        ("CONNECT without a proof and padding", with(&with(&connect, 20, &[0xff; 4]), 24, &[0; 16])),
        ("CONNECT without a period but with a cookie", with(&unproven, 39, &[1])),
        ("CONNECT of a hybrid suite whose padding is not zero", with(&hybrid, 1199, &[1])),
        ("KEM_KEY of version 2", with(&key, 1, &[2])),
        ("KEM_KEY cut off", key[..1193].to_vec()),
        ("KEM_KEY and a byte", longer(&key)),
        ("KEM_CIPHERTEXT cut off", ciphertext[..1108].to_vec()),
        ("KEM_CIPHERTEXT and a byte", longer(&ciphertext)),
    ];
    let mut lines: Vec<_> = cases
        .into_iter()
        .map(|(name, bytes)| {
            let error = Packet::decode(&bytes).unwrap_err();
            let is_of_another_version = matches!(error, PacketError::Version { .. });
            let counter = if is_of_another_version { "version" } else { "malformed" };
            Line::named(name)
                .text("is", "datagram")
                .text("error", &variant(&error))
                .text("counter", counter)
                .hex("bytes", &bytes)
        })
        .collect();
    let payloads = payloads().lines;
    let of =
        |name: &str| bytes(&payloads.iter().map(value).find(|line| line["name"] == name).unwrap(), "bytes");
    let [msg1, msg2, no] = ["msg1", "msg2", "msg2: rejected"].map(of);
    for (name, is, bytes) in [
        ("msg1 cut off", "msg1", msg1[..15].to_vec()),
        ("msg1 and a byte", "msg1", longer(&msg1)),
        ("msg1 with 1 byte of channels", "msg1", [&msg1[..10], &[1, 0, 0, 0, 0, 0, 0]].concat()),
        ("msg1 with half a channel", "msg1", [&msg1[..10], &[10, 0, 0, 0, 0, 0], &[7; 10]].concat()),
        ("msg1 with 81 channels", "msg1", [&msg1[..10], &[251, 0, 0, 0, 0, 0], &[7; 251]].concat()),
        ("msg1 with a reserved byte", "msg1", with(&msg1, 15, &[1])),
        ("msg1 with 257 bytes of the application", "msg1", [&msg1[..12], &[1, 1, 0, 0], &[0; 257]].concat()),
        ("msg2 cut off", "msg2", msg2[..31].to_vec()),
        ("msg2 with a reserved flag", "msg2", with(&msg2, 14, &[4])),
        ("msg2 that rejects with a ticket", "msg2", with(&no, 14, &[3])),
        ("msg2 with a part of a ticket", "msg2", [&with(&msg2, 14, &[2])[..], &[7; 19]].concat()),
        ("msg2 that lets in by no number", "msg2", with(&msg2, 0, &[0; 4])),
        ("msg2 that rejects and gives a number", "msg2", with(&no, 0, &[1])),
        ("msg2 with 257 bytes of the application", "msg2", [&msg2[..], &[0; 257]].concat()),
    ] {
        let error =
            if is == "msg1" { Msg1::decode(&bytes).unwrap_err() } else { Msg2::decode(&bytes).unwrap_err() };
        lines.push(Line::named(name).text("is", is).text("error", &variant(&error)).hex("bytes", &bytes));
    }
    File {
        name: "refused-packets",
        about: "Datagrams, and payloads of msg1 and msg2, that are none. A datagram changes nothing but the named counter of a server.",
        lines,
    }
}

pub(crate) fn take_refused(line: &Value) {
    let bytes = bytes(line, "bytes");
    let error = match line["is"].as_str().unwrap() {
        "datagram" => Packet::decode(&bytes).unwrap_err(),
        "msg1" => Msg1::decode(&bytes).unwrap_err(),
        _ => Msg2::decode(&bytes).unwrap_err(),
    };
    assert_eq!(line["error"], variant(&error), "{line}");
    if let Some(counter) = line["counter"].as_str() {
        assert_eq!(crate::counted_by_a_server(&bytes), [counter], "{line}");
    }
}

/// Bytes that count up from `first`.
fn filled(first: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| first.wrapping_add(u8::try_from(at % 251).unwrap())).collect()
}
