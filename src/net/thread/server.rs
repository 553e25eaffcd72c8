//! A server behind a thread.

use super::handle::Handle;
use super::outbox::Outgoing;
use super::{Incoming, NotSent, ThreadConfig, Way};
use crate::message::Message;
use crate::net::Server;
use crate::session::{self, Blob, SessionId};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A [`Server`] on a thread of its own, for a program whose loop must not do I/O: acknowledgements and what is sent again do not wait for
/// a frame. Commands go in and events and data come out by channels; no call here waits, but for those that say so.
///
/// ```
/// use std::time::Duration;
/// use whitewater::net::{Client, Incoming, Server, ThreadConfig};
/// use whitewater::session::{Blob, ClientConfig, Event, ServerConfig, Target};
///
/// let patience = Duration::from_secs(5);
/// let mut server = Server::<Blob>::bind("127.0.0.1:0", &ServerConfig::insecure())?.spawn(&ThreadConfig::default())?;
/// let target = Target::insecure(server.local_addr());
/// let mut client = Client::<Blob>::connect(target, &ClientConfig::default())?.spawn(&ThreadConfig::default())?;
/// while let Some(incoming) = client.recv(patience) {
///     match incoming {
///         Incoming::Event(Event::Connected) => client.send(0, b"hello")?,
///         Incoming::Message { lane: 0, bytes } => {
///             assert_eq!(bytes, b"hello");
///             break;
///         }
///         other => return Err(format!("{other:?}").into()),
///     }
///     while let Some((id, incoming)) = server.recv(patience) {
///         if let Incoming::Message { lane, bytes } = incoming {
///             server.send(id, lane, &bytes)?;
///             break;
///         }
///     }
/// }
/// client.shutdown(0)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Limits
///
/// Nothing grows without one, see [`ThreadConfig`]: what a session does not take is [`NotSent::Full`] here, and what the program does not
/// take closes the windows of the peers.
///
/// # What it costs
///
/// A thread, that sleeps while there is nothing to do; an allocation and a copy for each message in each direction; and for a command
/// given to a sleeping thread an empty datagram to its own socket, which wakes it.
///
/// Dropped, it ends its sessions and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct ServerThread<M: Message + Send + 'static = Blob> {
    handle: Handle<session::Server<M>>,
}

impl<M: Message + Send + 'static> Server<M> {
    /// Goes on by itself, on a new thread.
    ///
    /// # Errors
    ///
    /// The system gives no thread, no other descriptor of the socket, or does not know its address.
    pub fn spawn(self, config: &ThreadConfig) -> io::Result<ServerThread<M>> {
        Ok(ServerThread { handle: Handle::spawn(self, config)? })
    }
}

impl<M: Message + Send + 'static> ServerThread<M> {
    /// Takes the next event, message or datagram of any session. What is of one session comes in order.
    pub fn try_recv(&mut self) -> Option<(SessionId, Incoming<M>)> {
        self.handle.try_recv()
    }

    /// The same, and waits for one, at most for `timeout`; at once `None` when the thread has ended.
    pub fn recv(&mut self, timeout: Duration) -> Option<(SessionId, Incoming<M>)> {
        self.handle.recv(timeout)
    }

    /// Bytes that may be sent to a session on a lane, a channel or as datagrams now; each message counts some 50 more, one of a channel
    /// 1200. Only what is sent here makes it less.
    #[must_use]
    pub fn room(&self, id: SessionId, way: Way) -> usize {
        self.handle.room(id, way)
    }

    /// Sends a message on a reliable lane.
    ///
    /// # Errors
    ///
    /// Enough waits already, or there is no such session.
    pub fn send(&mut self, id: SessionId, lane: usize, message: &[u8]) -> Result<(), NotSent> {
        self.handle.send(id, Outgoing::Lane(lane, message.to_vec()))
    }

    /// Sends an unreliable datagram.
    ///
    /// # Errors
    ///
    /// Enough waits already, or there is no such session.
    pub fn send_datagram(&mut self, id: SessionId, datagram: &[u8]) -> Result<(), NotSent> {
        self.handle.send(id, Outgoing::Datagram(datagram.to_vec()))
    }

    /// Sends a message of a channel.
    ///
    /// # Errors
    ///
    /// Enough waits already, or there is no such session.
    pub fn send_message(&mut self, id: SessionId, channel: usize, message: M) -> Result<(), NotSent> {
        self.handle.send(id, Outgoing::Message(channel, message))
    }

    /// Sends a block of a channel.
    ///
    /// # Errors
    ///
    /// Enough waits already, or there is no such session.
    pub fn send_block(&mut self, id: SessionId, channel: usize, block: &[u8]) -> Result<(), NotSent> {
        self.handle.send(id, Outgoing::Block(channel, block.to_vec()))
    }

    /// Ends a session when what was sent has arrived. What waits here is given `drain` to be taken, then a close has the same time again.
    pub fn close(&mut self, id: SessionId, code: u16) {
        self.handle.close(id, code);
    }

    /// Has the thread do something with the server that is not here, between two pumps: keep it short.
    ///
    /// # Errors
    ///
    /// A thousand of them wait already, or the thread has ended.
    pub fn run(&mut self, run: impl FnOnce(&mut Server<M>) + Send + 'static) -> Result<(), NotSent> {
        self.handle.run(run)
    }

    /// The address the server is bound to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.handle.local_addr()
    }

    /// Whether the thread has ended: the socket has failed, which [`shutdown`](Self::shutdown) tells.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Ends all sessions when what was sent has arrived, then the thread, and waits for that: at most twice `drain` and 2 s. What comes
    /// meanwhile is dropped.
    ///
    /// # Errors
    ///
    /// The socket has failed, or what the thread was given to [`run`](Self::run) has panicked.
    pub fn shutdown(mut self, code: u16) -> io::Result<()> {
        self.handle.shutdown(code)
    }
}
