//! A player on a server on the network.

use super::Key;
use crate::bots::Bot;
use crate::carry::{Guest, session};
use crate::client::{Client, Command, Game, View};
use crate::wire::{Hello, shown};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use whitewater::session::DenyReason;
use whitewater::{ClientConfig, CloseReason, Event};

/// A client over a socket. When its session ends, it connects again and gets its place back.
#[derive(Debug)]
pub struct Remote {
    server: SocketAddr,
    config: ClientConfig,
    session: whitewater::Client,
    guest: Guest,
    bot: Option<Bot>,
    /// When to connect again.
    again: Option<Instant>,
    /// Why the last session ended.
    ended: Option<CloseReason>,
}

impl Remote {
    /// Starts to connect.
    ///
    /// # Errors
    ///
    /// There is no socket, or the name is too long.
    pub fn connect(server: SocketAddr, key: &Key, hello: &Hello) -> io::Result<Self> {
        let user = hello.encode().map_err(io::Error::other)?;
        let config = ClientConfig { user, ..ClientConfig::secret(session(), key.bytes()) };
        let session = whitewater::Client::connect(server, &config)?;
        Ok(Self { server, config, session, guest: Guest::default(), bot: None, again: None, ended: None })
    }

    /// Lets a bot play from now on.
    pub fn steer_by(&mut self, bot: Bot) {
        self.bot = Some(bot);
    }

    /// The client.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.guest.game
    }

    /// Why the last session ended. `None`: it has not.
    #[must_use]
    pub const fn ended(&self) -> Option<CloseReason> {
        self.ended
    }

    /// Says goodbye, so that others notice at once.
    pub fn leave(&mut self) {
        let _ = self.session.shutdown(0); // a server that misses this notices later
    }

    fn on_event(&mut self, event: Event) -> io::Result<()> {
        let now = self.session.now();
        match event {
            Event::Readable => {
                if let Some(connection) = self.session.connection_mut() {
                    self.guest.read(connection, now);
                }
            }
            Event::Closed { reason: reason @ (CloseReason::Peer(_) | CloseReason::Rejected(_)), .. } => {
                let text = shown(self.session.close_text()); // it is shown on a terminal
                return Err(io::Error::other(format!("the server has closed: {reason} {text}")));
            }
            Event::Closed { reason: CloseReason::Denied(reason), .. } if reason != DenyReason::Busy => {
                return Err(io::Error::other(denied(reason)));
            }
            Event::Closed { reason, .. } => {
                self.ended = Some(reason);
                // A server that has forgotten us is there, so there is nothing to wait for.
                let wait = if reason == CloseReason::ServerForgot { Duration::ZERO } else { AGAIN };
                self.again = Some(Instant::now() + wait);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Game for Remote {
    fn pump(&mut self) -> io::Result<()> {
        if self.again.is_some_and(|at| Instant::now() >= at) {
            self.again = None;
            self.session = whitewater::Client::connect(self.server, &self.config)?;
            self.guest = Guest::default();
        }
        self.session.pump()?;
        while let Some(event) = self.session.poll_event() {
            self.on_event(event)?;
        }
        let now = self.session.now();
        if let Some(bot) = &mut self.bot {
            bot.play(&mut self.guest.game);
        }
        if let Some(connection) = self.session.connection_mut() {
            self.guest.advance(connection, now);
            self.session.flush();
        }
        Ok(())
    }

    fn view(&self) -> Option<View> {
        self.guest.game.view()
    }

    fn command(&mut self, command: Command) {
        self.guest.game.command(command);
    }
}

/// Why trying again would not help, in the words of a player. Somebody on the path may claim it, but a true answer of the
/// server within two seconds prevails.
fn denied(reason: DenyReason) -> String {
    match reason {
        DenyReason::Secret => "the server is there, but does not accept this passphrase or key".to_owned(),
        DenyReason::Protocol | DenyReason::Shape(_) => {
            "the server is there, but is of another version of the game".to_owned()
        }
        _ => format!("the server is there, but refuses: {reason}"),
    }
}

/// How long to wait before connecting again.
const AGAIN: Duration = Duration::from_secs(1);
