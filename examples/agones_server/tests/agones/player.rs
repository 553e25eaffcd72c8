//! A player on a thread of their own, who talks all the time and follows redirects.

use crate::process::{FLEET_KEY, PATIENCE};
use crate::protocol::{KEY_ID, PROTOCOL_ID, TALK, session_config};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{iter, mem};
use whitewater::session::Suite;
use whitewater::session::token::{FleetKey, Order, PublicToken};
use whitewater::{Client, ClientConfig, CloseReason, Event};

const EACH: Duration = Duration::from_millis(20);

/// What a player sees.
#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    Joined,
    /// An answer of the server with this name.
    Heard(String),
    Closed(CloseReason),
}

pub(crate) struct Player {
    seen: Receiver<Seen>,
    /// Dropping it makes the player leave.
    stay: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A token of the matchmaker, which has the key of the fleet.
pub(crate) fn token(at: SocketAddr, server_id: u64, player: u64) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let order = Order {
        protocol_id: PROTOCOL_ID,
        suite: Suite::TOKEN,
        client_id: player,
        match_id: [0; 16],
        created: now,
        expires: now + 60,
        addresses: &[at],
        server_key: None,
        routing_token: b"",
        user: b"",
    };
    let (mut psk, mut nonce) = ([0; 32], [0; 24]);
    getrandom::fill(&mut psk).unwrap();
    getrandom::fill(&mut nonce).unwrap();
    let key = FleetKey::new(FLEET_KEY).server_key(server_id, KEY_ID);
    key.mint(&order, psk, nonce).unwrap().encode().to_vec()
}

impl Player {
    /// Goes to the server with this token, and says that text again and again.
    pub(crate) fn start(token: &[u8], text: &str) -> Self {
        let (tell, seen) = channel();
        let (stay, until) = channel();
        let (client, text) = (connect(token), text.to_owned());
        let thread = thread::spawn(move || play(client, &text, &tell, &until));
        Self { seen, stay: Some(stay), thread: Some(thread) }
    }

    /// One who has joined.
    pub(crate) fn join(token: &[u8]) -> Self {
        let player = Self::start(token, "hello");
        assert_eq!(player.next(), Seen::Joined);
        player
    }

    /// What they see next.
    pub(crate) fn next(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).expect("the player sees nothing")
    }

    /// Waits until they see this.
    pub(crate) fn wait(&self, what: &Seen) {
        while self.next() != *what {}
    }

    /// An answer to what they have said from now on.
    pub(crate) fn is_served_by(&self, server: &str) {
        while self.seen.try_recv().is_ok() {}
        self.wait(&Seen::Heard(server.to_owned()));
    }

    /// Says goodbye.
    pub(crate) fn leave(mut self) {
        drop(self.stay.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

fn connect(token: &[u8]) -> Client {
    let token = PublicToken::decode(token).unwrap();
    Client::connect(&*token.addresses, &ClientConfig::token(session_config(), &token)).unwrap()
}

fn play(mut client: Client, text: &String, tell: &Sender<Seen>, until: &Receiver<()>) {
    let mut coming: Option<Client> = None;
    while until.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
        client.pump().unwrap();
        while let Some(event) = client.poll_event() {
            match event {
                Event::Connected => drop(tell.send(Seen::Joined)),
                Event::Redirected => coming = client.take_redirect().map(|token| connect(&token)),
                Event::Closed { reason, .. } => {
                    let _ = tell.send(Seen::Closed(reason));
                    return;
                }
                _ => {}
            }
        }
        while let Some(answer) = client.recv(TALK) {
            let server = answer.split(' ').next().unwrap().to_owned();
            let _ = tell.send(Seen::Heard(server)); // nobody may look
        }
        let _ = client.send(TALK, text); // full if the server hangs
        if let Some(mut next) = coming.take() {
            next.pump().unwrap();
            let is_up = iter::from_fn(|| next.poll_event()).any(|event| event == Event::Connected);
            if is_up {
                mem::replace(&mut client, next).shutdown(0).unwrap();
            } else {
                coming = Some(next);
            }
        }
        thread::sleep(EACH);
    }
    client.shutdown(0).unwrap();
}
