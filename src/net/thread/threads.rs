//! Servers and clients behind threads, as a program has them.

use super::handle::Handle;
use super::outbox::Outgoing;
use super::{Incoming, NotSent, ThreadConfig, Way};
use crate::message::Message;
use crate::net::{Client, Server};
use crate::session::{self, Blob, ServerConfig, SessionId};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
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
/// given to a sleeping thread a call of the system, which wakes it.
///
/// Dropped, it ends its sessions and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct ServerThread<M: Message + Send + 'static = Blob> {
    handle: Handle<session::Server<M>>,
}

/// The servers of [`Server::bind_shards`] on a thread each, as one [`ServerThread`]: what happens in any of them comes out here, and a
/// session is found by its id wherever it is.
///
/// ```no_run
/// use std::time::Duration;
/// use whitewater::net::{Incoming, Server, ServerThreads, ThreadConfig};
/// use whitewater::session::{Blob, ServerConfig};
///
/// let threads = std::thread::available_parallelism()?.get().min(64);
/// let shards = Server::<Blob>::bind_shards("0.0.0.0:4000", &ServerConfig::insecure(), threads)?;
/// let mut server = ServerThreads::spawn(shards, &ThreadConfig::default())?;
/// while let Some((id, incoming)) = server.recv(Duration::MAX) {
///     if let Incoming::Message { lane, bytes } = incoming {
///         let _ = server.send(id, lane, &bytes); // an error is of this client, and must not end the server
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The limits of the [`ThreadConfig`] are of each thread. Dropped, it ends all sessions and waits for that.
#[derive(Debug)]
pub struct ServerThreads<M: Message + Send + 'static = Blob> {
    handle: Handle<session::Server<M>>,
}

/// A [`Client`] on a thread of its own, in the same way as a [`ServerThread`].
///
/// Dropped, it ends its session and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct ClientThread<M: Message + Send + 'static = Blob> {
    handle: Handle<session::Session<M>>,
}

/// What all of them do, by the id of a session where there are several.
macro_rules! verbs {
    ($type:ident, $named:expr $(, $id:ident: $of:ty)?) => {
        impl<M: Message + Send + 'static> $type<M> {
            /// Bytes that may be sent on a lane, a channel or as datagrams now; each message counts some 50 more, one of a channel
            /// 1200. Only what is sent here makes it less.
            #[must_use]
            pub fn room(&self, $($id: $of,)? way: Way) -> usize {
                self.handle.room($named, way)
            }

            /// Sends a message on a reliable lane; [`NotSent`] says why not.
            pub fn send(&mut self, $($id: $of,)? lane: usize, message: &[u8]) -> Result<(), NotSent> {
                self.handle.send($named, Outgoing::Lane(lane, message.to_vec()))
            }

            /// Sends an unreliable datagram; [`NotSent`] says why not.
            pub fn send_datagram(&mut self, $($id: $of,)? datagram: &[u8]) -> Result<(), NotSent> {
                self.handle.send($named, Outgoing::Datagram(datagram.to_vec()))
            }

            /// Sends a message of a channel; [`NotSent`] says why not.
            pub fn send_message(&mut self, $($id: $of,)? channel: usize, message: M) -> Result<(), NotSent> {
                self.handle.send($named, Outgoing::Message(channel, Some(message)))
            }

            /// Sends a block of a channel; [`NotSent`] says why not.
            pub fn send_block(&mut self, $($id: $of,)? channel: usize, block: &[u8]) -> Result<(), NotSent> {
                self.handle.send($named, Outgoing::Block(channel, block.to_vec()))
            }

            /// The address that it is bound to.
            #[must_use]
            pub fn local_addr(&self) -> SocketAddr {
                self.handle.local_addr
            }

            /// Whether a thread has ended: its socket has failed, which [`shutdown`](Self::shutdown) tells. Others go on, and the end of a
            /// session is none of its thread.
            #[must_use]
            pub fn is_finished(&self) -> bool {
                self.handle.is_finished()
            }

            /// Ends every session when what was sent has arrived, then the thread, and waits for that: at most twice `drain` and 2 s. What
            /// comes meanwhile is dropped.
            ///
            /// # Errors
            ///
            /// A socket has failed, or what a thread was given to [`run`](Self::run) has panicked.
            pub fn shutdown(mut self, code: u16) -> io::Result<()> {
                self.handle.shutdown(code)
            }
        }
    };
}

verbs!(ServerThread, Some(id), id: SessionId);
verbs!(ServerThreads, Some(id), id: SessionId);
verbs!(ClientThread, None);

/// What both have that have many sessions.
macro_rules! of_many {
    ($($type:ident)*) => {
        $(impl<M: Message + Send + 'static> $type<M> {
            /// Takes the next event, message or datagram of any session. What is of one session comes in order.
            pub fn try_recv(&mut self) -> Option<(SessionId, Incoming<M>)> {
                self.handle.recv(None).and_then(|(id, incoming)| Some((id?, incoming)))
            }

            /// The same, and waits for one, at most for `timeout`; at once `None` when all threads have ended.
            pub fn recv(&mut self, timeout: Duration) -> Option<(SessionId, Incoming<M>)> {
                self.handle.recv(Some(timeout)).and_then(|(id, incoming)| Some((id?, incoming)))
            }

            /// Ends a session when what was sent has arrived. What waits here is given `drain` to be taken, then a close has the same time
            /// again.
            pub fn close(&mut self, id: SessionId, code: u16) {
                self.handle.close(Some(id), code);
            }
        })*
    };
}

of_many!(ServerThread ServerThreads);

impl<M: Message + Send + 'static> Server<M> {
    /// Goes on by itself, on a new thread.
    ///
    /// # Errors
    ///
    /// The system gives no thread, no descriptor to wake it, or does not know the socket's address.
    pub fn spawn(self, config: &ThreadConfig) -> io::Result<ServerThread<M>> {
        Ok(ServerThread { handle: Handle::spawn([self], config)? })
    }
}

impl<M: Message + Send + 'static> ServerThread<M> {
    /// Has the thread do something with the server that is not here, between two pumps: keep it short.
    /// [`NotSent`] says why not.
    pub fn run(&mut self, run: impl FnOnce(&mut Server<M>) + Send + 'static) -> Result<(), NotSent> {
        self.handle.run(0, run)
    }
}

impl<M: Message + Send + 'static> ServerThreads<M> {
    /// Servers on `addr`, each on a new thread: see [`Server::bind_shards`].
    ///
    /// # Errors
    ///
    /// Those of [`Server::bind_shards`] and of [`spawn`](Self::spawn).
    pub fn bind(
        addr: impl ToSocketAddrs,
        server: &ServerConfig,
        count: usize,
        config: &ThreadConfig,
    ) -> io::Result<Self> {
        Self::spawn(Server::bind_shards(addr, server, count)?, config)
    }

    /// Takes all of what [`Server::bind_shards`] has made, in its order.
    ///
    /// # Errors
    ///
    /// There is none, or the system gives no thread, or does not know a socket's address.
    pub fn spawn(servers: Vec<Server<M>>, config: &ThreadConfig) -> io::Result<Self> {
        if servers.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no server to spawn"));
        }
        Ok(Self { handle: Handle::spawn(servers, config)? })
    }

    /// Has the thread of that shard do something with its server, between two pumps: keep it short.
    ///
    /// # Errors
    ///
    /// A thousand of them wait already, or there is no such shard, or its thread has ended.
    pub fn run(
        &mut self,
        shard: usize,
        run: impl FnOnce(&mut Server<M>) + Send + 'static,
    ) -> Result<(), NotSent> {
        self.handle.run(shard, run)
    }

    /// How many shards there are.
    #[must_use]
    pub const fn shards(&self) -> usize {
        self.handle.threads.len()
    }
}

impl<M: Message + Send + 'static> Client<M> {
    /// Goes on by itself, on a new thread.
    ///
    /// # Errors
    ///
    /// The system gives no thread, no descriptor to wake it, or does not know the socket's address.
    pub fn spawn(self, config: &ThreadConfig) -> io::Result<ClientThread<M>> {
        Ok(ClientThread { handle: Handle::spawn([self], config)? })
    }
}

impl<M: Message + Send + 'static> ClientThread<M> {
    /// Takes the next event, message or datagram. Nothing can be sent before [`Event::Connected`](session::Event::Connected) was taken.
    pub fn try_recv(&mut self) -> Option<Incoming<M>> {
        Some(self.handle.recv(None)?.1)
    }

    /// The same, and waits for one, at most for `timeout`; at once `None` when the thread has ended.
    pub fn recv(&mut self, timeout: Duration) -> Option<Incoming<M>> {
        Some(self.handle.recv(Some(timeout))?.1)
    }

    /// Ends the session when what was sent has arrived; an attempt to connect ends at once. What waits here is given `drain` to be taken,
    /// then a close has the same time again.
    pub fn close(&mut self, code: u16) {
        if !self.handle.close(None, code) {
            let _ = self.run(move |client| client.close(code)); // or it is over
        }
    }

    /// Has the thread do something with the client that is not here, between two pumps: keep it short.
    /// [`NotSent`] says why not.
    pub fn run(&mut self, run: impl FnOnce(&mut Client<M>) + Send + 'static) -> Result<(), NotSent> {
        self.handle.run(0, run)
    }
}
