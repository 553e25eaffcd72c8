//! A player: says something ten times a second, and moves to another server without a gap.

use crate::Done;
use crate::game::{self, TALK};
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};
use std::{io, iter, mem};
use whitewater::session::ClientState;
use whitewater::session::token::PublicToken;
use whitewater::{Client, ClientConfig, Event};
use whitewater_matchmaker::messages::Hex;

const FRAME: Duration = Duration::from_millis(10);
const EACH: Duration = Duration::from_millis(100);
/// Number of lines that a player says at the second server.
const ENOUGH: usize = 5;
/// The code for leaving.
const LEFT: u16 = 0;

/// Plays until the server has moved the player once, and all that the player said was answered. The token comes from the game's backend, here as a
/// line of hex digits.
pub(crate) fn run(name: &str) -> Done {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let token = Hex::parse(line.trim()).ok_or("a token is a line of hex digits")?;
    let mut talk =
        Talk { name, said: 0, said_here: 0, next: Instant::now(), answers: 0, server: String::new() };
    let mut current = connect(&token.0)?;
    let (mut coming, mut leaving): (Option<Client>, Option<Client>) = (None, None);
    let mut moves = 0;
    while moves == 0 || talk.said_here < ENOUGH || talk.answers < talk.said {
        for event in pump(&mut current)? {
            match event {
                Event::Redirected => {
                    if let Some(token) = current.take_redirect() {
                        println!("{name}: server {} sends me to another", talk.server);
                        coming = Some(connect(&token)?);
                    }
                }
                Event::Closed { reason, .. } => return Err(format!("{name}: {reason}").into()),
                _ => {}
            }
        }
        // They play on this server until the other one accepts them, and leave when everything said here has arrived.
        if let Some(mut other) = coming.take() {
            if pump(&mut other)?.contains(&Event::Connected) {
                current.close(LEFT);
                leaving = Some(mem::replace(&mut current, other));
                (moves, talk.said_here) = (moves + 1, 0);
            } else {
                coming = Some(other).filter(|other| other.state() != ClientState::Closed); // otherwise they stay
            }
        }
        if let Some(old) = &mut leaving {
            pump(old)?;
            talk.listen(old);
        }
        talk.listen(&mut current);
        talk.speak(&mut current);
        thread::sleep(FRAME);
    }
    current.shutdown(LEFT)?;
    println!("{name}: I was answered all that I said");
    Ok(())
}

fn connect(token: &[u8]) -> Result<Client, Box<dyn Error>> {
    let token = PublicToken::decode(token)?;
    let config = ClientConfig::token(game::session_config(), &token);
    Ok(Client::connect(&*token.addresses, &config)?)
}

fn pump(client: &mut Client) -> io::Result<Vec<Event>> {
    client.pump()?;
    Ok(iter::from_fn(|| client.poll_event()).collect())
}

/// What a player says and hears, on any server.
struct Talk<'a> {
    name: &'a str,
    said: usize,
    said_here: usize,
    next: Instant,
    answers: usize,
    /// The server that answered last.
    server: String,
}

impl Talk<'_> {
    fn speak(&mut self, client: &mut Client) {
        if self.next <= Instant::now() && client.send(TALK, &format!("hello {}", self.said)).is_ok() {
            (self.said, self.said_here) = (self.said + 1, self.said_here + 1);
            self.next = Instant::now() + EACH;
        }
    }

    fn listen(&mut self, client: &mut Client) {
        while let Some(text) = client.recv(TALK) {
            let server = text.split(' ').next().unwrap_or_default();
            if self.server != server {
                println!("{}: server {server} serves me", self.name);
                server.clone_into(&mut self.server);
            }
            self.answers += 1;
        }
    }
}
