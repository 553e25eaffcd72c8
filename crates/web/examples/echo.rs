//! A server that sends everything back, to native clients and to browsers: what the tests of browsers play against.
//!
//! ```text
//! cargo run --release -p whitewater-web --example echo [port of browsers]
//! ```
//!
//! It prints one line of JSON: where each of them connects, and the hash of its certificate. Everybody knows its secret, 32 times 7, so it is for
//! tests only. Beside it is a server that demands connect tokens, with some of them, as a matchmaker would give them to players. It ends when its
//! standard input does.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};
use whitewater::session::Suite;
use whitewater::session::token::{Order, ServerKey};
use whitewater::{Channel, Event, Server, ServerConfig, SessionConfig, SessionId};
use whitewater_web::{Web, WebConfig, listen};

const RELIABLE: Channel = Channel::ordered(0);
const LATEST: Channel = Channel::unreliable(1);
const PROTOCOL: u64 = 1;

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(0);
    let session = SessionConfig::new(PROTOCOL, [RELIABLE.into(), LATEST.into()]);
    let (server, web) = open(&ServerConfig::secret(session.clone(), [7; 32]), port)?;
    let (guarded, its_web) = open(&ServerConfig::tokens(session, key()), 0)?;
    let tokens = (0..4).map(|client| Ok(format!("{:?}", hex(&token(client, &guarded)?))));
    let tokens = tokens.collect::<io::Result<Vec<_>>>()?.join(",");
    let (here, there, udp) = (address(&web), address(&its_web), server.local_addr()?);
    println!(r#"{{"udp":"{udp}",{here},"guarded":{{{there},"tokens":[{tokens}]}}}}"#);
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new()); // an error ends it as well
        ends.store(true, Relaxed);
    });
    let ends = Arc::clone(&is_over);
    let beside = thread::spawn(move || run(guarded, &its_web, &ends));
    run(server, &web, &is_over)?;
    beside.join().map_err(|_| io::Error::other("the server with tokens has panicked"))?
}

/// A server, and where browsers come in.
fn open(config: &ServerConfig, port: u16) -> io::Result<(Server, Web)> {
    let mut server = Server::bind("127.0.0.1:0", config)?;
    let mut web = WebConfig::self_signed(["localhost", "127.0.0.1"]);
    web.addr = ([127, 0, 0, 1], port).into();
    let (web, browsers) = listen(&web)?;
    server.attach(browsers)?;
    Ok((server, web))
}

/// Where browsers connect, as members of an object of JSON.
fn address(web: &Web) -> String {
    let (url, at, hash) = (web.url("127.0.0.1"), web.local_addr(), hex(&web.certificate_hash()));
    format!(r#""url":"{url}","websocket":"ws://{at}/","hash":"{hash}""#)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key() -> ServerKey {
    ServerKey::new(5, 0, [9; 32])
}

/// What a matchmaker gives to a player.
fn token(client_id: u64, server: &Server) -> io::Result<Vec<u8>> {
    let created = UNIX_EPOCH.elapsed().map_err(io::Error::other)?.as_secs();
    let order = Order {
        protocol_id: PROTOCOL,
        suite: Suite::TOKEN,
        client_id,
        match_id: [0; 16],
        created,
        expires: created + 600,
        addresses: &[server.local_addr()?],
        server_key: None,
        routing_token: b"",
        user: b"",
    };
    let once = u8::try_from(client_id).unwrap_or_default();
    let token = key().mint(&order, [once; 32], [once; 24]).map_err(io::Error::other)?;
    Ok(token.encode().to_vec())
}

fn run(mut server: Server, web: &Web, is_over: &AtomicBool) -> io::Result<()> {
    while !is_over.load(Relaxed) {
        server.poll(Some(Duration::from_millis(100)))?;
        while let Some((id, event)) = server.poll_event() {
            match event {
                Event::Readable => echo(&mut server, id),
                event => eprintln!("{id} {event:?}"),
            }
        }
        server.flush();
    }
    eprintln!("{:?} {:?}", server.stats(), web.stats());
    Ok(())
}

/// What finds no room is lost: whoever sends that much without reading tests something else.
fn echo(server: &mut Server, id: SessionId) {
    while let Some(message) = server.recv(id, RELIABLE) {
        let _ = server.send(id, RELIABLE, &message);
    }
    while let Some(message) = server.recv(id, LATEST) {
        let _ = server.send(id, LATEST, &message);
    }
    while let Some(datagram) = server.recv_datagram(id) {
        let _ = server.send_datagram(id, &datagram);
    }
}
