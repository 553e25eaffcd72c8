//! What a relay keeps, and that it allocates nothing for what it passes on.

use allocation_counter::measure;
use std::net::SocketAddr;
use std::time::Duration;
use whitewater_relay::{HostGrant, Now, Relay, RelayConfig, RelayKey};

const UNIX: u64 = 1_900_000_000;

fn at(network: u8, number: u32) -> SocketAddr {
    let [_, a, b, c] = number.to_be_bytes();
    ([network, a, b, c], 4000).into()
}

/// What the relay says to a datagram.
fn give(
    relay: &mut Relay,
    now: Duration,
    from: SocketAddr,
    datagram: &[u8],
    out: &mut Vec<u8>,
) -> Option<SocketAddr> {
    let passed = relay.handle(Now { since_start: now, unix: UNIX }, from, datagram)?;
    out.clear();
    passed.append(out);
    Some(passed.to)
}

#[test]
fn a_hundred_thousand_idle_pairs_take_less_than_100_mb_and_what_they_send_allocates_nothing() {
    const PAIRS: u32 = 100_000;
    let (key, mut relay, mut out) = (RelayKey::new([5; 32]), None, Vec::with_capacity(2000));
    let config = RelayConfig { hosts: 1 << 17, links: 1 << 17 };
    let expires = (UNIX + 600).try_into().unwrap();
    let taken = measure(|| {
        let mut own = Relay::new(key.clone(), config, [9; 32]);
        for pair in 0..PAIRS {
            let ticket = key.host(HostGrant { host: pair, expires, guests: 4, bytes_per_second: 100_000 });
            let (host, guest) = (at(10, pair), at(11, pair));
            let mut register = [&[0xb0][..], &ticket.ticket()[..], &[0; 32]].concat();
            give(&mut own, Duration::ZERO, host, &register, &mut out).unwrap();
            register[31..47].copy_from_slice(&out[1..]);
            let cookie = register[31..47].try_into().unwrap();
            register[47..].copy_from_slice(&ticket.proof(&cookie));
            give(&mut own, Duration::ZERO, host, &register, &mut out).unwrap();
            let datagram = [&b"hello"[..], &key.guest(pair, 1, expires)].concat();
            assert_eq!(give(&mut own, Duration::ZERO, guest, &datagram, &mut out), Some(host));
        }
        relay = Some(own);
    });
    let mut relay = relay.unwrap();
    assert_eq!((relay.counts().hosts, relay.counts().links), (PAIRS.into(), PAIRS.into()));
    let each = taken.bytes_current / i64::from(PAIRS);
    println!("{each} bytes for a pair, {} at most while they came", taken.bytes_max / u64::from(PAIRS));
    assert!(taken.bytes_current < 100_000_000 && taken.bytes_max < 100_000_000, "{taken:?}");

    let tickets: Vec<_> = (0..1000).map(|pair| key.guest(pair, 1, expires)).collect();
    let mut datagram = vec![7; 1200];
    let steady = measure(|| {
        for round in 1..20 {
            for (pair, ticket) in (0..).zip(&tickets) {
                datagram.truncate(1180);
                datagram.extend_from_slice(ticket);
                let now = Duration::from_millis(round * 50);
                assert!(give(&mut relay, now, at(11, pair), &datagram, &mut out).is_some());
                let [a, b, c, d] = [out[1], out[2], out[3], out[4]];
                let answer = [0xb3, a, b, c, d, 1, 2, 3];
                assert_eq!(give(&mut relay, now, at(10, pair), &answer, &mut out), Some(at(11, pair)));
            }
        }
    });
    assert_eq!(steady.count_total, 0);
    let strange = measure(|| {
        for number in 0..10_000 {
            give(&mut relay, Duration::from_secs(2), at(12, number), &[0xa6; 100], &mut out);
            give(&mut relay, Duration::from_secs(2), at(12, number), &[0xb0; 63], &mut out);
        }
    });
    assert_eq!(strange.count_total, 0);
}
