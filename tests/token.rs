//! A connect token admits one client, once, at one server, for a while; and nothing else does.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use proptest::prelude::*;
use std::net::SocketAddr;
use whitewater::inside::session::wire::TOKEN_MAX;
use whitewater::session::token::{
    FleetKey, Grant, LIFE_MAX, Order, PublicToken, SEALED_LEN, SKEW, ServerKey, TokenError, USER_MAX,
    Verifier,
};
use whitewater::session::{Cipher, Pattern, Suite};

const NOW: u64 = 1_900_000_000;
const PROTOCOL: u64 = 7;
const SERVER: u64 = 5;

fn key(server_id: u64, key_id: u8) -> ServerKey {
    FleetKey::new([1; 32]).server_key(server_id, key_id)
}

fn order(user: &[u8]) -> Order<'_> {
    const ADDRESSES: &[SocketAddr] = &[];
    Order {
        protocol_id: PROTOCOL,
        suite: Suite::TOKEN,
        client_id: 99,
        match_id: [6; 16],
        created: NOW,
        expires: NOW + 45,
        addresses: ADDRESSES,
        server_key: None,
        routing_token: b"",
        user,
    }
}

fn addresses() -> [SocketAddr; 2] {
    [SocketAddr::from(([192, 0, 2, 1], 4000)), SocketAddr::from(([9; 16], 4001))]
}

fn mint(key: &ServerKey, order: &Order<'_>, nonce: u64) -> PublicToken {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&nonce.to_le_bytes());
    let addresses = addresses();
    key.mint(&Order { addresses: &addresses, ..*order }, [2; 32], bytes).unwrap()
}

fn started(key: ServerKey, at: u64) -> Verifier {
    let verifier = Verifier::new(key);
    verifier.set_age(at, 0);
    verifier
}

fn verifier() -> Verifier {
    started(key(SERVER, 1), NOW - 60)
}

fn open(now: u64, sealed: &[u8]) -> Result<Grant, TokenError> {
    verifier().open(now, PROTOCOL, Suite::TOKEN, sealed)
}

#[test]
fn a_token_carries_the_matchmakers_claims_to_the_server() {
    const { assert!(SEALED_LEN <= TOKEN_MAX) };
    for user in [&b""[..], b"red team", &[8; USER_MAX]] {
        let token = mint(&key(SERVER, 1), &order(user), 0);
        assert_eq!(token.sealed.len(), 384);
        let grant = open(NOW, &token.sealed).unwrap();
        assert_eq!((grant.client_id, grant.match_id, grant.user.as_slice()), (99, [6; 16], user));
        assert_eq!((grant.created, grant.expires), (NOW, NOW + 45));
        assert_eq!(grant.psk, token.psk, "client and server share a key");
    }
}

#[test]
fn every_reason_to_reject_a_token_is_checked_in_order() {
    let sealed = mint(&key(SERVER, 1), &order(b""), 0).sealed;
    let changed = |at: usize| {
        let mut changed = sealed;
        changed[at] ^= 0x80;
        open(NOW, &changed)
    };
    assert_eq!(open(NOW, &sealed[1..]), Err(TokenError::Length { have: 383 }));
    assert_eq!(open(NOW, &[&sealed[..], &[0]].concat()), Err(TokenError::Length { have: 385 }));
    assert_eq!(changed(0), Err(TokenError::Version { found: 0x81 }));
    assert_eq!(changed(4), Err(TokenError::Server { found: 0x85 }));
    assert_eq!(changed(1), Err(TokenError::Key { found: 0x81 }));
    assert_eq!(changed(19), Err(TokenError::TooLong { expires: (NOW + 45) | 1 << 63 }));
    assert_eq!(changed(2), Err(TokenError::Forged), "the suite is authenticated before it is compared");
    let suite = Suite::Noise(Pattern::NnPsk0, Cipher::AesGcm);
    let found = Suite::TOKEN.code();
    assert_eq!(verifier().open(NOW, PROTOCOL, suite, &sealed), Err(TokenError::Suite { found }));
    assert_eq!(Verifier::new(key(SERVER, 1)).open(NOW, 8, Suite::TOKEN, &sealed), Err(TokenError::Forged));
    let other = ServerKey::new(SERVER, 1, [9; 32]);
    assert_eq!(Verifier::new(other).open(NOW, 7, Suite::TOKEN, &sealed), Err(TokenError::Forged));
}

#[test]
fn a_token_is_valid_from_creation_to_expiry_with_tolerance_for_clocks() {
    let sealed = mint(&key(SERVER, 1), &order(b""), 0).sealed;
    let expires = NOW + 45;
    assert!(open(expires - 1, &sealed).is_ok());
    assert!(open(expires + SKEW - 1, &sealed).is_ok());
    assert_eq!(open(expires + SKEW, &sealed), Err(TokenError::Expired { expires }));
    assert_eq!(open(u64::MAX, &sealed), Err(TokenError::Expired { expires }));
    let longest = Order { expires: NOW + LIFE_MAX, ..order(b"") };
    let sealed = mint(&key(SERVER, 1), &longest, 0).sealed;
    assert!(open(NOW - SKEW, &sealed).is_ok());
    let expires = NOW + LIFE_MAX;
    assert_eq!(open(NOW - SKEW - 1, &sealed), Err(TokenError::TooLong { expires }));
    assert_eq!(open(0, &sealed), Err(TokenError::TooLong { expires }));
}

#[test]
fn a_restarted_server_rejects_earlier_tokens() {
    let sealed = mint(&key(SERVER, 1), &order(b""), 0).sealed;
    let started = |at| started(key(SERVER, 1), at).open(NOW + 9, PROTOCOL, Suite::TOKEN, &sealed);
    assert!(started(NOW + SKEW).is_ok());
    assert_eq!(started(NOW + SKEW + 1), Err(TokenError::BeforeStart { created: NOW }));
}

#[test]
fn a_token_can_be_used_once_and_opening_it_does_not_use_it_up() {
    let (first, second) = (mint(&key(SERVER, 1), &order(b""), 0), mint(&key(SERVER, 1), &order(b""), 1));
    let verifier = verifier();
    let look = |token: &PublicToken| verifier.open(NOW, PROTOCOL, Suite::TOKEN, &token.sealed);
    let grant = look(&first).unwrap();
    assert_eq!(look(&first).unwrap(), grant);
    verifier.use_up(NOW, &grant).unwrap();
    assert_eq!(verifier.use_up(NOW, &grant), Err(TokenError::Used));
    assert_eq!(verifier.open(NOW, PROTOCOL, Suite::TOKEN, &first.sealed), Err(TokenError::Used));
    assert!(verifier.open(NOW, PROTOCOL, Suite::TOKEN, &second.sealed).is_ok());
    let other_server = Verifier::new(key(6, 1));
    let found = SERVER;
    assert_eq!(
        other_server.open(NOW, PROTOCOL, Suite::TOKEN, &first.sealed),
        Err(TokenError::Server { found })
    );
}

#[test]
fn the_previous_key_of_a_server_stays_valid_beside_the_new_one() {
    let tokens = [1, 2, 3].map(|key_id| mint(&key(SERVER, key_id), &order(b""), key_id.into()));
    let verifier = verifier();
    verifier.rotate(key(SERVER, 2));
    let opened = tokens.map(|token| verifier.open(NOW, PROTOCOL, Suite::TOKEN, &token.sealed).err());
    assert_eq!(opened, [None, None, Some(TokenError::Key { found: 3 })]);
}

#[test]
fn when_no_more_tokens_can_be_remembered_nobody_gets_in() {
    let key = key(SERVER, 1);
    let verifier = verifier();
    let use_up = |now: u64, life: u64, nonce: u64| {
        let sealed = mint(&key, &Order { created: now, expires: now + life, ..order(b"") }, nonce).sealed;
        let grant = verifier.open(now, PROTOCOL, Suite::TOKEN, &sealed)?;
        verifier.use_up(now, &grant).map(|()| sealed)
    };
    let first = use_up(NOW, 45, 0).unwrap();
    for nonce in 1..2 * 8192 {
        use_up(NOW, 45, nonce).unwrap();
    }
    assert_eq!(use_up(NOW, 45, 1 << 20), Err(TokenError::Full));
    assert_eq!(use_up(NOW + 49, 45, 1 << 20), Err(TokenError::Full), "the first may still be used again");
    assert!(use_up(NOW + 50, 45, 1 << 20).is_ok(), "they have expired and are dropped");
    assert!(use_up(NOW + 50, 1, 1 << 21).is_ok());
    // However far the clock goes back, a dropped token is not new again.
    assert_eq!(verifier.open(NOW, PROTOCOL, Suite::TOKEN, &first), Err(TokenError::Used));
    assert_eq!(verifier.open(NOW - 30, PROTOCOL, Suite::TOKEN, &first), Err(TokenError::Used));
}

#[test]
fn no_token_is_minted_that_every_server_would_reject() {
    let addresses = addresses();
    let good = Order { addresses: &addresses, ..order(b"") };
    let no_port = [SocketAddr::from(([1; 4], 0))];
    let nk = Suite::Noise(Pattern::NkPsk0, Cipher::ChaChaPoly);
    let five = [addresses[0]; 5];
    for (field, order) in [
        ("suite", Order { suite: Suite::Checked, ..good }),
        ("suite", Order { suite: Suite::Noise(Pattern::Nk, Cipher::AesGcm), ..good }),
        ("server_key", Order { suite: nk, ..good }),
        ("server_key", Order { server_key: Some([1; 32]), ..good }),
        ("expires", Order { expires: NOW, ..good }),
        ("expires", Order { expires: NOW + LIFE_MAX + 1, ..good }),
        ("addresses", Order { addresses: &[], ..good }),
        ("addresses", Order { addresses: &five, ..good }),
        ("addresses", Order { addresses: &no_port, ..good }),
        ("routing_token", Order { routing_token: &[0; 21], ..good }),
        ("user", Order { user: &[0; USER_MAX + 1], ..good }),
    ] {
        let minted = key(SERVER, 1).mint(&order, [2; 32], [3; 24]);
        assert!(matches!(minted, Err(TokenError::Order { field: wrong, .. }) if wrong == field), "{field}");
    }
}

#[test]
fn nothing_secret_is_printed() {
    let token = mint(&key(SERVER, 1), &order(b"red team"), 0);
    let grant = open(NOW, &token.sealed).unwrap();
    let printed = format!("{token:?} {grant:?} {:?} {:?}", key(SERVER, 1), FleetKey::new([1; 32]));
    for secret in ["2, 2, 2", "[2,", "1, 1, 1", "psk", "sealed"] {
        assert!(!printed.contains(secret), "{secret}: {printed}");
    }
    assert!(printed.contains("client_id: 99") && printed.contains("FleetKey { .. }"));
}

fn public() -> impl Strategy<Value = PublicToken> {
    let v4 = any::<([u8; 4], u16)>().prop_map(SocketAddr::from);
    let v6 = any::<([u8; 16], u16)>().prop_map(SocketAddr::from);
    let address = prop_oneof![v4, v6].prop_filter("a port", |address| address.port() > 0);
    let suites: Vec<_> =
        Suite::ALL.into_iter().filter(|suite| suite.needs_psk() && suite.is_built_in()).collect();
    let addresses = prop::collection::vec(address, 1..=4);
    let routing_token = prop::collection::vec(any::<u8>(), 0..=20);
    (prop::sample::select(suites), addresses, routing_token, any::<[u8; 32]>(), 1..600_u64).prop_map(
        |(suite, addresses, routing_token, secret, life)| {
            let server_key = suite.needs_server_key().then_some(secret);
            let expires = NOW + life;
            let order = Order { suite, addresses: &addresses, server_key, expires, ..order(b"user") };
            let order = Order { routing_token: &routing_token, ..order };
            key(SERVER, 1).mint(&order, secret, [3; 24]).unwrap()
        },
    )
}

proptest! {
    #[test]
    fn the_clients_part_round_trips_and_no_prefix_of_it_is_valid(token in public(), cut in any::<prop::sample::Index>()) {
        let bytes = token.encode();
        prop_assert!(bytes.len() <= 577);
        prop_assert_eq!(PublicToken::decode(&bytes).unwrap(), token);
        prop_assert!(PublicToken::decode(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert!(PublicToken::decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn any_changed_bit_is_rejected(bit in 0..SEALED_LEN * 8, user in prop::collection::vec(any::<u8>(), 0..256)) {
        let mut sealed = mint(&key(SERVER, 1), &order(&user), 0).sealed;
        prop_assert!(open(NOW, &sealed).is_ok());
        sealed[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(open(NOW, &sealed).is_err());
    }
}

#[test]
fn a_token_used_at_one_server_of_a_process_is_used_at_the_others() {
    let token = mint(&key(SERVER, 1), &order(b""), 0);
    let one = verifier();
    let another = one.clone();
    let grants =
        [&one, &another].map(|verifier| verifier.open(NOW, PROTOCOL, Suite::TOKEN, &token.sealed).unwrap());
    another.use_up(NOW, &grants[1]).unwrap();
    assert_eq!(one.use_up(NOW, &grants[0]), Err(TokenError::Used), "both had opened it");
    assert_eq!(one.open(NOW, PROTOCOL, Suite::TOKEN, &token.sealed), Err(TokenError::Used));
}
