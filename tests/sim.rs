//! A simulated link does exactly what its config says, and the same for the same seed.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use allocation_counter::measure;
use std::time::Duration;
use whitewater::Time;
use whitewater_sim::{Bottleneck, Corruption, Link, LinkConfig, LinkError, Loss};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A link of 30 ms with any other settings.
fn link(config: LinkConfig, seed: u64) -> Link {
    Link::new(config, seed, 1).unwrap()
}

fn clean() -> LinkConfig {
    LinkConfig::with_rtt(ms(60))
}

/// Sends `count` numbered datagrams of `len` bytes, one per ms. Returns what arrives, and when.
fn arrivals(link: &mut Link, count: u64, len: usize) -> Vec<(Time, Vec<u8>)> {
    for number in 0..count {
        link.send(Time::from_millis(number), &numbered(number, len));
    }
    let mut found = Vec::new();
    while let Some(at) = link.next_arrival() {
        found.push((at, link.arrive(at).unwrap().to_vec()));
    }
    found
}

fn numbered(number: u64, len: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(len).collect()
}

/// The numbers of such datagrams.
fn numbers(arrivals: &[(Time, Vec<u8>)]) -> Vec<u64> {
    arrivals.iter().map(|(_, bytes)| u64::from_le_bytes(*bytes.first_chunk().unwrap())).collect()
}

#[test]
fn a_clean_link_only_delays() {
    let mut link = link(clean(), 1);
    let arrived = arrivals(&mut link, 1000, 20);
    let expected = (0..1000).map(|number| (Time::from_millis(number + 30), numbered(number, 20)));
    assert!(arrived.into_iter().eq(expected));
    let stats = link.stats();
    assert_eq!((stats.sent, stats.bytes, stats.wire_bytes()), (1000, 20_000, 48_000));
    assert_eq!((stats.delivered, stats.lost_in_all(), stats.duplicated), (1000, 0, 0));
}

#[test]
fn jitter_keeps_the_order_or_does_not() {
    for seed in 1..=5 {
        let config = LinkConfig { jitter: ms(10), ..clean() };
        let ordered = arrivals(&mut link(config.clone(), seed), 10_000, 8);
        assert!(numbers(&ordered).into_iter().eq(0..10_000), "seed {seed}");
        let delays = ordered.iter().zip(0..).map(|((at, _), number)| at.since(Time::from_millis(number)));
        assert!(delays.into_iter().all(|delay| (ms(30)..ms(40)).contains(&delay)), "seed {seed}");

        let free = arrivals(&mut link(LinkConfig { in_order: false, ..config }, seed), 10_000, 8);
        let mut seen = numbers(&free);
        let overtaken = seen.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!((3500..5000).contains(&overtaken), "seed {seed}: {overtaken}");
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..10_000), "seed {seed}");
    }
}

#[test]
fn a_late_datagram_is_overtaken_by_the_following_ones() {
    for seed in 1..=5 {
        let mut link = link(LinkConfig { reorder: 0.05, late: ms(25), ..clean() }, seed);
        let arrived = arrivals(&mut link, 10_000, 8);
        let late = link.stats().late;
        assert!((420..580).contains(&late), "seed {seed}: {late}");
        let delayed = arrived.iter().zip(numbers(&arrived)).filter(|((at, _), number)| {
            let delay = at.since(Time::from_millis(*number));
            assert!([ms(30), ms(55)].contains(&delay), "seed {seed}: {delay:?}");
            delay == ms(55)
        });
        assert_eq!(delayed.count() as u64, late, "seed {seed}");
    }
}

#[test]
fn copies_follow_the_datagram() {
    for seed in 1..=5 {
        let mut link = link(LinkConfig { duplicate: 0.1, jitter: ms(2), ..clean() }, seed);
        let arrived = arrivals(&mut link, 10_000, 8);
        let copies = arrived.len() as u64 - 10_000;
        assert!((920..1080).contains(&copies), "seed {seed}: {copies}");
        assert_eq!((link.stats().duplicated, link.stats().delivered), (copies, 10_000 + copies));
        let mut first_at = vec![None; 10_000];
        for ((at, _), number) in arrived.iter().zip(numbers(&arrived)) {
            match first_at[usize::try_from(number).unwrap()].replace(*at) {
                None => {}
                Some(first) => assert_eq!(at.since(first), ms(2) + Duration::from_micros(1), "seed {seed}"),
            }
        }
    }
}

#[test]
fn loss_comes_at_its_rate() {
    for (seed, loss) in (1..=5).flat_map(|seed| [0.01, 0.1, 0.5].map(|loss| (seed, loss))) {
        let mut link = link(LinkConfig { loss: Loss::Random(loss), ..clean() }, seed);
        arrivals(&mut link, 50_000, 8);
        let rate = link.stats().lost as f64 / 50_000.0;
        assert!((rate / loss - 1.0).abs() < 0.1, "seed {seed}: {rate} for {loss}");
        assert_eq!(link.stats().lost + link.stats().delivered, 50_000);
    }
}

#[test]
fn one_effect_does_not_affect_the_others() {
    let base = LinkConfig { loss: Loss::Random(0.1), jitter: ms(10), in_order: false, ..clean() };
    let lossless = LinkConfig { loss: Loss::None, ..base.clone() };
    let corruption = Corruption { flip: 0.5, truncate: 0.0 };
    let others = [
        LinkConfig { duplicate: 0.2, ..base.clone() },
        LinkConfig { reorder: 0.2, late: ms(100), ..base.clone() },
        LinkConfig { corruption, ..base.clone() },
    ];
    for seed in 1..=5 {
        // The length tells the number, since flipped bits do not change it.
        let lengths = |config: &LinkConfig| {
            let mut link = link(config.clone(), seed);
            (0..500)
                .for_each(|len| link.send(Time::from_millis(len), &vec![0; usize::try_from(len).unwrap()]));
            let mut found = Vec::new();
            while let Some(at) = link.next_arrival() {
                found.push((link.arrive(at).unwrap().len(), at));
            }
            found.sort_unstable();
            found.dedup_by_key(|(len, _)| *len);
            found
        };
        let arrived = lengths(&base);
        let without_loss = lengths(&lossless);
        assert!(
            arrived.iter().all(|arrival| without_loss.contains(arrival)),
            "seed {seed}: loss moves jitter"
        );
        for other in &others {
            let came = |found: &[(usize, Time)]| found.iter().map(|(len, _)| *len).collect::<Vec<_>>();
            assert_eq!(came(&lengths(other)), came(&arrived), "seed {seed}: {other:?} moves loss");
        }
    }
}

#[test]
fn damage_is_counted_and_changes_bytes() {
    for seed in 1..=5 {
        let corruption = Corruption { flip: 0.1, truncate: 0.1 };
        let mut link = link(LinkConfig { corruption, ..clean() }, seed);
        let arrived = arrivals(&mut link, 10_000, 100);
        let changed = arrived.iter().zip(0..).filter(|((_, bytes), number)| *bytes != numbered(*number, 100));
        assert_eq!(changed.count() as u64, link.stats().corrupted, "seed {seed}");
        assert!((1750..2050).contains(&link.stats().corrupted), "seed {seed}: {}", link.stats().corrupted);
    }
}

#[test]
fn a_full_queue_drops_the_newest() {
    // 1000 bytes take 10 ms, and 4 such datagrams fit; one comes every ms.
    let bottleneck = Some(Bottleneck { rate: 800_000, queue: 4000 });
    let mut link = link(LinkConfig { bottleneck, ..clean() }, 1);
    let arrived = arrivals(&mut link, 40, 972);
    assert_eq!(numbers(&arrived), [0, 1, 2, 3, 10, 20, 30]);
    let times: Vec<_> = arrived.iter().map(|(at, _)| at.as_millis()).collect();
    assert_eq!(times, [40, 50, 60, 70, 80, 90, 100], "at the rate of the link");
    let stats = link.stats();
    assert_eq!((stats.dropped, stats.queued, stats.lost), (33, 7, 0));
    assert_eq!(stats.queue_delay_max, ms(40));
    assert_eq!(stats.queue_delay_mean(), ms(10 + 19 + 28 + 37 + 3 * 40) / 7);
}

#[test]
fn datagrams_larger_than_the_mtu_vanish() {
    let mut link = link(LinkConfig { mtu: Some(1500), ..clean() }, 1);
    for len in [1471, 1472, 1473, 9000] {
        link.send(Time::ZERO, &vec![0; len]);
    }
    let lengths = [(); 2].map(|()| link.arrive(Time::from_millis(30)).map(<[u8]>::len));
    assert_eq!(lengths, [Some(1471), Some(1472)]);
    assert_eq!((link.stats().too_large, link.stats().delivered, link.is_empty()), (2, 2, true));
}

#[test]
fn datagrams_sent_during_an_outage_are_lost() {
    let outages =
        vec![Time::from_millis(100)..Time::from_millis(200), Time::from_millis(500)..Time::from_millis(501)];
    let mut link = link(LinkConfig { outages, ..clean() }, 1);
    let arrived = numbers(&arrivals(&mut link, 1000, 8));
    assert!(arrived.into_iter().eq((0..100).chain(200..500).chain(501..1000)));
    assert_eq!(link.stats().cut_off, 101);
}

#[test]
fn a_standstill_holds_arriving_datagrams_and_then_delivers_them_in_order() {
    let second = |from: u64, to: u64| Time::from_millis(from * 1000)..Time::from_millis(to * 1000);
    let standstills = vec![second(1, 3), second(2, 4), second(6, 7)];
    let mut link = link(LinkConfig { standstills, jitter: ms(8), ..clean() }, 1);
    let arrived = arrivals(&mut link, 10_000, 8);
    assert!(numbers(&arrived).into_iter().eq(0..10_000), "nothing is lost or overtaken");
    let at = |ms: u64| arrived.iter().filter(|(at, _)| *at == Time::from_millis(ms)).count();
    assert!(
        (3000..3010).contains(&at(4000)) && (1000..1010).contains(&at(7000)),
        "{} {}",
        at(4000),
        at(7000)
    );
    let is_held = |at| second(1, 4).contains(at) || second(6, 7).contains(at);
    assert!(!arrived.iter().any(|(at, _)| is_held(at)));
}

#[test]
fn the_config_can_change_while_running_and_an_invalid_one_changes_nothing() {
    let mut link = link(clean(), 1);
    link.send(Time::ZERO, b"before");
    link.set(LinkConfig { loss: Loss::Random(1.0), ..clean() }).unwrap();
    link.send(Time::ZERO, b"lost");
    let error = link.set(LinkConfig { duplicate: 1.5, ..clean() }).unwrap_err();
    assert_eq!(error, LinkError::Chance { field: "duplicate", value: 1.5 });
    link.send(Time::ZERO, b"lost as well");
    assert_eq!(link.arrive(Time::from_millis(30)), Some(&b"before"[..]));
    assert_eq!((link.stats().lost, link.is_empty()), (2, true));
    assert!(Link::new(LinkConfig { reorder: -1.0, ..clean() }, 1, 1).is_err());
}

#[test]
fn a_seed_and_a_stream_determine_the_run() {
    let run = |seed, stream| {
        let mut link = Link::new(LinkConfig::mobile(), seed, stream).unwrap();
        let arrived = arrivals(&mut link, 2000, 50);
        (arrived, link.stats())
    };
    for seed in 1..=3 {
        assert_eq!(run(seed, 1), run(seed, 1), "seed {seed}");
        assert_ne!(run(seed, 1).0, run(seed, 2).0, "seed {seed}");
        assert_ne!(run(seed, 1).0, run(seed + 1, 1).0, "seed {seed}");
    }
}

#[test]
fn a_link_does_not_allocate_once_it_has_its_buffers() {
    let mut link = Link::new(LinkConfig::mobile(), 1, 1).unwrap();
    let (mut now, datagram) = (Time::ZERO, [7; 1200]);
    let mut run = |ticks| {
        for _ in 0..ticks {
            now = now + ms(2);
            link.send(now, &datagram);
            while link.arrive(now).is_some() {}
        }
    };
    run(50_000);
    assert_eq!(measure(|| run(50_000)).count_total, 0);
}
