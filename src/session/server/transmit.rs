//! Whose datagram leaves next: sessions in turn, and bare KCP peers between them.

use super::Server;
use crate::message::Message;
use crate::session::connection::Next;
use crate::time::Time;
use std::net::SocketAddr;

impl<M: Message> Server<M> {
    /// Writes the next datagram of the sessions, or of the bare KCP peers, behind what is in `buf`.
    pub(super) fn transmit(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        if self.is_turn_of_raw {
            let start = buf.len();
            match self.transmit_raw(now, buf) {
                Some(to) => {
                    self.is_turn_of_raw = !self.kind_turn.spend(buf.len() - start);
                    return Some(to);
                }
                None => (self.is_turn_of_raw, self.kind_turn) = <_>::default(),
            }
        }
        self.transmit_sessions(now, buf).or_else(|| self.transmit_raw(now, buf))
    }

    fn transmit_sessions(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        let start = buf.len();
        while let Some(&id) = self.outbox.front() {
            if let Some(peer) = self.sessions.get_mut(id) {
                match peer.connection.append_transmit(now, buf) {
                    Next::Datagram(to) => {
                        self.leaving = peer.connection.transmit_ecn();
                        let bytes = buf.len() - start;
                        if self.turn.spend(bytes) {
                            self.outbox.rotate_left(1);
                        }
                        self.is_turn_of_raw = self.kind_turn.spend(bytes);
                        return Some(to);
                    }
                    Next::Timeout(due) => {
                        peer.is_listed = false;
                        peer.due = due.map_or(Time::NEVER, |(at, _)| at);
                    }
                }
            }
            self.outbox.pop_front();
            self.turn.end();
            self.settle(now, id);
            self.recount(id);
        }
        None
    }

    fn transmit_raw(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        let (datagram, to) = self.raw.as_mut()?.poll_transmit(now)?;
        buf.extend_from_slice(datagram);
        Some(to)
    }
}
