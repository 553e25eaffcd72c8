//! A client behind a thread.

use super::handle::Handle;
use super::outbox::Outgoing;
use super::{Incoming, NotSent, ThreadConfig, Way};
use crate::message::Message;
use crate::net::Client;
use crate::session::{Blob, Session};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A [`Client`] on a thread of its own, in the same way as a [`ServerThread`](super::ServerThread).
///
/// Dropped, it ends its session and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct ClientThread<M: Message + Send + 'static = Blob> {
    handle: Handle<Session<M>>,
}

impl<M: Message + Send + 'static> Client<M> {
    /// Goes on by itself, on a new thread.
    ///
    /// # Errors
    ///
    /// The system gives no thread, no other descriptor of the socket, or does not know its address.
    pub fn spawn(self, config: &ThreadConfig) -> io::Result<ClientThread<M>> {
        Ok(ClientThread { handle: Handle::spawn(self, config)? })
    }
}

impl<M: Message + Send + 'static> ClientThread<M> {
    /// Takes the next event, message or datagram. Nothing can be sent before [`Event::Connected`](crate::session::Event::Connected) was taken.
    pub fn try_recv(&mut self) -> Option<Incoming<M>> {
        Some(self.handle.try_recv()?.1)
    }

    /// The same, and waits for one, at most for `timeout`; at once `None` when the thread has ended.
    pub fn recv(&mut self, timeout: Duration) -> Option<Incoming<M>> {
        Some(self.handle.recv(timeout)?.1)
    }

    /// Bytes that may be sent on a lane, a channel or as datagrams now; each message counts some 50 more, one of a channel 1200. Only what
    /// is sent here makes it less.
    #[must_use]
    pub fn room(&self, way: Way) -> usize {
        self.handle.room((), way)
    }

    /// Sends a message on a reliable lane.
    ///
    /// # Errors
    ///
    /// Enough waits already, or the session is not up.
    pub fn send(&mut self, lane: usize, message: &[u8]) -> Result<(), NotSent> {
        self.handle.send((), Outgoing::Lane(lane, message.to_vec()))
    }

    /// Sends an unreliable datagram.
    ///
    /// # Errors
    ///
    /// Enough waits already, or the session is not up.
    pub fn send_datagram(&mut self, datagram: &[u8]) -> Result<(), NotSent> {
        self.handle.send((), Outgoing::Datagram(datagram.to_vec()))
    }

    /// Sends a message of a channel.
    ///
    /// # Errors
    ///
    /// Enough waits already, or the session is not up.
    pub fn send_message(&mut self, channel: usize, message: M) -> Result<(), NotSent> {
        self.handle.send((), Outgoing::Message(channel, message))
    }

    /// Sends a block of a channel.
    ///
    /// # Errors
    ///
    /// Enough waits already, or the session is not up.
    pub fn send_block(&mut self, channel: usize, block: &[u8]) -> Result<(), NotSent> {
        self.handle.send((), Outgoing::Block(channel, block.to_vec()))
    }

    /// Ends the session when what was sent has arrived; an attempt to connect ends at once. What waits here is given `drain` to be taken,
    /// then a close has the same time again.
    pub fn close(&mut self, code: u16) {
        if !self.handle.close((), code) {
            let _ = self.handle.run(move |client| client.close(code)); // or it is over
        }
    }

    /// Has the thread do something with the client that is not here, between two pumps: keep it short.
    ///
    /// # Errors
    ///
    /// A thousand of them wait already, or the thread has ended.
    pub fn run(&mut self, run: impl FnOnce(&mut Client<M>) + Send + 'static) -> Result<(), NotSent> {
        self.handle.run(run)
    }

    /// The address of this end.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.handle.local_addr()
    }

    /// Whether the thread has ended: the socket has failed, which [`shutdown`](Self::shutdown) tells. The end of the session is none of
    /// the thread.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Ends the session when what was sent has arrived, then the thread, and waits for that: at most twice `drain` and 2 s. What comes
    /// meanwhile is dropped.
    ///
    /// # Errors
    ///
    /// The socket has failed, or what the thread was given to [`run`](Self::run) has panicked.
    pub fn shutdown(mut self, code: u16) -> io::Result<()> {
        self.handle.shutdown(code)
    }
}
