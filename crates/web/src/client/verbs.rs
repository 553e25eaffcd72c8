//! Sending and receiving, as with every other client.

use super::Client;
use bytes::Bytes;
use whitewater::Channel;
use whitewater::channel::{AnyChannel, RecvError, SendError};
use whitewater::message::Payload;
use whitewater::session::{ClientState, DatagramId};

impl Client {
    /// Queues a message, which leaves with the next [`pump`](Self::pump) or [`flush`](Self::flush), or with the next acknowledgement.
    ///
    /// # Errors
    ///
    /// Those of `Connection::send`, such as a full channel.
    pub fn send<P: Payload + ?Sized>(
        &mut self,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Result<(), SendError> {
        let absent = self.absent();
        self.connection_mut().ok_or(absent)?.send(channel, message)
    }

    /// Returns the next message of a channel. `None`: there is none yet.
    pub fn recv<P: Payload + ?Sized>(&mut self, channel: Channel<P>) -> Option<P::Received> {
        self.connection_mut()?.recv(channel)
    }

    /// Reads the next message of a bytes channel into `buf` and returns its length.
    ///
    /// # Errors
    ///
    /// Those of `Connection::recv_into`, such as that there is none.
    pub fn recv_into(&mut self, channel: Channel, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.connection_mut().ok_or(RecvError::Empty)?.recv_into(channel, buf)
    }

    /// Queues an unreliable datagram.
    ///
    /// # Errors
    ///
    /// Those of `Connection::send_datagram`, such as that it is too long.
    pub fn send_datagram(&mut self, datagram: &[u8]) -> Result<DatagramId, SendError> {
        let absent = self.absent();
        self.connection_mut().ok_or(absent)?.send_datagram(datagram)
    }

    /// Returns the next unreliable datagram. `None`: there is none.
    pub fn recv_datagram(&mut self) -> Option<Bytes> {
        self.connection_mut()?.recv_datagram()
    }

    /// Reads the next unreliable datagram into `buf` and returns its length.
    ///
    /// # Errors
    ///
    /// Those of `Connection::recv_datagram_into`, such as that there is none.
    pub fn recv_datagram_into(&mut self, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.connection_mut().ok_or(RecvError::Empty)?.recv_datagram_into(buf)
    }

    /// What the server's application said in the handshake. Empty until the session has been up.
    #[must_use]
    pub fn user(&self) -> Vec<u8> {
        self.connection().map_or_else(Vec::new, |connection| connection.user().to_vec())
    }

    /// The text that the server gave when it closed or kicked, after `Event::Closed`. Empty if there is none.
    #[must_use]
    pub fn close_text(&self) -> String {
        self.connection().map_or_else(String::new, |connection| connection.close_text().to_owned())
    }

    /// Whether everything sent on a reliable channel is known to have arrived.
    pub fn is_delivered(&mut self, channel: impl Into<AnyChannel>) -> bool {
        self.connection_mut().is_none_or(|mut connection| connection.is_delivered(channel))
    }

    /// Why there is no connection to send on.
    fn absent(&self) -> SendError {
        match self.state() {
            ClientState::Idle | ClientState::Hello | ClientState::Connect => SendError::NotConnected,
            _ => SendError::Closed,
        }
    }
}
