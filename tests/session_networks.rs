//! A client with two networks: what a player notices when one of them fails, what is doubled, and what it costs.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::phone::{BULK, MOVES, Network, Phone, longest, quantile};
use common::sessions::{SUITE, client_address};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use whitewater::Time;
use whitewater::machine::Machine as _;
use whitewater::session::{SecondNetwork, Suite};
use whitewater_sim::{Discipline, LinkConfig, Loss, Playback, Trace};

fn path(rtt: u64, loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(rtt)) }
}

/// The path, out of order from then on for so long.
fn out(link: &LinkConfig, at: Time, lasts: Duration) -> LinkConfig {
    LinkConfig { outages: vec![at..at + lasts], ..link.clone() }
}

fn up(seed: u64, links: [&LinkConfig; 2], second: SecondNetwork) -> Phone {
    let mut phone = Phone::up(seed, SUITE, links, Some(second));
    phone.talk(100, 60);
    phone
}

#[test]
fn a_spare_network_takes_over_within_a_second_and_gives_back_when_the_first_is_there_again() {
    let mut silences = Vec::new();
    for seed in 1..=20 {
        let (wifi, lte) = (path(40, 0.01), path(80, 0.01));
        let mut phone = up(seed, [&wifi, &lte], SecondNetwork::Spare);
        assert_eq!(phone.client.network(), 0, "seed {seed}");
        let before = phone.networks[1].bytes;
        phone.talk(300, 60);
        let hellos = phone.networks[1].bytes - before;
        assert!(hellos < 4_000, "seed {seed}: a spare network costs {hellos} bytes in 6 s");
        let until = out(&wifi, phone.now + ms(500), ms(9000));
        phone.networks[0].set(&until);
        silences.push(longest(&phone.talk(200, 60)));
        assert_eq!(phone.client.network(), 1, "seed {seed}");
        phone.run(5000);
        longest(&phone.talk(100, 60));
        assert_eq!(phone.client.network(), 0, "seed {seed}");
    }
    silences.sort();
    println!("a message took {:?} (median of the longest), {:?} at most", silences[10], silences[19]);
    assert!(silences[10] <= ms(500) && silences[19] <= ms(1000), "{silences:?}");
}

#[test]
fn a_network_that_only_carries_what_comes_is_left_within_1300_ms() {
    for seed in 1..=20 {
        let wifi = path(40, 0.01);
        let mut phone = up(seed, [&wifi, &path(80, 0.01)], SecondNetwork::Spare);
        let until = out(&wifi, phone.now + ms(500), ms(9000));
        phone.networks[0].up.set(until).unwrap();
        let took = longest(&phone.talk(200, 60));
        assert_eq!(phone.client.network(), 1, "seed {seed}");
        assert!(took <= ms(1300), "seed {seed}: {took:?}");
    }
}

#[test]
fn a_network_that_is_dead_upwards_is_left_for_one_that_is_far() {
    let purposes =
        [(SecondNetwork::Spare, false), (SecondNetwork::Best, false), (SecondNetwork::Double, true)];
    for ((purpose, is_bulk), rtt) in
        purposes.into_iter().flat_map(|each| [260, 400, 800].map(|rtt| (each, rtt)))
    {
        for seed in 1..=10 {
            let wifi = path(40, 0.01);
            let mut phone = up(seed, [&wifi, &path(rtt, 0.01)], purpose);
            let until = out(&wifi, phone.now + ms(500), ms(60_000));
            phone.networks[0].up.set(until).unwrap();
            phone.run(600);
            if is_bulk {
                phone.client.connection_mut().unwrap().send(BULK, &vec![7; 300_000]).unwrap();
            }
            phone.talk(600, 60);
            assert_eq!(phone.client.network(), 1, "seed {seed}, {purpose:?}, {rtt} ms");
            phone.talk(400, 60);
            let got = phone.server.connection_mut(phone.id.unwrap()).unwrap().recv(BULK);
            assert_eq!(got.is_some(), is_bulk, "seed {seed}, {purpose:?}, {rtt} ms");
        }
    }
}

#[test]
fn a_player_who_sends_little_stays_by_a_network_that_loses_some() {
    for seed in 1..=20 {
        let mut phone = Phone::up(seed, SUITE, [&path(60, 0.05), &path(60, 0.0)], Some(SecondNetwork::Spare));
        for _ in 0..100 {
            phone.client.connection_mut().unwrap().send(MOVES, &[0; 20]).unwrap();
            phone.server.connection_mut(phone.id.unwrap()).unwrap().send(MOVES, &[0; 20]).unwrap();
            phone.flush();
            phone.run(700);
            assert_eq!(phone.client.network(), 0, "seed {seed}, at {}", phone.now);
        }
    }
}

#[test]
fn a_session_moves_to_the_better_network_once_and_stays() {
    for seed in 1..=20 {
        let mut phone = up(seed, [&path(80, 0.01), &path(80, 0.01)], SecondNetwork::Best);
        longest(&phone.talk(600, 60));
        assert_eq!((phone.client.network(), phone.moves.len()), (0, 0), "seed {seed}: equal networks");
        phone.networks[1].set(&path(40, 0.01));
        longest(&phone.talk(250, 60));
        assert_eq!(phone.client.network(), 1, "seed {seed}: within 4 s");
        longest(&phone.talk(600, 60));
        assert_eq!((phone.client.network(), phone.moves.len()), (1, 1), "seed {seed}");
    }
}

#[test]
fn a_session_that_doubles_exchanges_its_networks_once_when_the_second_is_better() {
    for seed in 1..=20 {
        let mut phone = up(seed, [&path(80, 0.01), &path(80, 0.01)], SecondNetwork::Double);
        phone.networks[0].set(&path(200, 0.01));
        let took = longest(&phone.talk(600, 60));
        assert!(took <= ms(250), "seed {seed}: {took:?}");
        longest(&phone.talk(600, 60));
        assert_eq!((phone.client.network(), phone.moves.len()), (1, 1), "seed {seed}: {:?}", phone.moves);
    }
}

#[test]
fn what_is_doubled_does_not_wait_for_a_network_that_fails_in_one_direction() {
    for is_up in [true, false] {
        for seed in 1..=10 {
            let (wifi, lte) = (path(40, 0.0), path(80, 0.0));
            let mut phone = up(seed, [&wifi, &lte], SecondNetwork::Double);
            let until = out(&wifi, phone.now + ms(500), ms(60_000));
            let link = if is_up { &mut phone.networks[0].up } else { &mut phone.networks[0].down };
            link.set(until).unwrap();
            let bulk = vec![7; 300_000];
            phone.client.connection_mut().unwrap().send(BULK, &bulk).unwrap();
            phone.run(600);
            let took = longest(&phone.talk(600, 60));
            assert!(took <= ms(300), "seed {seed}, up {is_up}: {took:?}");
            longest(&phone.talk(600, 60));
            assert_eq!(phone.client.network(), 1, "seed {seed}, up {is_up}");
            let got = phone.server.connection_mut(phone.id.unwrap()).unwrap().recv(BULK);
            assert_eq!(got.unwrap().len(), bulk.len(), "seed {seed}, up {is_up}");
        }
    }
}

#[test]
fn a_session_doubles_again_after_it_has_stopped_as_often_as_the_player_likes() {
    for seed in 1..=5 {
        let mut phone = up(seed, [&path(40, 0.01), &path(60, 0.01)], SecondNetwork::Double);
        for purpose in
            [None, Some(SecondNetwork::Double), Some(SecondNetwork::Best), Some(SecondNetwork::Double)]
                .repeat(5)
        {
            assert!(phone.client.set_second_network(phone.now, purpose));
            longest(&phone.talk(20, 60));
            let doubled = phone.networks[1].sent;
            longest(&phone.talk(20, 60));
            let doubles = purpose == Some(SecondNetwork::Double);
            assert_eq!(phone.networks[1].sent > doubled + 15, doubles, "seed {seed}, {purpose:?}");
            let bulk = vec![7; 50_000];
            phone.client.connection_mut().unwrap().send(BULK, &bulk).unwrap();
            phone.run(3000);
            let got = phone.server.connection_mut(phone.id.unwrap()).unwrap().recv(BULK);
            assert_eq!(got.unwrap().len(), bulk.len(), "seed {seed}, {purpose:?}");
        }
        assert_eq!(phone.client.network(), 0, "seed {seed}");
    }
}

#[test]
fn a_second_network_that_is_replaced_twice_at_once_leaves_the_first_its_number() {
    for seed in 1..=10 {
        let mut phone = up(seed, [&path(40, 0.01), &path(60, 0.01)], SecondNetwork::Double);
        longest(&phone.talk(300, 60));
        for _ in 0..2 {
            phone.client.set_second_network(phone.now, None);
            assert!(phone.client.set_second_network(phone.now, Some(SecondNetwork::Double)));
            for _ in 0..15 {
                phone.client.connection_mut().unwrap().send(MOVES, &[0; 20]).unwrap();
                phone.flush();
                phone.run(16);
            }
        }
        longest(&phone.talk(200, 60));
        phone.client.connection_mut().unwrap().send(BULK, &vec![7; 50_000]).unwrap();
        let doubled = phone.networks[1].sent;
        longest(&phone.talk(200, 60));
        assert!(phone.networks[1].sent > doubled + 100, "seed {seed}: it doubles again");
        let got = phone.server.connection_mut(phone.id.unwrap()).unwrap().recv(BULK);
        assert_eq!(got.map(|bulk| bulk.len()), Some(50_000), "seed {seed}: it goes by the first network");
    }
}

#[test]
fn what_is_doubled_never_waits_for_a_network_that_fails() {
    for seed in 1..=20 {
        let (wifi, lte) = (path(40, 0.0), path(80, 0.0));
        let mut phone = up(seed, [&wifi, &lte], SecondNetwork::Double);
        let took = longest(&phone.talk(100, 60));
        assert!(took <= ms(42), "seed {seed}: {took:?}");
        let until = out(&wifi, phone.now + ms(500), ms(60_000));
        phone.networks[0].set(&until);
        let took = longest(&phone.talk(300, 60));
        // One packet of 64 is not copied, and may have been the last before the failure.
        assert!(took <= ms(250), "seed {seed}: {took:?}");
        assert_eq!(phone.client.network(), 1, "seed {seed}");
    }
}

#[test]
fn a_message_on_two_lossy_networks_is_as_good_as_never_late_for_twice_the_bytes() {
    let late = |second, loss| {
        let (mut late, mut all, mut bytes) = (0, 0, [0; 2]);
        for seed in 1..=5 {
            let mut phone = Phone::up(seed, SUITE, [&path(60, loss), &path(60, loss)], second);
            phone.run(500);
            let delays = phone.talk(1200, 60);
            longest(&delays);
            late += delays.iter().flatten().filter(|took| took.unwrap() > ms(45)).count();
            all += 2400;
            (0..2).for_each(|number| bytes[number] += phone.networks[number].bytes);
        }
        println!("{second:?}, {loss}: {late} of {all} late, {bytes:?} bytes up");
        (late as f64 / f64::from(all), bytes)
    };
    let (alone, _) = late(None, 0.05);
    let (doubled, bytes) = late(Some(SecondNetwork::Double), 0.05);
    assert!(alone > 0.02, "{alone}");
    assert!(doubled < alone / 5.0, "{doubled} of those of one network, {alone}");
    assert!(bytes[1] < bytes[0] * 13 / 10, "{bytes:?}");
}

#[test]
fn bulk_goes_by_one_network_only() {
    let mut phone = up(1, [&path(40, 0.0), &path(40, 0.0)], SecondNetwork::Double);
    let (first, second) = (phone.networks[0].bytes, phone.networks[1].bytes);
    let bulk = vec![7; 1_000_000];
    phone.client.connection_mut().unwrap().send(BULK, &bulk).unwrap();
    phone.run(10_000);
    let id = phone.id.unwrap();
    let got = phone.server.connection_mut(id).unwrap().recv(BULK).unwrap();
    assert_eq!(got.len(), bulk.len());
    let (first, second) = (phone.networks[0].bytes - first, phone.networks[1].bytes - second);
    assert!(first > 1_000_000 && second < 100_000, "{first} and {second} bytes");
}

#[test]
fn without_encryption_a_session_stays_by_its_first_network() {
    let mut phone = Phone::up(1, Suite::Checked, [&path(40, 0.0), &path(40, 0.0)], None);
    assert!(!phone.client.set_second_network(phone.now, Some(SecondNetwork::Double)));
    longest(&phone.talk(100, 60));
    assert_eq!(phone.networks[1].sent, 0);
}

#[test]
fn a_network_that_is_taken_away_is_left_at_once() {
    let mut phone = up(1, [&path(80, 0.0), &path(40, 0.0)], SecondNetwork::Best);
    longest(&phone.talk(300, 60));
    assert_eq!(phone.client.network(), 1);
    let sent = phone.networks[1].sent;
    assert!(phone.client.set_second_network(phone.now, None));
    let took = longest(&phone.talk(300, 60));
    assert_eq!((phone.client.network(), phone.networks[1].sent), (0, sent));
    assert!(took <= ms(300), "{took:?}");
}

#[test]
fn whoever_copies_what_is_doubled_gets_questions_only_and_stops_nothing() {
    for seed in 1..=5 {
        let mut phone = up(seed, [&path(40, 0.0), &path(40, 0.0)], SecondNetwork::Double);
        let moves = phone.server.connection(phone.id.unwrap()).unwrap().stats().moves;
        let stranger = client_address(77, 7777);
        let mut last = None;
        for turn in 0..600_u32 {
            // The stranger is faster than the second network: its copy comes 10 ms sooner.
            let mut seen = Vec::new();
            phone
                .client
                .connection_mut()
                .unwrap()
                .send(MOVES, &[turn.to_le_bytes(), [0; 4]].concat())
                .unwrap();
            for (network, datagram) in phone.sent_now() {
                phone.networks[usize::from(network)].up.send(phone.now, &datagram);
                if network == 1 {
                    seen.push(datagram);
                }
            }
            phone.run(10);
            for copy in seen {
                phone.inject(stranger, &copy);
            }
            phone.run(6);
            while let Some(message) = phone.server.connection_mut(phone.id.unwrap()).unwrap().recv(MOVES) {
                last = Some(u32::from_le_bytes(message[..4].try_into().unwrap()));
            }
        }
        phone.run(100);
        assert!(last.unwrap() > 590, "seed {seed}");
        assert_eq!(phone.server.connection(phone.id.unwrap()).unwrap().stats().moves, moves, "seed {seed}");
        let got = phone.accounts[&stranger][1];
        assert!(got < 6000, "seed {seed}: {got} bytes, as if it were doubled there");
        longest(&phone.talk(100, 60));
        assert_eq!(quantile(&phone.talk(100, 60), 990), ms(20));
    }
}

/// How a path delivers, up and down.
type Traces = [Trace; 2];

/// Plays a game of 60 messages a second for a minute over one network or two. Returns when half of the messages, 99 % and 99.9 % were there, how
/// long the last one took, and the bytes that left by each network.
fn play(seed: u64, traces: &[&Traces], second: Option<SecondNetwork>) -> ([Duration; 4], Vec<u64>) {
    let link = |trace: &Trace| LinkConfig {
        playback: Some(Playback { trace: trace.clone(), queue: Discipline::DropTail(100) }),
        ..LinkConfig::with_rtt(ms(40))
    };
    let path = |(number, [up, down]): (u8, &&Traces)| Network::new(seed, number, &link(up), &link(down));
    let networks = (0..).zip(traces).map(path).collect();
    let mut phone = Phone::new(seed, SUITE, networks);
    phone.client.set_second_network(phone.now, second);
    phone.connect();
    phone.talk(120, 200);
    let before: Vec<_> = phone.networks.iter().map(|network| network.bytes).collect();
    let delays = phone.talk(3600, 200);
    let bytes = phone.networks.iter().zip(before).map(|(network, before)| network.bytes - before).collect();
    ([500, 990, 999, 1000].map(|share| quantile(&delays, share)), bytes)
}

/// Prints a row for each network alone and for both together. Returns the 99th percentile of each.
fn compare(name: &str, seed: u64, [first, second]: [&Traces; 2]) -> [Duration; 5] {
    let runs: [(&str, &[&Traces], _); 5] = [
        ("the first alone", &[first], None),
        ("the second alone", &[second], None),
        ("spare", &[first, second], Some(SecondNetwork::Spare)),
        ("best", &[first, second], Some(SecondNetwork::Best)),
        ("double", &[first, second], Some(SecondNetwork::Double)),
    ];
    runs.map(|(what, traces, second)| {
        let (took, bytes) = play(seed, traces, second);
        let took_ms =
            took.map(|took| if took == Duration::MAX { "-".into() } else { took.as_millis().to_string() });
        let kb: Vec<_> = bytes.iter().map(|bytes| bytes / 1000).collect();
        println!("| {name} | {what} | {} | {kb:?} |", took_ms.join(" | "));
        took[1]
    })
}

/// Paths that stop and go. To see recorded ones as well, set `WHITEWATER_TRACES` to a folder of files `NAME.up` and `NAME.down` in the format of Mahimahi.
#[test]
fn on_paths_that_stop_and_go_a_doubled_game_is_ahead_of_the_better_network_alone() {
    let mut pairs: Vec<(String, [Traces; 2])> = Vec::new();
    for seed in 1..=4 {
        let trace = |network: u64, way: u64| Trace::wandering(100 * seed + 10 * network + way, 60, 1000);
        pairs.push((format!("seed {seed}"), [0, 1].map(|network| [0, 1].map(|way| trace(network, way)))));
    }
    if let Some(folder) = std::env::var_os("WHITEWATER_TRACES") {
        pairs.extend(recorded(folder.as_ref()));
    }
    println!("| paths | networks | p50 | p99 | p99.9 | longest, ms | kB up |");
    for (name, [first, second]) in &pairs {
        let [first, second, _, best, double] = compare(name, 1, [first, second]);
        let alone = first.min(second);
        assert!(double <= alone && best <= alone, "{name}: {double:?}, {best:?}, alone {alone:?}");
    }
}

/// All pairs of the recorded paths in a folder.
fn recorded(folder: &Path) -> Vec<(String, [Traces; 2])> {
    let read = |path: &Path| fs::read_to_string(path).unwrap().parse().unwrap();
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "up"));
    paths.sort();
    let named = |path: &PathBuf| {
        (
            path.file_stem().unwrap().to_str().unwrap().to_owned(),
            [read(path), read(&path.with_extension("down"))],
        )
    };
    let all: Vec<(String, Traces)> = paths.iter().map(named).collect();
    let with_later = |(at, (one, first)): (usize, &(String, Traces))| {
        let later = all[at + 1..].iter();
        later
            .map(|(two, second)| (format!("{one}, {two}"), [first.clone(), second.clone()]))
            .collect::<Vec<_>>()
    };
    all.iter().enumerate().flat_map(with_later).collect()
}

#[test]
fn a_client_that_claims_to_be_at_many_addresses_gets_no_more_there_than_it_sent() {
    let mut phone = up(1, [&path(40, 0.0), &path(40, 0.0)], SecondNetwork::Double);
    for turn in 0..300_u32 {
        phone.client.connection_mut().unwrap().send(MOVES, &[turn.to_le_bytes(), [0; 4]].concat()).unwrap();
        phone.server.connection_mut(phone.id.unwrap()).unwrap().send(MOVES, &[0; 900]).unwrap();
        for (network, datagram) in phone.sent_now() {
            match network {
                0 => phone.networks[0].up.send(phone.now, &datagram),
                _ => phone.inject(client_address(100 + u8::try_from(turn % 100).unwrap(), 9), &datagram),
            }
        }
        phone.run(16); // which checks what the server sends to strangers
    }
    let server = phone.server.connection(phone.id.unwrap()).unwrap();
    assert_eq!(server.peer_addr(), phone.networks[0].address);
}

#[test]
fn nobody_can_tell_by_a_number_that_both_networks_carry_the_same_session() {
    use whitewater::inside::session::wire::Packet;
    let mut phone = up(1, [&path(40, 0.01), &path(80, 0.01)], SecondNetwork::Double);
    let mut numbers = vec![[BTreeSet::new(), BTreeSet::new()]]; // since each change of networks
    let mut asked = [BTreeSet::new(), BTreeSet::new()];
    let wifi = out(&path(40, 0.01), phone.now + ms(3000), ms(60_000));
    phone.networks[0].set(&wifi);
    for turn in 0..400_u32 {
        if [50, 200, 350].contains(&turn) {
            phone.client.path_changed(phone.now);
            numbers.push(Default::default());
        }
        phone.client.connection_mut().unwrap().send(MOVES, &[turn.to_le_bytes(), [0; 4]].concat()).unwrap();
        for (network, datagram) in phone.sent_now() {
            match Packet::decode(&datagram) {
                Ok(Packet::Data(header, _)) => {
                    numbers.last_mut().unwrap()[usize::from(network)].insert(header.sid)
                }
                Ok(Packet::Hello(hello)) => asked[usize::from(network)].insert(hello.cid),
                _ => true,
            };
            phone.networks[usize::from(network)].up.send(phone.now, &datagram);
        }
        phone.run(16);
    }
    assert_eq!(phone.client.network(), 1, "the first has failed");
    assert!(asked[0].is_disjoint(&asked[1]), "{asked:?}");
    let all: Vec<_> = numbers.iter().flatten().flatten().collect();
    let different: BTreeSet<_> = all.iter().collect();
    assert!(
        numbers.iter().flatten().all(|of_one| !of_one.is_empty()) && different.len() == all.len(),
        "{numbers:?}"
    );
}
