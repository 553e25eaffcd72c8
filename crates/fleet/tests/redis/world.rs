//! Servers that share an id and key, and players, all in one loop on loopback.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use whitewater::session::Suite;
use whitewater::session::token::{Order, PublicToken, ServerKey};
use whitewater::{Client, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig, SessionId};
use whitewater_fleet::{Redis, Store, UsedTokens, WhenGone};

/// Long enough for any machine; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const SERVER_ID: u64 = 5;

pub(crate) fn key() -> ServerKey {
    ServerKey::new(SERVER_ID, 0, [1; 32])
}

/// A server of the group with its view of the shared memory.
pub(crate) struct Member {
    pub(crate) server: Server,
    pub(crate) used: UsedTokens,
    pub(crate) up: Vec<SessionId>,
}

impl Member {
    pub(crate) fn start(store: impl Store, limit: Duration, when_gone: WhenGone) -> Self {
        let config = config();
        config.tokens.as_ref().unwrap().set_age(now(), 60); // as if it had run for a minute
        let used = UsedTokens::new(&config, store, limit, when_gone).unwrap();
        Self { server: Server::bind("127.0.0.1:0", &config).unwrap(), used, up: Vec::new() }
    }

    /// A frame of its loop, as an application has it.
    pub(crate) fn pump(&mut self) {
        self.server.pump().unwrap();
        while let Some((id, event)) = self.used.poll_event(&mut self.server) {
            match event {
                Event::Requested => self.server.admit(id, b"").unwrap(),
                Event::Connected => self.up.push(id),
                Event::Closed { .. } => self.up.retain(|up| *up != id),
                _ => {}
            }
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.server.local_addr().unwrap()
    }
}

/// For many clients of one address.
pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        ask: true,
        accepts_per_second: 1_000_000,
        accept_burst: 1_000_000,
        sessions_per_address: 16_384,
        half_open_per_address: 256,
        max_sessions: 1024,
        ..ServerConfig::tokens(SessionConfig::default(), key())
    }
}

/// Two servers that share a Redis, which has this long for an answer.
pub(crate) fn pair(url: &str, limit: Duration, when_gone: WhenGone) -> [Member; 2] {
    [(); 2].map(|()| Member::start(Redis::open(url).unwrap(), limit, when_gone))
}

/// A player, and how the session ended.
pub(crate) struct Player {
    pub(crate) client: Client,
    pub(crate) closed: Option<CloseReason>,
}

impl Player {
    pub(crate) fn connect(to: SocketAddr, token: &PublicToken) -> Self {
        let config = ClientConfig::token(SessionConfig::default(), token);
        Self { client: Client::connect(to, &config).unwrap(), closed: None }
    }

    pub(crate) fn is_decided(&self) -> bool {
        self.closed.is_some() || self.client.is_connected()
    }

    pub(crate) fn pump(&mut self) {
        self.client.pump().unwrap();
        while let Some(event) = self.client.poll_event() {
            if let Event::Closed { reason, .. } = event {
                self.closed = Some(reason);
            }
        }
    }
}

/// A token for the servers of the group; each client has a number of its own.
pub(crate) fn mint(client_id: u64) -> PublicToken {
    let order = Order {
        protocol_id: 0,
        suite: Suite::TOKEN,
        client_id,
        match_id: [0; 16],
        created: now(),
        expires: now() + 45,
        addresses: &[([127, 0, 0, 1], 1).into()],
        server_key: None,
        routing_token: &[],
        user: b"",
    };
    let [mut psk, mut nonce] = [[0; 32], [0; 32]];
    getrandom::fill(&mut psk).unwrap();
    getrandom::fill(&mut nonce).unwrap();
    key().mint(&order, psk, *nonce.first_chunk().unwrap()).unwrap()
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Runs all until `is_over`.
pub(crate) fn run(
    members: &mut [Member],
    players: &mut [Player],
    is_over: impl Fn(&[Member], &[Player]) -> bool,
) {
    let end = Instant::now() + PATIENCE;
    while !is_over(members, players) {
        assert!(Instant::now() < end, "waited for too long");
        members.iter_mut().for_each(Member::pump);
        players.iter_mut().for_each(Player::pump);
    }
}

/// Lets one player join, or be turned away.
pub(crate) fn join(members: &mut [Member], at: usize, token: &PublicToken) -> Player {
    let mut players = [Player::connect(members[at].addr(), token)];
    run(members, &mut players, |_, players| players[0].is_decided());
    let [player] = players;
    player
}
