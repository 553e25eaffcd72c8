//! The Rust end that the tests of the Python package play against.
//!
//! ```text
//! cargo run -p whitewater-python --features extension-module --example peer -- serve [secret|key|hybrid|tokens|game|kcp]
//! cargo run -p whitewater-python --features extension-module --example peer -- play ADDRESS MESSAGES
//! ```
//!
//! `serve` prints its address, sends everything back and ends when its standard input does. A message `kick` ends a session with code 7, and
//! `redirect` followed by a connect token sends the client elsewhere. `play` sends numbered messages to an echo server with the secret, checks
//! that each comes back once and in order, and closes with code 9. Everybody knows these secrets, so it is for tests only.

use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use whitewater::kcp::{self, Listener, PeerEvent, PeersConfig};
use whitewater::session::Suite;
use whitewater::session::token::ServerKey;
use whitewater::session::{Cipher, Pattern};
use whitewater::{
    Channel, Client, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig, SessionId,
};

const ORDERED: Channel = Channel::ordered(0);
const CHANNELS: [Channel; 5] =
    [ORDERED, Channel::unreliable(1), Channel::unordered(2), Channel::sequenced(3), Channel::stream(4)];
const PROTOCOL: u64 = 7;
const SECRET: [u8; 32] = [7; 32];

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let usage = "serve [secret|key|hybrid|tokens|game|kcp], or play ADDRESS MESSAGES";
    match args.next().as_deref() {
        Some("serve") => match args.next().as_deref().unwrap_or_default() {
            "kcp" => serve_kcp(),
            kind => serve(&config(kind)?),
        },
        Some("play") => play(&args.next().ok_or(usage)?, args.next().ok_or(usage)?.parse()?),
        _ => Err(usage.into()),
    }
}

fn session() -> SessionConfig {
    SessionConfig::new(PROTOCOL, CHANNELS.map(Into::into))
}

fn config(kind: &str) -> Result<ServerConfig, Failure> {
    Ok(match kind {
        "" | "secret" => ServerConfig::secret(session(), SECRET),
        "key" => ServerConfig {
            suites: vec![Suite::Noise(Pattern::Nk, Cipher::AesGcm)],
            server_key: Some(SECRET.into()),
            ..ServerConfig::insecure(session())
        },
        "hybrid" => {
            ServerConfig { suites: vec![Suite::HYBRID_TOKEN], ..ServerConfig::secret(session(), SECRET) }
        }
        // For the bots, whose game has two channels, and which come from one address.
        "game" => {
            let session = SessionConfig::new(PROTOCOL, [CHANNELS[0].into(), CHANNELS[1].into()]);
            let limits = ServerConfig::secret(session, SECRET);
            ServerConfig {
                sessions_per_address: 100,
                half_open_per_address: 100,
                accept_burst: 100,
                ..limits
            }
        }
        "tokens" => ServerConfig::tokens(session(), ServerKey::new(1, 0, SECRET)),
        other => return Err(format!("{other} is not a kind of server").into()),
    })
}

fn serve(config: &ServerConfig) -> Result<(), Failure> {
    let mut server = Server::bind("127.0.0.1:0", config)?;
    println!("{}", server.local_addr()?);
    let is_over = end_of_input();
    while !is_over.load(Relaxed) {
        server.poll(Some(Duration::from_millis(50)))?;
        while let Some((id, event)) = server.poll_event() {
            if matches!(event, Event::Readable | Event::Writable) {
                send_back(&mut server, id)?;
            }
        }
    }
    Ok(server.shutdown(3)?)
}

/// Becomes true when the standard input ends.
fn end_of_input() -> Arc<AtomicBool> {
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new()); // an error ends it as well
        ends.store(true, Relaxed);
    });
    is_over
}

/// Sends back what comes by bare KCP, in messages.
fn serve_kcp() -> Result<(), Failure> {
    let kcp = kcp::Config::classic().nodelay(1, 10, 2, true).wndsize(128, 128);
    let config = PeersConfig { kcp, ..PeersConfig::default() };
    let mut listener = Listener::bind("127.0.0.1:0", &config)?;
    println!("{}", listener.local_addr()?);
    let is_over = end_of_input();
    while !is_over.load(Relaxed) {
        listener.poll(Some(Duration::from_millis(50)))?;
        while let Some(event) = listener.poll_event() {
            let PeerEvent::Readable(id) = event else { continue };
            while let Some(peer) = listener.peer(id)
                && let Some(message) = peer.recv()
            {
                peer.send(&message)?;
            }
        }
    }
    Ok(())
}

/// Sends back as much as there is room for.
fn send_back(server: &mut Server, id: SessionId) -> Result<(), Failure> {
    let count = server.machine().session_config().channels.len();
    for channel in CHANNELS.into_iter().take(count) {
        while has_room(server, id, channel) {
            let Some(message) = server.recv(id, channel) else { break };
            if message == "kick" {
                server.kick(id, 7, "not here")?;
            } else if let Some(token) = message.strip_prefix(b"redirect") {
                server.redirect(id, token)?;
            } else {
                let _ = server.send(id, channel, &message); // what is unreliable may find no room
            }
        }
    }
    while let Some(datagram) = server.connection_mut(id).and_then(|connection| connection.recv_datagram()) {
        let _ = server.send_datagram(id, &datagram); // the same
    }
    Ok(())
}

/// Whether a message of the usual length fits. If not, its client hears of it, and a `Writable` follows.
fn has_room(server: &mut Server, id: SessionId, channel: Channel) -> bool {
    let most = if channel.kind().is_reliable() { 64 } else { usize::MAX };
    let waiting = |connection: &whitewater::session::Connection| {
        connection.kcp_stats(channel).map_or(0, |stats| stats.snd_queue)
    };
    let is_full = server.connection(id).is_some_and(|connection| waiting(connection) as usize >= most);
    !is_full || server.is_delivered(id, channel)
}

fn play(address: &str, count: u32) -> Result<(), Failure> {
    let mut client = Client::connect(address, &ClientConfig::secret(session(), SECRET))?;
    let (mut sent, mut back) = (0_u32, 0_u32);
    while back < count {
        client.poll(Some(Duration::from_millis(20)))?;
        while let Some(event) = client.poll_event() {
            if let Event::Closed { reason, .. } = event {
                return Err(format!("{reason}, after {back} messages").into());
            }
        }
        while client.is_connected() && sent < count && client.send(ORDERED, &sent.to_le_bytes()).is_ok() {
            sent += 1;
        }
        while let Some(message) = client.recv(ORDERED) {
            if *message != back.to_le_bytes() {
                return Err(format!("{message:?} instead of {back}").into());
            }
            back += 1;
        }
    }
    client.close_with(9, "thank you")?;
    loop {
        client.poll(Some(Duration::from_secs(5)))?;
        if let Some(Event::Closed { reason, undelivered }) = client.poll_event() {
            let is_good = reason == CloseReason::Local(9) && undelivered.is_empty();
            println!("{back} messages");
            return if is_good { Ok(()) } else { Err(reason.to_string().into()) };
        }
    }
}
