//! A handshake of every suite gives both ends the same keys, and nobody else; and keys die with their session.

use super::Suite;
use super::exchange::{Attempt, HandshakeError, Initiator, Responder};
use super::seal::{Keys, Seal};
use crate::time::Time;

const PSK: [u8; 32] = [3; 32];
const PRIVATE: [u8; 32] = [4; 32];
const PUBLIC: [u8; 32] = [
    0xac, 0x01, 0xb2, 0x20, 0x9e, 0x86, 0x35, 0x4f, 0xb8, 0x53, 0x23, 0x7b, 0x5d, 0xe0, 0xf4, 0xfa, 0xb1,
    0x3c, 0x7f, 0xcb, 0xf4, 0x33, 0xa6, 0x1c, 0x01, 0x93, 0x69, 0x61, 0x7f, 0xec, 0xf1, 0x0b,
];

/// What both ends know, for one suite; to be changed at one of them.
#[derive(Clone, Copy)]
struct Known {
    attempt: Attempt<'static>,
    psk: Option<[u8; 32]>,
    /// The server's own key: private here, and the public half of it at the client.
    private: Option<[u8; 32]>,
}

impl Known {
    fn new(suite: Suite) -> Self {
        Self {
            attempt: Attempt { suite, protocol_id: 7, cid: 8, client_sid: 9, token: b"token" },
            psk: suite.needs_psk().then_some(PSK),
            private: suite.needs_server_key().then_some(PRIVATE),
        }
    }

    fn begin(&self, random: u8, payload: &[u8]) -> Result<(Initiator, Vec<u8>), HandshakeError> {
        let public = self.private.map(|_| PUBLIC);
        let mut msg1 = Vec::new();
        let psk = self.psk.as_ref();
        Initiator::new(&self.attempt, psk, public.as_ref(), [random; 32], payload, &mut msg1)
            .map(|initiator| (initiator, msg1))
    }

    fn read(&self, random: u8, msg1: &[u8]) -> Result<(Responder, Vec<u8>), HandshakeError> {
        let mut payload = b"old".to_vec();
        let (psk, private) = (self.psk.as_ref(), self.private.as_ref());
        Responder::read_msg1(&self.attempt, psk, private, [random; 32], msg1, &mut payload)
            .map(|responder| (responder, payload))
    }
}

/// A whole handshake, with these random bytes.
pub(super) fn handshake(suite: Suite, client: u8, server: u8) -> (Keys, Keys) {
    let known = Known::new(suite);
    let (mut initiator, msg1) = known.begin(client, b"a payload of 16.").unwrap();
    let (responder, payload) = known.read(server, &msg1).unwrap();
    assert_eq!(payload, b"a payload of 16.");
    let mut msg2 = Vec::new();
    let of_server = responder.write_msg2(b"another payload", &mut msg2).unwrap();
    let mut payload = b"old".to_vec();
    let of_client = initiator.read_msg2(&msg2, &mut payload).unwrap();
    assert_eq!(payload, b"another payload");
    (of_client, of_server)
}

/// Whether a packet of one end is opened by the other.
fn agree(client: Keys, server: Keys) -> bool {
    let (mut client, mut server) = (Seal::new(Time::ZERO, client), Seal::new(Time::ZERO, server));
    let mut datagram = Vec::new();
    let mut there_and_back = Vec::new();
    for (from, to) in [(0, 1), (1, 0)] {
        let ends = [&mut client, &mut server];
        Seal::begin(&mut datagram);
        datagram.extend_from_slice(b"frames");
        for (index, end) in ends.into_iter().enumerate() {
            if index == from {
                end.seal(Time::ZERO, 1, &mut datagram).unwrap();
            }
        }
        let ends = [&mut client, &mut server];
        for (index, end) in ends.into_iter().enumerate() {
            if index == to {
                there_and_back.push(end.open(Time::ZERO, &mut datagram).is_ok());
            }
        }
    }
    there_and_back == [true, true]
}

/// The suites that can be tested.
pub(super) fn built_in() -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(|suite| suite.is_built_in())
}

#[test]
fn every_suite_gives_both_ends_the_same_keys() {
    for suite in built_in() {
        let (client, server) = handshake(suite, 1, 2);
        assert!(agree(client, server), "{suite:?}");
        let (client, _) = handshake(suite, 1, 2);
        let (_, server) = handshake(suite, 1, 3);
        assert!(!agree(client, server), "{suite:?}: keys of another attempt");
    }
}

#[test]
fn a_suite_that_is_not_built_in_says_so() {
    for suite in Suite::ALL {
        let begun = Known::new(suite).begin(1, b"").map(|_| ());
        let expected =
            if built_in().any(|known| known == suite) { Ok(()) } else { Err(HandshakeError::Suite) };
        assert_eq!(begun, expected, "{suite:?}");
    }
}

#[test]
fn a_suite_takes_the_keys_that_it_uses_and_no_others() {
    for suite in built_in() {
        let known = Known::new(suite);
        let other_psk = Known { psk: known.psk.xor(Some(PSK)), ..known };
        let other_key = Known { private: known.private.xor(Some(PRIVATE)), ..known };
        let (_, msg1) = known.begin(1, &[0; 16]).unwrap();
        for (other, error) in [(other_psk, HandshakeError::Psk), (other_key, HandshakeError::ServerKey)] {
            assert_eq!(other.begin(1, b"").map(|_| ()), Err(error), "{suite:?}");
            assert_eq!(other.read(2, &msg1).map(|_| ()), Err(error), "{suite:?}");
        }
    }
}

#[test]
fn messages_that_are_too_short_or_too_long_are_refused() {
    for suite in built_in() {
        let known = Known::new(suite);
        assert_eq!(known.begin(1, &[0; 291]).map(|_| ()), Err(HandshakeError::Length));
        let (mut initiator, msg1) = known.begin(1, &[0; 290]).unwrap();
        for wrong in [&[][..], &[0; 7], &[0; 339], &[0; 70_000]] {
            assert_eq!(known.read(2, wrong).map(|_| ()), Err(HandshakeError::Length), "{suite:?}");
            let read = initiator.read_msg2(wrong, &mut Vec::new()).map(|_| ());
            assert_eq!(read, Err(HandshakeError::Length), "{suite:?}");
        }
        let (responder, _) = known.read(2, &msg1).unwrap();
        let mut msg2 = Vec::new();
        assert_eq!(responder.write_msg2(&[0; 291], &mut msg2).map(|_| ()), Err(HandshakeError::Length));
        assert_eq!(msg2, []);
    }
}

#[test]
fn without_encryption_a_checksum_sees_what_the_ends_do_not_have_alike() {
    let known = Known::new(Suite::Checked);
    let Known { attempt, .. } = known;
    let (mut initiator, msg1) = known.begin(1, &[0; 16]).unwrap();
    let others = [
        Attempt { protocol_id: 9, ..attempt },
        Attempt { cid: 9, ..attempt },
        Attempt { client_sid: 10, ..attempt },
        Attempt { token: b"other", ..attempt },
    ];
    for attempt in others {
        let read = Known { attempt, ..known }.read(2, &msg1).map(|_| ());
        assert_eq!(read, Err(HandshakeError::Forged), "{attempt:?}");
    }
    let (responder, _) = known.read(2, &msg1).unwrap();
    let (other, _) = known.read(2, &known.begin(3, &[0; 16]).unwrap().1).unwrap();
    let (mut msg2, mut of_another, mut payload) = (Vec::new(), Vec::new(), Vec::new());
    let server = responder.write_msg2(&[5; 32], &mut msg2).unwrap();
    other.write_msg2(&[5; 32], &mut of_another).unwrap();
    let read = initiator.read_msg2(&of_another, &mut payload).map(|_| ());
    assert_eq!((read, payload.len()), (Err(HandshakeError::Forged), 0), "it answers another message");
    let client = initiator.read_msg2(&msg2, &mut payload).unwrap();
    assert_eq!(payload, [5; 32]);
    assert!(agree(client, server));
}

#[cfg(feature = "crypto")]
mod with_noise {
    use super::*;
    use crate::session::Pattern;
    use crate::session::crypto::noise::record;

    fn noise() -> impl Iterator<Item = Suite> {
        Suite::ALL.into_iter().filter(|suite| *suite != Suite::Checked)
    }

    /// What the client authenticates when it reads the second message shows in the first one only under a key.
    #[test]
    fn ends_that_do_not_know_the_same_get_no_keys() {
        for suite in noise() {
            let known = Known::new(suite);
            let Known { attempt, .. } = known;
            let mut others = vec![
                Known { attempt: Attempt { protocol_id: 9, ..attempt }, ..known },
                Known { attempt: Attempt { cid: 9, ..attempt }, ..known },
                Known { attempt: Attempt { client_sid: 10, ..attempt }, ..known },
                Known { attempt: Attempt { token: b"other", ..attempt }, ..known },
            ];
            others.extend(known.psk.map(|_| Known { psk: Some([9; 32]), ..known }));
            others.extend(known.private.map(|_| Known { private: Some([9; 32]), ..known }));
            for (index, other) in others.into_iter().enumerate() {
                let (mut initiator, msg1) = known.begin(1, &[0; 16]).unwrap();
                let Ok((responder, _)) = other.read(2, &msg1) else {
                    assert!(!matches!(suite, Suite::Noise(Pattern::Nn, _)));
                    continue;
                };
                assert!(
                    matches!(suite, Suite::Noise(Pattern::Nn, _)),
                    "{suite:?} {index}: msg1 has no key yet"
                );
                let mut msg2 = Vec::new();
                responder.write_msg2(&[0; 32], &mut msg2).unwrap();
                let read = initiator.read_msg2(&msg2, &mut Vec::new()).map(|_| ());
                assert_eq!(read, Err(HandshakeError::Forged), "{suite:?} {index}");
            }
        }
    }

    /// snow takes back what a bad message changed; the client relies on that.
    #[test]
    fn a_forged_second_message_spoils_nothing() {
        for suite in noise() {
            let known = Known::new(suite);
            let (mut initiator, msg1) = known.begin(1, &[0; 16]).unwrap();
            let (responder, _) = known.read(2, &msg1).unwrap();
            let mut msg2 = Vec::new();
            let server = responder.write_msg2(&[5; 32], &mut msg2).unwrap();
            let mut payload = Vec::new();
            for bit in (0..msg2.len() * 8).step_by(13) {
                let mut forged = msg2.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                let read = initiator.read_msg2(&forged, &mut payload).map(|_| ());
                // X25519 does not look at the highest bit of a key (RFC 7748 section 5), but the hash does.
                assert_eq!(read, Err(HandshakeError::Forged), "{suite:?} bit {bit}");
                assert_eq!(payload, [], "nothing of it is to be believed");
            }
            let client = initiator.read_msg2(&msg2, &mut payload).unwrap();
            assert_eq!(payload, [5; 32]);
            assert!(agree(client, server), "{suite:?}");
            assert!(initiator.read_msg2(&msg2, &mut payload).is_err(), "it was read");
        }
    }

    #[test]
    fn a_changed_first_message_gives_no_keys() {
        for suite in noise() {
            let known = Known::new(suite);
            let (_, msg1) = known.begin(1, &[0; 16]).unwrap();
            for bit in (0..msg1.len() * 8).step_by(13) {
                let mut forged = msg1.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                let read = known.read(2, &forged).map(|_| ());
                let plain = matches!(suite, Suite::Noise(Pattern::Nn, _));
                assert_eq!(
                    read,
                    if plain { Ok(()) } else { Err(HandshakeError::Forged) },
                    "{suite:?} bit {bit}"
                );
            }
        }
    }

    /// What cost others their keys: a counter that began again while the key stayed.
    #[test]
    fn sessions_that_stop_and_start_again_never_repeat_key_and_nonce() {
        for suite in noise() {
            record::start();
            let mut seals = 0;
            for attempt in 0..20 {
                let (client, server) = handshake(suite, 1 + attempt, 101 + attempt);
                let mut ends = [Seal::new(Time::ZERO, client), Seal::new(Time::ZERO, server)];
                ends[0].set_update_after(4);
                for round in 0..20 {
                    for from in [0, 1] {
                        let mut datagram = Vec::new();
                        Seal::begin(&mut datagram);
                        ends[from].seal(Time::ZERO, 1, &mut datagram).unwrap();
                        seals += 1;
                        if round % 3 != 0 {
                            ends[1 - from].open(Time::ZERO, &mut datagram).unwrap();
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
            Seal::new(Time::ZERO, client).seal(Time::ZERO, 1, &mut datagram).unwrap();
        }
    }

    /// RFC 7748 section 6.1, Alice.
    #[test]
    fn a_public_key_is_that_of_x25519() {
        let high = 0x2a2c_b91d_a5fb_77b1_2a99_c0eb_872f_4cdf_u128;
        let low = 0x4566_b251_72c1_163c_7da5_1873_0a6d_0777_u128;
        let mut key = [0; 32];
        key[..16].copy_from_slice(&low.to_le_bytes());
        key[16..].copy_from_slice(&high.to_le_bytes());
        let public = crate::session::public_key(&key);
        assert_eq!(public[..8], [0x85, 0x20, 0xf0, 0x09, 0x89, 0x30, 0xa7, 0x54]);
        assert_eq!(crate::session::public_key(&PRIVATE), PUBLIC);
    }
}
