//! A server and its clients in one process, with a simulated network between them: in virtual time for tests and
//! figures, in real time for a local game. The same seed gives the same game.

mod kcp;
mod link;
mod sessions;
mod stream;
mod tcp;
pub mod wired;

pub use link::{LinkSpec, LinkSpecError};

use crate::bots::Bot;
use crate::client::{Client, Command};
use crate::server::Server;
use crate::sim::rules::HZ;
use crate::wire::Hello;
use std::time::Duration;
use whitewater::Time;
use whitewater_sim::{Link, LinkStats};

/// What carries the game's packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Transport {
    /// Sessions: unreliable datagrams for snapshots and inputs, a reliable channel for the rest.
    #[default]
    Sessions,
    /// KCP alone, set up to be fast: everything in one reliable stream.
    Kcp,
    /// TCP without delay. It is the system's and cannot be simulated, so only [`wired`] has it.
    Tcp,
}

impl Transport {
    fn server(self, seed: u64, game: Server) -> Box<dyn ServerEnd> {
        match self {
            Self::Sessions => Box::new(sessions::ServerOf::new(seed, game)),
            Self::Kcp => Box::new(stream::ServerOf::<kcp::OfKcp>::new(game)),
            Self::Tcp => Box::new(stream::ServerOf::<tcp::OfTcp>::new(game)),
        }
    }

    fn client(self, now: Time, seed: u64, number: usize, hello: &Hello) -> Box<dyn ClientEnd> {
        match self {
            Self::Sessions => Box::new(sessions::ClientOf::new(now, seed, number, hello)),
            Self::Kcp => Box::new(stream::ClientOf::<kcp::OfKcp>::new(number)),
            Self::Tcp => Box::new(stream::ClientOf::<tcp::OfTcp>::new(number)),
        }
    }
}

/// A server, its clients and the paths between them.
pub struct Lab {
    now: Time,
    server: Box<dyn ServerEnd>,
    next_tick: Time,
    guests: Vec<Guest>,
    seed: u64,
    spec: LinkSpec,
    transport: Transport,
    datagram: Vec<u8>,
}

/// A client of the lab.
struct Guest {
    end: Box<dyn ClientEnd>,
    bot: Option<Bot>,
    hello: Hello,
    up: Link,
    down: Link,
    next_frame: Time,
    is_frozen: bool,
}

/// The server's end of a transport. Clients are numbered in the order in which they joined.
trait ServerEnd {
    fn game(&self) -> &Server;
    fn game_mut(&mut self) -> &mut Server;
    /// A client joins, or joins again, with this number.
    fn expect(&mut self, guest: usize, hello: &Hello);
    fn input(&mut self, now: Time, guest: usize, datagram: &[u8]);
    fn poll(&mut self, now: Time);
    fn tick(&mut self, now: Time);
    fn pop(&mut self, now: Time, datagram: &mut Vec<u8>) -> Option<usize>;
    fn wake(&self, now: Time) -> Option<Time>;
}

/// A client's end of a transport.
trait ClientEnd {
    fn game(&self) -> &Client;
    fn game_mut(&mut self) -> &mut Client;
    fn input(&mut self, now: Time, datagram: &[u8]);
    fn poll(&mut self, now: Time);
    fn advance(&mut self, now: Time);
    fn pop(&mut self, now: Time, datagram: &mut Vec<u8>) -> bool;
    fn wake(&self, now: Time) -> Option<Time>;
    /// Whether the session is over.
    fn is_over(&self) -> bool;
    /// Sets the round trip of a path that is not simulated.
    fn set_rtt(&mut self, _: Duration) {}
}

impl Lab {
    /// A server without clients. Each client will have such a path.
    #[must_use]
    pub fn new(transport: Transport, spec: &LinkSpec, seed: u64) -> Self {
        Self::with_game(transport, spec, seed, Server::new(seed))
    }

    /// The same with an existing game.
    #[must_use]
    pub fn with_game(transport: Transport, spec: &LinkSpec, seed: u64, game: Server) -> Self {
        let now = Time::from_millis(1000);
        let server = transport.server(seed, game);
        let (guests, datagram, spec) = (Vec::new(), Vec::new(), spec.clone());
        Self { now, server, next_tick: now, guests, seed, spec, transport, datagram }
    }

    /// Adds a client, steered by a bot or by [`command`](Self::command). Returns its number.
    pub fn join(&mut self, hello: Hello, is_bot: bool) -> usize {
        let number = self.guests.len();
        let stream = 10 + 10 * number as u64;
        let link = |way| Link::new(self.spec.config(), self.seed, stream + way).ok();
        let (Some(up), Some(down)) = (link(0), link(1)) else { return number };
        let end = self.connect(number, &hello);
        let bot = is_bot.then(|| Bot::new(self.seed ^ stream));
        let frame = FRAME * u32::try_from(number % 7).unwrap_or(0) / 7; // not all at the same moment
        let next_frame = self.now + frame;
        self.guests.push(Guest { end, bot, hello, up, down, next_frame, is_frozen: false });
        number
    }

    /// A client's program crashes and is restarted. Only its name and ticket remain.
    pub fn restart(&mut self, guest: usize) {
        let Some(hello) = self.guests.get(guest).map(|guest| guest.hello.clone()) else { return };
        let end = self.connect(guest, &hello);
        if let Some(guest) = self.guests.get_mut(guest) {
            guest.end = end;
        }
    }

    /// Freezes or unfreezes a client's program. What arrives in the meantime is lost, as in a full buffer.
    pub fn freeze(&mut self, guest: usize, is_frozen: bool) {
        if let Some(guest) = self.guests.get_mut(guest) {
            guest.is_frozen = is_frozen;
        }
    }

    /// Changes all paths from now on.
    pub fn set_link(&mut self, spec: &LinkSpec) {
        for Guest { up, down, .. } in &mut self.guests {
            let _ = up.set(spec.config()).and_then(|()| down.set(spec.config())); // parsed, so within their ranges
        }
        self.spec = spec.clone();
    }

    /// The current time.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The server's game.
    #[must_use]
    pub fn server(&self) -> &Server {
        self.server.game()
    }

    /// The same, to make changes there that no client can make.
    pub fn server_mut(&mut self) -> &mut Server {
        self.server.game_mut()
    }

    /// The number of clients.
    #[must_use]
    pub fn guests(&self) -> usize {
        self.guests.len()
    }

    /// A client's game.
    #[must_use]
    pub fn client(&self, guest: usize) -> Option<&Client> {
        self.guests.get(guest).map(|guest| guest.end.game())
    }

    /// The same, to collect its measurements.
    pub fn client_mut(&mut self, guest: usize) -> Option<&mut Client> {
        self.guests.get_mut(guest).map(|guest| guest.end.game_mut())
    }

    /// Acts for a player.
    pub fn command(&mut self, guest: usize, command: Command) {
        if let Some(client) = self.client_mut(guest) {
            client.command(command);
        }
    }

    /// Whether a client's session is over.
    #[must_use]
    pub fn is_over(&self, guest: usize) -> bool {
        self.guests.get(guest).is_none_or(|guest| guest.end.is_over())
    }

    /// What the path of a client has carried, up and down.
    #[must_use]
    pub fn traffic(&self, guest: usize) -> Option<(LinkStats, LinkStats)> {
        self.guests.get(guest).map(|guest| (guest.up.stats(), guest.down.stats()))
    }

    /// Lets time pass.
    pub fn run_for(&mut self, duration: Duration) {
        self.run_to(self.now + duration);
    }

    /// Lets time pass up to `until`.
    pub fn run_to(&mut self, until: Time) {
        while let Some(next) = self.next().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Lets time pass up to the end of the next tick of the server.
    pub fn run_tick(&mut self) {
        let tick = self.server().world().tick;
        while self.server().world().tick == tick
            && let Some(next) = self.next()
        {
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn connect(&mut self, number: usize, hello: &Hello) -> Box<dyn ClientEnd> {
        self.server.expect(number, hello);
        self.transport.client(self.now, self.seed, number, hello)
    }

    fn next(&self) -> Option<Time> {
        let of_guest = |guest: &Guest| {
            let arrivals = [guest.up.next_arrival(), guest.down.next_arrival()];
            let own = [Some(guest.next_frame), guest.end.wake(self.now)];
            let own = own.into_iter().filter(|_| !guest.is_frozen);
            arrivals.into_iter().chain(own).flatten().min()
        };
        let server = [Some(self.next_tick), self.server.wake(self.now)];
        self.guests.iter().map(of_guest).chain(server).flatten().min()
    }

    /// Does everything that is due now.
    fn step(&mut self) {
        let now = self.now;
        for (number, guest) in self.guests.iter_mut().enumerate() {
            while let Some(datagram) = guest.up.arrive(now) {
                self.server.input(now, number, datagram);
            }
            while let Some(datagram) = guest.down.arrive(now) {
                if !guest.is_frozen {
                    guest.end.input(now, datagram);
                }
            }
        }
        if self.server.wake(self.now).is_some_and(|at| at <= now) {
            self.server.poll(now);
        }
        if now >= self.next_tick {
            self.server.tick(now);
            self.next_tick = self.next_tick + TICK;
        }
        while let Some(number) = self.server.pop(now, &mut self.datagram) {
            if let Some(guest) = self.guests.get_mut(number) {
                guest.down.send(now, &self.datagram);
            }
        }
        for guest in self.guests.iter_mut().filter(|guest| !guest.is_frozen) {
            guest.go_on(now, &mut self.datagram);
        }
    }
}

impl Guest {
    fn go_on(&mut self, now: Time, datagram: &mut Vec<u8>) {
        if self.end.wake(now).is_some_and(|at| at <= now) {
            self.end.poll(now);
        }
        if now >= self.next_frame {
            self.next_frame = now + FRAME;
            if let Some(bot) = &mut self.bot {
                bot.play(self.end.game_mut());
            }
            self.end.advance(now);
        }
        while self.end.pop(now, datagram) {
            self.up.send(now, datagram);
        }
    }
}

/// A tick of the server.
const TICK: Duration = Duration::from_micros(1_000_000 / HZ as u64);
/// A frame of a client.
const FRAME: Duration = Duration::from_micros(16_667);
