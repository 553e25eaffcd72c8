//! Connect tokens: what the matchmaker seals, what the client gets, and what every server rejects.

use crate::PROTOCOL;
use crate::line::{File, Line, bytes, count, value, variant};
use chacha20poly1305::{AeadInPlace, KeyInit, XChaCha20Poly1305};
use serde_json::Value;
use std::net::SocketAddr;
use whitewater::session::token::{FleetKey, Order, PublicToken, ServerKey, Verifier};
use whitewater::session::{Pattern, Suite};

const SERVER: u64 = 5;
const KEY: u8 = 1;
const MADE: u64 = 1_900_000_000;
const END: u64 = MADE + 45;

pub(crate) fn file() -> File {
    let mut lines = Vec::new();
    for (server_id, key_id) in [(SERVER, KEY), (u64::MAX, 255)] {
        let key = FleetKey::new(count(0xa0)).server_key(server_id, key_id);
        let line = Line::named("the key of a server").text("is", "key").hex("fleet_key", &count::<32>(0xa0));
        lines.push(line.wide("server_id", server_id).number("key_id", key_id).hex("key", key.secret()));
    }
    let both = ["192.0.2.1:4000", "[2001:db8::1]:4000"].map(|address| address.parse().unwrap());
    let with_key = Suite::from_code(0x0402).unwrap();
    assert!(matches!(with_key, Suite::Noise(Pattern::NkPsk0, _)));
    for (name, suite, addresses, routing_token, user) in [
        ("a token", Suite::TOKEN, &both[..], &b""[..], &b"red team"[..]),
        ("a token with the key of the server", with_key, &both[..1], b"", b""),
        ("a token with a routing token", Suite::TOKEN, &both[..1], b"server 7", b""),
        ("a token with all that fits", Suite::TOKEN, &[both[1]; 4], &[0x72; 20], &[0x75; 256]),
    ] {
        let server_key = suite.needs_server_key().then(|| count(0x90));
        let token = mint(suite, addresses, server_key, routing_token, user);
        let line =
            Line::named(name).text("is", "token").hex("key", server().secret()).wide("server_id", SERVER);
        let line = line.number("key_id", KEY).wide("protocol_id", PROTOCOL).number("suite", suite.code());
        let line =
            line.wide("client", 99).hex("psk", &count::<32>(0x60)).wide("created", MADE).wide("expires", END);
        let line = line.hex("match", &count::<16>(0xc0)).hex("user", user).hex("nonce", &count::<24>(0xe0));
        let line = line.list("addresses", addresses.iter().map(|address| format!("\"{address}\"")));
        let line = if let Some(key) = &server_key { line.hex("server_public", key) } else { line };
        let line = if routing_token.is_empty() { line } else { line.hex("routing_token", routing_token) };
        lines.push(line.hex("sealed", &token.sealed).hex("client_part", &token.encode()));
    }
    File {
        name: "tokens",
        about: "is key: the key of a server, by the fleet key. is token: what a server gets sealed with its key, and the part of the client, whose end that is.",
        lines,
    }
}

pub(crate) fn take(line: &Value) {
    if line["is"] == "key" {
        let key = FleetKey::new(bytes(line, "fleet_key").try_into().unwrap());
        let key_id = u8::try_from(line["key_id"].as_u64().unwrap()).unwrap();
        assert_eq!(key.server_key(wide(line, "server_id"), key_id).secret().to_vec(), bytes(line, "key"));
        return;
    }
    let token = PublicToken::decode(&bytes(line, "client_part")).unwrap();
    assert_eq!(*token.encode(), bytes(line, "client_part"));
    assert_eq!((token.sealed.to_vec(), token.psk.to_vec()), (bytes(line, "sealed"), bytes(line, "psk")));
    let addresses: Vec<SocketAddr> = line["addresses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| at.as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(token.addresses, addresses);
    let routing_token = line.get("routing_token").map(|_| bytes(line, "routing_token"));
    assert_eq!(token.routing_token, routing_token.unwrap_or_default());
    let grant = Verifier::new(server()).open(MADE, PROTOCOL, token.suite, &token.sealed).unwrap();
    let found = Line::default()
        .wide("client", grant.client_id)
        .wide("created", grant.created)
        .wide("expires", grant.expires);
    let found = value(&found.hex("match", &grant.match_id).hex("user", &grant.user).hex("psk", &*grant.psk));
    for (name, found) in found.as_object().unwrap() {
        assert_eq!(&line[name], found, "{name}");
    }
}

/// A server that started when the token was made, 10 s later, with one key; it has already accepted the
/// token.
pub(crate) fn refused() -> File {
    let [v4, _] = ["192.0.2.1:4000", "[2001:db8::1]:4000"].map(|address| address.parse().unwrap());
    let token = mint(Suite::TOKEN, &[v4], None, b"", b"red team");
    let with = |at: usize, to: &[u8]| [&token.sealed[..at], to, &token.sealed[at + to.len()..]].concat();
    let at = |expires: u64| with(12, &expires.to_le_bytes());
    let now = MADE + 10;
    let cases = [
        ("a byte less", now, token.sealed[..383].to_vec()),
        ("a byte more", now, [&token.sealed[..], &[0]].concat()),
        ("version 2", now, with(0, &[2])),
        ("another server", now, with(4, &[6])),
        ("another key", now, with(1, &[2])),
        ("5 s after its end", END + 5, token.sealed.to_vec()),
        ("an end more than 605 s ahead", now, at(now + 606)),
        ("another end", now, at(END + 1)),
        ("another suite in the head", now, with(2, &[2, 2])),
        ("another nonce", now, with(20, &[0])),
        ("another content", now, with(44, &[0])),
        ("another tag", now, with(383, &[token.sealed[383] ^ 1])),
        ("a suite other than that of the CONNECT", now, seal(0x0202, MADE, [0, 0], 8)),
        ("a reserved byte", now, seal(0x0201, MADE, [1, 0], 8)),
        ("257 bytes of the application's own", now, seal(0x0201, MADE, [0, 0], 257)),
        ("an end that is its beginning", now, seal(0x0201, END, [0, 0], 8)),
        ("made more than 5 s before the server was started", now, seal(0x0201, MADE - 6, [0, 0], 8)),
        ("used before", now, token.sealed.to_vec()),
    ];
    let lines = cases.into_iter().map(|(name, now, sealed)| {
        let line = Line::named(name).text("is", "sealed").wide("now", now);
        let is_used = name == "used before";
        let line = if is_used { line.text("before", "used") } else { line };
        let line = line.text("error", &refusal(now, &sealed, is_used));
        line.hex("sealed", &sealed)
    });
    let part = token.encode();
    let with = |at: usize, to: &[u8]| [&part[..at], to, &part[at + to.len()..]].concat();
    let routed = |token: &[u8]| [&with(14, &[2])[..71], token, &part[71..]].concat(); // after the address
    let parts = [
        ("a byte less", part[..part.len() - 1].to_vec()),
        ("a byte more", [&part[..], &[0]].concat()),
        ("another magic", with(3, b"2")),
        ("a key that the suite has no use for", with(14, &[1])),
        ("an unknown flag", with(14, &[4])),
        ("a routing token that is missing", with(14, &[2])),
        ("a routing token of no byte", routed(&[0])),
        ("a routing token of 21 bytes", routed(&[&[21][..], &[0x72; 21]].concat())),
        ("no address", with(15, &[0])),
        ("5 addresses", with(15, &[5])),
        ("an address of family 5", with(64, &[5])),
        ("port 0", with(69, &[0, 0])),
    ];
    let parts = parts.into_iter().map(|(name, part)| {
        assert!(PublicToken::decode(&part).is_err(), "{name}");
        Line::named(&format!("client's part: {name}")).text("is", "client_part").hex("client_part", &part)
    });
    File {
        name: "refused-tokens",
        about: "is sealed: refused at `now` by server 5 with the first key of tokens.jsonl, started at 0x713fb300, for a CONNECT with suite 0x0201, and the counter `token`. is client_part: refused by a client.",
        lines: lines.chain(parts).collect(),
    }
}

pub(crate) fn take_refused(line: &Value) {
    if line["is"] == "client_part" {
        assert!(PublicToken::decode(&bytes(line, "client_part")).is_err(), "{line}");
        return;
    }
    let error = refusal(wide(line, "now"), &bytes(line, "sealed"), line.get("before").is_some());
    assert_eq!(line["error"], error, "{line}");
}

fn refusal(now: u64, sealed: &[u8], is_used: bool) -> String {
    let verifier = Verifier::new(server());
    verifier.set_age(MADE, 0);
    if is_used {
        let grant = verifier.open(now, PROTOCOL, Suite::TOKEN, sealed).unwrap();
        verifier.use_up(now, &grant).unwrap();
    }
    variant(&verifier.open(now, PROTOCOL, Suite::TOKEN, sealed).map(|_| ()).unwrap_err())
}

fn server() -> ServerKey {
    FleetKey::new(count(0xa0)).server_key(SERVER, KEY)
}

fn mint(
    suite: Suite,
    addresses: &[SocketAddr],
    server_key: Option<[u8; 32]>,
    routing_token: &[u8],
    user: &[u8],
) -> PublicToken {
    let (protocol_id, client_id, match_id, created, expires) = (PROTOCOL, 99, count(0xc0), MADE, END);
    let order = Order {
        protocol_id,
        suite,
        client_id,
        match_id,
        created,
        expires,
        addresses,
        server_key,
        routing_token,
        user,
    };
    server().mint(&order, count(0x60), count(0xe0)).unwrap()
}

/// A token that no matchmaker of ours would make, built by hand after docs/WIRE.md.
fn seal(suite: u16, created: u64, reserved: [u8; 2], user_len: u16) -> Vec<u8> {
    let head = [&[1, KEY][..], &suite.to_le_bytes(), &SERVER.to_le_bytes(), &END.to_le_bytes()].concat();
    let associated = [&b"ww/1 token"[..], &PROTOCOL.to_le_bytes(), &head].concat();
    let mut content =
        [&99_u64.to_le_bytes()[..], &count::<32>(0x60), &created.to_le_bytes(), &count::<16>(0xc0)].concat();
    content.extend([&reserved[..], &user_len.to_le_bytes(), &[0; 256]].concat());
    let nonce = count::<24>(0xe0);
    let cipher = XChaCha20Poly1305::new(server().secret().into());
    let tag = cipher.encrypt_in_place_detached(&nonce.into(), &associated, &mut content).unwrap();
    [&head[..], &nonce, &content, &tag].concat()
}

fn wide(line: &Value, name: &str) -> u64 {
    u64::from_str_radix(line[name].as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}
