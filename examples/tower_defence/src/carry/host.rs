//! The server's end.

use super::CHANNEL;
use crate::server::{PeerId, Server};
use crate::wire::PACKET_MAX;
use std::collections::BTreeMap;
use whitewater::session;
use whitewater::{Event, SessionId, Time};

/// A game with the sessions of a server.
#[derive(Debug)]
pub struct Host {
    /// The game.
    pub game: Server,
    peers: BTreeMap<SessionId, PeerId>,
    packet: Vec<u8>,
}

impl Host {
    /// A game without connections.
    #[must_use]
    pub const fn new(game: Server) -> Self {
        Self { game, peers: BTreeMap::new(), packet: Vec::new() }
    }

    /// Takes an event of a session, and reads what there is to read.
    pub fn on_event(&mut self, sessions: &mut session::Server, now: Time, id: SessionId, event: Event) {
        match event {
            Event::Connected => self.welcome(sessions, now, id),
            Event::Readable => self.read(sessions, id),
            Event::Closed { .. } => {
                if let Some(peer) = self.peers.remove(&id) {
                    self.game.disconnect(peer);
                }
            }
            _ => {}
        }
    }

    /// Advances the game by a tick, and tells everybody the result.
    pub fn tick(&mut self, sessions: &mut session::Server) {
        for (id, peer) in &self.peers {
            if let Some(connection) = sessions.connection_mut(*id) {
                while let Some(datagram) = connection.pop_delivered() {
                    self.game.delivered(*peer, datagram.0);
                }
            }
        }
        self.game.tick();
        for (id, peer) in &self.peers {
            let Some(connection) = sessions.connection_mut(*id) else { continue };
            // A snapshot without room now would be outdated before there is some.
            if self.game.snapshot(*peer, &mut self.packet)
                && let Ok(datagram) = connection.send_datagram(&self.packet)
            {
                self.game.sent(*peer, datagram.0);
            }
            while let Some(message) = self.game.next_message(*peer) {
                if connection.send(CHANNEL, message).is_err_and(|error| error.is_full()) {
                    break;
                }
                self.game.pop_message(*peer); // it was sent, or the session is over
            }
        }
    }

    fn welcome(&mut self, sessions: &mut session::Server, now: Time, id: SessionId) {
        let Some(connection) = sessions.connection(id) else { return };
        match self.game.connect(connection.user()) {
            Ok(peer) => drop(self.peers.insert(id, peer)),
            Err(error) => drop(sessions.close_with(now, id, REFUSED, &error.to_string())),
        }
        while let Some(peer) = self.game.pop_replaced() {
            let of_peer = self.peers.iter().find(|(_, known)| **known == peer);
            if let Some(id) = of_peer.map(|(id, _)| *id) {
                self.peers.remove(&id);
                let _ = sessions.close_with(now, id, REPLACED, "the same player has come in again");
            }
        }
    }

    fn read(&mut self, sessions: &mut session::Server, id: SessionId) {
        let (Some(peer), Some(connection)) = (self.peers.get(&id), sessions.connection_mut(id)) else {
            return;
        };
        let mut packet = [0; PACKET_MAX];
        while let Ok(len) = connection.recv_datagram_into(&mut packet) {
            self.game.receive(*peer, packet.get(..len).unwrap_or_default());
        }
        while let Some(message) = connection.recv(CHANNEL) {
            self.game.take(*peer, message);
        }
    }
}

/// Codes for closing: refused; or the player has connected again.
const REFUSED: u16 = 1;
/// See [`REFUSED`].
const REPLACED: u16 = 2;
