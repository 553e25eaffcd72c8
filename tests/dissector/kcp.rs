//! Bare KCP.

use super::pcap::Captured;
use super::{Tapped, addresses, hex, hexes, texts, tshark};
use crate::common::{CONV, at, ms, numbered, path, repairing};
use std::collections::BTreeMap;
use whitewater::Time;
use whitewater::kcp::Conv;
use whitewater::kcp::wire::{Command, Segment, segments};
use whitewater_sim::{Drive, KcpEnd, Link, Pair};

/// The datagrams, as sent, of two ends that exchange messages of various lengths for 5 s over a bad path,
/// with repairs.
pub(super) fn run(loss: f64, seed: u64) -> Vec<Captured> {
    let end = || KcpEnd::new(Conv(CONV), &repairing(50), Drive::CHECK, Time::ZERO).unwrap();
    let [(alice, from_alice), (bob, from_bob)] = [Tapped::new(end()), Tapped::new(end())];
    let links = [1, 2].map(|stream| Link::new(path(loss), seed, stream).unwrap());
    let mut pair = Pair::new(alice, bob, links);
    let [a, b] = addresses();
    let (mut captured, mut message) = (Vec::new(), Vec::new());
    for tick in 0..250 {
        let now = pair.now();
        pair.alice.peer.send(now, &numbered(tick, 1 + tick * 131 % 3000)).unwrap();
        pair.bob.peer.send(now, &numbered(tick, 1 + tick * 31 % 300)).unwrap();
        pair.run_for(ms(20));
        let at = pair.now();
        captured.extend(from_alice.try_iter().map(|datagram| (at, a, b, datagram)));
        captured.extend(from_bob.try_iter().map(|datagram| (at, b, a, datagram)));
        while pair.alice.peer.recv(&mut message) || pair.bob.peer.recv(&mut message) {}
    }
    captured
}

#[test]
fn every_segment_is_shown_as_it_was_sent() {
    let captured = run(0.1, 1);
    let fields = [
        "kcp.conv",
        "kcp.cmd",
        "kcp.frg",
        "kcp.wnd",
        "kcp.ts",
        "kcp.sn",
        "kcp.una",
        "kcp.len",
        "kcp.data",
        "kcp.malformed",
    ];
    let Some(rows) = tshark::show(&captured, &[], &fields) else { return };
    let mut commands = BTreeMap::<u8, u32>::new();
    for ((.., datagram), row) in captured.iter().zip(rows) {
        let all: Vec<Segment<'_>> = segments(datagram).map(Result::unwrap).collect();
        all.iter().for_each(|segment| *commands.entry(segment.header.cmd as u8).or_default() += 1);
        let headers = || all.iter().map(|segment| segment.header);
        let expected = [
            headers().map(|header| format!("0x{:08x}", header.conv.0)).collect(),
            texts(headers().map(|header| header.cmd as u8)),
            texts(headers().map(|header| header.frg)),
            texts(headers().map(|header| header.wnd)),
            texts(headers().map(|header| header.ts.0)),
            texts(headers().map(|header| header.sn.0)),
            texts(headers().map(|header| header.una.0)),
            texts(all.iter().map(|segment| segment.data.len())),
            hexes(all.iter().map(|segment| segment.data)),
            Vec::new(),
        ];
        assert_eq!(row, expected);
    }
    let at_least = [(Command::Push, 600), (Command::Ack, 500), (Command::Wins, 50)];
    assert!(at_least.iter().all(|(cmd, least)| commands[&(*cmd as u8)] >= *least), "{commands:?}");
}

#[test]
fn a_resent_segment_names_the_frame_that_sent_it_first() {
    let captured = run(0.1, 2);
    let Some(rows) = tshark::show(&captured, &[], &["kcp.first_sent"]) else { return };
    let (mut first, mut resent) = (BTreeMap::new(), 0);
    for (number, ((_, from, _, datagram), row)) in (1..).zip(captured.iter().zip(rows)) {
        let pushes =
            segments(datagram).map(Result::unwrap).filter(|segment| segment.header.cmd == Command::Push);
        let before = pushes.map(|push| *first.entry((*from, push.header.sn.0)).or_insert(number));
        let before: Vec<u32> = before.filter(|before| *before != number).collect();
        resent += before.len();
        assert_eq!(row[0], texts(before));
    }
    assert!(resent >= 20, "{resent} of a path that loses a tenth");
}

#[test]
fn a_repair_is_shown_with_what_it_covers() {
    let captured = run(0.1, 3);
    let fields = ["kcp.repair.span", "kcp.repair.index", "kcp.repair.set", "kcp.repair.sum", "kcp.ignored"];
    let Some(rows) = tshark::show(&captured, &[], &fields) else { return };
    for ((.., datagram), row) in captured.iter().zip(rows) {
        let all = segments(datagram).map(Result::unwrap);
        let is_repair =
            |segment: &Segment<'_>| segment.header.cmd == Command::Wins && !segment.data.is_empty();
        let repairs: Vec<&[u8]> = all.filter(is_repair).map(|segment| segment.data).collect();
        let set = |data: &[u8]| if data[0] < 128 { 0 } else { usize::from(data[0] & 127).div_ceil(8) };
        let expected = [
            texts(repairs.iter().map(|data| data[0] & 127)),
            texts(repairs.iter().map(|data| data[1])),
            hexes(repairs.iter().map(|data| &data[2..2 + set(data)])),
            hexes(repairs.iter().map(|data| &data[2 + set(data)..])),
            Vec::new(),
        ];
        assert_eq!(row, expected);
    }
}

#[test]
fn the_documented_errors_are_shown_as_malformed_and_ignored_bytes_are_not() {
    let document = include_str!("../../docs/WIRE.md");
    let [from, to] = addresses();
    let mut captured = Vec::new();
    for (block, is_refused) in [("refused", true), ("ignored", false), ("exchange", false), ("probe", false)]
    {
        let (_, rest) = document.split_once(&format!("```hex {block}\n")).unwrap();
        for line in rest.split("```").next().unwrap().lines() {
            let (bytes, comment) = line.split_once(';').unwrap_or((line, ""));
            let digits: Vec<char> = bytes.chars().filter(|digit| !digit.is_whitespace()).collect();
            let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
            let datagram: Vec<u8> = digits.chunks(2).map(byte).collect();
            // Only an end knows which numbers were sent, how large the window is and which conversation it
            // is.
            let needs_state =
                ["AckUnsent", "Una:", "Fragment:", "Conv:"].iter().any(|reason| comment.contains(reason));
            if !datagram.is_empty() && !needs_state {
                captured.push(((at(1), from, to, datagram), is_refused));
            }
        }
    }
    let datagrams: Vec<Captured> = captured.iter().map(|(captured, _)| captured.clone()).collect();
    let Some(rows) = tshark::show(&datagrams, &["kcp.ports:50002"], &["kcp.malformed"]) else { return };
    assert!(captured.iter().filter(|(_, is_refused)| *is_refused).count() >= 3);
    for (((.., datagram), is_refused), row) in captured.iter().zip(rows) {
        assert_eq!(!row[0].is_empty(), *is_refused, "{}", hex(datagram));
    }
}
