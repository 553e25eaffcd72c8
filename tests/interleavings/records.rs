//! What both ends reported, and what must hold of it at any time.

use crate::world::{CHAT, CLIENT, SERVER};
use std::collections::BTreeMap;
use whitewater::session::{Connection, Undelivered};
use whitewater::{CloseReason, Event, SessionId};

#[derive(Default)]
pub(crate) struct Records {
    /// Of the present process of the client.
    generation: u8,
    client: Life,
    /// Sessions of the present process of the server that are up.
    servers: BTreeMap<SessionId, Life>,
    /// What each process of the client and its sessions said: up, down.
    flows: BTreeMap<u8, [Flow; 2]>,
    /// Sessions of the server that came up, by the process of the client, since the server's process began.
    came_up: BTreeMap<u8, u32>,
    /// Whether the present server redirected the present client.
    pub(crate) redirects: bool,
    redirected: u32,
    /// What happened, and how often.
    pub(crate) tally: BTreeMap<String, u64>,
}

#[derive(Debug, Default, Eq, PartialEq)]
enum Life {
    #[default]
    New,
    Up,
    Over(CloseReason, Undelivered),
}

/// Messages in one direction: how many were sent, and how many arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    sent: u8,
    arrived: u8,
}

impl Flow {
    const fn is_through(self) -> bool {
        self.sent == self.arrived
    }
}

impl Records {
    pub(crate) fn begin_client(&mut self, generation: u8) {
        (self.generation, self.client) = (generation, Life::New);
        (self.redirects, self.redirected) = (false, 0);
    }

    pub(crate) fn begin_server(&mut self) {
        self.servers.clear();
        self.came_up.clear();
        self.redirects = false;
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.servers.keys().copied()
    }

    pub(crate) fn on_client(&mut self, event: Event, session: Option<&mut Connection>) {
        assert!(
            !matches!(self.client, Life::Over(..)),
            "the client reports {event:?} after {:?}",
            self.client
        );
        match event {
            Event::Connected => {
                assert_eq!(self.client, Life::New, "the client comes up twice");
                self.client = Life::Up;
                self.say(CLIENT, self.generation, session.unwrap());
            }
            Event::Closed { reason, undelivered } => {
                self.count(&format!("client: {reason:?}"));
                session.into_iter().for_each(|session| self.hear(CLIENT, self.generation, session));
                self.client = Life::Over(reason, undelivered);
                self.check_client();
            }
            Event::Readable => self.hear(CLIENT, self.generation, session.unwrap()),
            Event::Redirected => {
                self.count("redirected");
                self.redirected += 1;
            }
            _ => assert_eq!(self.client, Life::Up, "{event:?}"),
        }
        assert!(self.redirected <= 1, "redirected once, told {} times", self.redirected);
    }

    pub(crate) fn on_server(&mut self, id: SessionId, event: Event, session: Option<&mut Connection>) {
        let session = session.expect("its session");
        let generation = session.user()[0];
        if event == Event::Connected {
            let count = self.came_up.entry(generation).or_default();
            *count += 1;
            assert!(*count == 1 && self.servers.insert(id, Life::Up).is_none(), "{id:?} comes up twice");
            return self.say(SERVER, generation, session);
        }
        assert!(self.servers.contains_key(&id), "{event:?} of {id:?}, which is not up");
        match event {
            Event::Closed { reason, undelivered } => {
                self.count(&format!("server: {reason:?}"));
                if session.stats().key_updates > 0 {
                    self.count("new keys");
                }
                self.hear(SERVER, generation, session);
                self.servers.remove(&id);
                self.check_server(generation, reason, undelivered);
            }
            Event::Readable => self.hear(SERVER, generation, session),
            Event::Moved { .. } => self.count("moved"),
            _ => {}
        }
    }

    fn count(&mut self, what: &str) {
        *self.tally.entry(what.to_owned()).or_default() += 1;
    }

    /// Sends the next message.
    pub(crate) fn say(&mut self, end: usize, generation: u8, session: &mut Connection) {
        let flow = &mut self.flows.entry(generation).or_default()[end];
        flow.sent += u8::from(session.send(CHAT, &[generation, flow.sent]).is_ok());
    }

    /// Reads what has arrived: what the other end of the same session said, each message once and in order.
    fn hear(&mut self, end: usize, generation: u8, session: &mut Connection) {
        let flow = &mut self.flows.entry(generation).or_default()[1 - end];
        while let Some(message) = session.recv(CHAT) {
            assert_eq!(*message, [generation, flow.arrived], "{flow:?}");
            flow.arrived += 1;
        }
    }

    /// Whether everything that the present client and its session said has arrived.
    pub(crate) fn is_through(&self) -> bool {
        self.flows.get(&self.generation).is_none_or(|flows| flows.iter().all(|flow| flow.is_through()))
    }

    /// Whether the client was told that it is redirected, if it should be.
    pub(crate) fn knows_where_to_go(&self) -> bool {
        !self.redirects || self.redirected == 1
    }

    /// What the client was told of its own close holds.
    fn check_client(&self) {
        let Life::Over(CloseReason::Local(_), undelivered) = self.client else { return };
        if undelivered.is_empty() && self.came_up.contains_key(&self.generation) {
            let [up, _] = self.flows[&self.generation];
            assert!(up.is_through(), "all is said to have arrived: {up:?}");
        }
    }

    fn check_server(&self, generation: u8, reason: CloseReason, undelivered: Undelivered) {
        if !matches!(reason, CloseReason::Local(_)) || generation != self.generation {
            return;
        }
        let [_, down] = self.flows[&generation];
        if undelivered.is_empty() {
            assert!(down.is_through(), "all is said to have arrived: {down:?}");
            assert!(self.knows_where_to_go(), "the redirect is said to have arrived");
        }
    }

    /// Each end of each session has ended.
    pub(crate) fn check_end(&self) {
        assert!(matches!(self.client, Life::Over(..)), "the client has not said that it is over");
        assert!(self.servers.is_empty(), "{:?}", self.servers);
    }
}
