//! A player: says something ten times a second, and moves to another server without a gap.

use crate::keys::{self, TALK};
use crate::{Done, http};
use std::error::Error;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use std::{io, iter, mem};
use whitewater::session::ClientState;
use whitewater::session::token::PublicToken;
use whitewater::{Client, ClientConfig, Event};

const FRAME: Duration = Duration::from_millis(10);
const EACH: Duration = Duration::from_millis(100);
/// Number of lines that a player says at the second server.
const ENOUGH: usize = 5;
/// The code for leaving.
const LEFT: u16 = 0;

/// Plays until the server has moved the player once, and all that the player said was answered.
pub(crate) fn run(name: &str, matchmaker: SocketAddr, say: &dyn Fn(&str)) -> Done {
    let mut talk =
        Talk { name, said: 0, said_here: 0, next: Instant::now(), answers: 0, server: String::new() };
    let mut current = connect(&http::post(matchmaker, "/play", name.as_bytes())?)?;
    let (mut coming, mut leaving): (Option<Client>, Option<Client>) = (None, None);
    let mut moves = 0;
    while moves == 0 || talk.said_here < ENOUGH || talk.answers < talk.said {
        for event in pump(&mut current)? {
            match event {
                Event::Redirected => {
                    if let Some(token) = current.take_redirect() {
                        say(&format!("{name}: server {} sends me to another", talk.server));
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
            talk.listen(old, say);
        }
        talk.listen(&mut current, say);
        talk.speak(&mut current);
        thread::sleep(FRAME);
    }
    current.shutdown(LEFT)?;
    say(&format!("{name}: I was answered all that I said"));
    Ok(())
}

fn connect(token: &[u8]) -> Result<Client, Box<dyn Error>> {
    let token = PublicToken::decode(token)?;
    let config = ClientConfig::token(keys::session_config(), &token);
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

    fn listen(&mut self, client: &mut Client, say: &dyn Fn(&str)) {
        while let Some(text) = client.recv(TALK) {
            let server = text.split(' ').next().unwrap_or_default();
            if self.server != server {
                say(&format!("{}: server {server} serves me", self.name));
                server.clone_into(&mut self.server);
            }
            self.answers += 1;
        }
    }
}
