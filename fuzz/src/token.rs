//! A token admits according to what its matchmaker sealed, and nothing else does.

use super::script::Script;
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use std::net::SocketAddr;
use whitewater::session::Suite;
use whitewater::session::token::{
    Grant, LIFE_MAX, Order, PublicToken, SEALED_LEN, SKEW, ServerKey, TokenError, Verifier,
};

/// What the bytes of a script are.
pub mod form {
    /// A sealed token.
    pub const SEALED: u8 = 0;
    /// The plaintext, 324 bytes, after its lifetime u16.
    pub const PLAIN: u8 = 1;
    /// The client's part.
    pub const PUBLIC: u8 = 2;
    /// A change to a valid token: where u16, XORed with u8.
    pub const CHANGE: u8 = 3;
    /// Number of forms.
    pub const COUNT: u8 = 4;
}

/// Runs a script: its form u8, the bytes.
///
/// # Panics
///
/// If something that nobody sealed is accepted, an accepted value is out of bounds, or it encodes to other
/// bytes.
pub fn token_open(script: &[u8]) {
    let mut script = Script::new(script);
    match script.u8() % form::COUNT {
        form::SEALED => {
            let opened = verifier().open(NOW, PROTOCOL, Suite::TOKEN, script.bytes(usize::MAX));
            assert!(opened.is_err(), "nobody sealed this");
        }
        form::PLAIN => {
            let expires = NOW + u64::from(script.u16());
            let mut plain = [0; PLAIN_LEN];
            for (to, from) in plain.iter_mut().zip(script.bytes(PLAIN_LEN)) {
                *to = *from;
            }
            plainly_sealed(expires, &plain);
        }
        form::PUBLIC => {
            let bytes = script.bytes(usize::MAX);
            if let Ok(token) = PublicToken::decode(bytes) {
                assert_eq!(token.encode().as_slice(), bytes);
            }
        }
        _ => {
            let mut token = good().sealed;
            let at = usize::from(script.u16()) % SEALED_LEN;
            let change = script.u8();
            token.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= change);
            assert_eq!(
                verifier().open(NOW, PROTOCOL, Suite::TOKEN, &token).is_ok(),
                change == 0,
                "byte {at}"
            );
        }
    }
}

/// Seals plaintext that the library did not make. Opened, it is unchanged or rejected with the right reason.
fn plainly_sealed(expires: u64, plain: &[u8; PLAIN_LEN]) {
    let sealed = seal(expires, plain);
    let verifier = verifier();
    let opened = verifier.open(NOW, PROTOCOL, Suite::TOKEN, &sealed);
    if expires > NOW + LIFE_MAX + SKEW {
        assert_eq!(opened, Err(TokenError::TooLong { expires }));
        return;
    }
    match opened {
        Ok(grant) => {
            assert_eq!(plain_of(&grant), *plain);
            assert!(grant.created + SKEW >= STARTED && grant.created < grant.expires);
            assert_eq!(verifier.use_up(NOW, &grant), Ok(()));
            assert_eq!(verifier.open(NOW, PROTOCOL, Suite::TOKEN, &sealed), Err(TokenError::Used));
        }
        Err(TokenError::Content) => {}
        Err(TokenError::BeforeStart { created }) => assert!(created + SKEW < STARTED),
        Err(error) => unreachable!("{error}"),
    }
}

fn plain_of(grant: &Grant) -> [u8; PLAIN_LEN] {
    let user_len = u16::try_from(grant.user.len()).expect("it is short").to_le_bytes();
    let (client_id, created) = (grant.client_id.to_le_bytes(), grant.created.to_le_bytes());
    let parts = [&client_id[..], &*grant.psk, &created, &grant.match_id, &[0; 2], &user_len, &grant.user];
    let mut plain = [0; PLAIN_LEN];
    for (to, from) in plain.iter_mut().zip(parts.concat()) {
        *to = from;
    }
    plain
}

/// The sealed part as the document describes it.
fn seal(expires: u64, plain: &[u8; PLAIN_LEN]) -> Vec<u8> {
    let head = [&[1, KEY_ID, 1, 2][..], &SERVER.to_le_bytes(), &expires.to_le_bytes()].concat();
    let associated = [&b"ww/1 token"[..], &PROTOCOL.to_le_bytes(), &head].concat();
    let mut ciphertext = *plain;
    let cipher = XChaCha20Poly1305::new(Key::from_slice(&KEY));
    let tag = cipher.encrypt_in_place_detached(XNonce::from_slice(&[4; 24]), &associated, &mut ciphertext);
    [&head[..], &[4; 24], &ciphertext, &tag.expect("it is short")].concat()
}

fn verifier() -> Verifier {
    let verifier = Verifier::new(ServerKey::new(SERVER, KEY_ID, KEY));
    verifier.set_age(STARTED, 0);
    verifier
}

fn good() -> PublicToken {
    let order = Order {
        protocol_id: PROTOCOL,
        suite: Suite::TOKEN,
        client_id: 9,
        match_id: [8; 16],
        created: NOW - 1,
        expires: NOW + 44,
        addresses: &[SocketAddr::from(([192, 0, 2, 1], 4000)), SocketAddr::from(([7_u8; 16], 4000))],
        server_key: None,
        routing_token: b"",
        user: b"user",
    };
    ServerKey::new(SERVER, KEY_ID, KEY).mint(&order, [6; 32], [4; 24]).expect("it can be made")
}

/// One of each form, valid and with an error.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let of = |form: u8, bytes: &[u8]| [&[form][..], bytes].concat();
    let token = good();
    let grant = verifier().open(NOW, PROTOCOL, Suite::TOKEN, &token.sealed).expect("it is good");
    let plain = plain_of(&grant);
    let changed = |at: usize, to: u8| {
        let mut changed = plain.to_vec();
        changed.iter_mut().skip(at).take(1).for_each(|byte| *byte = to);
        of(form::PLAIN, &[&[45, 0][..], &changed].concat())
    };
    vec![
        ("sealed".to_owned(), of(form::SEALED, &token.sealed.map(|byte| byte ^ u8::from(byte == 4)))),
        ("short".to_owned(), of(form::SEALED, &[1; 383])),
        ("plain".to_owned(), changed(0, 1)),
        ("before".to_owned(), changed(42, 0)),
        ("flags".to_owned(), changed(64, 1)),
        ("longer-user".to_owned(), changed(66, 5)),
        ("longest-user".to_owned(), changed(67, 1)),
        ("padding".to_owned(), changed(323, 1)),
        ("too-long".to_owned(), of(form::PLAIN, &[&[0, 9][..], &plain].concat())),
        ("public".to_owned(), of(form::PUBLIC, &token.encode())),
        ("change-none".to_owned(), of(form::CHANGE, &[0, 0, 0])),
        ("change-tag".to_owned(), of(form::CHANGE, &[127, 1, 128])),
    ]
}

const PROTOCOL: u64 = 3;
const SERVER: u64 = 5;
const KEY_ID: u8 = 2;
const KEY: [u8; 32] = [7; 32];
const NOW: u64 = 1_900_000_000;
const STARTED: u64 = NOW - 3600;
const PLAIN_LEN: usize = 324;
