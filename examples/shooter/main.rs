//! A shooter: all of its networking is in this file, and the game in [`game`].
//!
//! ```text
//! cargo run --release --features crypto --example shooter -- serve 127.0.0.1:4000
//! cargo run --release --features crypto --example shooter -- join 127.0.0.1:4000 NAME    a bot
//! cargo run --release --features crypto --example shooter -- demo      a server and bots in one process
//! ```
//!
//! Both ends have frames: pump, take events and messages, play, send, flush. Errors of one client are not the server's.

mod demo;
mod game;

use game::{Inputs, Snapshot, View, World};
use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use std::{env, io, thread};
use whitewater::{Channel, ChannelConfig, Client, ClientConfig, CloseReason, Event};
use whitewater::{Server, ServerConfig, SessionConfig, SessionId, kcp};

/// The most urgent first: what players do, where everybody is, what they say, and the level.
const INPUTS: Channel<Inputs> = Channel::unreliable(0);
const SNAPSHOTS: Channel<Snapshot> = Channel::sequenced(1);
const CHAT: Channel<String> = Channel::ordered(2);
const LEVEL: Channel = Channel::unordered(3);

/// Both ends have the same.
fn session() -> SessionConfig {
    let level = ChannelConfig { kcp: kcp::Config::bulk(), ..LEVEL.config() };
    SessionConfig::new(0x7368_6f6f_7400_0001, [INPUTS.into(), SNAPSHOTS.into(), CHAT.into(), level])
}

/// 32 random bytes, in a game from a connect token.
const SECRET: [u8; 32] = *b"an example is no place for it...";
/// The code for those who shall not come back.
const KICKED: u16 = 1;

struct Host {
    server: Server,
    world: World,
}

impl Host {
    fn bind(at: impl ToSocketAddrs) -> io::Result<Self> {
        let config = ServerConfig { max_sessions: game::PLAYERS, ..ServerConfig::secret(session(), SECRET) };
        Ok(Self { server: Server::bind(at, &config)?, world: World::default() })
    }

    fn frame(&mut self) -> io::Result<()> {
        self.server.pump()?;
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Connected => self.welcome(id),
                Event::Readable => self.read(id),
                Event::Closed { reason, .. } => {
                    let name = self.world.leave(id.to_bits());
                    self.server.broadcast(CHAT, &format!("{name} is gone: {reason}"));
                }
                _ => {}
            }
        }
        for cheater in self.world.cheaters() {
            let _ = self.server.kick(SessionId::from_bits(cheater), KICKED, "you shoot too fast");
        }
        if self.world.step().is_multiple_of(FRAMES_PER_SNAPSHOT) {
            for id in self.server.clients() {
                // If there is no room for it, the next one makes up for it.
                let _ = self.server.send(id, SNAPSHOTS, &self.world.seen_by(id.to_bits()));
            }
        }
        self.server.flush();
        Ok(())
    }

    fn welcome(&mut self, id: SessionId) {
        let name = String::from_utf8_lossy(self.server.user(id)).into_owned();
        self.server.broadcast(CHAT, &format!("{name} joins"));
        self.world.join(id.to_bits(), name);
        let _ = self.server.send(id, LEVEL, &game::level()); // 300 KB, beside the rest
    }

    fn read(&mut self, id: SessionId) {
        while let Some(inputs) = self.server.recv(id, INPUTS) {
            self.world.play(id.to_bits(), &inputs);
        }
        while let Some(text) = self.server.recv(id, CHAT) {
            self.server.broadcast(CHAT, &format!("{}: {text}", self.world.name(id.to_bits())));
        }
    }
}

struct Bot {
    client: Client,
    server: SocketAddr,
    config: ClientConfig,
    view: View,
}

impl Bot {
    fn join(server: SocketAddr, name: &str) -> io::Result<Self> {
        let config = ClientConfig { user: name.into(), ..ClientConfig::secret(session(), SECRET) };
        Ok(Self { client: Client::connect(server, &config)?, server, config, view: View::default() })
    }

    fn frame(&mut self) -> io::Result<()> {
        self.client.pump()?;
        while let Some(event) = self.client.poll_event() {
            let Event::Closed { reason, .. } = event else { continue };
            if matches!(reason, CloseReason::Peer(KICKED) | CloseReason::Denied(_)) {
                return Err(io::Error::other(format!("{reason}: {}", self.client.close_text())));
            }
            // The server may be back soon. A client has one session, so this takes another one.
            self.view.hear(format!("{reason}; connecting again"));
            self.client = Client::connect(self.server, &self.config)?;
        }
        while let Some(snapshot) = self.client.recv(SNAPSHOTS) {
            self.view.see(snapshot);
        }
        while let Some(line) = self.client.recv(CHAT) {
            self.view.hear(line);
        }
        if let Some(level) = self.client.recv(LEVEL) {
            self.view.load(&level);
        }
        // If it is not connected, or there is no room, it is in the next one.
        let _ = self.client.send(INPUTS, self.view.play());
        self.client.flush();
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", at] => run(Host::bind(at)?, Host::frame),
        ["join", at, name] => run(Bot::join(at.parse()?, name)?, Bot::frame),
        ["demo"] => demo::run(),
        _ => Err("it is serve ADDRESS, join ADDRESS NAME or demo".into()),
    }
}

/// 60 frames a second, until one fails.
fn run<T>(mut end: T, frame: fn(&mut T) -> io::Result<()>) -> Result<(), Box<dyn Error>> {
    loop {
        frame(&mut end)?;
        thread::sleep(FRAME);
    }
}

const FRAME: Duration = Duration::from_micros(16_667);
/// 20 snapshots a second.
const FRAMES_PER_SNAPSHOT: u32 = 3;
