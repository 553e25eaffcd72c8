//! The end of the handshake of a hybrid suite.

use super::Server;
use super::seat::Seat;
use super::stats::Refusal;
use crate::time::Time;
use std::net::SocketAddr;

impl Server {
    /// Takes the ciphertext of a client. It proves nothing but that the client has read the ACCEPT, so the session is
    /// not up before a packet under the keys has come. Nor does it matter where it comes from.
    pub(super) fn on_ciphertext(&mut self, now: Time, from: SocketAddr, sid: u32, datagram: &mut [u8]) {
        let table = &mut self.seats.table;
        let seat = table.id_of(sid).and_then(|id| table.get_mut(id));
        let is_good = match seat {
            Some(Seat::Session(peer)) => peer.connection.decapsulate(now, datagram),
            _ => false,
        };
        if !is_good {
            self.count(now, from, Refusal::Ciphertext);
        }
    }
}
