//! Sending and receiving, the same for servers and clients.

use super::{Client, Server};
use crate::channel::{AnyChannel, Channel, RecvError, SendError};
use crate::message::pack::Payload;
use crate::session::{ClientState, DatagramId, SessionId};
use bytes::Bytes;

/// The shared methods of a driver. `$connection` returns a session, by its id where there are several.
macro_rules! verbs {
    ($driver:ident, $connection:ident $(, $id:ident: $of:ty)?) => {
        impl $driver {
            /// Queues a message; see [`Connection::send`](crate::session::Connection::send), also for errors.
            pub fn send<P: Payload + ?Sized>(&mut self, $($id: $of,)? channel: Channel<P>, message: &P::Sent) -> Result<(), SendError> {
                let absent = self.absent();
                self.$connection($($id)?).ok_or(absent)?.send(channel, message)
            }

            /// Returns the next message of a channel. `None`: there is none yet, or no such session. See
            /// [`Connection::recv`](crate::session::Connection::recv).
            pub fn recv<P: Payload + ?Sized>(&mut self, $($id: $of,)? channel: Channel<P>) -> Option<P::Received> {
                self.$connection($($id)?)?.recv(channel)
            }

            /// Reads the next message of a bytes channel into `buf` and returns its length; see
            /// [`Connection::recv_into`](crate::session::Connection::recv_into), also for errors.
            pub fn recv_into(&mut self, $($id: $of,)? channel: Channel, buf: &mut [u8]) -> Result<usize, RecvError> {
                self.$connection($($id)?).ok_or(RecvError::Empty)?.recv_into(channel, buf)
            }

            /// Queues an unreliable datagram; see
            /// [`Connection::send_datagram`](crate::session::Connection::send_datagram), also for errors.
            pub fn send_datagram(&mut self, $($id: $of,)? datagram: &[u8]) -> Result<DatagramId, SendError> {
                let absent = self.absent();
                self.$connection($($id)?).ok_or(absent)?.send_datagram(datagram)
            }

            /// Returns the next unreliable datagram. `None`: there is none, or no such session.
            pub fn recv_datagram(&mut self $(, $id: $of)?) -> Option<Bytes> {
                self.$connection($($id)?)?.recv_datagram()
            }

            /// Reads the next unreliable datagram into `buf` and returns its length; see
            /// [`Connection::recv_datagram_into`](crate::session::Connection::recv_datagram_into), also for errors.
            pub fn recv_datagram_into(&mut self, $($id: $of,)? buf: &mut [u8]) -> Result<usize, RecvError> {
                self.$connection($($id)?).ok_or(RecvError::Empty)?.recv_datagram_into(buf)
            }

            /// What the peer's application said in the handshake: a client's [`user`](crate::ClientConfig::user), a server's answer.
            /// Empty if there is no such session.
            #[must_use]
            pub fn user(&self $(, $id: $of)?) -> &[u8] {
                self.connection($($id)?).map_or(&[], |connection| connection.user())
            }

            /// The text that the peer gave when it closed or kicked, after [`Event::Closed`](crate::Event::Closed);
            /// see [`Connection::close_text`](crate::session::Connection::close_text). Empty if there is none.
            #[must_use]
            pub fn close_text(&self $(, $id: $of)?) -> &str {
                self.connection($($id)?).map_or("", |connection| connection.close_text())
            }

            /// Whether everything sent on a reliable channel is known to have arrived; see
            /// [`Connection::is_delivered`](crate::session::Connection::is_delivered).
            pub fn is_delivered(&mut self, $($id: $of,)? channel: impl Into<AnyChannel>) -> bool {
                self.$connection($($id)?).is_none_or(|connection| connection.is_delivered(channel))
            }
        }
    };
}

impl Server {
    /// Why there is no connection to send on.
    const fn absent(&self) -> SendError {
        SendError::Closed
    }
}

impl Client {
    fn absent(&self) -> SendError {
        match self.state() {
            ClientState::Idle | ClientState::Hello | ClientState::Connect => SendError::NotConnected,
            _ => SendError::Closed,
        }
    }
}

verbs!(Server, connection_mut, id: SessionId);
verbs!(Client, connection_mut);
