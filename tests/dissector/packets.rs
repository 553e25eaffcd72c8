//! Packets of a `packet::Endpoint`.

use super::pcap::Captured;
use super::{Tapped, addresses, hex, hexes, texts, tshark};
use crate::common::{at, ms, packet_pair, path};
use whitewater::packet::PacketConfig;
use whitewater_sim::Pair;

const PROTOCOL_ID: u32 = 0x7061_636b;
pub(super) const SETTING: &str = "wwp.protocol_id:7061636b";

/// The datagrams, as sent, of 4 s of packets both ways, small ones and some in fragments.
pub(super) fn run(seed: u64) -> Vec<Captured> {
    let config = PacketConfig { protocol_id: PROTOCOL_ID, fragment_above: 400, ..PacketConfig::default() };
    let len = |number: u32| if number.is_multiple_of(7) { 1500 } else { 20 };
    let pair = packet_pair(&config, [Some(ms(15)), Some(ms(40))], len, &path(0.1), seed);
    let [(alice, from_alice), (bob, from_bob)] = [Tapped::new(pair.alice), Tapped::new(pair.bob)];
    let mut pair = Pair::new(alice, bob, pair.links);
    let ([a, b], mut captured) = (addresses(), Vec::new());
    for _ in 0..400 {
        pair.run_for(ms(10));
        captured.extend(from_alice.try_iter().map(|datagram| (pair.now(), a, b, datagram)));
        captured.extend(from_bob.try_iter().map(|datagram| (pair.now(), b, a, datagram)));
    }
    captured
}

/// The content of a header by docs/WIRE.md: the number, the fragment, what was received, and where the
/// payload begins.
fn header(datagram: &[u8]) -> [Vec<String>; 6] {
    let prefix = datagram[4];
    let sequence = u16::from_le_bytes([datagram[5], datagram[6]]);
    let mut at = 7;
    let mut take = |count: usize| {
        at += count;
        &datagram[at - count..at]
    };
    let fragment = if prefix & 1 == 0 { Vec::new() } else { take(2).to_vec() };
    let (mut ack, mut bits) = (None, None);
    if prefix & 2 != 0 {
        ack = Some(match prefix & 4 {
            0 => sequence.wrapping_sub(take(1)[0].into()),
            _ => u16::from_le_bytes(take(2).try_into().unwrap()),
        });
        let told = [8, 16, 32, 64].map(|flag| if prefix & flag == 0 { 0xff } else { take(1)[0] });
        bits = Some(format!("0x{:08x}", u32::from_le_bytes(told)));
    }
    [
        texts([sequence]),
        texts(fragment.iter().take(1)),
        texts(fragment.iter().skip(1)),
        texts(ack),
        texts(bits),
        hexes([&datagram[at..]]),
    ]
}

#[test]
fn every_packet_is_shown_as_it_was_sent() {
    let captured = run(1);
    let fields =
        ["wwp.sequence", "wwp.fragment.id", "wwp.fragment.last", "wwp.ack", "wwp.ack_bits", "wwp.payload"];
    let Some(rows) = tshark::show(&captured, &[SETTING], &fields) else { return };
    for ((.., datagram), row) in captured.iter().zip(rows) {
        assert_eq!(row, header(datagram), "{}", hex(datagram));
    }
    assert!(captured.iter().filter(|(.., datagram)| datagram[4] & 1 != 0).count() >= 30, "fragments");
    assert!(captured.iter().filter(|(.., datagram)| datagram[4] & 0x78 != 0).count() >= 30, "losses");
}

#[test]
fn documented_invalid_packets_are_shown_as_malformed() {
    let document = include_str!("../../docs/WIRE.md");
    let (_, rest) = document.split_once("```hex packets refused\n").unwrap();
    let [from, to] = addresses();
    let mut captured = Vec::new();
    for line in rest.split("```").next().unwrap().lines() {
        let (bytes, reason) = line.split_once(';').unwrap();
        let digits: Vec<char> = bytes.chars().filter(|digit| !digit.is_whitespace()).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
        // Only an end knows what was received before and which application this is.
        if !["Protocol", "AckUnsent", "Stale", "Duplicate"].iter().any(|state| reason.contains(state)) {
            captured.push((at(1), from, to, digits.chunks(2).map(byte).collect::<Vec<u8>>()));
        }
    }
    assert!(captured.len() >= 9);
    let Some(rows) = tshark::show(&captured, &["wwp.ports:50002"], &["wwp.malformed"]) else { return };
    for ((.., datagram), row) in captured.iter().zip(rows) {
        assert!(!row[0].is_empty(), "{}", hex(datagram));
    }
}
