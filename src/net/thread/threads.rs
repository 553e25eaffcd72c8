//! The public types for servers and clients on threads.

use super::handle::Handle;
use super::outbox::Outgoing;
use super::{Incoming, NotSent, ThreadConfig, Way};
use crate::message::Message;
use crate::net::{Client, Server};
use crate::session::{self, Blob, ServerConfig, SessionId};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// A [`Server`] on a thread of its own, for a program whose loop must not do I/O: acknowledgements and
/// retransmissions do not wait for a frame. Commands go in, and events and data come out, through channels.
/// No call here blocks unless it says so.
///
/// ```
/// use std::time::Duration;
/// use whitewater::net::{Client, Incoming, Server, ThreadConfig};
/// use whitewater::session::{Blob, ClientConfig, Event, ServerConfig, SessionConfig};
///
/// let patience = Duration::from_secs(5);
/// let (session, threads) = (SessionConfig::default(), ThreadConfig::default());
/// let config = ServerConfig::insecure(session.clone());
/// let mut server = Server::<Blob>::bind("127.0.0.1:0", &config)?.spawn(&threads)?;
/// let config = ClientConfig::insecure(session);
/// let mut client = Client::<Blob>::connect(server.local_addr(), &config)?.spawn(&threads)?;
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
/// Everything is bounded, see [`ThreadConfig`]: if a session accepts no more, sending fails with
/// [`NotSent::Full`]; if the program does not take what arrived, the windows of the peers close.
///
/// # Cost
///
/// One thread, which sleeps while there is nothing to do; an allocation and a copy per message in each
/// direction; and a system call to wake a sleeping thread for a command.
///
/// Dropping it ends its sessions and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct ServerThread<M: Message + Send + 'static = Blob> {
    handle: Handle<session::Server<M>>,
}

/// The servers of [`Server::bind_shards`], each on its own thread, as one [`ServerThread`]: events and data
/// of all of them come out here, and sessions are addressed by their id wherever they are.
///
/// ```no_run
/// use std::time::Duration;
/// use whitewater::net::{Incoming, Server, ServerThreads, ThreadConfig};
/// use whitewater::session::{Blob, ServerConfig, SessionConfig};
///
/// let threads = std::thread::available_parallelism()?.get().min(64);
/// let config = ServerConfig::insecure(SessionConfig::default());
/// let shards = Server::<Blob>::bind_shards("0.0.0.0:4000", &config, threads)?;
/// let mut server = ServerThreads::spawn(shards, &ThreadConfig::default())?;
/// while let Some((id, incoming)) = server.recv(Duration::MAX) {
///     if let Incoming::Message { lane, bytes } = incoming {
///         let _ = server.send(id, lane, &bytes); // an error concerns this client and must not end the server
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The limits of [`ThreadConfig`] apply to each thread. Dropping it ends all sessions and waits for that.
#[derive(Debug)]
pub struct ServerThreads<M: Message + Send + 'static = Blob> {
    handle: Handle<session::Server<M>>,
}

/// A [`Client`] on a thread of its own, like [`ServerThread`].
///
/// Dropping it ends its session and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct ClientThread<M: Message + Send + 'static = Blob> {
    handle: Handle<session::Client<M>>,
}

/// The methods that all of them have. With several sessions, they take the id of one.
macro_rules! verbs {
    ($type:ident, $named:expr $(, $id:ident: $of:ty)?) => {
        impl<M: Message + Send + 'static> $type<M> {
            /// Bytes that may be sent on a lane, a channel or as datagrams now. Each message counts about 50
            /// bytes extra, and one of a channel counts as 1200. The number only decreases through what is
            /// sent here.
            #[must_use]
            pub fn room(&self, $($id: $of,)? way: Way) -> usize {
                self.handle.room($named, way)
            }

            /// Sends a message on a reliable lane. [`NotSent`] says why it failed.
            pub fn send(&mut self, $($id: $of,)? lane: usize, message: &[u8]) -> Result<(), NotSent> {
                self.handle.send($named, Outgoing::Lane(lane, message.to_vec()))
            }

            /// Sends an unreliable datagram. [`NotSent`] says why it failed.
            pub fn send_datagram(&mut self, $($id: $of,)? datagram: &[u8]) -> Result<(), NotSent> {
                self.handle.send($named, Outgoing::Datagram(datagram.to_vec()))
            }

            /// Sends a message of a channel. [`NotSent`] says why it failed.
            pub fn send_message(&mut self, $($id: $of,)? channel: usize, message: M) -> Result<(), NotSent> {
                self.handle.send($named, Outgoing::Message(channel, Some(message)))
            }

            /// Sends a block of a channel. [`NotSent`] says why it failed.
            pub fn send_block(&mut self, $($id: $of,)? channel: usize, block: &[u8]) -> Result<(), NotSent> {
                self.handle.send($named, Outgoing::Block(channel, block.to_vec()))
            }

            /// The local address.
            #[must_use]
            pub fn local_addr(&self) -> SocketAddr {
                self.handle.local_addr
            }

            /// Whether a thread has ended because its socket failed; [`shutdown`](Self::shutdown) returns the
            /// error. The other threads continue, and the end of a session does not end its thread.
            #[must_use]
            pub fn is_finished(&self) -> bool {
                self.handle.is_finished()
            }

            /// Closes every session once everything sent has arrived, ends the thread, and waits for that,
            /// for at most twice `drain` plus 2 s. What arrives meanwhile is dropped.
            ///
            /// # Errors
            ///
            /// If a socket has failed, or a closure passed to [`run`](Self::run) has panicked.
            pub fn shutdown(mut self, code: u16) -> io::Result<()> {
                self.handle.shutdown(code)
            }
        }
    };
}

verbs!(ServerThread, Some(id), id: SessionId);
verbs!(ServerThreads, Some(id), id: SessionId);
verbs!(ClientThread, None);

/// The methods of the types with many sessions.
macro_rules! of_many {
    ($($type:ident)*) => {
        $(impl<M: Message + Send + 'static> $type<M> {
            /// Takes the next event, message or datagram of any session. Those of one session come in order.
            pub fn try_recv(&mut self) -> Option<(SessionId, Incoming<M>)> {
                self.handle.recv(None).and_then(|(id, incoming)| Some((id?, incoming)))
            }

            /// Like [`try_recv`](Self::try_recv), but waits for at most `timeout`. Returns `None` at once
            /// when all threads have ended.
            pub fn recv(&mut self, timeout: Duration) -> Option<(SessionId, Incoming<M>)> {
                self.handle.recv(Some(timeout)).and_then(|(id, incoming)| Some((id?, incoming)))
            }

            /// Closes a session once everything sent has arrived. What waits here gets `drain` to be
            /// accepted; then the close takes up to the same time again.
            pub fn close(&mut self, id: SessionId, code: u16) {
                self.handle.close(Some(id), code);
            }
        })*
    };
}

of_many!(ServerThread ServerThreads);

impl<M: Message + Send + 'static> Server<M> {
    /// Moves the server to a new thread.
    ///
    /// # Errors
    ///
    /// If the system cannot create the thread or the descriptor to wake it, or does not know the socket's
    /// address.
    pub fn spawn(self, config: &ThreadConfig) -> io::Result<ServerThread<M>> {
        Ok(ServerThread { handle: Handle::spawn([self], config)? })
    }
}

impl<M: Message + Send + 'static> ServerThread<M> {
    /// Makes the thread call `run` with its server between two pumps, for what has no method here. Keep it
    /// short. [`NotSent`] says why it failed.
    pub fn run(&mut self, run: impl FnOnce(&mut Server<M>) + Send + 'static) -> Result<(), NotSent> {
        self.handle.run(0, run)
    }
}

impl<M: Message + Send + 'static> ServerThreads<M> {
    /// Binds servers to `addr`, each on a new thread: see [`Server::bind_shards`].
    ///
    /// # Errors
    ///
    /// As [`Server::bind_shards`] and [`spawn`](Self::spawn).
    pub fn bind(
        addr: impl ToSocketAddrs,
        server: &ServerConfig,
        count: usize,
        config: &ThreadConfig,
    ) -> io::Result<Self> {
        Self::spawn(Server::bind_shards(addr, server, count)?, config)
    }

    /// Takes all servers made by [`Server::bind_shards`], in order.
    ///
    /// # Errors
    ///
    /// If there are none, or the system cannot create a thread or does not know a socket's address.
    pub fn spawn(servers: Vec<Server<M>>, config: &ThreadConfig) -> io::Result<Self> {
        if servers.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no server to spawn"));
        }
        Ok(Self { handle: Handle::spawn(servers, config)? })
    }

    /// Makes the thread of a shard call `run` with its server between two pumps. Keep it short.
    ///
    /// # Errors
    ///
    /// If a thousand closures wait already, there is no such shard, or its thread has ended.
    pub fn run(
        &mut self,
        shard: usize,
        run: impl FnOnce(&mut Server<M>) + Send + 'static,
    ) -> Result<(), NotSent> {
        self.handle.run(shard, run)
    }

    /// The number of shards.
    #[must_use]
    pub const fn shards(&self) -> usize {
        self.handle.threads.len()
    }
}

impl<M: Message + Send + 'static> Client<M> {
    /// Moves the client to a new thread.
    ///
    /// # Errors
    ///
    /// If the system cannot create the thread or the descriptor to wake it, or does not know the socket's
    /// address.
    pub fn spawn(self, config: &ThreadConfig) -> io::Result<ClientThread<M>> {
        Ok(ClientThread { handle: Handle::spawn([self], config)? })
    }
}

impl<M: Message + Send + 'static> ClientThread<M> {
    /// Takes the next event, message or datagram. Nothing can be sent before
    /// [`Event::Connected`](session::Event::Connected) has been taken.
    pub fn try_recv(&mut self) -> Option<Incoming<M>> {
        Some(self.handle.recv(None)?.1)
    }

    /// Like [`try_recv`](Self::try_recv), but waits for at most `timeout`. Returns `None` at once when the
    /// thread has ended.
    pub fn recv(&mut self, timeout: Duration) -> Option<Incoming<M>> {
        Some(self.handle.recv(Some(timeout))?.1)
    }

    /// Closes the session once everything sent has arrived; an attempt to connect ends at once. What waits
    /// here gets `drain` to be accepted; then the close takes up to the same time again.
    pub fn close(&mut self, code: u16) {
        if !self.handle.close(None, code) {
            let _ = self.run(move |client| client.close(code)); // if it fails, the session is over
        }
    }

    /// Makes the thread call `run` with its client between two pumps, for what has no method here. Keep it
    /// short. [`NotSent`] says why it failed.
    pub fn run(&mut self, run: impl FnOnce(&mut Client<M>) + Send + 'static) -> Result<(), NotSent> {
        self.handle.run(0, run)
    }
}
