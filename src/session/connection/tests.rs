//! What takes a look inside.

use crate::machine::{Machine as _, Whole as _};
use crate::session::crypto::noise::record;
use crate::session::{
    Blob, Cipher, ClientConfig, Event, Pattern, Random, Server, ServerConfig, Session, Suite, Target,
};
use crate::time::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// Source: GHSA-3x95-24j9-7448, where a server that was stopped and started again began its packet numbers anew under the same keys.
#[test]
fn stopped_started_and_connected_again_no_key_seals_twice_with_one_number() {
    record::start();
    let (here, there) = (SocketAddr::from(([10, 0, 0, 1], 1)), SocketAddr::from(([10, 0, 0, 2], 2)));
    let mut seed = 0u8;
    let mut random = move || {
        seed += 1;
        let mut state = u64::from(seed);
        Random::new(move |bytes| {
            bytes.fill_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state.to_be_bytes()[0]
            });
        })
    };
    let suite = Suite::Noise(Pattern::Nn, Cipher::ChaChaPoly);
    let config = ServerConfig { suites: vec![suite], ..ServerConfig::default() };
    let mut now = Time::ZERO;
    for _ in 0..2 {
        let mut server = Server::<Blob>::new(&config, random()).unwrap();
        for _ in 0..3 {
            let mut client = Session::<Blob>::new(&ClientConfig::default(), random()).unwrap();
            client.connect(now, Target { suite, ..Target::insecure(there) }).unwrap();
            let mut ups = 0;
            for _ in 0..200 {
                now = now + Duration::from_millis(10);
                client.handle_timeout(now);
                server.handle_timeout(now);
                while let Some((datagram, _)) = client.emit(now) {
                    server.give(now, here, &datagram);
                }
                while let Some((datagram, _)) = server.emit(now) {
                    client.give(now, there, &datagram);
                }
                ups += usize::from(client.poll_event() == Some(Event::Connected));
            }
            assert_eq!(ups, 1);
            client.close(now, 1);
        }
    }
    let (pairs, keys) = record::finish();
    assert!(pairs > 50 && keys >= 12, "{pairs} pairs of {keys} keys");
}
