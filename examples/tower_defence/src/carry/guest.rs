//! A client's end.

use super::{CHANNEL, WILL};
use crate::client::{Client, Path};
use crate::wire::Will;
use whitewater::Time;
use whitewater::session::Connection;

/// A client of the game with a session.
#[derive(Debug, Default)]
pub struct Guest {
    /// The client.
    pub game: Client,
    /// What the host has left us, the newest.
    pub will: Option<Will>,
    packet: Vec<u8>,
}

impl Guest {
    /// Reads what there is to read.
    pub fn read(&mut self, connection: &mut Connection, now: Time) {
        self.measure(connection, now);
        let mut packet = [0; 1200];
        while let Ok(len) = connection.recv_datagram_into(&mut packet) {
            let _ = self.game.receive(now, packet.get(..len).unwrap_or_default()); // it is requested again if needed
        }
        while let Some(message) = connection.recv(CHANNEL) {
            self.game.take(message);
        }
        while let Some(will) = connection.recv(WILL) {
            self.will = Some(will);
        }
        while let Some(datagram) = connection.pop_delivered() {
            self.game.delivered(datagram.0);
        }
    }

    /// Does what is due, and sends the results.
    pub fn advance(&mut self, connection: &mut Connection, now: Time) {
        self.measure(connection, now);
        self.game.advance(now);
        if self.game.packet(&mut self.packet)
            && let Ok(datagram) = connection.send_datagram(&self.packet)
        {
            self.game.sent(datagram.0);
        }
        while let Some(message) = self.game.next_message() {
            if connection.send(CHANNEL, message).is_err_and(|error| error.is_full()) {
                break;
            }
            self.game.pop_message(); // it was sent, or the session is over
        }
    }

    fn measure(&mut self, connection: &Connection, now: Time) {
        let stats = connection.stats();
        let path = Path {
            rtt: stats.rtt,
            rttvar: stats.rttvar,
            loss: stats.loss,
            bytes_sent: stats.bytes_sent,
            bytes_received: stats.bytes_received,
        };
        self.game.set_path(now, path);
    }
}
