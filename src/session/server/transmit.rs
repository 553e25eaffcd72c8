//! Whose datagram leaves next: sessions in turn.

use super::Server;
use crate::machine::Transmit;
use crate::message::Message;
use crate::session::connection::Next;
use crate::time::Time;

impl<M: Message> Server<M> {
    /// Writes the next datagram of the sessions behind what is in `buf`.
    pub(super) fn transmit(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<Transmit> {
        let start = buf.len();
        while let Some(&id) = self.outbox.front() {
            if let Some(peer) = self.sessions.get_mut(id) {
                match peer.connection.append_transmit(now, buf) {
                    Next::Datagram(address) => {
                        let ecn = peer.connection.transmit_ecn();
                        if self.turn.spend(buf.len() - start) {
                            self.outbox.rotate_left(1);
                        }
                        return Some(Transmit { address, ecn });
                    }
                    Next::Timeout(due) => {
                        peer.is_listed = false;
                        peer.due = due.unwrap_or(Time::NEVER);
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
}
