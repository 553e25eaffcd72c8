//! A player: sends a few messages in each frame and receives the echo of all of them.

use super::servers::{CODE, HEARD_ENOUGH, SENT_AWAY, client_config, is_sent_away, kcp_config};
use super::stream::{LONGEST, check, message};
use super::{BARE, SESSIONS};
use std::net::SocketAddr;
use whitewater::kcp::{self, Conv};
use whitewater::session;
use whitewater::{Channel, Client, CloseReason, Event};
use whitewater_sim::SimRng;

/// How the player leaves.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    /// Never.
    Stays,
    /// Says goodbye once everything has arrived.
    Leaves,
    /// The server closes the session.
    SentAway,
    /// Disappears without a goodbye.
    Crashes,
    /// Bare KCP has no goodbye: it leaves once everything is acknowledged.
    Drains,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] =
        [Self::Stays, Self::Leaves, Self::SentAway, Self::Crashes, Self::Drains];

    pub(crate) const fn of(player: u32, is_bare: bool) -> Self {
        match player % 4 {
            0 if player < SESSIONS + BARE => Self::Stays, // one of the first to come
            0 | 1 if is_bare => Self::Drains,
            0 | 1 => Self::Leaves,
            _ if is_sent_away(player) && !is_bare => Self::SentAway,
            _ => Self::Crashes,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Player {
    pub(crate) kind: Kind,
    number: u32,
    end: End,
    frames: u32,
    said: u32,
    heard: u32,
    state: State,
}

#[derive(Debug)]
enum End {
    Session(Box<Client>),
    Bare(Box<kcp::Socket>),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Speaks,
    /// Stops sending because the test is over.
    Silent,
    Leaves,
    Gone,
}

impl Player {
    pub(crate) fn begin(number: u32, is_bare: bool, to: SocketAddr) -> Self {
        let (kind, end) = (Kind::of(number, is_bare), End::begin(number, is_bare, to));
        Self { kind, number, end, frames: 0, said: 0, heard: 0, state: State::Speaks }
    }

    pub(crate) fn say_no_more(&mut self) {
        if self.state == State::Speaks {
            self.state = State::Silent;
        }
    }

    /// Whether it has received the echo of everything it sent. A player who leaves need not.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.state == State::Gone || self.heard == self.said
    }

    pub(crate) const fn heard(&self) -> u32 {
        self.heard
    }

    /// Plays one frame. Returns whether the player is gone.
    pub(crate) fn play(&mut self) -> bool {
        self.frames += 1;
        self.hear();
        if self.state == State::Speaks {
            self.speak();
            if self.frames >= 200 + self.number * 37 % 400 {
                self.end();
            }
        }
        if self.state == State::Leaves && self.end.is_drained() && self.is_caught_up() {
            self.state = State::Gone;
        }
        self.state == State::Gone
    }

    fn speak(&mut self) {
        let is_due = self.frames % 8 == self.number % 8 && self.said < self.heard + UNHEARD_MAX;
        if is_due && self.end.say(&message(self.number, self.said)) {
            self.said += 1;
        }
    }

    fn hear(&mut self) {
        let mut buf = [0; LONGEST];
        let closed = self.end.pump();
        while let Some(len) = self.end.hear(&mut buf) {
            assert_eq!(check(&buf[..len]), (self.number, self.heard), "the next of its own");
            self.heard += 1;
        }
        if let Some(reason) = closed {
            let is_expected = match self.kind {
                Kind::Leaves => reason == CloseReason::Local(self.code()),
                Kind::SentAway => reason == CloseReason::Peer(SENT_AWAY) && self.heard >= HEARD_ENOUGH,
                _ => false,
            };
            assert!(is_expected, "{reason:?}: {self:?}");
            self.state = State::Gone;
        }
    }

    /// It is time to leave.
    fn end(&mut self) {
        match (self.kind, &mut self.end) {
            (Kind::Crashes, _) => self.state = State::Gone,
            (Kind::Drains, _) => self.state = State::Leaves,
            (Kind::Leaves, End::Session(client)) => {
                client.close(u16::try_from(self.said & CODE).unwrap());
                self.state = State::Silent;
            }
            _ => {}
        }
    }

    fn code(&self) -> u16 {
        u16::try_from(self.said & CODE).unwrap()
    }
}

impl Drop for End {
    /// Without a goodbye, unless it was said: a client that has forgotten its session has nothing to say.
    fn drop(&mut self) {
        if let Self::Session(client) = self {
            *client.machine_mut() = session::Client::new(&client_config(), SimRng::new(1, 1)).unwrap();
        }
    }
}

impl End {
    fn begin(number: u32, is_bare: bool, to: SocketAddr) -> Self {
        if is_bare {
            let socket = kcp::Socket::connect(to, Conv(number << 8 | 1), &kcp_config()).unwrap();
            return Self::Bare(Box::new(socket));
        }
        Self::Session(Box::new(Client::connect(to, &client_config()).unwrap()))
    }

    /// Does what is due. Returns why the session is over, if it is.
    fn pump(&mut self) -> Option<CloseReason> {
        match self {
            Self::Session(client) => {
                client.pump().unwrap();
                let reason =
                    |event| if let Event::Closed { reason, .. } = event { Some(reason) } else { None };
                std::iter::from_fn(|| client.poll_event()).find_map(reason)
            }
            Self::Bare(socket) => {
                socket.pump().unwrap();
                None
            }
        }
    }

    /// Sends a message. Returns `false` while the session is not up yet.
    fn say(&mut self, message: &[u8]) -> bool {
        match self {
            Self::Session(client) => client.send(CHAT, message).is_ok(),
            Self::Bare(socket) => socket.send(message).is_ok(),
        }
    }

    fn hear(&mut self, buf: &mut [u8]) -> Option<usize> {
        match self {
            Self::Session(client) => client.recv_into(CHAT, buf).ok(),
            Self::Bare(socket) => socket.recv_into(buf).ok(),
        }
    }

    /// Whether everything sent over bare KCP is acknowledged.
    fn is_drained(&self) -> bool {
        matches!(self, Self::Bare(socket) if socket.kcp().wait_snd() == 0)
    }
}

/// Where players speak.
pub(crate) const CHAT: Channel = Channel::ordered(0);
/// Messages under way of a player: fewer than its queues hold.
const UNHEARD_MAX: u32 = 32;
