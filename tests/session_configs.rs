//! A config that cannot work is refused before anything happens, and the error says what to do.

use crate::common;

use common::sessions::random;
use std::time::Duration;
use whitewater::session::token::ServerKey;
use whitewater::session::{Client, Server, Suite};
use whitewater::{ClientConfig, ServerConfig, SessionConfig};

const KEY: [u8; 32] = [3; 32];

fn session() -> SessionConfig {
    SessionConfig { protocol_id: 7, ..SessionConfig::default() }
}

fn tokens() -> ServerConfig {
    ServerConfig::tokens(session(), ServerKey::new(5, 0, KEY))
}

#[test]
fn a_server_that_nobody_could_join_is_refused_and_the_error_has_the_cure() {
    let insecure = || ServerConfig::insecure(session());
    let keyed = Suite::from_code(0x301).unwrap();
    let with = |suites: Vec<Suite>| ServerConfig { suites, ..insecure() };
    let short = SessionConfig { timeout: Duration::from_secs(1), ..session() };
    let mut cases = vec![
        (with(Vec::new()), "`suites` is empty: use ServerConfig::insecure(..) or ::tokens(..)"),
        (
            ServerConfig { psk: Some(KEY.into()), ..insecure() },
            "`psk` is not used by any of `suites`: use Suite::TOKEN",
        ),
        (
            ServerConfig { suites: vec![Suite::Checked], ..tokens() },
            "`suites` has one without a pre-shared key, which no connect token is for: use Suite::TOKEN",
        ),
        (
            ServerConfig { server_key: Some(KEY.into()), ..insecure() },
            "`server_key` is not used by any of `suites`",
        ),
        (ServerConfig { user: vec![0; 257], ..insecure() }, "the length of `user` is 257, outside 0 to 256"),
        (ServerConfig::insecure(short), "`timeout` is 1 s, outside 4 s to 120 s"),
    ];
    if cfg!(feature = "crypto") {
        cases.extend([
            (with(vec![Suite::TOKEN]), "`psk` is missing: use ServerConfig::secret(..) or ::tokens(..)"),
            (with(vec![keyed]), "`server_key` is missing: one of `suites` takes the server's private key"),
            (
                ServerConfig { psk: Some(KEY.into()), ..tokens() },
                "`psk` is not used beside `tokens`, which have their own",
            ),
        ]);
    } else {
        let without = "`suites` takes the feature `crypto`, which this program was built without";
        cases.push((with(vec![keyed]), without));
    }
    for (config, text) in cases {
        assert_eq!(Server::new(&config, random(1, 1)).unwrap_err().to_string(), text);
    }
    assert_eq!((insecure().check(), Suite::ALL.contains(&Suite::Checked)), (Ok(()), false));
    if cfg!(feature = "crypto") {
        assert_eq!((ServerConfig::secret(session(), KEY).check(), tokens().check()), (Ok(()), Ok(())));
    }
}

#[test]
fn a_client_that_could_not_join_is_refused_and_the_error_has_the_cure() {
    let insecure = || ClientConfig::insecure(session());
    let keyed = Suite::from_code(0x301).unwrap();
    let mut cases = vec![
        (
            ClientConfig { psk: Some(KEY.into()), ..insecure() },
            "`psk` is not used by `suite`: use Suite::TOKEN",
        ),
        (ClientConfig { server_key: Some(KEY), ..insecure() }, "`server_key` is not used by `suite`"),
        (ClientConfig { user: vec![0; 257], ..insecure() }, "the length of `user` is 257, outside 0 to 256"),
        (ClientConfig { hello: 100, ..insecure() }, "`hello` is 100 bytes, outside 512 bytes to 1200 bytes"),
        (
            ClientConfig { deadline: Duration::from_millis(99), ..insecure() },
            "`deadline` is 99 ms, outside 100 ms to 120 s",
        ),
    ];
    if cfg!(feature = "crypto") {
        cases.extend([
            (
                ClientConfig { suite: Suite::TOKEN, ..insecure() },
                "`psk` is missing: use ClientConfig::secret(..) or ::token(..)",
            ),
            (
                ClientConfig { suite: keyed, ..insecure() },
                "`server_key` is missing: `suite` takes the server's public key",
            ),
        ]);
    } else {
        let without = "`suite` takes the feature `crypto`, which this program was built without";
        cases.push((ClientConfig { suite: keyed, ..insecure() }, without));
    }
    for (config, text) in cases {
        assert_eq!(Client::new(&config, random(1, 1)).unwrap_err().to_string(), text);
    }
    assert_eq!(insecure().check(), Ok(()));
}

#[cfg(feature = "crypto")]
#[test]
fn a_token_that_cannot_work_is_refused_at_the_client() {
    use whitewater::session::token::{Order, TokenError};
    let order = Order {
        protocol_id: 7,
        suite: Suite::TOKEN,
        client_id: 1,
        match_id: [0; 16],
        created: 1_900_000_000,
        expires: 1_900_000_045,
        addresses: &[([127, 0, 0, 1], 4000).into()],
        server_key: None,
        routing_token: b"",
        user: b"",
    };
    let mint = |order: &Order<'_>| ServerKey::new(5, 0, KEY).mint(order, [4; 32], [5; 24]);
    let token = mint(&order).unwrap();
    assert_eq!(ClientConfig::token(session(), &token).check(), Ok(()));
    let mut over = token.clone();
    over.expires = over.created;
    let mut millis = token.clone();
    (millis.created, millis.expires) = (token.created * 1000, token.expires * 1000);
    let other = SessionConfig { protocol_id: 8, ..session() };
    for (session, token, text) in [
        (other, &token, "`token` is for another `protocol_id` than that of `session`"),
        (session(), &over, "`token` expires before it was made"),
        (session(), &millis, "`token` is not in seconds since 1970"),
    ] {
        assert_eq!(ClientConfig::token(session, token).check().unwrap_err().to_string(), text);
    }
    let late = Order { expires: order.created + 601, ..order };
    let millis = Order { created: 1_900_000_000_000, expires: 1_900_000_000_045, ..order };
    for (order, text) in [
        (late, "expires: must be within 600 s after `created`"),
        (millis, "created: must be in seconds since 1970"),
    ] {
        let error: TokenError = mint(&order).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
}
