//! A player of a match that players host, over sockets.

use super::Key;
use crate::bots::Bot;
use crate::client::{Command, Game, View};
use crate::peers::{HANDOVER, Member, Task, session};
use crate::wire::{Hello, shown};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};
use whitewater::{Client, ClientConfig, CloseReason, Event, Server, Time};

/// A player, and maybe the host.
pub struct Peer {
    lobby_at: SocketAddr,
    lobby_config: ClientConfig,
    lobby: Client,
    /// When to connect to the lobby again.
    again: Option<Instant>,
    member: Member,
    client: Option<Client>,
    server: Option<Server>,
    start: Instant,
}

impl Peer {
    /// Starts to connect to a lobby. `seed`: for a match that begins here.
    ///
    /// # Errors
    ///
    /// There is no socket, or the name is too long.
    pub fn connect(
        lobby: SocketAddr,
        key: &Key,
        hello: &Hello,
        bot: Option<Bot>,
        seed: u64,
    ) -> io::Result<Self> {
        let user = hello.encode().map_err(io::Error::other)?;
        let config = ClientConfig { user, ..ClientConfig::secret(session(), key.bytes()) };
        // No host needs to know by which number the lobby knows us.
        let for_hosts = Hello { ticket: 0, ..hello.clone() }.encode().map_err(io::Error::other)?;
        Ok(Self {
            lobby_at: lobby,
            lobby: Client::connect(lobby, &config)?,
            lobby_config: config,
            again: None,
            member: Member::new(for_hosts, bot, seed),
            client: None,
            server: None,
            start: Instant::now(),
        })
    }

    /// The player.
    #[must_use]
    pub const fn member(&self) -> &Member {
        &self.member
    }

    /// Says goodbye. If this player hosts, the heirs get the match as it is now, and then the lobby hears of it.
    pub fn leave(&mut self) {
        self.client = None; // says so
        if let Some(server) = &mut self.server {
            self.member.leave(server.machine_mut());
        }
        let begun = Instant::now();
        while let Some(server) = &mut self.server
            && !self.member.is_bequeathed(server.machine_mut())
            && begun.elapsed() < HANDOVER
            && self.serve().is_ok()
        {
            thread::sleep(Duration::from_millis(1));
        }
        // Who misses this notices later.
        if let Some(mut server) = self.server.take() {
            let _ = server.shutdown(0);
        }
        let _ = self.lobby.shutdown(0);
    }

    fn talk(&mut self) -> io::Result<()> {
        if self.again.is_some_and(|at| Instant::now() >= at) {
            self.again = None;
            self.lobby = Client::connect(self.lobby_at, &self.lobby_config)?;
        }
        self.lobby.pump()?;
        while let Some(event) = self.lobby.poll_event() {
            let Event::Closed { reason, .. } = event else { continue };
            if let CloseReason::Peer(_) | CloseReason::Rejected(_) | CloseReason::Denied(_) = reason {
                let text = shown(self.lobby.close_text()); // it is shown on a terminal
                return Err(io::Error::other(format!("the lobby has closed: {reason} {text}")));
            }
            self.again = Some(Instant::now() + AGAIN); // the match goes on without it
        }
        let now = self.now();
        while let Some(connection) = self.lobby.connection_mut()
            && let Some(task) = self.member.talk(connection, now)
        {
            self.perform(task);
        }
        self.lobby.flush();
        Ok(())
    }

    fn perform(&mut self, task: Task) {
        if !self.member.hosts() {
            self.server = None;
        }
        match task {
            Task::Bind(config) => {
                self.server = Server::bind((Ipv4Addr::UNSPECIFIED, 0), &config).ok();
                if self.server.is_none() {
                    self.member.decline();
                }
            }
            Task::Join(config, addresses) => {
                let port = self.server.as_ref().and_then(|server| server.local_addr().ok());
                let own = port.map(|own| vec![SocketAddr::from((Ipv4Addr::LOCALHOST, own.port()))]);
                self.client = Client::connect(&*own.unwrap_or(addresses), &config).ok();
            }
        }
    }

    fn serve(&mut self) -> io::Result<()> {
        let now = self.now();
        let Some(server) = &mut self.server else { return Ok(()) };
        server.pump()?;
        let server_now = server.now();
        while let Some((id, event)) = server.poll_event() {
            self.member.on_guest(server.machine_mut(), server_now, id, event);
        }
        let addresses = server.candidates();
        self.member.serve(server.machine_mut(), now, addresses);
        server.flush();
        Ok(())
    }

    /// Sessions with one host after the other have clocks of their own, the game has one.
    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }
}

impl Game for Peer {
    fn pump(&mut self) -> io::Result<()> {
        self.talk()?;
        self.serve()?;
        let now = self.now();
        if let Some(client) = &mut self.client {
            client.pump()?;
            while let Some(event) = client.poll_event() {
                self.member.on_event(client.connection_mut(), now, event);
            }
        }
        let connection = self.client.as_mut().and_then(Client::connection_mut);
        self.member.frame(connection, now);
        if let Some(client) = &mut self.client {
            client.flush();
        }
        Ok(())
    }

    fn view(&self) -> Option<View> {
        self.member.guest.game.view()
    }

    fn command(&mut self, command: Command) {
        self.member.guest.game.command(command);
    }
}

/// How long to wait before connecting to the lobby again.
const AGAIN: Duration = Duration::from_secs(1);
