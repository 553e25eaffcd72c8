//! The two messages of every suite, from the secrets of both ends to one packet each way.

use crate::line::{File, Line, bytes, count, variant};
use crate::{CID, PROTOCOL};
use serde_json::Value;
use whitewater::Time;
use whitewater::inside::session::exchange::{Attempt, Initiator, Responder};
use whitewater::inside::session::seal::{Keys, Seal};
use whitewater::inside::session::wire::{Msg1, Msg2};
use whitewater::session::public_key;
use whitewater::session::{Pattern, Suite};

pub(crate) const CLIENT_SID: u32 = 0x0a0b_0c0d;
pub(crate) const SERVER_SID: u32 = 0x0e0f_1011;
/// Bodies: PING and PONG.
pub(crate) const PING: &[u8] = b"\x04\x09\0\0\0\0\0\0\0";
pub(crate) const PONG: &[u8] = b"\x05\x09\0\0\0\0\0\0\0";

/// The secrets of both ends, by the names of the fields.
pub(crate) struct Secrets {
    pub(crate) psk: Option<[u8; 32]>,
    pub(crate) server_private: Option<[u8; 32]>,
    pub(crate) client_random: [u8; 32],
    pub(crate) server_random: [u8; 32],
}

pub(crate) fn file() -> File {
    let mut lines: Vec<_> = [Suite::Checked]
        .into_iter()
        .chain(Suite::ALL)
        .filter(|suite| !suite.is_hybrid())
        .map(|suite| handshake(suite, &[]))
        .collect();
    lines.push(handshake(Suite::TOKEN, &count::<128>(0x80).repeat(3)));
    File {
        name: "handshakes",
        about: "msg1 of the client, msg2 of the server, and the first packet of each. The random bytes are the ephemeral private key, or with suite 0 the salt in their first 8. Each of `refused` is a msg1 or a msg2 that is not authentic.",
        lines,
    }
}

fn handshake(suite: Suite, token: &[u8]) -> Line {
    let attempt = Attempt { suite, protocol_id: PROTOCOL, cid: CID, client_sid: CLIENT_SID, token };
    let secrets = Secrets {
        psk: suite.needs_psk().then(|| count(0x60)),
        server_private: suite.needs_server_key().then(|| count(0x80)),
        client_random: count(0x20),
        server_random: count(0x40),
    };
    let [payload1, payload2] = payloads();
    let [msg1, msg2, ping, pong] = exchange(&attempt, &secrets, [&payload1, &payload2]);
    let line =
        Line::named(&format!("{}{}", name_of(suite), if token.is_empty() { "" } else { ", with a token" }));
    let line = line.number("suite", suite.code()).wide("protocol_id", PROTOCOL).wide("cid", CID);
    let mut line = line.number("client_sid", CLIENT_SID).number("server_sid", SERVER_SID).hex("token", token);
    if let Some(psk) = &secrets.psk {
        line = line.hex("psk", psk);
    }
    if let Some(private) = &secrets.server_private {
        line = line.hex("server_private", private).hex("server_public", &public_key(private));
    }
    let line = line.hex("client_random", &secrets.client_random).hex("server_random", &secrets.server_random);
    let line = line.hex("prologue", &attempt.prologue()).hex("payload1", &payload1).hex("msg1", &msg1);
    let line = line.hex("payload2", &payload2).hex("msg2", &msg2);
    let line = line
        .hex("body_to_server", PING)
        .hex("to_server", &ping)
        .hex("body_to_client", PONG)
        .hex("to_client", &pong);
    line.list("refused", refused(suite, &msg1, &msg2))
}

/// Flips one bit. Nothing protects the payload of NN's msg1, so its server accepts any, and its client then
/// rejects the answer.
fn refused(suite: Suite, msg1: &[u8], msg2: &[u8]) -> Vec<Line> {
    let flipped = |message: &[u8], at: usize| {
        let mut changed = message.to_vec();
        changed[at] ^= 1;
        changed
    };
    let mut lines = vec![
        Line::named("the first byte").hex("msg2", &flipped(msg2, 0)),
        Line::named("the last byte").hex("msg2", &flipped(msg2, msg2.len() - 1)),
    ];
    if !matches!(suite, Suite::Noise(Pattern::Nn, _)) {
        lines.push(Line::named("the first byte").hex("msg1", &flipped(msg1, 0)));
        lines.push(Line::named("the last byte").hex("msg1", &flipped(msg1, msg1.len() - 1)));
    }
    lines
}

/// msg1, msg2, the first packet to the server, the first packet to the client.
fn exchange(attempt: &Attempt<'_>, secrets: &Secrets, payloads: [&[u8]; 2]) -> [Vec<u8>; 4] {
    let (mut msg1, mut msg2, mut read) = (Vec::new(), Vec::new(), Vec::new());
    let mut client = initiator(attempt, secrets, payloads[0], &mut msg1);
    let server = responder(attempt, secrets, &msg1, &mut read).unwrap();
    assert_eq!(read, payloads[0]);
    let of_server = server.write_msg2(payloads[1], &mut msg2).unwrap();
    let of_client = client.read_msg2(&msg2, &mut read).unwrap();
    assert_eq!(read, payloads[1]);
    let [ping, pong] = [(of_client, SERVER_SID, PING), (of_server, CLIENT_SID, PONG)].map(first_packet);
    [msg1, msg2, ping, pong]
}

pub(crate) fn first_packet((keys, sid, body): (Keys, u32, &[u8])) -> Vec<u8> {
    sealed(&mut Seal::new(Time::ZERO, keys), sid, body)
}

pub(crate) fn sealed(seal: &mut Seal, sid: u32, body: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    Seal::begin(&mut datagram);
    datagram.extend_from_slice(body);
    seal.seal(Time::ZERO, sid, &mut datagram, 0).unwrap();
    datagram
}

/// The reverse: from the fields to their content.
pub(crate) fn take(line: &Value) {
    let suite = u16::try_from(line["suite"].as_u64().unwrap()).unwrap();
    let suite = Suite::from_code(suite).unwrap();
    let key = |name: &str| line.get(name).map(|_| <[u8; 32]>::try_from(bytes(line, name)).unwrap());
    let token = bytes(line, "token");
    let attempt = Attempt { suite, protocol_id: PROTOCOL, cid: CID, client_sid: CLIENT_SID, token: &token };
    assert_eq!(attempt.prologue(), bytes(line, "prologue"));
    let (client_random, server_random) = (key("client_random").unwrap(), key("server_random").unwrap());
    let secrets =
        Secrets { psk: key("psk"), server_private: key("server_private"), client_random, server_random };
    assert_eq!(secrets.server_private.as_ref().map(public_key), key("server_public"));
    let payloads = ["payload1", "payload2"].map(|name| bytes(line, name));
    let made = exchange(&attempt, &secrets, [&payloads[0], &payloads[1]]);
    assert_eq!(made, ["msg1", "msg2", "to_server", "to_client"].map(|name| bytes(line, name)));
    for refused in line["refused"].as_array().unwrap() {
        let mut read = Vec::new();
        let error = if refused.get("msg1").is_some() {
            responder(&attempt, &secrets, &bytes(refused, "msg1"), &mut read).map(|_| ()).unwrap_err()
        } else {
            let mut client = initiator(&attempt, &secrets, &payloads[0], &mut Vec::new());
            client.read_msg2(&bytes(refused, "msg2"), &mut read).map(|_| ()).unwrap_err()
        };
        assert_eq!(variant(&error), "Forged", "{refused}");
    }
}

pub(crate) fn initiator(
    attempt: &Attempt<'_>,
    secrets: &Secrets,
    payload: &[u8],
    msg1: &mut Vec<u8>,
) -> Initiator {
    let public = secrets.server_private.as_ref().map(public_key);
    Initiator::new(attempt, secrets.psk.as_ref(), public.as_ref(), secrets.client_random, payload, msg1)
        .unwrap()
}

pub(crate) fn responder(
    attempt: &Attempt<'_>,
    secrets: &Secrets,
    msg1: &[u8],
    payload: &mut Vec<u8>,
) -> Result<Responder, whitewater::inside::session::exchange::HandshakeError> {
    let Secrets { psk, server_private, server_random, .. } = secrets;
    Responder::read_msg1(attempt, psk.as_ref(), server_private.as_ref(), *server_random, msg1, payload)
}

/// The payloads of both ends.
pub(crate) fn payloads() -> [Vec<u8>; 2] {
    let (max_datagram, rcv_wnd, keepalive_ms) = (1200, 128, 500);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    Msg1 { features: 0, max_datagram, rcv_wnd, keepalive_ms, user: b"Ada", shape: b"" }
        .encode(&mut first)
        .unwrap();
    let (server_sid, rejected, reset_token) = (SERVER_SID, None, count(0xb0));
    let said = Msg1 { features: 0, max_datagram, rcv_wnd, keepalive_ms, user: b"hello Ada", shape: b"" };
    let msg2 = Msg2 { server_sid, said, rejected, reset_token, ticket: None };
    msg2.encode(&mut second).unwrap();
    [first, second]
}

/// The name in the Noise specification.
pub(crate) fn name_of(suite: Suite) -> String {
    let (Suite::Noise(pattern, _) | Suite::Hybrid(pattern, _)) = suite else { return "suite 0".to_owned() };
    let pattern = match pattern {
        Pattern::Nn => "NN",
        Pattern::NnPsk0 => "NNpsk0",
        Pattern::Nk => "NK",
        Pattern::NkPsk0 => "NKpsk0",
        _ => panic!("a pattern without a name: {pattern:?}"),
    };
    let cipher = if suite.code() & 0xff == 1 { "ChaChaPoly" } else { "AESGCM" };
    format!("Noise_{pattern}_25519_{cipher}_BLAKE2s")
}
