//! The server's end.

use super::{CHANNEL, WILL};
use crate::server::{JoinError, PeerId, Server};
use crate::sim::rules::HZ;
use crate::wire::{Hello, PACKET_MAX};
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
    /// Who is to go on with the match without this host, by the number in their connect tokens, and when they get the next
    /// will.
    heirs: BTreeMap<u64, u32>,
    /// The same number of the player whose machine this is.
    own: Option<u64>,
}

impl Host {
    /// A game without connections.
    #[must_use]
    pub fn new(game: Server) -> Self {
        Self { game, peers: BTreeMap::new(), packet: Vec::new(), heirs: BTreeMap::new(), own: None }
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
        self.send_wills(sessions, false);
    }

    /// Names those who get this host's wills from now on. `own`: the player whose machine this is. All by the number in their
    /// connect tokens.
    pub fn set_heirs(&mut self, own: u64, heirs: impl IntoIterator<Item = u64>) {
        self.own = Some(own);
        self.heirs = heirs.into_iter().map(|heir| (heir, 0)).collect();
    }

    /// Sends the heirs the last will: nothing that has happened is lost. Nothing may happen afterwards.
    pub fn farewell(&mut self, sessions: &mut session::Server) {
        self.send_wills(sessions, true);
    }

    /// Whether the heirs who are there have all wills.
    pub fn is_bequeathed(&self, sessions: &mut session::Server) -> bool {
        self.peers.keys().all(|id| {
            let is_heir = sessions.pass(*id).is_some_and(|pass| self.heirs.contains_key(&pass.client_id));
            let connection = sessions.connection_mut(*id).filter(|_| is_heir);
            connection.is_none_or(|connection| connection.is_delivered(WILL))
        })
    }

    /// Sends each heir what they need to go on from here, if it is time. Who has not acknowledged the last will gets the next
    /// one as soon as they have, so that none is outdated before it leaves.
    fn send_wills(&mut self, sessions: &mut session::Server, is_last: bool) {
        let (now, mut will) = (self.game.world().tick, None);
        for id in self.peers.keys() {
            let due = sessions.pass(*id).and_then(|pass| self.heirs.get_mut(&pass.client_id));
            let (Some(due), Some(connection)) = (due, sessions.connection_mut(*id)) else { continue };
            if is_last || (now >= *due && connection.is_delivered(WILL)) {
                let will = will.get_or_insert_with(|| self.game.will(self.own));
                let _ = connection.send(WILL, will); // the next one says more
                *due = now + WILL_EACH;
            }
        }
    }

    fn welcome(&mut self, sessions: &mut session::Server, now: Time, id: SessionId) {
        let Some(connection) = sessions.connection(id) else { return };
        let hello = Hello::decode(connection.user()).map_err(|_| JoinError::Malformed);
        // Whoever has made the token says who this is: no player has to trust a host with a secret.
        let ticket = sessions.pass(id).map(|pass| pass.client_id);
        let hello = hello.map(|hello| Hello { ticket: ticket.unwrap_or(hello.ticket), ..hello });
        match hello.and_then(|hello| self.game.let_in(&hello)) {
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
pub(crate) const REFUSED: u16 = 1;
/// See [`REFUSED`].
const REPLACED: u16 = 2;
/// Ticks between two wills: half a second.
const WILL_EACH: u32 = HZ / 2;
