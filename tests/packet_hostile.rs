//! Datagrams that no honest peer sends: bounded memory, a counter for each reason, and no other effect.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use allocation_counter::measure;
use std::fmt::Debug;
use std::time::Duration;
use whitewater::Time;
use whitewater::machine::DatagramQueue;
use whitewater::pace::MaxRate;
use whitewater::packet::{Endpoint, PacketConfig, ReceiveError, RejectedPackets, Seq16};

const NOW: Time = Time::from_millis(1000);

fn config() -> PacketConfig {
    PacketConfig { protocol_id: 0x0403_0201, fragment_above: 1000, ..PacketConfig::default() }
}

fn endpoint(config: &PacketConfig) -> Endpoint<DatagramQueue> {
    Endpoint::new(config, DatagramQueue::new()).unwrap()
}

/// The datagram with these bytes after the protocol id, and a payload of `len` bytes.
fn datagram(header: &[u8], len: usize) -> Vec<u8> {
    [&[1, 2, 3, 4], header, &vec![7; len]].concat()
}

/// A fragment of packet `sequence`, without acks.
fn fragment(sequence: u16, id: u8, last: u8, len: usize) -> Vec<u8> {
    let [low, high] = sequence.to_le_bytes();
    datagram(&[1, low, high, id, last], len)
}

/// An endpoint that has sent packets 0 and 1, and received packet 600 and fragment 1 of packet 601.
fn in_use() -> Endpoint<DatagramQueue> {
    let mut endpoint = endpoint(&config());
    endpoint.send(Time::ZERO, b"zero").unwrap();
    endpoint.send(Time::ZERO, b"one").unwrap();
    while endpoint.output_mut().pop().is_some() {}
    endpoint.receive(NOW, &datagram(&[0, 88, 2], 5)).unwrap();
    endpoint.receive(NOW, &fragment(601, 1, 3, 900)).unwrap();
    endpoint
}

/// A datagram, why it is rejected, and its counter.
type Refusal = (Vec<u8>, ReceiveError, fn(&RejectedPackets) -> u64);

#[test]
fn every_rejection_has_its_own_error_and_changes_only_its_counter() {
    let sequence = Seq16;
    let refused: [Refusal; 20] = [
        (vec![1, 2, 3], ReceiveError::Truncated { have: 3 }, |r| r.truncated),
        (datagram(&[0, 9], 0), ReceiveError::Truncated { have: 6 }, |r| r.truncated),
        (datagram(&[0b1_1010, 89, 2, 0, 0], 0), ReceiveError::Truncated { have: 9 }, |r| r.truncated),
        (vec![1, 2, 3, 5, 0, 89, 2, 0], ReceiveError::Protocol { found: 0x0503_0201 }, |r| r.protocol),
        (datagram(&[0x80, 89, 2], 9), ReceiveError::Prefix { found: 0x80 }, |r| r.prefix),
        (datagram(&[0b1000, 89, 2, 0], 9), ReceiveError::Prefix { found: 8 }, |r| r.prefix),
        (datagram(&[0b11, 89, 2, 1, 1, 89], 9), ReceiveError::Prefix { found: 3 }, |r| r.prefix),
        (datagram(&[0b110, 89, 2, 89, 2], 9), ReceiveError::NotShortest, |r| r.not_shortest),
        (datagram(&[0b1010, 89, 2, 88, 255], 9), ReceiveError::NotShortest, |r| r.not_shortest),
        (fragment(601, 0, 0, 9), ReceiveError::Fragment { id: 0, last: 0 }, |r| r.fragment),
        (fragment(601, 4, 3, 9), ReceiveError::Fragment { id: 4, last: 3 }, |r| r.fragment),
        (fragment(601, 2, 3, 0), ReceiveError::FragmentMismatch, |r| r.fragment_mismatch),
        (fragment(601, 2, 4, 900), ReceiveError::FragmentMismatch, |r| r.fragment_mismatch),
        (fragment(601, 2, 3, 899), ReceiveError::FragmentMismatch, |r| r.fragment_mismatch),
        (fragment(601, 3, 3, 901), ReceiveError::FragmentMismatch, |r| r.fragment_mismatch),
        (fragment(602, 1, 17, 1000), ReceiveError::TooLong { len: 17_001, max: 16_384 }, |r| r.too_long),
        (datagram(&[0, 90, 2], 16_385), ReceiveError::TooLong { len: 16_385, max: 16_384 }, |r| r.too_long),
        (datagram(&[0b110, 89, 2, 2, 0], 9), ReceiveError::AckUnsent { ack: sequence(2) }, |r| r.ack_unsent),
        (datagram(&[0, 88, 1], 9), ReceiveError::Stale { sequence: sequence(344) }, |r| r.stale),
        (fragment(601, 1, 3, 900), ReceiveError::Duplicate { sequence: sequence(601) }, |r| r.duplicate),
    ];
    for (bytes, error, counter) in refused {
        let mut endpoint = in_use();
        let mut untouched = endpoint.clone();
        assert_eq!(endpoint.receive(NOW, &bytes), Err(error));
        let mut stats = endpoint.stats();
        assert_eq!((counter(&stats.rejected), stats.rejected.total()), (1, 1), "{error:?}");
        stats.rejected = RejectedPackets::default();
        assert_eq!(stats, untouched.stats(), "{error:?}");
        assert_eq!(after(&mut endpoint), after(&mut untouched), "{error:?}");
    }
}

/// What an endpoint does next.
fn after(endpoint: &mut Endpoint<DatagramQueue>) -> impl Debug + PartialEq + use<> {
    let acked = (endpoint.pop_acked(), endpoint.pop_lost());
    let wake = endpoint.check(NOW);
    let rest = [0, 3, 2].map(|id| {
        let bytes = fragment(601, id, 3, if id == 3 { 10 } else { 900 });
        endpoint.receive(NOW, &bytes).map(|payload| payload.map(<[u8]>::to_vec))
    });
    endpoint.send(NOW, b"next").unwrap();
    (acked, wake, rest, endpoint.output_mut().pop().map(<[u8]>::to_vec))
}

#[test]
fn every_complete_packet_counts_once_however_it_is_received() {
    let mut endpoint = endpoint(&config());
    for sequence in 0..4 {
        endpoint.receive(NOW, &datagram(&[0, sequence, 0], 5)).unwrap();
        endpoint.receive_if(NOW, &datagram(&[0, sequence + 4, 0], 5), |_| true).unwrap();
        endpoint.receive_if(NOW, &datagram(&[0, sequence + 8, 0], 5), |_| false).unwrap_err();
    }
    assert_eq!(endpoint.stats().received, 8);
}

#[test]
fn a_packet_in_fragments_takes_the_bandwidth_of_all_of_them() {
    let mut endpoint = endpoint(&config());
    let mut bytes = 0;
    for tenth in 0..20 {
        endpoint.send(Time::from_millis(100 * tenth), &[7; 2500]).unwrap();
        while let Some(datagram) = endpoint.output_mut().pop() {
            bytes += datagram.len();
        }
    }
    endpoint.update(Time::from_millis(2000));
    assert_eq!(endpoint.stats().sent_bandwidth.round(), bytes as f64 / 2.0);
}

#[test]
fn a_duplicate_of_a_complete_packet_is_rejected_in_every_form() {
    let mut endpoint = in_use();
    for bytes in [datagram(&[0, 88, 2], 5), fragment(600, 0, 1, 5), fragment(600, 1, 1, 5)] {
        assert_eq!(endpoint.receive(NOW, &bytes), Err(ReceiveError::Duplicate { sequence: Seq16(600) }));
    }
}

/// Packets of maximum size, each missing one fragment: as many as are kept, and then others.
#[test]
fn forged_fragments_fill_a_bounded_memory() {
    for (reassemblies, payload_max, fragment_above) in
        [(16, 16 << 10, 1000), (1, 256 * 100, 100), (256, 1000, 1000)]
    {
        let config = PacketConfig { reassemblies, payload_max, fragment_above, ..config() };
        let mut endpoint = endpoint(&config);
        let mut refused = 0u64;
        let info = measure(|| {
            for sequence in 0..1000 {
                let size = (payload_max as usize / 16).min(1000);
                for id in [15, 0, 1, 7, 14] {
                    refused += u64::from(endpoint.receive(NOW, &fragment(sequence, id, 15, size)).is_err());
                }
            }
        });
        // The last fragment of a packet is kept at the front until its place is known.
        let most = (u64::from(reassemblies) + 1) * u64::from(payload_max) + 256 * 100 + 20_000;
        println!("{reassemblies} of {payload_max} bytes: {} held", info.bytes_max);
        assert!(info.bytes_max <= most, "{} bytes, {most} at most", info.bytes_max);
        let stats = endpoint.stats();
        assert_eq!((stats.rejected.total(), stats.received), (refused, 0));
        assert_eq!(stats.abandoned, 1000 - u64::from(reassemblies));
    }
}

#[test]
fn unread_acks_stay_bounded_and_are_counted() {
    let mut alice = endpoint(&config());
    for sequence in 0..1000u16 {
        alice.send(NOW, b"x").unwrap();
        let [low, high] = sequence.to_le_bytes();
        alice.receive(NOW, &datagram(&[2, low, high, 0], 1)).unwrap();
    }
    assert_eq!((alice.stats().acked, alice.stats().acked_unread), (1000, 744));
    let mut left = Vec::new();
    while let Some(sequence) = alice.pop_acked() {
        left.push(sequence.0);
    }
    assert!(left.into_iter().eq(744..1000), "the newest");
}

/// A peer that never receives packets with even numbers.
#[test]
fn unread_losses_stay_bounded() {
    let mut alice = endpoint(&config());
    for sequence in 0..1000u16 {
        let now = NOW + Duration::from_millis(sequence.into());
        alice.send(now, b"x").unwrap();
        let [low, high] = sequence.to_le_bytes();
        if sequence % 2 == 1 {
            alice.receive(now, &datagram(&[0b111_1010, low, high, 0, 0xaa, 0xaa, 0xaa, 0xaa], 1)).unwrap();
        }
    }
    assert_eq!((alice.stats().acked, alice.stats().overtaken), (500, 500));
    let left: Vec<_> = std::iter::from_fn(|| alice.pop_lost()).map(|sequence| sequence.0).collect();
    assert!(left.into_iter().eq((488..1000).step_by(2)), "the newest 256");
}

#[test]
fn a_payload_beyond_the_largest_is_not_sent() {
    let mut alice = endpoint(&config());
    let error = alice.send(NOW, &vec![0; 16_385]).unwrap_err();
    assert_eq!(error.to_string(), "payload has 16385 bytes, more than the maximum of 16384");
    assert!(alice.output().is_empty() && alice.stats().sent == 0);
    alice.send(NOW, &vec![0; 16_384]).unwrap();
    assert_eq!((alice.output().len(), alice.stats().datagrams_sent), (17, 17));
}

#[test]
fn a_config_out_of_range_names_its_field() {
    let default = PacketConfig::default();
    let (rate, limited) = (default.max_rate, |max_rate| PacketConfig { max_rate, ..default });
    let ms = Duration::from_millis;
    for (config, field, value) in [
        (PacketConfig { fragment_above: 0, ..default }, "fragment_above", 0),
        (PacketConfig { fragment_above: 65_493, ..default }, "fragment_above", 65_493),
        (PacketConfig { payload_max: 1184, ..default }, "payload_max", 1184),
        (PacketConfig { payload_max: 256 * 1185 + 1, ..default }, "payload_max", 303_361),
        (PacketConfig { reassemblies: 257, ..default }, "reassemblies", 257),
        (PacketConfig { sent: 63, ..default }, "sent", 63),
        (PacketConfig { received: 32_769, ..default }, "received", 32_769),
        (PacketConfig { lost_after: ms(0), ..default }, "lost_after", 0),
        (PacketConfig { forget_after: ms(999), ..default }, "forget_after", 999),
        (PacketConfig { keepalive: Some(ms(60_001)), ..default }, "keepalive", 60_001),
        (limited(MaxRate { good_rate: 0, ..rate }), "good_rate", 0),
        (limited(MaxRate { bad_rate: 31, ..rate }), "bad_rate", 31),
        (limited(MaxRate { rtt: ms(0), ..rate }), "rtt", 0),
        (limited(MaxRate { loss: Some(101), ..rate }), "loss", 101),
        (limited(MaxRate { jitter: Some(ms(61_000)), ..rate }), "jitter", 61_000),
    ] {
        let error = Endpoint::new(&config, DatagramQueue::new()).unwrap_err();
        assert_eq!((error.field, error.value), (field, value));
    }
}
