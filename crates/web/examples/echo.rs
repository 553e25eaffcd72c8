//! A server that sends everything back, to native clients and to browsers: what the tests of browsers play against.
//!
//! ```text
//! cargo run --release -p whitewater-web --example echo [port of browsers]
//! ```
//!
//! It prints one line of JSON: where each of them connects, and the hash of its certificate. Everybody knows its secret, 32 times 7, so it is for
//! tests only. It ends when its standard input does.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use whitewater::{Channel, Event, Server, ServerConfig, SessionConfig};
use whitewater_web::{WebConfig, listen};

const RELIABLE: Channel = Channel::ordered(0);
const LATEST: Channel = Channel::unreliable(1);

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(0);
    let session = SessionConfig::new(1, [RELIABLE.into(), LATEST.into()]);
    let mut server = Server::bind("127.0.0.1:0", &ServerConfig::secret(session, [7; 32]))?;
    let mut config = WebConfig::self_signed(["localhost", "127.0.0.1"]);
    config.addr = ([127, 0, 0, 1], port).into();
    let (web, browsers) = listen(&config)?;
    server.attach(browsers)?;
    let hash: String = web.certificate_hash().iter().map(|byte| format!("{byte:02x}")).collect();
    let (url, at) = (web.url("127.0.0.1"), web.local_addr());
    println!(
        r#"{{"udp":"{}","url":"{url}","websocket":"ws://{at}/","hash":"{hash}"}}"#,
        server.local_addr()?
    );
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new()); // an error ends it as well
        ends.store(true, Relaxed);
    });
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
fn echo(server: &mut Server, id: whitewater::SessionId) {
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
