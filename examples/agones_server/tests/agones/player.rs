//! A player on a thread of their own, who talks all the time and follows redirects.

use crate::process::PATIENCE;
use crate::protocol::{TALK, session_config};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{iter, mem};
use whitewater::session::token::PublicToken;
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
