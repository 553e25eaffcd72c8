//! Sessions: with a checksum, so that frames are visible, and encrypted.

use super::pcap::Captured;
use super::{hex, hexes, texts, tshark};
use crate::common::ms;
use crate::common::sessions::{
    SUITE, Toward, World, client_address, client_config, forger, in_packets, on, server_address,
    server_config,
};
use std::collections::BTreeSet;
use whitewater::inside::session::wire::{
    Accept, AckFrame, Challenge, Connect, Deny, DenyReason, EcnFrame, Frame, FrameWriter, Hello, KcpPart,
    LossFrame, NO_PROOF, Packet, Reset, TICKET, kind,
};
#[cfg(feature = "pq")]
use whitewater::inside::session::wire::{KemCiphertext, KemKey};
use whitewater::packet::Seq16;
use whitewater::session::Suite;
use whitewater::{Channel, SessionConfig};
use whitewater_sim::{LinkConfig, Loss};

/// A session with channels by KCP and in packets, and datagrams, over a bad path, from HELLO to CLOSE, with its datagrams
/// recorded.
pub(super) fn run(suite: Suite, seed: u64) -> World {
    let link = LinkConfig { loss: Loss::Random(0.1), ..LinkConfig::with_rtt(ms(60)) };
    let newest = Channel::sequenced(3);
    let channels = vec![on(0).into(), on(1).into(), in_packets(on(2)), newest.into()];
    let config = SessionConfig { channels, ..SessionConfig::default() };
    let mut world = World::new(seed, &server_config(&config, suite));
    world.taps = true;
    world.add(&link, &link, &config, client_config(suite));
    world.connect();
    for tick in 0..60_u8 {
        let client = world.client();
        client.send(on(tick % 2), &vec![tick; 40 * usize::from(tick)]).unwrap();
        client.send_datagram(&[tick; 100]).unwrap();
        client.send(if tick % 2 == 0 { on(2) } else { newest }, &[tick; 30]).unwrap();
        world.session().send(on(0), &[tick; 200]).unwrap();
        world.run(30);
        while world.session().recv(on(0)).is_some() || world.session().recv(on(1)).is_some() {}
        while world.client().recv(on(0)).is_some() {}
        while world.session().recv_datagram().is_some() {}
    }
    world.run(3000);
    let now = world.now;
    world.clients[0].session.close(now, 7);
    world.run(2000);
    world
}

/// Its datagrams as sent, followed by one to the client with a frame of each kind.
pub(super) fn captured(seed: u64) -> Vec<Captured> {
    let mut world = run(Suite::Checked, seed);
    let mut body = Vec::new();
    let mut writer = FrameWriter::new(&mut body, 1000);
    let every = [
        Frame::Repair(0x0102_0304, b"\x01\x00a sum"),
        Frame::Ack(AckFrame { ack: Seq16(5), bits: 0x0102_0304, delay: 25 }),
        Frame::Loss(LossFrame { newest: Seq16(0x0708), rebuilt: 0x8000_0001, share: 13 }),
        Frame::Ping(1),
        Frame::Pong(u64::MAX),
        Frame::PathChallenge(*b"question"),
        Frame::PathResponse(*b"response"),
        Frame::Close(0xff03, "höchste Zeit"),
        Frame::Dgram(b""),
        Frame::Dgram(b"a message"),
        Frame::Redirect(b"a token"),
        Frame::Packed(b"bits"),
        Frame::KcpPart(KcpPart { number: Seq16(0x0102), id: 1, last: 2 }, b"segm"),
        Frame::Ecn(EcnFrame { unmarked: 1, capable: u32::MAX, congested: 3 }),
        Frame::Pad(9),
    ];
    every.iter().for_each(|frame| writer.push(frame).unwrap());
    let forged = forger(&world)(Toward::Client, &body);
    world.tap.push((world.now, server_address(), client_address(1, 1000), forged));
    world.tap
}

#[test]
fn the_handshake_is_shown_as_it_was_sent() {
    let mut captured = captured(2);
    let (at, client, server) = (captured[0].0, captured[0].1, captured[0].2);
    let mut more = [Vec::new(), Vec::new()];
    let (reason, cid) = (DenyReason::Busy, 0x0102_0304_0506_0708);
    Deny { lowest: 1, highest: 3, reason, cid, retry_after_ms: 3000 }.encode(&mut more[0]).unwrap();
    Reset { sid: 0x0e0f_1011, token: *b"a token of 16 by" }.encode(&mut more[1]).unwrap();
    captured.extend(more.map(|datagram| (at, server, client, datagram)));
    let connect = captured.iter().find_map(|(.., bytes)| Connect::decode(bytes).ok()).unwrap();
    let mut others = [Vec::new(), Vec::new()];
    Connect { epoch: TICKET | 7, ..connect }.encode(&mut others[0]).unwrap();
    Connect { epoch: NO_PROOF, cookie: [0; 16], ..connect }.encode(&mut others[1]).unwrap();
    captured.extend(others.map(|datagram| (at, client, server, datagram)));
    let fields = [
        "ww.kind",
        "ww.suite",
        "ww.protocol_id",
        "ww.cid",
        "ww.sid",
        "ww.stamp",
        "ww.epoch",
        "ww.cookie",
        "ww.deny.reason",
        "ww.deny.retry_after",
        "ww.reset_token",
        "ww.checksum.status",
        "ww.handshake.max_datagram",
    ];
    let Some(rows) = tshark::show(&captured, &[], &fields) else { return };
    let mut kinds = BTreeSet::new();
    for ((.., datagram), row) in captured.iter().zip(rows) {
        let mut want: [Vec<String>; 13] = Default::default();
        want[0] = vec![format!("0x{:02x}", datagram[0])];
        let [as16, as32, as64] =
            [4, 8, 16].map(|digits| move |value: u64| vec![format!("0x{value:0digits$x}")]);
        match Packet::decode(datagram).unwrap() {
            Packet::Hello(Hello { suite, protocol_id, cid, client_stamp, .. }) => {
                (want[1], want[2], want[3]) = (as16(suite.into()), as64(protocol_id), as64(cid));
                want[5] = texts([client_stamp]);
            }
            Packet::Challenge(Challenge { suite, cid, client_stamp, epoch, cookie }) => {
                (want[1], want[3]) = (as16(suite.into()), as64(cid));
                (want[5], want[6], want[7]) = (texts([client_stamp]), texts([epoch]), hexes([&cookie[..]]));
            }
            Packet::Connect(Connect { suite, protocol_id, cid, epoch, cookie, client_sid, .. }) => {
                (want[1], want[2], want[3]) = (as16(suite.into()), as64(protocol_id), as64(cid));
                (want[4], want[6], want[7]) = (as32(client_sid.into()), texts([epoch]), hexes([&cookie[..]]));
                (want[11], want[12]) = (texts([1]), texts([1472]));
            }
            Packet::Accept(Accept { suite, cid, msg2 }) => {
                (want[1], want[3]) = (as16(suite.into()), as64(cid));
                want[4] = as32(u32::from_le_bytes(msg2[8..12].try_into().unwrap()).into());
                want[10] = hexes([&msg2[24..40]]); // after the salt and 16 bytes
                (want[11], want[12]) = (texts([1]), texts([1472]));
            }
            Packet::Deny(Deny { cid, retry_after_ms, .. }) => {
                (want[3], want[8], want[9]) = (as64(cid), texts([4]), texts([retry_after_ms]));
            }
            Packet::Reset(Reset { sid, token }) => {
                (want[4], want[10]) = (as32(sid.into()), hexes([&token[..]]));
            }
            _ => continue,
        }
        kinds.insert(datagram[0]);
        assert_eq!(row, want, "{}", hex(datagram));
    }
    assert_eq!(kinds.len(), 7 - 1, "{kinds:02x?}");
}

#[test]
#[cfg(feature = "crypto")]
fn the_cleartext_of_an_encrypted_session_is_shown() {
    for suite in [Suite::TOKEN, Suite::from_code(0x0101).unwrap()] {
        let captured = run(suite, 3).tap;
        let fields = [
            "ww.kind",
            "ww.sid",
            "ww.pn_masked",
            "ww.encrypted",
            "ww.tag",
            "ww.handshake_in",
            "ww.malformed",
        ];
        let Some(rows) = tshark::show(&captured, &[], &fields) else { return };
        let is_connect = |(.., datagram): &Captured| datagram[0] == kind::CONNECT;
        let connect = captured.iter().position(is_connect).unwrap() + 1;
        for ((.., datagram), row) in captured.iter().zip(rows) {
            let Ok(Packet::Data(data, sealed)) = Packet::decode(datagram) else { continue };
            let (encrypted, tag) = sealed.split_at(sealed.len() - 16);
            let head = [vec![format!("0x{:02x}", datagram[0])], vec![format!("0x{:08x}", data.sid)]];
            assert_eq!(row[..2], head);
            let pn = data.pn.to_le_bytes();
            let rest = [hexes([&pn[..]]), hexes([encrypted]), hexes([tag]), texts([connect]), Vec::new()];
            assert_eq!(row[2..], rest, "{suite:?}");
        }
    }
}

#[test]
#[cfg(feature = "pq")]
fn the_handshake_of_a_hybrid_session_is_shown() {
    let captured = run(Suite::HYBRID_TOKEN, 3).tap;
    let fields = [
        "ww.kind",
        "ww.suite",
        "ww.cid",
        "ww.sid",
        "ww.kem.key",
        "ww.kem.ciphertext",
        "ww.tag",
        "ww.malformed",
    ];
    let Some(rows) = tshark::show(&captured, &[], &fields) else { return };
    let mut kinds = BTreeSet::new();
    for ((.., datagram), row) in captured.iter().zip(rows) {
        assert!(row[7].is_empty(), "{}", hex(datagram));
        let mut want: [Vec<String>; 6] = Default::default();
        match Packet::decode(datagram).unwrap() {
            Packet::Connect(_) => {
                kinds.insert(datagram[0]);
                assert_eq!(row[1], ["0x8201"]);
                continue;
            }
            Packet::KemKey(KemKey { cid, key }) => {
                (want[1], want[3]) = (vec![format!("0x{cid:016x}")], hexes([&key[..]]));
            }
            Packet::KemCiphertext(KemCiphertext { sid, sealed }) => {
                let (ciphertext, tag) = sealed.split_at(1088);
                want[2] = vec![format!("0x{sid:08x}")];
                (want[4], want[5]) = (hexes([ciphertext]), hexes([tag]));
            }
            _ => continue,
        }
        kinds.insert(datagram[0]);
        assert_eq!(row[1..7], want, "{}", hex(datagram));
    }
    assert_eq!(kinds.len(), 3, "{kinds:02x?}");
}

#[test]
fn a_session_without_its_handshake_is_shown_as_the_preference_says() {
    let mut captured = captured(4);
    captured.retain(|(.., datagram)| datagram[0] == kind::DATA && datagram.len() >= 40);
    let fields = ["ww.frame.type", "ww.encrypted", "ww.checksum.status"];
    let port = format!("ww.ports:{}", server_address().port());
    let Some(rows) = tshark::show(&captured, &[&port], &fields) else { return };
    assert!(rows.iter().all(|row| row[0].is_empty() && row[1].len() == 1), "taken for encrypted");
    let rows = tshark::show(&captured, &[&port, "ww.assume_checked:TRUE"], &fields).unwrap();
    assert!(rows.iter().all(|row| !row[0].is_empty() && row[1].is_empty() && row[2] == ["2"]));
    let rows = tshark::show(&captured, &[], &["ww.kind"]).unwrap();
    assert!(rows.iter().all(|row| row[0].is_empty()), "nothing says what they are");
}

#[test]
fn a_frame_of_another_version_and_everything_after_it_is_shown_as_unknown() {
    let mut world = run(Suite::Checked, 5);
    let ping = [4, 1, 0, 0, 0, 0, 0, 0, 0];
    let forge = forger(&world);
    for unknown in [0x3f, 0x7f, 0x84, 0x8c, 0xff] {
        let datagram = forge(Toward::Client, &[&ping[..], &[unknown, 2, 3]].concat());
        world.tap.push((world.now, server_address(), client_address(1, 1000), datagram));
    }
    let fields = ["ww.frame.type", "ww.frame.unknown", "ww.unknown", "ww.malformed", "ww.checksum.status"];
    let Some(rows) = tshark::show(&world.tap, &[], &fields) else { return };
    for (row, unknown) in rows[rows.len() - 5..].iter().zip([0x3f, 0x7f, 4, 12, 0x7f]) {
        assert_eq!(row[0], texts([4, unknown]));
        assert_eq!(row[1], ["0203"]);
        assert!(row[2].len() == 1 && row[3].is_empty() && row[4] == ["1"], "{row:?}");
    }
}

#[test]
fn a_routing_token_is_shown_and_the_datagram_before_it_as_without() {
    for suite in [Suite::Checked, SUITE] {
        let plain = run(suite, 6).tap;
        let routed = |(at, from, to, bytes): &Captured| {
            let token: &[u8] = if *to == server_address() { b"server 7" } else { b"" };
            (*at, *from, *to, [bytes, token].concat())
        };
        let routed: Vec<_> = plain.iter().map(routed).collect();
        let fields = [
            "ww.routing_token",
            "ww.kind",
            "ww.pn",
            "ww.checksum.status",
            "ww.frame.type",
            "ww.tag",
            "ww.malformed",
        ];
        let Some(expected) = tshark::show(&plain, &[], &fields) else { return };
        let shown = tshark::show(&routed, &["ww.routing_token:8"], &fields).unwrap();
        for ((.., to, _), (expected, shown)) in plain.iter().zip(expected.iter().zip(&shown)) {
            let token = if *to == server_address() { vec![hex(b"server 7")] } else { Vec::new() };
            assert_eq!((&shown[0], &shown[1..]), (&token, &expected[1..]), "{suite:?}");
        }
        assert!(shown.iter().filter(|row| !row[0].is_empty()).count() > 30);
        let wrong = tshark::show(&routed, &["ww.ports:4000"], &fields).unwrap();
        assert!(wrong.iter().any(|row| !row[6].is_empty()), "without the setting the HELLO is malformed");
    }
}
