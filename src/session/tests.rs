//! What a handshake gives, for the tests of what is sealed; and keys die with their session.

use super::Suite;
use super::exchange::{Attempt, Initiator, Responder};
use super::seal::Keys;
#[cfg(feature = "crypto")]
use super::seal::Seal;
use super::wire::KemKey;
use crate::time::Time;

const PRIVATE: [u8; 32] = [4; 32];
const PUBLIC: [u8; 32] = [
    0xac, 0x01, 0xb2, 0x20, 0x9e, 0x86, 0x35, 0x4f, 0xb8, 0x53, 0x23, 0x7b, 0x5d, 0xe0, 0xf4, 0xfa, 0xb1,
    0x3c, 0x7f, 0xcb, 0xf4, 0x33, 0xa6, 0x1c, 0x01, 0x93, 0x69, 0x61, 0x7f, 0xec, 0xf1, 0x0b,
];

/// The keys of both ends after a handshake with these random bytes.
pub(super) fn handshake(suite: Suite, client: u8, server: u8) -> (Keys, Keys) {
    let attempt = Attempt { suite, protocol_id: 7, cid: 8, client_sid: 9, token: b"token" };
    let psk = suite.needs_psk().then_some(&[3; 32]);
    let [public, private] = [&PUBLIC, &PRIVATE].map(|key| suite.needs_server_key().then_some(key));
    let [mut msg1, mut msg2, mut payload] = [const { Vec::new() }; 3];
    let mut initiator = Initiator::new(&attempt, psk, public, [client; 32], &[], &mut msg1).unwrap();
    let responder = Responder::read_msg1(&attempt, psk, private, [server; 32], &msg1, &mut payload).unwrap();
    let mut of_server = responder.write_msg2(&[], &mut msg2).unwrap();
    let mut of_client = initiator.read_msg2(&msg2, &mut payload).unwrap();
    if let Some(KemKey { key, .. }) = of_server.0.kem_key().map(|key| KemKey::decode(key).unwrap()) {
        assert!(of_client.encapsulate(7, key));
        let mut ciphertext = of_client.0.kem_ciphertext(Time::ZERO).unwrap().to_vec();
        of_server = Keys(of_server.0.decapsulate(&mut ciphertext).unwrap());
    }
    (of_client, of_server)
}

/// The suites that can be tested.
pub(super) fn built_in() -> impl Iterator<Item = Suite> {
    [Suite::Checked].into_iter().chain(Suite::ALL).filter(|suite| suite.is_built_in())
}

/// Gives both ends new keys, of these random bytes, as far as messages between them arrive.
#[cfg(feature = "crypto")]
pub(super) fn renew(now: Time, client: &mut Seal, server: &mut Seal, random: &[[u8; 32]; 2]) {
    client.draw(now, &random[0]);
    server.on_half(now, &client.half().unwrap());
    client.told(now);
    server.draw(now, &random[1]);
    client.on_half(now, &server.half().unwrap());
    server.told(now);
}

#[cfg(feature = "crypto")]
mod with_noise {
    use super::*;
    use crate::session::crypto::noise::record;
    use std::time::Duration;

    fn noise() -> impl Iterator<Item = Suite> {
        built_in().filter(|suite| *suite != Suite::Checked)
    }

    /// What cost others their keys: a counter that began again while the key stayed.
    #[test]
    fn sessions_that_stop_and_start_again_never_repeat_key_and_nonce() {
        for suite in noise() {
            record::start();
            let mut seals = 0;
            for attempt in 0..20 {
                let (client, server) = handshake(suite, 1 + attempt, 101 + attempt);
                seals += usize::from(suite.is_hybrid()); // of the ciphertext
                let mut ends = [Seal::new(Time::ZERO, client), Seal::new(Time::ZERO, server)];
                for round in 0..20u8 {
                    let now = Time::ZERO + Duration::from_secs(round.into());
                    if round % 5 == 2 {
                        let random = [[200 + attempt; 32], [round; 32]];
                        let [client, server] = &mut ends;
                        renew(now, client, server, &random);
                    }
                    for from in [0, 1] {
                        let mut datagram = Vec::new();
                        Seal::begin(&mut datagram);
                        ends[from].seal(now, 1, &mut datagram, 0).unwrap();
                        seals += 1;
                        if round % 5 != 1 {
                            ends[1 - from].open(now, &mut datagram).unwrap();
                        }
                    }
                }
                assert!(ends.iter().all(|end| end.updates().0 >= 3), "keys were updated on the way");
            }
            let (pairs, keys) = record::finish();
            assert_eq!(pairs, seals);
            assert!(keys > 20 * 2 * 3, "{keys} keys");
        }
    }

    #[test]
    #[should_panic(expected = "was used with nonce")]
    fn a_pair_that_comes_again_is_seen() {
        record::start();
        for _ in 0..2 {
            let (client, _) = handshake(Suite::TOKEN, 1, 2);
            let mut datagram = Vec::new();
            Seal::begin(&mut datagram);
            Seal::new(Time::ZERO, client).seal(Time::ZERO, 1, &mut datagram, 0).unwrap();
        }
    }
}
