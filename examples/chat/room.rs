//! The server: it passes on what its members say.

use crate::{NAME_MAX, SAID, TOLD, Told, session};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use whitewater::{CloseReason, Event, Server, ServerConfig, SessionId};

pub(crate) struct Room {
    server: Server,
    names: BTreeMap<SessionId, String>,
    /// What all members were told in this turn.
    told: Vec<Told>,
}

impl Room {
    pub(crate) fn open(at: impl ToSocketAddrs, secret: [u8; 32]) -> io::Result<Self> {
        let server =
            Server::bind(at, &ServerConfig { max_sessions: 64, ..ServerConfig::secret(session(), secret) })?;
        Ok(Self { server, names: BTreeMap::new(), told: Vec::new() })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.server.local_addr()
    }

    /// Waits until something happens, at most for `wait`, and returns what all were told.
    pub(crate) fn turn(&mut self, wait: Duration) -> io::Result<Vec<Told>> {
        self.server.poll(Some(wait))?;
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Connected => self.enter(id),
                Event::Readable => self.pass_on(id),
                Event::Closed { reason, .. } => self.leave(id, &reason),
                _ => {}
            }
        }
        Ok(std::mem::take(&mut self.told))
    }

    /// What is typed at the server.
    pub(crate) fn say(&mut self, text: &str) {
        let text = text.chars().take(60).collect();
        self.tell(None, Told::Line { name: "server".to_owned(), text });
    }

    pub(crate) fn kick(&mut self, name: &str, why: &str) -> Result<(), String> {
        let id = self.names.iter().find_map(|(id, other)| (other == name).then_some(*id));
        let id = id.ok_or_else(|| format!("{name} is not here"))?;
        self.server.kick(id, KICKED, why).map_err(|wrong| wrong.to_string())
    }

    fn enter(&mut self, id: SessionId) {
        let name = String::from_utf8_lossy(self.server.user(id)).into_owned();
        if name.is_empty() || name.len() > NAME_MAX || self.names.values().any(|other| *other == name) {
            let _ = self.server.kick(id, NOT_THIS_NAME, "this name is taken, or is no name");
            return;
        }
        let members = self.names.values().cloned().collect();
        let _ = self.server.send(id, TOLD, &Told::Welcome { members });
        self.names.insert(id, name.clone());
        self.tell(Some(id), Told::Joined { name });
    }

    fn pass_on(&mut self, id: SessionId) {
        while let Some(said) = self.server.recv(id, SAID) {
            let Some(name) = self.names.get(&id).cloned() else { continue };
            self.tell(Some(id), Told::Line { name, text: said.text });
        }
    }

    fn leave(&mut self, id: SessionId, reason: &CloseReason) {
        let Some(name) = self.names.remove(&id) else { return };
        let why = match reason {
            CloseReason::Peer(0) => "goodbye".to_owned(),
            CloseReason::Local(KICKED) => "kicked".to_owned(),
            other => other.to_string(),
        };
        self.tell(None, Told::Left { name, why });
    }

    /// Tells all members, but not the one who knows.
    fn tell(&mut self, knows: Option<SessionId>, told: Told) {
        let not_told = match knows {
            Some(id) => self.server.broadcast_except(id, TOLD, &told),
            None => self.server.broadcast(TOLD, &told),
        };
        for (id, _) in not_told {
            let _ = self.server.kick(id, TOO_SLOW, "you do not read what is sent to you");
        }
        self.told.push(told);
    }
}

/// Codes of a close are the application's own. 0 is a goodbye here.
const KICKED: u16 = 1;
const NOT_THIS_NAME: u16 = 2;
const TOO_SLOW: u16 = 3;
