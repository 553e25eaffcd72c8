//! The hex dumps of sessions in docs/WIRE.md equal what the code makes of the documented values.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has found something")]

use std::net::SocketAddr;
use whitewater::Time;
use whitewater::inside::session::cookie::{Claim, CookieKey};
use whitewater::inside::session::exchange::{Attempt, Initiator, Responder};
use whitewater::inside::session::seal::Seal;
use whitewater::inside::session::wire::{
    Accept, AckFrame, Challenge, Connect, Deny, DenyReason, EcnFrame, Frame, FrameWriter, Frames, Hello,
    KcpPart, LossFrame, Msg1, Msg2, NewId, Packet, RekeyFrame, Reset,
};
use whitewater::packet::Seq16;
use whitewater::session::Suite;

const DOCUMENT: &str = include_str!("../docs/WIRE.md");
const PROTOCOL: u64 = 0x1122_3344_5566_7788;
const CID: u64 = 0x0102_0304_0506_0708;
const STAMP: u32 = 1000;
const EPOCH: u32 = 7;
const CLIENT_SID: u32 = 0x0a0b_0c0d;
const SERVER_SID: u32 = 0x0e0f_1011;
/// A minute after the handshake.
const LATER: Time = Time::from_millis(60_000);

/// Any bytes that a server might choose.
const fn reset_token() -> [u8; 16] {
    0xd7cf_170b_ba54_016f_a269_60a9_dc3e_9f05_u128.to_be_bytes()
}

/// `N` bytes that count up from `first`.
fn count<const N: usize>(first: u8) -> [u8; N] {
    let mut bytes = [first; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = first.wrapping_add(u8::try_from(index).unwrap());
    }
    bytes
}

fn claim(address: &str, suite: Suite) -> Claim {
    let address: SocketAddr = address.parse().unwrap();
    Claim { address, suite: suite.code(), protocol_id: PROTOCOL, cid: CID }
}

fn cookie(suite: Suite) -> [u8; 16] {
    CookieKey::new(count(0)).mint(EPOCH, &claim("192.0.2.1:4000", suite))
}

/// The result of a handshake with one suite, and the first packets.
struct Exchanged {
    msg1: Vec<u8>,
    msg2: Vec<u8>,
    /// The first packets of the client and of the server, and the client's packet 1 in its second key phase.
    data: [Vec<u8>; 3],
    /// The number of packets to the client that goes with another one of packets to the server.
    #[cfg(feature = "crypto")]
    sid: u32,
}

fn exchange(suite: Suite, token: &[u8], masked: bool) -> Exchanged {
    let attempt = Attempt { suite, protocol_id: PROTOCOL, cid: CID, client_sid: CLIENT_SID, token };
    let psk = suite.needs_psk().then(|| count(0x60));
    let private: Option<[u8; 32]> = suite.needs_server_key().then(|| count(0x80));
    #[cfg(feature = "crypto")]
    let public = private.as_ref().map(whitewater::session::public_key);
    #[cfg(not(feature = "crypto"))]
    let public = private;
    let (mut payload, mut msg1, mut msg2, mut read) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let client =
        Msg1 { features: 0, max_datagram: 1200, rcv_wnd: 128, keepalive_ms: 500, user: b"", shape: b"" };
    client.encode(&mut payload).unwrap();
    let mut initiator =
        Initiator::new(&attempt, psk.as_ref(), public.as_ref(), count(0x20), &payload, &mut msg1).unwrap();
    let responder =
        Responder::read_msg1(&attempt, psk.as_ref(), private.as_ref(), count(0x40), &msg1, &mut read)
            .unwrap();
    assert_eq!(Msg1::decode(&read), Ok(client));
    payload.clear();
    let reset_token = reset_token();
    let server = Msg2 { server_sid: SERVER_SID, said: client, rejected: None, reset_token, ticket: None };
    server.encode(&mut payload).unwrap();
    let of_server = responder.write_msg2(&payload, &mut msg2).unwrap();
    let of_client = initiator.read_msg2(&msg2, &mut read).unwrap();
    assert_eq!(Msg2::decode(&read), Ok(server));
    let (mut client, mut server) = (Seal::new(Time::ZERO, of_client), Seal::new(Time::ZERO, of_server));
    if masked {
        client.mask();
        server.mask();
    }
    let data =
        [data(&mut client, SERVER_SID, Frame::Ping(9)), data(&mut server, CLIENT_SID, Frame::Pong(9)), {
            client.draw(Time::ZERO, &count(0x20)); // nobody answers, so the next packet is sealed with an updated key
            data(&mut client, SERVER_SID, Frame::Dgram(b"hi"))
        }];
    for (index, datagram) in data.iter().enumerate() {
        let end = if index == 1 { &mut client } else { &mut server };
        end.open(LATER, &mut datagram.clone()).unwrap();
    }
    let sid = client.sid_for(SERVER_SID + 1);
    assert_eq!(sid, server.sid_for(SERVER_SID + 1));
    Exchanged {
        msg1,
        msg2,
        data,
        #[cfg(feature = "crypto")]
        sid,
    }
}

fn data(seal: &mut Seal, sid: u32, frame: Frame<'_>) -> Vec<u8> {
    let mut datagram = Vec::new();
    Seal::begin(&mut datagram);
    FrameWriter::new(&mut datagram, 1200).push(&frame).unwrap();
    seal.seal(LATER, sid, &mut datagram, 0).unwrap();
    datagram
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut datagram = Vec::new();
    encode(&mut datagram);
    datagram
}

fn connect(suite: Suite, token: &[u8], msg1: &[u8]) -> Vec<u8> {
    let (protocol_id, cid, epoch, client_sid) = (PROTOCOL, CID, EPOCH, CLIENT_SID);
    let cookie = cookie(suite);
    let connect = Connect { suite: suite.code(), protocol_id, cid, epoch, cookie, client_sid, token, msg1 };
    encoded(|datagram| connect.encode(datagram).unwrap())
}

fn accept(suite: Suite, msg2: &[u8]) -> Vec<u8> {
    encoded(|datagram| Accept { suite: suite.code(), cid: CID, msg2 }.encode(datagram).unwrap())
}

#[test]
fn the_packets_of_a_session_with_a_checksum() {
    let suite = Suite::Checked;
    let Exchanged { msg1, msg2, data: [ping, pong, message], .. } = exchange(suite, b"", false);
    let hello = Hello { suite: 0, protocol_id: PROTOCOL, cid: CID, client_stamp: STAMP, size: 512 };
    let mut hello = encoded(|datagram| hello.encode(datagram).unwrap());
    assert!(hello.split_off(24).iter().all(|byte| *byte == 0));
    let cookie = cookie(suite);
    let challenge = Challenge { suite: 0, cid: CID, client_stamp: STAMP, epoch: EPOCH, cookie };
    let (reason, retry_after_ms) = (DenyReason::Busy, 3000);
    let deny = Deny { lowest: 1, highest: 1, reason, cid: CID, retry_after_ms };
    let reset = Reset { sid: SERVER_SID, token: reset_token() };
    let datagrams = [
        hello,
        encoded(|datagram| challenge.encode(datagram).unwrap()),
        connect(suite, b"", &msg1),
        accept(suite, &msg2),
        ping,
        pong,
        message,
        encoded(|datagram| deny.encode(datagram).unwrap()),
        encoded(|datagram| reset.encode(datagram).unwrap()),
    ];
    let [_, others @ ..] = &datagrams;
    assert!(others.iter().all(|datagram| Packet::decode(datagram).is_ok()));
    holds("session", &datagrams);
}

#[test]
fn cookies() {
    let key = CookieKey::new(count(0));
    let cookie = |address, suite| key.mint(EPOCH, &claim(address, suite)).to_vec();
    let v6 = cookie("[2001:db8::1]:4000", Suite::TOKEN);
    holds("cookies", &[cookie("192.0.2.1:4000", Suite::TOKEN), v6]);
}

#[test]
fn every_frame() {
    let frames = [
        Frame::Repair(0x0102_0304, b"\x01\x00sum"),
        Frame::Ack(AckFrame { ack: Seq16(0x0506), bits: 0x0102_0304, delay: 25 }),
        Frame::Ping(1),
        Frame::Pong(2),
        Frame::PathChallenge(count(0x30)),
        Frame::PathResponse(count(0x38)),
        Frame::Close(3, "bye"),
        Frame::Kcp(b"segment"),
        Frame::Dgram(b""),
        Frame::Redirect(b"token"),
        Frame::Packed(b"bits"),
        Frame::KcpPart(KcpPart { number: Seq16(6), id: 1, last: 2 }, b"segm"),
        Frame::Ecn(EcnFrame { unmarked: 1, capable: 2, congested: 3 }),
        Frame::Loss(LossFrame { newest: Seq16(0x0708), rebuilt: 5, share: 13 }),
        Frame::Rekey(RekeyFrame { phase: Seq16(1), half: count(0x40) }),
        Frame::NewId(NewId { sid: SERVER_SID + 1, reset_token: count(0x40) }),
        Frame::Pad(3),
    ];
    let mut body = Vec::new();
    let mut writer = FrameWriter::new(&mut body, 1200);
    frames.iter().for_each(|frame| writer.push(frame).unwrap());
    assert!(Frames::parse(&body).unwrap().eq(frames));
    let mut last = Vec::new();
    FrameWriter::new(&mut last, 1200).push(&Frame::Dgram(b"last")).unwrap();
    let mut copy = Vec::new();
    let mut writer = FrameWriter::new(&mut copy, 1200);
    [Frame::Copy(), Frame::Ping(1)].iter().for_each(|frame| writer.push(frame).unwrap());
    holds("frames", &[body, last, copy]);
}

#[test]
#[cfg(feature = "crypto")]
fn the_messages_and_packets_of_every_noise_suite() {
    for suite in Suite::ALL.into_iter().filter(|suite| !suite.is_hybrid()) {
        let Exchanged { msg1, msg2, data: [ping, pong, message], .. } = exchange(suite, b"", false);
        holds(&format!("noise-{:04x}", suite.code()), &[msg1, msg2, ping, pong, message]);
    }
}

#[test]
#[cfg(feature = "crypto")]
fn a_token_and_the_connect_that_carries_it() {
    use whitewater::session::token::{FleetKey, Order};
    let key = FleetKey::new(count(0xa0)).server_key(5, 1);
    let addresses = ["192.0.2.1:4000", "[2001:db8::1]:4000"].map(|address| address.parse().unwrap());
    let order = Order {
        protocol_id: PROTOCOL,
        suite: Suite::TOKEN,
        client_id: 99,
        match_id: count(0xc0),
        created: 1_900_000_000,
        expires: 1_900_000_045,
        addresses: &addresses,
        server_key: None,
        routing_token: b"",
        user: b"red team",
    };
    let token = key.mint(&order, count(0x60), count(0xe0)).unwrap();
    let Exchanged { msg1, msg2, .. } = exchange(Suite::TOKEN, &token.sealed, false);
    let (connect, accept) = (connect(Suite::TOKEN, &token.sealed, &msg1), accept(Suite::TOKEN, &msg2));
    assert_eq!((connect.len(), accept.len()), (496, 94));
    let mut public = token.encode().to_vec();
    assert!(public.ends_with(&token.sealed));
    public.truncate(public.len() - 384);
    holds("token", &[key.secret().to_vec(), token.sealed.to_vec(), public, connect, accept]);
}

#[cfg(feature = "crypto")]
#[test]
fn masked_packets() {
    let Exchanged { data, sid, .. } = exchange(Suite::TOKEN, &[], true);
    let in_clear = exchange(Suite::TOKEN, &[], false).data;
    assert!(
        data.iter()
            .zip(&in_clear)
            .all(|(masked, clear)| masked[9..] == clear[9..] && masked[..9] != clear[..9])
    );
    holds("masked", &[&data[..], &[sid.to_le_bytes().to_vec()]].concat());
}

/// Checks that the blocks called `name` in the document are these datagrams.
fn holds(name: &str, datagrams: &[Vec<u8>]) {
    let documented = documented(name);
    if documented != datagrams {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let lines = |datagram: &Vec<u8>| datagram.chunks(32).map(hex).collect::<Vec<_>>().join("\n");
        let all: Vec<_> = datagrams.iter().map(lines).collect();
        panic!("block {name} should be\n{}\n", all.join("\n\n"));
    }
}

/// The datagrams in a block, separated by empty lines or lines with only a comment.
fn documented(name: &str) -> Vec<Vec<u8>> {
    let start = format!("```hex {name}\n");
    let (_, rest) = DOCUMENT.split_once(&start).unwrap_or_else(|| panic!("no block {name}"));
    let mut datagrams = vec![Vec::new()];
    for line in rest.split("```").next().unwrap_or_default().lines() {
        let hex: Vec<_> =
            line.split(';').next().unwrap_or_default().chars().filter(|c| !c.is_whitespace()).collect();
        if hex.is_empty() {
            datagrams.push(Vec::new());
        }
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
        datagrams.last_mut().unwrap().extend(hex.chunks(2).map(byte));
    }
    datagrams.retain(|datagram| !datagram.is_empty());
    datagrams
}
