//! A server with Godot's numbers for its clients, without the engine.

use crate::inbox::Inbox;
use crate::lane::Lane;
use crate::link::{Change, End, GOODBYE, OVERRUN, OVERRUN_TEXT, Refused, SERVER, receive, send};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::ToSocketAddrs;
use whitewater::channel::SendError;
use whitewater::session::{CloseTextError, Connection};
use whitewater::{CloseReason, Event, Server, ServerConfig, SessionId};

#[derive(Debug)]
pub(crate) struct Host {
    server: Server,
    /// Those that have joined.
    sessions: HashMap<i32, SessionId>,
    /// All that have been admitted.
    peers: HashMap<SessionId, Client>,
    /// Sessions with something to read.
    unread: VecDeque<SessionId>,
    lanes: Vec<Lane>,
    pub(crate) is_refusing: bool,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    peer: i32,
    is_unread: bool,
}

impl Host {
    pub(crate) fn bind(addr: impl ToSocketAddrs, config: &ServerConfig) -> io::Result<Self> {
        let lanes = Lane::of(&config.session.channels);
        let server = Server::bind(addr, config)?;
        let (sessions, peers, unread) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Ok(Self { server, sessions, peers, unread, lanes, is_refusing: false })
    }

    /// Receives and sends.
    pub(crate) fn poll(&mut self, inbox: &mut Inbox, changes: &mut Vec<Change>) -> io::Result<()> {
        let pumped = self.server.pump(); // what is due is done even if the socket fails
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Requested => self.decide(id),
                Event::Connected => {
                    if let Some(client) = self.peers.get(&id) {
                        self.sessions.insert(client.peer, id);
                        changes.push(Change::Joined(client.peer));
                    }
                }
                Event::Readable => self.set_unread(id),
                Event::Closed { reason, .. } => changes.extend(self.remove(id, reason, inbox)),
                _ => {}
            }
        }
        self.read(inbox);
        pumped.map(drop)
    }

    /// Sends what was queued since the last poll.
    pub(crate) fn flush(&mut self) {
        self.server.flush();
    }

    pub(crate) fn send(&mut self, target: i32, lane: Lane, packet: &[u8]) -> Result<(), Refused> {
        if target > 0 {
            let id = *self.sessions.get(&target).ok_or(Refused::NoPeer)?;
            return self.send_to(id, lane, packet).map_err(Refused::Send);
        }
        let left_out = target.wrapping_neg();
        if target < 0 && left_out != SERVER && !self.sessions.contains_key(&left_out) {
            return Err(Refused::NoPeer);
        }
        let everybody = self.sessions.iter().filter(|(peer, _)| **peer != left_out).map(|(_, id)| *id);
        let mut sent = Ok(());
        for id in everybody.collect::<Vec<_>>() {
            sent = sent.and(self.send_to(id, lane, packet)); // the others get it in any case
        }
        sent.map_err(Refused::Send)
    }

    fn send_to(&mut self, id: SessionId, lane: Lane, packet: &[u8]) -> Result<(), SendError> {
        let Some(connection) = self.server.connection_mut(id) else { return Ok(()) }; // it has just ended
        match send(connection, lane, packet) {
            Err(SendError::Full { .. }) => {
                let _ = self.server.kick(id, OVERRUN, OVERRUN_TEXT); // the text is short enough
                Ok(()) // `Closed` follows
            }
            sent => sent,
        }
    }

    /// Ends a session: once everything has arrived; by force, at once, without a `Left`.
    pub(crate) fn disconnect(&mut self, peer: i32, by_force: bool, inbox: &mut Inbox) {
        let Some(id) = self.sessions.get(&peer).copied() else { return };
        if by_force {
            let _ = self.server.kick(id, GOODBYE, ""); // without a text, nothing can be wrong with it
            self.sessions.remove(&peer);
            self.peers.remove(&id);
            inbox.forget(peer);
        } else {
            self.server.close(id, GOODBYE);
        }
    }

    /// Ends a session at once, and tells the client why.
    pub(crate) fn kick(&mut self, peer: i32, code: u16, text: &str) -> Result<(), CloseTextError> {
        self.sessions.get(&peer).map_or(Ok(()), |id| self.server.kick(*id, code, text))
    }

    pub(crate) fn redirect(&mut self, peer: i32, token: &[u8]) -> Result<(), String> {
        let id = self.sessions.get(&peer).ok_or("there is no such peer")?;
        self.server.redirect(*id, token).map_err(|error| error.to_string())
    }

    /// Ends all sessions, and blocks until everything has arrived, for a limited time.
    pub(crate) fn shutdown(&mut self) -> io::Result<()> {
        self.server.shutdown(GOODBYE)
    }

    pub(crate) fn connection(&self, peer: i32) -> Option<&Connection> {
        self.server.connection(*self.sessions.get(&peer)?)
    }

    /// What the client's matchmaker says of its player, or else what the client says.
    pub(crate) fn user(&self, peer: i32) -> Option<&[u8]> {
        let id = *self.sessions.get(&peer)?;
        Some(self.server.pass(id).map_or_else(|| self.server.user(id), |pass| &pass.user))
    }

    pub(crate) fn port(&self) -> io::Result<u16> {
        self.server.local_addr().map(|addr| addr.port())
    }

    fn decide(&mut self, id: SessionId) {
        if self.is_refusing {
            let _ = self.server.reject(id, GOODBYE, b""); // it may have gone meanwhile
            return;
        }
        let mut peer = draw();
        while peer <= SERVER || self.peers.values().any(|client| client.peer == peer) {
            peer = draw();
        }
        if self.server.admit(id, &peer.to_le_bytes()).is_ok() {
            self.peers.insert(id, Client { peer, is_unread: false });
        }
    }

    fn remove(&mut self, id: SessionId, reason: CloseReason, inbox: &mut Inbox) -> Option<Change> {
        let client = self.peers.remove(&id)?;
        self.sessions.remove(&client.peer)?; // it had not joined
        if let Some(connection) = self.server.connection_mut(id) {
            receive(connection, client.peer, &self.lanes, inbox); // what came before the end
        }
        let text = self.server.close_text(id).to_owned();
        let end = End { reason, text, had_joined: true };
        Some(Change::Left(client.peer, end))
    }

    fn set_unread(&mut self, id: SessionId) {
        if let Some(client) = self.peers.get_mut(&id).filter(|client| !client.is_unread) {
            client.is_unread = true;
            self.unread.push_back(id);
        }
    }

    /// Reads from sessions as long as there is room, and goes on with those that it did not get to in the next poll.
    fn read(&mut self, inbox: &mut Inbox) {
        while let Some(id) = self.unread.front().copied() {
            if let (Some(client), Some(connection)) =
                (self.peers.get_mut(&id), self.server.connection_mut(id))
            {
                if !receive(connection, client.peer, &self.lanes, inbox) {
                    self.unread.rotate_left(1); // another one is first next time
                    return;
                }
                client.is_unread = false;
            }
            self.unread.pop_front();
        }
    }
}

/// A random number, from std's random keys of hash tables. It need not be secret: a session is known by what protects it.
fn draw() -> i32 {
    let bits = RandomState::new().build_hasher().finish();
    i32::try_from(bits >> 33).unwrap_or(i32::MAX) // the upper 31 bits
}
