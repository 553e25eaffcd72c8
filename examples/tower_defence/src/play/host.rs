//! A server for other players, over a socket.

use super::ticket::drawn;
use super::{Key, Remote};
use crate::bots::Bot;
use crate::carry::{Host, session};
use crate::client::Game;
use crate::server::Server;
use crate::sim::rules::HZ;
use crate::wire::{Hello, Wish};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use whitewater::ServerConfig;
use whitewater::net::Transport;

/// A server, with bots that play on it.
#[derive(Debug)]
pub struct Hosting {
    server: whitewater::Server,
    host: Host,
    bots: Vec<Remote>,
    next: Instant,
}

impl Hosting {
    /// Starts to listen, and adds bots.
    ///
    /// # Errors
    ///
    /// The address is not available.
    pub fn bind(at: SocketAddr, key: &Key, bots: u8, seed: u64) -> io::Result<Self> {
        let config = ServerConfig {
            // All bots come from one address at once.
            sessions_per_address: 64,
            half_open_per_address: 64,
            accept_burst: 64,
            reset_key: Some(key.reset()), // after a restart, clients need not wait until silence ends their sessions
            ..ServerConfig::secret(session(), key.bytes())
        };
        let server = whitewater::Server::bind(at, &config)?;
        let port = server.local_addr()?.port();
        let bot = |number: u8| {
            // Whoever guesses this could take the bot's place.
            let hello = Hello { name: format!("bot {number}"), wish: Wish::Any, ticket: drawn()? };
            let mut remote = Remote::connect((Ipv4Addr::LOCALHOST, port).into(), key, &hello)?;
            remote.steer_by(Bot::new(seed ^ u64::from(number)));
            Ok(remote)
        };
        let bots = (1..=bots).map(bot).collect::<io::Result<_>>()?;
        Ok(Self { server, host: Host::new(Server::new(seed)), bots, next: Instant::now() })
    }

    /// Lets the peers of a transport play as well, such as browsers.
    ///
    /// # Errors
    ///
    /// The system has nothing left that could wake the server.
    pub fn attach(&mut self, transport: impl Transport + 'static) -> io::Result<()> {
        self.server.attach(transport)
    }

    /// Receives what has arrived and does what is due. Call it every millisecond or two.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn pump(&mut self) -> io::Result<()> {
        self.server.pump()?;
        let now = self.server.now();
        while let Some((id, event)) = self.server.poll_event() {
            self.host.on_event(self.server.machine_mut(), now, id, event);
        }
        let late = self.next.elapsed();
        if !late.is_zero() {
            self.host.tick(self.server.machine_mut());
            self.server.flush();
            // If the machine was suspended, the game continues without catching up.
            self.next += if late > 8 * TICK { late } else { TICK };
        }
        self.bots.retain_mut(|bot| bot.pump().is_ok()); // the game continues without a bot that was sent away
        Ok(())
    }

    /// The address of the server.
    ///
    /// # Errors
    ///
    /// The system does not know it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.server.local_addr()
    }

    /// The game.
    #[must_use]
    pub const fn game(&self) -> &Server {
        &self.host.game
    }
}

/// A tick of the server.
const TICK: Duration = Duration::from_micros(1_000_000 / HZ as u64);
