//! A handshake of every suite gives the same keys to both ends and to nobody else.

use whitewater::Time;
use whitewater::inside::session::exchange::{Attempt, HandshakeError, Initiator, Responder};
use whitewater::inside::session::seal::{Keys, Seal};
use whitewater::inside::session::wire::KemKey;
use whitewater::session::{Pattern, Suite};

const PSK: [u8; 32] = [3; 32];
const PRIVATE: [u8; 32] = [4; 32];
const PUBLIC: [u8; 32] = [
    0xac, 0x01, 0xb2, 0x20, 0x9e, 0x86, 0x35, 0x4f, 0xb8, 0x53, 0x23, 0x7b, 0x5d, 0xe0, 0xf4, 0xfa, 0xb1,
    0x3c, 0x7f, 0xcb, 0xf4, 0x33, 0xa6, 0x1c, 0x01, 0x93, 0x69, 0x61, 0x7f, 0xec, 0xf1, 0x0b,
];

/// What both ends know, for one suite. Tests change it at one end.
#[derive(Clone, Copy)]
struct Known {
    attempt: Attempt<'static>,
    psk: Option<[u8; 32]>,
    /// The server's own private key; the client knows its public half.
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

/// A complete handshake with these random bytes.
fn handshake(suite: Suite, client: u8, server: u8) -> (Keys, Keys) {
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

/// Both ends, after what a hybrid suite adds to the two messages.
fn complete(mut client: Keys, server: Keys) -> [Seal; 2] {
    let (mut server, is_hybrid) = (Seal::new(Time::ZERO, server), !client.is_complete());
    if is_hybrid {
        let KemKey { key, .. } = KemKey::decode(server.kem_key().unwrap()).unwrap();
        if !client.encapsulate(7, key) {
            return [client, Keys::checked([0; 8], [0; 8], 0)].map(|keys| Seal::new(Time::ZERO, keys));
        }
    }
    let mut client = Seal::new(Time::ZERO, client);
    if is_hybrid {
        let mut datagram = client.kem_ciphertext(Time::ZERO).unwrap().to_vec();
        assert!(server.decapsulate(Time::ZERO, &mut datagram));
    }
    [client, server]
}

/// Whether each end opens a packet of the other.
fn agree(client: Keys, server: Keys) -> bool {
    let [mut client, mut server] = complete(client, server);
    let arrives = |from: &mut Seal, to: &mut Seal| {
        let mut datagram = Vec::new();
        Seal::begin(&mut datagram);
        datagram.extend_from_slice(b"frames");
        from.seal(Time::ZERO, 1, &mut datagram, 0).is_ok() && to.open(Time::ZERO, &mut datagram).is_ok()
    };
    arrives(&mut client, &mut server) && arrives(&mut server, &mut client)
}

/// The suites in this build.
fn built_in() -> impl Iterator<Item = Suite> {
    [Suite::Checked].into_iter().chain(Suite::ALL).filter(|suite| suite.is_built_in())
}

#[test]
fn a_suite_that_is_not_built_in_is_an_error_that_says_so() {
    for suite in [Suite::Checked].into_iter().chain(Suite::ALL) {
        let begun = Known::new(suite).begin(1, b"").map(|_| ());
        let expected =
            if built_in().any(|known| known == suite) { Ok(()) } else { Err(HandshakeError::Suite) };
        assert_eq!(begun, expected, "{suite:?}");
    }
}

#[test]
fn a_suite_accepts_exactly_the_keys_that_it_uses() {
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
        assert_eq!(known.begin(1, &[0; 521]).map(|_| ()), Err(HandshakeError::Length));
        let (mut initiator, msg1) = known.begin(1, &[0; 520]).unwrap();
        for wrong in [&[][..], &[0; 7], &[0; 569], &[0; 70_000]] {
            assert_eq!(known.read(2, wrong).map(|_| ()), Err(HandshakeError::Length), "{suite:?}");
            let read = initiator.read_msg2(wrong, &mut Vec::new()).map(|_| ());
            assert_eq!(read, Err(HandshakeError::Length), "{suite:?}");
        }
        let (responder, _) = known.read(2, &msg1).unwrap();
        let mut msg2 = Vec::new();
        assert_eq!(responder.write_msg2(&[0; 521], &mut msg2).map(|_| ()), Err(HandshakeError::Length));
        assert!(msg2.is_empty());
    }
}

/// What the client authenticates with the second message affects the first one only if that is under a key.
#[test]
fn ends_with_different_knowledge_get_no_keys() {
    for suite in built_in() {
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
            let read = other.read(2, &msg1);
            assert_eq!(read.is_ok(), shows_late(suite), "{suite:?} {index}");
            let Ok((responder, _)) = read else { continue };
            let mut msg2 = Vec::new();
            responder.write_msg2(&[0; 32], &mut msg2).unwrap();
            let read = initiator.read_msg2(&msg2, &mut Vec::new()).map(|_| ());
            assert_eq!(read, Err(HandshakeError::Forged), "{suite:?} {index}");
        }
    }
}

/// Whether the first message has neither a key nor a checksum.
fn shows_late(suite: Suite) -> bool {
    matches!(suite, Suite::Noise(Pattern::Nn, _) | Suite::Hybrid(Pattern::Nn, _))
}

/// The message with one bit flipped, for every thirteenth bit.
fn forged(message: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..message.len() * 8).step_by(13).map(|bit| {
        let mut forged = message.to_vec();
        forged[bit / 8] ^= 1 << (bit % 8);
        forged
    })
}

/// snow rolls back what a bad message changed; the client relies on that.
#[test]
fn a_forged_message_gives_no_keys_and_spoils_nothing() {
    for suite in built_in() {
        let known = Known::new(suite);
        let (mut initiator, msg1) = known.begin(1, &[0; 16]).unwrap();
        for forged in forged(&msg1) {
            let read = known.read(2, &forged).map(|_| ());
            let expected = if shows_late(suite) { Ok(()) } else { Err(HandshakeError::Forged) };
            assert_eq!(read, expected, "{suite:?}");
        }
        let (other, _) = known.read(2, &known.begin(3, &[0; 16]).unwrap().1).unwrap();
        let (responder, _) = known.read(2, &msg1).unwrap();
        let (mut msg2, mut of_another, mut payload) = (Vec::new(), Vec::new(), Vec::new());
        let server = responder.write_msg2(&[5; 32], &mut msg2).unwrap();
        other.write_msg2(&[5; 32], &mut of_another).unwrap();
        for wrong in forged(&msg2).chain([of_another]) {
            let read = initiator.read_msg2(&wrong, &mut payload).map(|_| ());
            // X25519 ignores the highest bit of a key (RFC 7748 section 5), but the hash does not.
            assert_eq!((read, payload.len()), (Err(HandshakeError::Forged), 0), "{suite:?}");
        }
        let client = initiator.read_msg2(&msg2, &mut payload).unwrap();
        assert_eq!(payload, [5; 32]);
        assert!(agree(client, server), "{suite:?}");
        let ((client, _), (_, server)) = (handshake(suite, 1, 2), handshake(suite, 1, 3));
        assert!(!agree(client, server), "{suite:?}: keys of another attempt");
        let is_read_once = suite != Suite::Checked;
        assert_eq!(initiator.read_msg2(&msg2, &mut payload).is_err(), is_read_once, "{suite:?}");
    }
}
