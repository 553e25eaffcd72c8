//! Parity as kcp-go makes it, and rebuilding lost datagrams from it.

#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

use super::super::config::Shards;
use super::super::datagram::{Inner, Shard};
use super::super::stats::Stats;
use super::{Code, Decoder, Encoder, groups};
use rand::Rng;
use std::collections::HashMap;
use std::sync::Arc;
use whitewater::Time;
use whitewater_sim::SimRng;

/// A random number below `most`.
fn below(rng: &mut SimRng, most: u64) -> u64 {
    rng.next_u64() % most
}

const fn shards(data: u8, parity: u8) -> Shards {
    Shards { data, parity }
}

fn encoder(shape: Shards) -> Encoder {
    Encoder::new(shape, &Arc::new(Code::new(shape)))
}

fn decoder(shape: Shards) -> Decoder {
    Decoder::new(shape)
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// All datagrams that a sender makes of `datagrams`, `gap` ms apart.
fn sent(encoder: &mut Encoder, datagrams: &[Vec<u8>], gap: u64) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for (at, datagram) in datagrams.iter().enumerate() {
        let now = Time::from_millis(1000 + gap * at as u64);
        out.push([encoder.data(now, datagram).as_slice(), datagram].concat());
        while let Some((head, parity)) = encoder.parity() {
            out.push([head.as_slice(), parity].concat());
        }
    }
    out
}

/// Passes a datagram to the decoder and returns what it rebuilds.
fn take(decoder: &mut Decoder, datagram: &[u8], stats: &mut Stats) -> Vec<Vec<u8>> {
    let Ok(Inner::Data { shard, .. } | Inner::Parity(shard)) = Inner::of(datagram) else {
        panic!("{datagram:x?} is not a shard")
    };
    decoder.take(&shard, stats);
    std::iter::from_fn(|| decoder.pop(stats).map(<[u8]>::to_vec)).collect()
}

#[test]
fn parity_rows_match_klauspost() {
    for (data, parity, rows) in [
        (2, 1, vec!["0302"]),
        (3, 2, vec!["010101", "0f0806"]),
        (4, 2, vec!["1b1c1214", "1c1b1412"]),
        (10, 3, vec!["8196afb8d2c4fee80302", "9681b8afc4d2e8fe0203", "bfd6620a066fdfb70504"]),
    ] {
        // A shard that is 1 in one place and 0 elsewhere yields a column of the matrix.
        let code = Code::new(shards(data, parity));
        let columns: Vec<Vec<u8>> = (0..data.into())
            .map(|at| {
                let mut column = vec![vec![0]; parity.into()];
                code.add(at, &[1], &mut column);
                column.concat()
            })
            .collect();
        for (row, expected) in rows.iter().enumerate() {
            let row: Vec<u8> = columns.iter().map(|column| column[row]).collect();
            assert_eq!(row, bytes(expected), "{data},{parity}");
        }
    }
}

#[test]
fn a_group_of_kcp_go_is_reproduced_byte_for_byte() {
    let recorded = [
        "00000000f100230044332211510000011600000000000000000000000900000068656c6c6f206b6370",
        "01000000f1001a00443322115200ff003a030000000000000100000000000000",
        "02000000f20051004433221157 00e3034e06000000000000020000001b000000b8afb4b4b160bda590",
    ]
    .map(|hex| bytes(&hex.replace(' ', "")));
    let datagrams = [recorded[0][8..].to_vec(), recorded[1][8..].to_vec()];
    assert_eq!(sent(&mut encoder(shards(2, 1)), &datagrams, 10), recorded);

    let mut stats = Stats::default();
    for (lost, datagram) in datagrams.iter().enumerate() {
        let mut decoder = decoder(shards(2, 1));
        let rebuilt: Vec<_> =
            (0..3).filter(|at| *at != lost).map(|at| take(&mut decoder, &recorded[at], &mut stats)).collect();
        assert_eq!(rebuilt, [vec![], vec![datagram.clone()]]);
    }
    assert_eq!(stats, Stats { recovered: 2, ..Stats::default() });
}

#[test]
fn after_a_pause_there_is_no_parity_and_its_numbers_are_skipped() {
    let datagrams = vec![vec![7; 30]; 4];
    let numbers = |gap| -> Vec<u8> {
        sent(&mut encoder(shards(2, 1)), &datagrams, gap).iter().map(|datagram| datagram[0]).collect()
    };
    assert_eq!(numbers(499), [0, 1, 2, 3, 4, 5]);
    assert_eq!(numbers(500), [0, 1, 3, 4]);
}

#[test]
fn losses_up_to_the_parity_are_rebuilt_at_once_and_more_are_not() {
    for seed in 0..200 {
        let mut rng = SimRng::new(seed, 0);
        let mut random = |most: u64| below(&mut rng, most);
        let shape = shards(2 + random(12) as u8, 1 + random(6) as u8);
        let datagrams: Vec<Vec<u8>> =
            (0..shape.data).map(|_| (0..24 + random(1400)).map(|_| random(256) as u8).collect()).collect();
        let mut encoder = encoder(shape);
        let all = sent(&mut encoder, &datagrams, 5);
        assert_eq!(all.len(), shape.all(), "seed {seed}");
        let lost_count = random(u64::from(shape.parity) + 2) as usize;
        let mut order: Vec<usize> = (0..all.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random(at as u64 + 1) as usize);
        }
        let (mut decoder, mut stats) = (decoder(shape), Stats::default());
        let lost: Vec<usize> = order.iter().copied().take(lost_count).collect();
        let (mut rebuilt, mut here) = (HashMap::new(), vec![false; all.len()]);
        for (count, &at) in order.iter().skip(lost_count).enumerate() {
            here[at] = true;
            let now = take(&mut decoder, &all[at], &mut stats);
            let due: usize = if count + 1 == usize::from(shape.data) {
                here[..shape.data.into()].iter().filter(|here| !**here).count()
            } else {
                0
            };
            assert_eq!(now.len(), due, "seed {seed}: not as soon as enough arrived");
            let missing = (0..usize::from(shape.data)).filter(|at| !here[*at]);
            rebuilt.extend(missing.zip(now));
        }
        let is_enough = lost.len() <= shape.parity.into();
        for at in lost.into_iter().filter(|at| *at < shape.data.into()) {
            assert_eq!(rebuilt.get(&at), is_enough.then_some(&datagrams[at]), "seed {seed}: datagram {at}");
        }
        assert!(stats.not_recovered == 0 && stats.misplaced == 0, "seed {seed}: {stats:?}");
    }
}

#[test]
fn groups_continue_when_the_numbers_wrap() {
    let shape = shards(3, 1);
    let mut encoder = encoder(shape);
    encoder.next = groups(shape) * 4 - 8; // two groups before the end
    let datagrams: Vec<Vec<u8>> = (0..18u8).map(|at| vec![at; 40]).collect();
    let all = sent(&mut encoder, &datagrams, 5);
    let number = |datagram: &[u8]| u32::from_le_bytes(datagram[..4].try_into().unwrap());
    assert_eq!(number(&all[7]), groups(shape) * 4 - 1);
    assert_eq!(number(&all[8]), 0);
    let (mut decoder, mut stats) = (decoder(shape), Stats::default());
    let lost = |at: usize| at % 4 == 1;
    let rebuilt: Vec<_> = (0..all.len())
        .filter(|at| !lost(*at))
        .flat_map(|at| take(&mut decoder, &all[at], &mut stats))
        .collect();
    let expected: Vec<_> = (0..18).filter(|at| at % 3 == 1).map(|at| datagrams[at].clone()).collect();
    assert_eq!(rebuilt, expected);
    assert_eq!(stats, Stats { recovered: 6, ..Stats::default() });
}

#[test]
fn a_forged_number_far_ahead_stops_parity_for_at_most_two_groups() {
    let shape = shards(10, 3);
    let mut encoder = encoder(shape);
    let datagrams = vec![vec![9; 100]; 60];
    let all = sent(&mut encoder, &datagrams, 5);
    let (mut decoder, mut stats) = (decoder(shape), Stats::default());
    for datagram in &all[..13] {
        take(&mut decoder, datagram, &mut stats);
    }
    decoder.take(&Shard { seqid: 1 << 30, is_parity: (1 << 30) % 13 >= 10, bytes: &[0; 50] }, &mut stats);
    let after: Vec<usize> = all
        .chunks(13)
        .skip(1)
        .map(|group| {
            group.iter().skip(1).map(|datagram| take(&mut decoder, datagram, &mut stats).len()).sum()
        })
        .collect();
    assert_eq!(after, [0, 2, 1, 1, 1], "{stats:?}");
    assert!(stats.late == 13, "{stats:?}");
}

#[test]
fn hostile_shards_are_counted_and_take_bounded_memory() {
    for seed in 0..20 {
        let mut rng = SimRng::new(seed, 0);
        let shape = shards(10, 3);
        let (mut decoder, mut stats) = (decoder(shape), Stats::default());
        for _ in 0..20_000 {
            let seqid = match below(&mut rng, 3) {
                0 => below(&mut rng, 60) as u32,
                1 => u32::MAX - below(&mut rng, 60) as u32,
                _ => below(&mut rng, 1 << 32) as u32,
            };
            let junk = vec![below(&mut rng, 256) as u8; below(&mut rng, 1490) as usize];
            let fits = below(&mut rng, 2) == 0 || seed % 2 == 0;
            let seqid = if fits { seqid % (groups(shape) * 13) } else { seqid };
            decoder.take(&Shard { seqid, is_parity: (seqid % 13 >= 10) == fits, bytes: &junk }, &mut stats);
            while decoder.pop(&mut stats).is_some() {}
        }
        let memory = decoder.memory();
        assert!(memory <= 4 * 13 * 1536 + 4096, "seed {seed}: {memory} bytes");
        let counted = if seed % 2 == 0 { stats.late + stats.duplicates } else { stats.misplaced };
        assert!(counted > 1000, "seed {seed}: {stats:?}");
    }
}

/// Segments of one peer that only differ in a number and their content, so that what is rebuilt from the
/// wrong ones looks real.
fn segments(rng: &mut SimRng, count: u32) -> Vec<Vec<u8>> {
    let head = [7, 0, 0, 0, 81, 0, 128, 0].as_slice();
    (0..count).map(|sn| [head, &sn.to_le_bytes(), &[below(rng, 256) as u8; 60]].concat()).collect()
}

#[test]
fn shards_of_another_shape_are_counted_and_rebuild_nothing() {
    let shapes = [(10, 3), (10, 4), (9, 3), (5, 2), (8, 5), (4, 3), (3, 1), (2, 2), (20, 6)];
    let pairs = shapes.iter().flat_map(|theirs| shapes.map(|ours| (*theirs, ours)));
    for (theirs, ours) in pairs.filter(|(theirs, ours)| theirs != ours) {
        for lost_percent in [0, 10] {
            let mut rng = SimRng::new(1, 0);
            let datagrams = segments(&mut rng, 600);
            let all = sent(&mut encoder(shards(theirs.0, theirs.1)), &datagrams, 5);
            let (mut decoder, mut stats) = (decoder(shards(ours.0, ours.1)), Stats::default());
            // The first shards all arrive: until one is misplaced nobody can know.
            let came =
                all.iter().enumerate().filter(|(at, _)| *at < 64 || below(&mut rng, 100) >= lost_percent);
            for rebuilt in came.flat_map(|(_, datagram)| take(&mut decoder, datagram, &mut stats)) {
                assert!(datagrams.contains(&rebuilt), "{theirs:?} to {ours:?}, {lost_percent} % lost");
            }
            assert!(stats.misplaced > 10, "{theirs:?} to {ours:?}: {stats:?}");
        }
    }
}

/// How much is rebuilt of 40 groups of 10 + 3 whose first shards are lost, if one more is misplaced.
fn rebuilt_beside(seqid: u32, after: usize) -> (usize, Stats) {
    let datagrams = segments(&mut SimRng::new(1, 0), 400);
    let all = sent(&mut encoder(shards(10, 3)), &datagrams, 5);
    let (mut decoder, mut stats) = (decoder(shards(10, 3)), Stats::default());
    let mut rebuilt = 0;
    for (at, datagram) in all.iter().enumerate() {
        if at == after {
            let is_parity = seqid % 13 < 10;
            decoder.take(&Shard { seqid, is_parity, bytes: &[0; 50] }, &mut stats);
        }
        if at % 13 > 0 {
            rebuilt += take(&mut decoder, datagram, &mut stats).len();
        }
    }
    (rebuilt, stats)
}

#[test]
fn a_forged_misplaced_shard_stops_parity_only_until_the_true_one_comes() {
    // That was there, or is the next, or comes late in the next group.
    for (seqid, without) in [(131, 0), (137, 0), (143 + 2, 1), (143 + 12, 2)] {
        let (rebuilt, stats) = rebuilt_beside(seqid, 135);
        assert_eq!((rebuilt, stats.misplaced), (40 - without, 1), "{seqid}: {stats:?}");
    }
}

#[test]
fn a_forged_misplaced_shard_with_a_number_far_off_stops_no_parity() {
    for seqid in [14, 13 * 7 - 1, 13 * 12, 1 << 30, u32::MAX] {
        let (rebuilt, stats) = rebuilt_beside(seqid, 135);
        assert_eq!((rebuilt, stats.misplaced, stats.doubted), (40, 1, 0), "{seqid}: {stats:?}");
    }
}

#[test]
fn a_misplaced_shard_stops_parity_for_a_while_if_none_comes_in_its_place() {
    for (seqid, after) in [(0, 0), (130, 135), (143, 135)] {
        let (rebuilt, stats) = rebuilt_beside(seqid, after);
        let groups_without = (13 + 256usize) / 12;
        assert_eq!((stats.misplaced, stats.doubted), (1, 13 + 256), "{seqid}: {stats:?}");
        assert_eq!(rebuilt, 40 - groups_without, "{seqid}: {stats:?}");
    }
}

/// As many of 128 shards are lost as others replace, or a fifth of all.
#[test]
fn rebuilding_takes_no_more_work_than_shards_have_paid_for_and_a_fifth_is_rebuilt() {
    let shape = shards(128, 127);
    for fifth in [false, true] {
        let (mut from, mut to, mut stats) = (encoder(shape), decoder(shape), Stats::default());
        let datagrams = vec![vec![7; 1392]; 128 * 8];
        let (mut came, mut lost, mut rebuilt) = (0, 0, 0);
        for (at, datagram) in sent(&mut from, &datagrams, 1).iter().enumerate() {
            let place = at % 255;
            if if fifth { at % 5 == 0 } else { place < 127 } {
                lost += usize::from(place < 128);
                continue;
            }
            came += 1;
            rebuilt += take(&mut to, datagram, &mut stats).len();
            assert!(rebuilt * 128 * 1400 <= (8 << 20) + came * (48 << 10), "{rebuilt} after {came}");
        }
        assert_eq!(lost, rebuilt + stats.too_much_work as usize);
        assert!(if fifth { rebuilt == lost } else { rebuilt > lost / 4 }, "{rebuilt} of {lost}");
    }
}
