//! What is sent to a session and received from it: the same for servers and for clients.

use super::{Client, Server};
use crate::kcp::RecvError;
use crate::message::Message;
use crate::message::channel::Received;
use crate::seq::Seq16;
use crate::session::{ClientState, DatagramId, SendError, SessionId};

/// The verbs of a driver whose sessions `$connection` gives, by their id where there are several.
macro_rules! verbs {
    ($driver:ident, $connection:ident $(, $id:ident: $of:ty)?) => {
        impl<M: Message> $driver<M> {
            /// Queues a message on a reliable lane, see [`Connection::send`](crate::session::Connection::send), also for its errors; [`Closed`](SendError::Closed) if there is no such session, [`NotConnected`](SendError::NotConnected) if it is not up yet.
            pub fn send(&mut self, $($id: $of,)? lane: usize, message: &[u8]) -> Result<usize, SendError> {
                let absent = self.absent();
                self.$connection($($id)?).ok_or(absent)?.send(lane, message)
            }

            /// Takes the next message of a reliable lane and returns its length, see [`Connection::recv`](crate::session::Connection::recv), also for its errors; `NoMessage` if there is no such session.
            pub fn recv(&mut self, $($id: $of,)? lane: usize, buf: &mut [u8]) -> Result<usize, RecvError> {
                self.$connection($($id)?).ok_or(RecvError::NoMessage)?.recv(lane, buf)
            }

            /// Queues an unreliable datagram, see [`Connection::send_datagram`](crate::session::Connection::send_datagram), also for its errors; [`Closed`](SendError::Closed) if there is no such session, [`NotConnected`](SendError::NotConnected) if it is not up yet.
            pub fn send_datagram(&mut self, $($id: $of,)? datagram: &[u8]) -> Result<DatagramId, SendError> {
                let absent = self.absent();
                self.$connection($($id)?).ok_or(absent)?.send_datagram(datagram)
            }

            /// Takes the next unreliable datagram and returns its length, see [`Connection::recv_datagram`](crate::session::Connection::recv_datagram), also for its errors; `NoMessage` if there is no such session.
            pub fn recv_datagram(&mut self, $($id: $of,)? buf: &mut [u8]) -> Result<usize, RecvError> {
                self.$connection($($id)?).ok_or(RecvError::NoMessage)?.recv_datagram(buf)
            }

            /// Stores a message of a channel, see [`Connection::send_message`](crate::session::Connection::send_message), also for its errors; [`Closed`](SendError::Closed) if there is no such session, [`NotConnected`](SendError::NotConnected) if it is not up yet.
            pub fn send_message(&mut self, $($id: $of,)? channel: usize, message: M) -> Result<Seq16, SendError> {
                let now = self.now();
                let absent = self.absent();
                self.$connection($($id)?).ok_or(absent)?.send_message(channel, now, message)
            }

            /// Stores a block of a channel, see [`Connection::send_block`](crate::session::Connection::send_block), also for its errors; [`Closed`](SendError::Closed) if there is no such session, [`NotConnected`](SendError::NotConnected) if it is not up yet.
            pub fn send_block(&mut self, $($id: $of,)? channel: usize, block: &[u8]) -> Result<(), SendError> {
                let absent = self.absent();
                self.$connection($($id)?).ok_or(absent)?.send_block(channel, block)
            }

            /// Takes the next message or block of a channel.
            pub fn recv_message(&mut self, $($id: $of,)? channel: usize) -> Option<Received<M>> {
                self.$connection($($id)?)?.recv_message(channel)
            }
        }
    };
}

impl<M: Message> Server<M> {
    /// Why there is no connection to send on.
    const fn absent(&self) -> SendError {
        SendError::Closed
    }
}

impl<M: Message> Client<M> {
    fn absent(&self) -> SendError {
        match self.state() {
            ClientState::Idle | ClientState::Hello | ClientState::Connect => SendError::NotConnected,
            _ => SendError::Closed,
        }
    }
}

verbs!(Server, session_mut, id: SessionId);
verbs!(Client, connection_mut);
