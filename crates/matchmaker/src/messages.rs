//! What is in the bodies of requests and answers, as JSON. Numbers of 64 bits are strings, because JavaScript rounds them; bytes are hex digits.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::net::SocketAddr;
use whitewater::session::token::ADDRESSES_MAX;

/// The number of a server or a client: a string of decimal digits in JSON.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_structs, reason = "a number")]
pub struct Id(pub u64);

/// Bytes: a string of hex digits in JSON.
#[derive(Clone, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "bytes")]
pub struct Hex(pub Vec<u8>);

/// The answer to `POST /servers`: a new number for a server, and what only this server may know.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "the format of a message")]
pub struct Identity {
    /// For `ServerKey::new`. A server that was started again asks for another.
    pub server: Id,
    /// For `ServerKey::new`.
    pub key_id: u8,
    /// For `ServerKey::new`: 32 bytes.
    pub key: Hex,
    /// The bearer secret of everything that this server asks for later.
    pub secret: String,
}

/// The body of `PUT /servers/{id}`: a server registers by it, and renews its lease.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "the format of a message")]
pub struct Report {
    /// For people: 1 to 64 characters.
    pub name: String,
    /// Where players reach it, the best first: 1 to 4.
    pub addresses: Vec<SocketAddr>,
    /// 1 to 32 lower-case letters, digits and `-`.
    pub region: String,
    /// How many players may be on it: 1 to 65,535.
    pub capacity: u32,
    /// How many are on it.
    pub players: u32,
    /// Who has joined since the last report: their reservations are over, because `players` counts them. Without this, reservations lapse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrived: Vec<Id>,
    /// Median of the players' smoothed round trips, ms.
    #[serde(default)]
    pub rtt_ms: f32,
    /// Share of lost datagrams, 0 to 1.
    #[serde(default)]
    pub loss: f32,
    /// What a proxy finds it by: up to 20 bytes.
    #[serde(default)]
    pub routing_token: Hex,
    /// It takes no more players.
    #[serde(default)]
    pub draining: bool,
}

/// The answer to a report.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "the format of a message")]
pub struct Lease {
    /// Report again before this time has passed, ms; a third of it is a good interval.
    pub lease_ms: u64,
    /// The operators want the server to move its players away and to end.
    pub drain: bool,
}

/// The body of `POST /join`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "the format of a message")]
pub struct Join {
    /// Who joins: 1 to 64 clients, all on one server.
    pub clients: Vec<Id>,
    /// Acceptable regions, the best first, up to 16. Empty: any.
    #[serde(default)]
    pub regions: Vec<String>,
    /// The match, which the server finds in the token: 16 bytes, or none.
    #[serde(default)]
    pub match_id: Hex,
}

/// The body of `POST /servers/{id}/move`: a server asks for places on another server for players who came to it.
///
/// It may do so only while it has a lease, and only for players whose passes it has. A pass is what the matchmaker put into the token of this player
/// for this server, where nobody else can read it: `Pass::user` of the session. It is good for a day from when the token was made.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "the format of a message")]
pub struct Move {
    /// The passes of 1 to 64 players, who all move to one server.
    pub passes: Vec<Hex>,
    /// As in a [`Join`].
    #[serde(default)]
    pub regions: Vec<String>,
    /// As in a [`Join`].
    #[serde(default)]
    pub match_id: Hex,
}

/// The answer to a join or a move: a place for each client.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "the format of a message")]
pub struct Allocation {
    /// The server that has the places.
    pub server: Id,
    /// Its region.
    pub region: String,
    /// A connect token for each client, in their order. Each lets in whoever has it.
    pub tokens: Vec<Hex>,
}

/// A server in the answer to `GET /servers`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "the format of a message")]
pub struct Listed {
    /// Its number.
    pub server: Id,
    /// What it said last.
    #[serde(flatten)]
    pub report: Report,
    /// Players with a token who have not arrived yet.
    pub reserved: u32,
    /// The operators want it to end.
    pub drain: bool,
    /// The rest of its lease, ms.
    pub lease_ms: u64,
}

const CLIENTS_MAX: usize = 64;
const REGIONS_MAX: usize = 16;
const NAME_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 32;
const CAPACITY_MAX: u32 = 65_535;
const ARRIVED_MAX: usize = 1024;
const ROUTING_TOKEN_MAX: usize = 20;

impl Report {
    /// What is wrong with it, if something is.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let Self { name, addresses, region, capacity, players, arrived, rtt_ms, loss, routing_token, .. } =
            self;
        let is_reachable = |at: &SocketAddr| at.port() != 0 && !at.ip().is_unspecified();
        let rules = [
            ((1..=NAME_MAX).contains(&name.chars().count()), "name must have 1 to 64 characters"),
            (!name.chars().any(char::is_control), "name must not have control characters"),
            ((1..=ADDRESSES_MAX).contains(&addresses.len()), "addresses must be 1 to 4"),
            (addresses.iter().all(is_reachable), "addresses must have an address and a port"),
            (is_name(region), "region must be 1 to 32 of a-z, 0-9 and -"),
            ((1..=CAPACITY_MAX).contains(capacity), "capacity must be 1 to 65535"),
            (*players <= CAPACITY_MAX, "players must be at most 65535"),
            (arrived.len() <= ARRIVED_MAX, "arrived must be at most 1024"),
            (rtt_ms.is_finite() && *rtt_ms >= 0.0, "rtt_ms must be at least 0"),
            ((0.0..=1.0).contains(loss), "loss must be 0 to 1"),
            (routing_token.0.len() <= ROUTING_TOKEN_MAX, "routing_token must be at most 20 bytes"),
        ];
        all(&rules)
    }
}

impl Join {
    /// What is wrong with it, if something is.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let Self { clients, regions, match_id } = self;
        let is_new = |(at, client)| !clients.iter().take(at).any(|before| before == client);
        let rules = [
            ((1..=CLIENTS_MAX).contains(&clients.len()), "clients must be 1 to 64"),
            (clients.iter().take(CLIENTS_MAX + 1).enumerate().all(is_new), "clients must differ"),
            (regions.len() <= REGIONS_MAX, "regions must be at most 16"),
            (regions.iter().all(|region| is_name(region)), "regions must be 1 to 32 of a-z, 0-9 and -"),
            ([0, 16].contains(&match_id.0.len()), "match_id must be 16 bytes"),
        ];
        all(&rules)
    }
}

fn all(rules: &[(bool, &'static str)]) -> Result<(), &'static str> {
    rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err(rule))
}

/// Whether it can be the name of a region or a fleet.
pub(crate) fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_allowed)
}

impl Hex {
    /// `None`: these are no pairs of hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Vec<_> =
            text.bytes().map(|digit| char::from(digit).to_digit(16)).collect::<Option<_>>()?;
        let pairs = digits.chunks_exact(2);
        let bytes = pairs.clone().map(|pair| u8::try_from(pair.iter().fold(0, |high, low| high * 16 + low)));
        let bytes = bytes.collect::<Result<_, _>>().ok()?;
        pairs.remainder().is_empty().then_some(Self(bytes))
    }
}

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Prints only the length: most of these bytes are secrets.
impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hex({} bytes)", self.0.len())
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("pairs of hex digits"))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(de::Error::custom)
    }
}
