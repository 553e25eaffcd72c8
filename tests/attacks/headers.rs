//! What an observer of a path reads in the headers of packets, and how they tell one session's packets from another's.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::sessions::{SUITE, World, client_config, on, server_address, server_config};
use whitewater::SessionConfig;
use whitewater::inside::session::wire::{Data, Packet};
use whitewater_sim::LinkConfig;

/// Plays for 20 s with a key update every 64 packets. Returns the headers as they left: to the server, and back.
fn headers_seen(seed: u64, masks: [bool; 2]) -> [Vec<Data>; 2] {
    let path = LinkConfig::with_rtt(ms(40));
    let [at_client, at_server] =
        masks.map(|mask_headers| SessionConfig { mask_headers, key_update: 64, ..SessionConfig::default() });
    let mut world = World::new(seed, &server_config(&at_server, SUITE));
    world.taps = true;
    world.add(&path, &path, &at_client, client_config(SUITE));
    world.connect();
    for _ in 0..600 {
        world.client().send(on(0), b"to the server").unwrap();
        world.session().send(on(0), b"to the client").unwrap();
        world.run(33);
        while world.client().recv(on(0)).is_some() {}
        while world.session().recv(on(0)).is_some() {}
    }
    assert!(world.client().is_connected() && world.client().stats().key_updates >= 5);
    assert_eq!(world.client().stats().rejected.forged + world.session().stats().rejected.forged, 0);
    [true, false].map(|to_server| {
        let data = |(_, _, to, bytes): &common::sessions::Tapped| match Packet::decode(bytes) {
            Ok(Packet::Data(header, _)) if (*to == server_address()) == to_server => Some(header),
            _ => None,
        };
        world.tap.iter().filter_map(data).collect()
    })
}

/// How many of the headers have the number after the last one's, and how often the phase changes.
fn read(headers: &[Data]) -> (usize, usize) {
    let pairs = || headers.windows(2);
    let next = pairs().filter(|pair| pair[1].pn == pair[0].pn.wrapping_add(1)).count();
    (next, pairs().filter(|pair| pair[0].phase != pair[1].phase).count())
}

#[test]
fn an_observer_reads_neither_numbers_nor_key_phases() {
    for seed in 1..=3 {
        for headers in headers_seen(seed, [true, true]) {
            let (count, (next, changes)) = (headers.len(), read(&headers));
            assert!(count >= 600 && next == 0, "{next} of {count} follow each other");
            assert!(
                (count * 2 / 5..=count * 3 / 5).contains(&changes),
                "the phase changes {changes} of {count}"
            );
            let above = headers.windows(2).filter(|pair| pair[1].pn > pair[0].pn).count();
            assert!((count * 2 / 5..=count * 3 / 5).contains(&above), "{above} of {count} are higher");
        }
    }
}

#[test]
fn either_end_may_choose_headers_in_clear() {
    for masks in [[true, false], [false, true], [false, false]] {
        for headers in headers_seen(1, masks) {
            let (next, changes) = read(&headers);
            assert_eq!(next, headers.len() - 1, "{masks:?}");
            assert!((5..=20).contains(&changes), "{masks:?}: {changes} updates");
        }
    }
}
