//! What a datagram makes an end compute is constant, or paid for by what came before. Here the work is counted; `tools/work.sh` counts
//! instructions.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::rogue::{Rogue, open_server};
use crate::common::{Raw, repairing};
use std::collections::BTreeSet;
use std::time::Duration;
use whitewater::channel::{Channels, ChannelsConfig};
use whitewater::inside::code::{Decoder, DecoderConfig, Encoder};
use whitewater::inside::message::BitWriter;
use whitewater::inside::session::wire::{AckFrame, Frame, KcpPart};
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, Conv, Kcp, Millis, Sn};
use whitewater::machine::DatagramQueue;
use whitewater::packet::Seq16;
use whitewater::{Channel, ChannelConfig, CloseReason, ServerConfig, SessionConfig, Time};

/// What a datagram of 1400 bytes pays for, and what can be saved up, in units of about 64 instructions.
const EACH: u64 = 400 + 1400 / 4;
const SAVED: u64 = 1 << 16;

/// A peer whose repairs are as dear as can be: as many segments are missing as are kept, each repair covers as many as it may, and
/// the last one rebuilds all.
#[test]
fn rebuilding_takes_no_more_work_than_datagrams_have_paid_for() {
    for missing in [30, 90] {
        let (work, rebuilt) = rebuild(missing);
        println!("{missing} missing: {rebuilt} rebuilt, {work} a datagram");
        assert!(missing > 30 || rebuilt > 600, "{rebuilt} of 1200: fewer are rebuilt all the same");
    }
}

/// Returns the work for a datagram, and how many segments were rebuilt.
fn rebuild(missing: u32) -> (u64, u32) {
    let data = [7; 1390];
    let mut decoder = Decoder::new(&DecoderConfig { segments: 1024, bytes: 1 << 21, mss: 1400 });
    let (mut encoder, mut payload) = (Encoder::new(), vec![0; 1500]);
    let (mut datagrams, mut rebuilt) = (0, 0);
    for round in 0..40_u32 {
        let first = Sn(256 * round);
        let mut arrive = |decoder: &mut Decoder, act: &mut dyn FnMut(&mut Decoder)| {
            datagrams += 1;
            decoder.earn(Time::from_micros(datagrams), 1400);
            act(decoder);
            while decoder.recover().is_some() {
                rebuilt += 1;
            }
            assert!(decoder.stats().work <= SAVED + datagrams * EACH, "after {datagrams} datagrams");
        };
        for offset in (0..256).filter(|offset| offset % 2 == 0 || *offset >= 2 * missing) {
            arrive(&mut decoder, &mut |decoder| _ = decoder.received(first.add(offset), 0, &data));
        }
        for index in 0..100_u8 {
            let start = first.add(4 * u32::from(index) % (2 * missing - 50));
            encoder.begin(index);
            (0..64).for_each(|offset| {
                encoder.add(start.add(offset), 0, 1390, |to| to.copy_from_slice(&data));
            });
            let len = encoder.finish(&mut payload).unwrap();
            let repair = &payload[..len];
            arrive(&mut decoder, &mut |decoder| _ = decoder.repair(start, Millis(0), repair, first, 512));
        }
        decoder.give_up_before(first.add(256));
    }
    (decoder.stats().work / datagrams, rebuilt)
}

/// `una` of a whole window frees each segment, which takes a few instructions for each that was sent, and nothing when it is repeated.
#[test]
fn an_acknowledgement_of_a_window_can_only_be_repeated_once_the_window_was_sent_again() {
    for config in [Config::default(), Config::classic(), repairing(50)] {
        let config = Config { snd_wnd: 1024, snd_queue: 4096, ..config };
        let mut kcp =
            Kcp::new(Conv(crate::common::CONV), &config, DatagramQueue::with_limit(1 << 26)).unwrap();
        let (mut freed, mut sent) = (0, 0);
        kcp.input(Time::ZERO, &Raw { wnd: 1024, ..Raw::wins(1024) }.bytes()).unwrap();
        for round in 1..50 {
            let now = Time::from_millis(100 * round);
            while kcp.send(&[7; 40]).is_ok() {}
            kcp.update(now);
            while kcp.output_mut().pop().is_some() {
                sent += 1;
            }
            let before = kcp.stats();
            for _ in 0..10 {
                let una = Raw { cmd: Command::Wins, una: before.snd_nxt.0, wnd: 1024, ..Raw::wins(1024) };
                kcp.input(now, &una.bytes()).unwrap();
            }
            freed += kcp.stats().snd_una.distance(before.snd_una);
            assert!(freed.unsigned_abs() <= kcp.stats().snd_nxt.0);
        }
        assert!(sent > 0, "it sends");
    }
}

/// Each report of a packet frees what it is about, however many come; but a packet with many of them is no use to honest ends.
#[test]
fn of_many_reports_in_a_packet_four_count() {
    let channel = Channel::<[u8]>::unordered(0);
    let config = ChannelConfig {
        messages_per_packet: 1,
        send_buffer: 1 << 10,
        receive_buffer: 1 << 10,
        receipts: true,
        ..channel.config()
    };
    let session = SessionConfig { channels: vec![config], ..SessionConfig::default() };
    let mut world = open_server(ServerConfig::insecure(session));
    let mut rogue = Rogue::connect(&mut world, 1).unwrap();
    for number in 0..400_u16 {
        world.session().send(channel, &number.to_le_bytes()).unwrap();
    }
    world.run(50);
    let used: BTreeSet<_> = rogue.packets(&mut world).0.iter().map(|packet| packet.pn).collect();
    let mut newest = *used.last().unwrap();
    let mut reports = Vec::new();
    for _ in 0..10 {
        let bits = (0..32).filter(|n| used.contains(&(newest - 1 - n))).fold(0, |bits, n| bits | 1_u32 << n);
        let ack = Seq16(u16::try_from(newest).unwrap());
        reports.push(Frame::Ack(AckFrame { ack, bits, delay: 0 }));
        newest = *used.range(..newest - 32).next_back().unwrap();
    }
    let covered = |reports: &[Frame<'_>]| {
        let acks = reports
            .iter()
            .map(|frame| if let Frame::Ack(ack) = frame { 1 + ack.bits.count_ones() } else { 0 });
        acks.sum::<u32>() as usize
    };
    rogue.send(&mut world, &reports);
    let delivered = std::iter::from_fn(|| world.session().pop_delivered_message(channel)).count();
    assert_eq!(delivered, covered(&reports[..4]));
    assert!(delivered >= 120);
    rogue.send(&mut world, &reports[4..6]);
    let delivered = std::iter::from_fn(|| world.session().pop_delivered_message(channel)).count();
    assert_eq!((delivered, world.closed()), (covered(&reports[4..6]), None));
}

/// So many messages of a byte on each of these channels.
fn packed(channels: &[u16]) -> Vec<u8> {
    let mut to = BitWriter::new(Vec::new());
    for count in channels {
        to.bool(*count > 0).unwrap();
        if *count > 0 {
            to.int(*count, 1..=64).unwrap();
            for id in 0..*count {
                if id == 0 {
                    to.int(id, 0..=u16::MAX).unwrap()
                } else {
                    to.relative(id, id - 1).unwrap()
                }
                to.bool(true).unwrap();
                to.int(1, 0..=2047).unwrap();
                to.bytes(&[7]).unwrap();
            }
        }
    }
    to.finish()
}

#[test]
fn a_packet_has_96_messages_at_most_and_one_place_for_them() {
    let channels: Vec<_> = (0..3).map(|number| Channel::<[u8]>::unordered(number).config()).collect();
    let (whole, more, part) = (packed(&[64, 0, 32]), packed(&[64, 32, 1]), packed(&[1, 0, 0]));
    for (payloads, taken, closed) in [
        (vec![&whole], 96, None),
        (vec![&more], 0, Some(CloseReason::Protocol)),
        (vec![&part, &whole], 1, Some(CloseReason::Protocol)),
    ] {
        let session = SessionConfig { channels: channels.clone(), ..SessionConfig::default() };
        let mut world = open_server(ServerConfig::insecure(session));
        let mut rogue = Rogue::connect(&mut world, 1).unwrap();
        let frames: Vec<_> = payloads.iter().map(|payload| Frame::Packed(payload)).collect();
        rogue.send(&mut world, &frames);
        let mut took = 0;
        for number in 0..3 {
            while world.session().recv(Channel::<[u8]>::unordered(number)).is_some() {
                took += 1;
            }
        }
        world.run(1100);
        assert_eq!((took, world.closed()), (taken, closed));
    }

    // An honest end with more to say does not notice.
    let config = ChannelsConfig { channels, ..ChannelsConfig::default() };
    let [mut alice, mut bob] = [(); 2].map(|()| Channels::new(&config).unwrap());
    let (now, mut counts) = (Time::from_millis(1), Vec::new());
    for number in 0..3 {
        (0..100).for_each(|_| _ = alice.send(now, Channel::<[u8]>::unordered(number), &[7]).unwrap());
    }
    loop {
        let payload = alice.write(now, Duration::ZERO).unwrap();
        bob.read(payload).unwrap();
        let received: u64 = (0..3).map(|number| bob.stats(Channel::<[u8]>::unordered(number)).received).sum();
        counts.push(received);
        if payload.is_empty() {
            break;
        }
        let number = Seq16(u16::try_from(counts.len()).unwrap());
        alice.on_sent(now, number);
    }
    assert_eq!(counts, [96, 192, 264, 300, 300]); // a channel has 64 of a packet
}

#[test]
fn of_many_parts_of_frames_in_a_packet_sixteen_count() {
    let mut world = open_server(ServerConfig::insecure(SessionConfig::default()));
    let mut rogue = Rogue::connect(&mut world, 1).unwrap();
    for (number, sn, parts) in [(0, 0, 16_u8), (1, 1, 17)] {
        let head = rogue.channel(0, &[Raw::push(sn, b"")]).len();
        let segment = rogue.channel(0, &[Raw::push(sn, &vec![7; 2 * usize::from(parts) - head])]);
        let frames: Vec<_> = (0..parts)
            .zip(segment.chunks(2))
            .map(|(id, bytes)| Frame::KcpPart(KcpPart { number: Seq16(number), id, last: parts - 1 }, bytes))
            .collect();
        rogue.send(&mut world, &frames);
        let is_there = world.session().recv(Channel::<[u8]>::ordered(0)).is_some();
        assert_eq!(is_there, parts == 16);
        if !is_there {
            rogue.send(&mut world, &frames[16..]);
            assert!(world.session().recv(Channel::<[u8]>::ordered(0)).is_some());
        }
    }
}
