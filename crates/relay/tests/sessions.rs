//! Sessions of guests with a host, by a relay over loopback.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

mod common;

use common::{PATIENCE, Running, TALK, free_address, guest, server};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::{Client, Event, Server, SessionId};

/// A host with its guests.
struct Game {
    server: Server,
    guests: Vec<Client>,
    sessions: Vec<SessionId>,
    events: Vec<Event>,
    /// The end of any session.
    closed: Vec<Event>,
    heard: Vec<u8>,
}

impl Game {
    fn host(relay: SocketAddr) -> Self {
        let game = Self {
            server: server(relay),
            guests: Vec::new(),
            sessions: Vec::new(),
            events: Vec::new(),
            closed: Vec::new(),
            heard: Vec::new(),
        };
        thread::sleep(Duration::from_millis(1100)); // tokens of the second in which a server starts may be from before
        game
    }

    fn join(&mut self, relay: SocketAddr, guests: u8) {
        self.run_until("the host registers", |game| !game.server.candidates().is_empty());
        self.guests.extend((1..=guests).map(|number| guest(relay, number)));
        self.run_until("all are up", |game| game.sessions.len() == usize::from(guests));
    }

    /// Each guest says so many numbers, and hears each twice.
    fn talk(&mut self, numbers: u8) {
        for number in 0..numbers {
            for guest in &mut self.guests {
                guest.send(TALK, &[number]).unwrap();
            }
            let all = self.guests.len();
            self.run_until("all are answered", |game| game.heard.len() == all);
            assert!(self.heard.drain(..).all(|heard| heard == number));
        }
    }

    fn run_until(&mut self, what: &str, is_done: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_done(self) {
            assert!(start.elapsed() < PATIENCE, "not yet: {what}");
            self.server.pump().unwrap();
            while let Some((id, event)) = self.server.poll_event() {
                match event {
                    Event::Connected => self.sessions.push(id),
                    Event::Closed { .. } => self.closed.push(event),
                    _ => self.events.push(event),
                }
                while let Some(line) = self.server.recv(id, TALK) {
                    self.server.send(id, TALK, &line).unwrap();
                }
            }
            for guest in &mut self.guests {
                guest.pump().unwrap();
                while let Some(event) = guest.poll_event() {
                    assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
                }
                while let Some(line) = guest.recv(TALK) {
                    self.heard.extend_from_slice(&line);
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn twenty_guests_play_with_a_host_that_only_the_relay_reaches_and_are_known_by_their_own_addresses() {
    let relay = free_address();
    let running = Running::start(relay);
    let mut game = Game::host(relay);
    game.join(relay, 20);
    game.talk(20);
    for guest in &game.guests {
        let own = guest.local_addr().unwrap().port();
        let met = game.sessions.iter().filter_map(|id| game.server.machine().peer_addr(*id));
        assert_eq!(met.filter(|address| address.port() == own).count(), 1);
    }
    assert!(game.closed.is_empty() && game.events.iter().all(|event| !matches!(event, Event::Moved { .. })));
    let counts = running.stop();
    assert_eq!((counts.links, counts.hosts), (20, 1));
    let refused = counts.forged + counts.malformed + counts.gone + counts.too_fast + counts.no_host;
    assert_eq!(refused, 0, "{counts}");
}

#[test]
fn sessions_outlive_a_restart_of_the_relay_and_guests_that_move() {
    let relay = free_address();
    let running = Running::start(relay);
    let mut game = Game::host(relay);
    game.join(relay, 8);
    game.talk(3);
    let first = running.stop();
    let again = Running::start(relay);
    game.talk(3);
    for guest in &mut game.guests[..4] {
        guest.path_changed();
    }
    game.talk(10);
    let moved = game.events.iter().filter(|event| matches!(event, Event::Moved { .. })).count();
    assert!(moved >= 4 && game.closed.is_empty(), "{moved} moves");
    let counts = again.stop();
    assert_eq!((first.opened, counts.hosts), (8, 1));
    assert!(counts.cookies >= 1 && counts.links >= 8, "the host has registered by itself: {counts}");
}
