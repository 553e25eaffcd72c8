//! Both players of a game in which one hosts, to try who reaches whom. The relay is `whitewater-relay`, with a key file of 32 bytes that are all 5.
//!
//! ```text
//! cargo run -p whitewater-relay --example player -- 1 host 192.0.2.1:4100
//! cargo run -p whitewater-relay --example player -- 1 guest 3 198.51.100.7:61234 192.168.1.2:61234 192.0.2.1:4100
//! ```
//!
//! The first number says which host at the relay. The host prints its addresses, which the guest tries. The guest says numbers, and the host returns them,
//! until both go directly, or for so many seconds. Everybody knows these keys, so this is for tests only.

use std::collections::HashSet;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant, UNIX_EPOCH};
use std::{env, process};
use whitewater::machine::is_beside_udp;
use whitewater::session::Suite;
use whitewater::session::token::{Order, PublicToken, ServerKey};
use whitewater::{Channel, Client, ClientConfig, Event, Server, ServerConfig, SessionConfig};
use whitewater_relay::{HostGrant, RelayKey};

const TALK: Channel = Channel::ordered(0);
/// What the host says once when it sends directly.
const DIRECT: &[u8] = b"directly";
/// How often the guest says a number, and how many of them at least.
const BEAT: Duration = Duration::from_millis(20);
const NUMBERS: u32 = 20;
/// For this long the guest waits for anything else.
const PATIENCE: Duration = Duration::from_secs(40);
const USAGE: &str = "NUMBER host RELAY, or NUMBER guest SECONDS ADDRESS.. RELAY";

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match &*words {
        [number, "host", relay] => host(number.parse()?, relay.parse()?),
        [number, "guest", seconds, addresses @ ..] => {
            let addresses = addresses.iter().map(|address| address.parse()).collect::<Result<Vec<_>, _>>()?;
            guest(number.parse()?, Duration::from_secs(seconds.parse()?), &addresses)
        }
        _ => Err(USAGE.into()),
    }
}

fn relay_key() -> RelayKey {
    RelayKey::new([5; 32])
}

fn server_key(number: u8) -> ServerKey {
    ServerKey::new(number.into(), 0, [number; 32])
}

fn unix_time() -> Result<u64, Failure> {
    Ok(UNIX_EPOCH.elapsed()?.as_secs())
}

fn host(number: u8, relay: SocketAddr) -> Result<(), Failure> {
    let expires = (unix_time()? + 24 * 3600).try_into()?;
    // Guests that have left count for two minutes.
    let grant = HostGrant { host: number.into(), expires, guests: 1000, bytes_per_second: 100_000 };
    let config = ServerConfig {
        relay: Some((relay, relay_key().host(grant))),
        routing_token: 20,
        ..ServerConfig::tokens(SessionConfig::default(), server_key(number))
    };
    let mut server = Server::bind("0.0.0.0:0", &config)?;
    let (mut known, mut told) = (Vec::new(), HashSet::new());
    loop {
        server.poll(Some(Duration::from_millis(5)))?;
        let candidates = server.candidates();
        if candidates != known {
            let words: Vec<_> = candidates.iter().map(ToString::to_string).collect();
            println!("guest {}", words.join(" "));
            known = candidates;
        }
        while let Some((id, event)) = server.poll_event() {
            if matches!(event, Event::Closed { .. }) {
                told.remove(&id);
            }
        }
        for id in server.clients() {
            let is_direct = server.peer_addr(id).is_some_and(|address| !is_beside_udp(address));
            if is_direct && told.insert(id) {
                server.send(id, TALK, DIRECT)?;
            }
            while let Some(said) = server.recv(id, TALK) {
                server.send(id, TALK, &[&said[..], &[is_direct.into()]].concat())?;
            }
        }
        server.flush();
    }
}

/// Prints how it connected, and how it is connected in the end.
fn guest(number: u8, direct_within: Duration, addresses: &[SocketAddr]) -> Result<(), Failure> {
    let relay = *addresses.last().ok_or(USAGE)?;
    let (created, id) = (unix_time()?, process::id());
    let order = Order {
        protocol_id: 0,
        suite: Suite::TOKEN,
        client_id: id.into(),
        match_id: [0; 16],
        created,
        expires: created + 60,
        addresses,
        server_key: None,
        routing_token: &relay_key().guest(number.into(), id, (created + 300).try_into()?),
        user: b"",
    };
    let (mut key, mut nonce) = ([0; 32], [0; 24]);
    getrandom::fill(&mut key)?;
    getrandom::fill(&mut nonce)?;
    let token = server_key(number).mint(&order, key, nonce).map_err(|error| format!("{error:?}"))?;
    let token = PublicToken::decode(&token.encode()).map_err(|error| format!("{error:?}"))?;

    let start = Instant::now();
    let mut client =
        Client::connect(&*token.addresses, &ClientConfig::token(SessionConfig::default(), &token))?;
    let ms = || start.elapsed().as_secs_f64() * 1000.0;
    let way = |is_direct| if is_direct { "directly" } else { "by the relay" };
    let (mut said, mut heard) = (0, 0);
    let (mut is_answered_directly, mut is_host_direct, mut is_direct) = (false, false, false);
    loop {
        if start.elapsed() > PATIENCE {
            return Err(format!("{heard} of {said} numbers were returned").into());
        }
        client.poll(Some(Duration::from_millis(1)))?;
        let is_sent_directly = client.peer_addr().is_some_and(|peer| peer != relay);
        while let Some(event) = client.poll_event() {
            match event {
                Event::Connected => println!("up after {:.1} ms {}", ms(), way(is_sent_directly)),
                Event::Closed { .. } => return Err(format!("{event:?}").into()),
                _ => {}
            }
        }
        while let Some(echo) = client.recv(TALK) {
            if *echo == *DIRECT {
                is_host_direct = true;
                continue;
            }
            if echo.get(..4) != Some(&u32::to_le_bytes(heard)) {
                return Err(format!("{echo:?} came instead of {heard}").into());
            }
            if heard == 0 {
                println!("echo after {:.1} ms", ms());
            }
            heard += 1;
            is_answered_directly = echo.get(4) == Some(&1);
        }
        if is_sent_directly && is_host_direct && !std::mem::replace(&mut is_direct, true) {
            println!("both directly after {:.1} ms", ms());
        }
        let is_enough =
            said >= NUMBERS && (is_direct && is_answered_directly || start.elapsed() > direct_within);
        if is_enough && heard == said {
            println!("sends {}, is answered {}", way(is_sent_directly), way(is_answered_directly));
            client.shutdown(0)?;
            return Ok(());
        }
        let due = if client.is_connected() && !is_enough { BEAT * said } else { Duration::MAX };
        if start.elapsed() >= due {
            client.send(TALK, &u32::to_le_bytes(said))?;
            client.flush();
            said += 1;
        }
    }
}
