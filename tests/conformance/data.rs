//! DATA packets with known keys: in sequence, across a key update, with numbers far ahead; and packets that
//! are rejected.

use crate::PROTOCOL;
use crate::line::{File, Line, bytes, count, value, variant};
use aes_gcm::Aes256Gcm;
use chacha20poly1305::{AeadInPlace, ChaCha20Poly1305, KeyInit};
use serde_json::Value;
use whitewater::Time;
use whitewater::inside::session::seal::{Keys, Seal};
use whitewater::inside::session::wire::{Data, Frame, FrameWriter, Frames, RekeyFrame};
use whitewater::session::Cipher;

/// `None`: a checksum.
type Protection = Option<Cipher>;

struct Packet {
    pn: u64,
    body: Vec<u8>,
    datagram: Vec<u8>,
}

pub(crate) fn file() -> File {
    let mut lines = Vec::new();
    for protection in [None, Some(Cipher::ChaChaPoly), Some(Cipher::AesGcm)] {
        lines.extend(in_turn(protection, false, false));
        if protection.is_some() {
            lines.extend(in_turn(protection, true, false));
            lines.extend(in_turn(protection, false, true));
        }
        lines.extend(protection.map(far_ahead));
    }
    File {
        name: "data",
        about: "An end that has these keys opens `packets` one after the other, then refuses each of `refused`, which changes nothing, then opens `after`.",
        lines,
    }
}

/// What both ends send; with a cipher, across an update of the keys, of each alone or by an exchange.
fn in_turn(protection: Protection, masked: bool, exchange: bool) -> [Line; 2] {
    let (mut client, mut server) = (end(protection, masked, true), end(protection, masked, false));
    let mut there = vec![sealed(&mut client, b""), sealed(&mut client, b"\x82hi")];
    let mut back = vec![sealed(&mut server, b"\x82ok")];
    if exchange {
        client.draw(NOW, &random(true));
        let offer = client.half().unwrap();
        there.push(sealed(&mut client, &rekey(offer)));
        server.on_half(NOW, &offer);
        server.draw(NOW, &random(false));
        let answer = server.half().unwrap();
        back.push(sealed(&mut server, &rekey(answer)));
        client.on_half(NOW, &answer);
    } else {
        client.draw(Time::ZERO, &random(true)); // too long ago for an answer
    }
    there.push(sealed(&mut client, b"\x82in the next phase"));
    for packet in &there {
        server.open(NOW, &mut packet.datagram.clone()).unwrap();
    }
    back.push(sealed(&mut server, b"\x82it follows"));
    let (after_there, after_back) = (sealed(&mut client, b"\x82after"), sealed(&mut server, b"\x82after"));
    [("client", there, after_there), ("server", back, after_back)].map(|(from, packets, after)| {
        let broken = broken(protection, &packets[0], &after);
        let name = if exchange { "in turn, with an exchange of keys" } else { "in turn" };
        line(protection, (masked, exchange), name, from, &packets, broken, &after)
    })
}

/// Numbers of which only the low half is sent.
fn far_ahead(cipher: Cipher) -> Line {
    let numbers = [0x7fff_ffff, 0xffff_fffe, 0x1_0000_0005, 0xffff_ffff, 0x1_7fff_0000];
    let packets: Vec<_> = numbers.iter().map(|pn| by_hand(cipher, *pn)).collect();
    let broken = vec![("1024 behind, and more", by_hand(cipher, 0x1_7ffe_fc00).datagram)];
    line(
        Some(cipher),
        (false, false),
        "numbers far ahead, one out of order",
        "client",
        &packets,
        broken,
        &by_hand(cipher, 0x1_7ffe_fc01),
    )
}

fn line(
    protection: Protection,
    (masked, exchange): (bool, bool),
    name: &str,
    from: &str,
    packets: &[Packet],
    broken: Vec<(&str, Vec<u8>)>,
    after: &Packet,
) -> Line {
    let mut opener = opener(protection, (masked, exchange), from);
    for packet in packets {
        let mut datagram = packet.datagram.clone();
        opener.open(NOW, &mut datagram).unwrap();
        heed(&mut opener, &packet.body, &random(from == "server"));
    }
    let refused = broken.into_iter().map(|(name, datagram)| {
        let error = opener.open(NOW, &mut datagram.clone()).map(|_| ()).unwrap_err();
        Line::named(name).text("error", &variant(&error)).hex("bytes", &datagram)
    });
    let refused: Vec<_> = refused.collect();
    let masks = if masked { ", masked" } else { "" };
    let line = Line::named(&format!("{}, {name}{masks}, from the {from}", name_of(protection)));
    let line = line.text("cipher", name_of(protection)).text("from", from);
    let line = match protection {
        None => {
            let line = line.hex("client_salt", &count::<8>(1)).hex("server_salt", &count::<8>(0x11));
            line.wide("protocol_id", PROTOCOL)
        }
        Some(_) => line.hex("to_server", &count::<32>(TO_SERVER)).hex("to_client", &count::<32>(TO_CLIENT)),
    };
    let line = if masked { line.number("masked", 1_u32) } else { line };
    let line = if exchange { line.hex("random", &random(from == "server")) } else { line };
    let line = line.number("sid", SID).list("packets", packets.iter().map(of_packet));
    line.list("refused", refused).object("after", &of_packet(after))
}

/// Altered versions of a packet that would otherwise be opened.
fn broken(protection: Protection, first: &Packet, after: &Packet) -> Vec<(&'static str, Vec<u8>)> {
    let whole = &after.datagram;
    let flipped = |at: usize, bit: u8| {
        let mut datagram = whole.clone();
        datagram[at] ^= bit;
        datagram
    };
    let mut broken = vec![
        ("it came before", first.datagram.clone()),
        ("no DATA", flipped(0, 0x20)),
        ("the other key phase", flipped(0, 1)),
        ("another sid", flipped(1, 1)),
        ("another number", flipped(5, 0x40)),
        ("another body", flipped(9, 1)),
        ("another tag", flipped(whole.len() - 1, 0x80)),
        ("a byte less", whole[..whole.len() - 1].to_vec()),
        ("a byte more", [&whole[..], &[0]].concat()),
        ("12 bytes", whole[..12].to_vec()),
    ];
    if protection.is_some() {
        broken.push(("a tag cut off", whole[..24].to_vec()));
    }
    broken
}

pub(crate) fn take(line: &Value) {
    let protection = match line["cipher"].as_str().unwrap() {
        "none" => None,
        "ChaChaPoly" => Some(Cipher::ChaChaPoly),
        _ => Some(Cipher::AesGcm),
    };
    let from = line["from"].as_str().unwrap();
    let mut opener = opener(protection, (line["masked"] == 1, !line["random"].is_null()), from);
    for packet in line["packets"].as_array().unwrap() {
        opens(&mut opener, packet);
        if !line["random"].is_null() {
            heed(&mut opener, &bytes(packet, "body"), &bytes(line, "random").try_into().unwrap());
        }
    }
    for refused in line["refused"].as_array().unwrap() {
        let error = opener.open(NOW, &mut bytes(refused, "bytes")).map(|_| ()).unwrap_err();
        assert_eq!(refused["error"], variant(&error), "{refused}");
    }
    opens(&mut opener, &line["after"]);
}

fn opens(opener: &mut Seal, packet: &Value) {
    let mut datagram = bytes(packet, "bytes");
    let opened = opener.open(NOW, &mut datagram).unwrap();
    let found = value(&Line::default().wide("pn", opened.pn).hex("body", opened.body));
    assert_eq!([&packet["pn"], &packet["body"]], [&found["pn"], &found["body"]], "{packet}");
}

fn of_packet(Packet { pn, body, datagram }: &Packet) -> Line {
    Line::default().wide("pn", *pn).hex("body", body).hex("bytes", datagram)
}

fn end(protection: Protection, masked: bool, is_client: bool) -> Seal {
    let keys = match protection {
        None => Keys::checked(count(1), count(0x11), PROTOCOL),
        Some(cipher) if is_client => Keys::of_client(cipher, count(TO_SERVER), count(TO_CLIENT)),
        Some(cipher) => Keys::of_server(cipher, count(TO_SERVER), count(TO_CLIENT)),
    };
    let mut seal = Seal::new(Time::ZERO, keys);
    if masked {
        seal.mask();
    }
    seal
}

/// The end that opens packets from `from`: a client that has started an update of its key or an exchange, since a
/// server only follows.
fn opener(protection: Protection, (masked, exchange): (bool, bool), from: &str) -> Seal {
    if from == "client" {
        return end(protection, masked, false);
    }
    let mut client = end(protection, masked, true);
    client.draw(if exchange { NOW } else { Time::ZERO }, &random(true));
    let _ = sealed(&mut client, b"");
    client
}

/// Takes the other end's half of an exchange, if a packet has it, and answers it.
fn heed(opener: &mut Seal, body: &[u8], random: &[u8; 32]) {
    for frame in Frames::parse(body).unwrap() {
        if let Frame::Rekey(half) = frame {
            assert!(opener.on_half(NOW, &half));
            if opener.wants_random() {
                opener.draw(NOW, random);
            }
        }
    }
}

fn rekey(half: RekeyFrame) -> Vec<u8> {
    let mut body = Vec::new();
    FrameWriter::new(&mut body, 1200).push(&Frame::Rekey(half)).unwrap();
    body
}

/// The private key of an end in an exchange.
fn random(of_client: bool) -> [u8; 32] {
    count(if of_client { 0x20 } else { 0xc0 })
}

fn sealed(seal: &mut Seal, body: &[u8]) -> Packet {
    let mut datagram = Vec::new();
    Seal::begin(&mut datagram);
    datagram.extend_from_slice(body);
    let pn = seal.seal(NOW, SID, &mut datagram, 0).unwrap();
    Packet { pn, body: body.to_vec(), datagram }
}

/// A packet of the client, built by hand after docs/WIRE.md: `Seal` would first have to seal 2^32 others.
fn by_hand(cipher: Cipher, pn: u64) -> Packet {
    let header = Data { phase: false, sid: SID, pn: u32::try_from(pn & 0xffff_ffff).unwrap() }.encode();
    let key = count::<32>(TO_SERVER).into();
    let body = b"\x82far".to_vec();
    let (mut sealed, mut nonce) = (body.clone(), [0; 12]);
    let tag = if cipher == Cipher::ChaChaPoly {
        nonce[4..].copy_from_slice(&pn.to_le_bytes());
        ChaCha20Poly1305::new(&key).encrypt_in_place_detached(&nonce.into(), &header, &mut sealed).unwrap()
    } else {
        nonce[4..].copy_from_slice(&pn.to_be_bytes());
        Aes256Gcm::new(&key).encrypt_in_place_detached(&nonce.into(), &header, &mut sealed).unwrap()
    };
    Packet { pn, body, datagram: [&header[..], &sealed, &tag].concat() }
}

/// The name in docs/WIRE.md.
const fn name_of(protection: Protection) -> &'static str {
    match protection {
        None => "none",
        Some(Cipher::ChaChaPoly) => "ChaChaPoly",
        Some(_) => "AESGCM",
    }
}

/// A minute after the handshake, in which nobody answered an exchange that began with it.
const NOW: Time = Time::from_millis(60_000);
const SID: u32 = 0x0e0f_1011;
/// First bytes of the keys.
const TO_SERVER: u8 = 0x40;
const TO_CLIENT: u8 = 0x80;
