//! The public types for servers and clients on threads.

use super::ThreadConfig;
use super::handle::Handle;
use crate::channel::{Channel, RecvError, SendError};
use crate::message::pack::Payload;
use crate::net::{Client, Server};
use crate::session::{self, Event, ServerConfig, SessionId};
use bytes::Bytes;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// A [`Server`] on a thread of its own, for a program whose loop must not do I/O: acknowledgements and
/// retransmissions do not wait for a frame. It has the calls of a [`Server`]; none of them blocks but
/// [`poll`](Self::poll).
///
/// ```
/// use std::time::Duration;
/// use whitewater::Channel;
/// use whitewater::net::{Client, Server, ThreadConfig};
/// use whitewater::session::{ClientConfig, Event, ServerConfig, SessionConfig};
///
/// const CHAT: Channel = Channel::ordered(0);
/// let patience = Some(Duration::from_secs(5));
/// let (session, threads) = (SessionConfig::default(), ThreadConfig::default());
/// let config = ServerConfig::insecure(session.clone());
/// let mut server = Server::bind("127.0.0.1:0", &config)?.spawn(&threads)?;
/// let config = ClientConfig::insecure(session);
/// let mut client = Client::connect(server.local_addr(), &config)?.spawn(&threads)?;
/// while client.poll(patience) {
///     match client.poll_event().ok_or("no event")? {
///         Event::Connected => client.send(CHAT, b"hello")?,
///         Event::Readable => {
///             assert_eq!(client.recv(CHAT).ok_or("no message")?, "hello");
///             break;
///         }
///         other => return Err(format!("{other:?}").into()),
///     }
///     while server.poll(patience) {
///         let Some((id, Event::Readable)) = server.poll_event() else { continue };
///         let message = server.recv(id, CHAT).ok_or("no message")?;
///         server.send(id, CHAT, &message)?;
///         break;
///     }
/// }
/// client.shutdown(0)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Limits
///
/// Everything is bounded, see [`ThreadConfig`]: if a session accepts no more, sending fails with
/// [`SendError::Full`]; if the program does not take what arrived, the windows of the peers close.
///
/// # Cost
///
/// One thread, which sleeps while there is nothing to do; an allocation and a copy per message in each
/// direction; and a system call to wake a sleeping thread for a command.
///
/// Dropping it ends its sessions and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct ServerThread {
    handle: Handle<session::Server>,
}

/// The servers of [`Server::bind_shards`], each on its own thread, as one [`ServerThread`]: events and data
/// of all of them come out here, and sessions are addressed by their id wherever they are.
///
/// ```no_run
/// use whitewater::Channel;
/// use whitewater::net::{Server, ServerThreads, ThreadConfig};
/// use whitewater::session::{Event, ServerConfig, SessionConfig};
///
/// const CHAT: Channel = Channel::ordered(0);
/// let threads = std::thread::available_parallelism()?.get().min(64);
/// let config = ServerConfig::insecure(SessionConfig::default());
/// let shards = Server::bind_shards("0.0.0.0:4000", &config, threads)?;
/// let mut server = ServerThreads::spawn(shards, &ThreadConfig::default())?;
/// while server.poll(None) {
///     let Some((id, Event::Readable)) = server.poll_event() else { continue };
///     while let Some(message) = server.recv(id, CHAT) {
///         let _ = server.send(id, CHAT, &message); // an error concerns this client and must not end the server
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The limits of [`ThreadConfig`] apply to each thread. Dropping it ends all sessions and waits for that.
#[derive(Debug)]
pub struct ServerThreads {
    handle: Handle<session::Server>,
}

/// A [`Client`] on a thread of its own, like [`ServerThread`].
///
/// Dropping it ends its session and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct ClientThread {
    handle: Handle<session::Client>,
}

/// The methods that all of them have. With several sessions, they take the id of one.
macro_rules! verbs {
    ($type:ident, $named:expr $(, $id:ident: $of:ty)?) => {
        impl $type {
            /// Queues a message.
            ///
            /// # Errors
            ///
            /// As much waits for the session as may ([`is_full`](SendError::is_full)): [`Event::Writable`] tells when there is room. Or the
            /// message is too long, the handle is none of the session's channels, or the session is not up.
            pub fn send<P: Payload + ?Sized>(&mut self, $($id: $of,)? channel: Channel<P>, message: &P::Sent) -> Result<(), SendError> {
                self.handle.send($named, channel, message)
            }

            /// Takes the next message of a channel; `None`: there is none yet, or no such session, or it is none of its type, which ends the
            /// session.
            pub fn recv<P: Payload + ?Sized>(&mut self, $($id: $of,)? channel: Channel<P>) -> Option<P::Received> {
                self.handle.recv($named, channel)
            }

            /// Takes the next message of a channel of bytes into `buf` and returns its length.
            ///
            /// # Errors
            ///
            /// There is none; or it does not fit, and stays; or the handle is none of the session's channels.
            pub fn recv_into(&mut self, $($id: $of,)? channel: Channel, buf: &mut [u8]) -> Result<usize, RecvError> {
                self.handle.recv_into($named, channel, buf)
            }

            /// Queues an unreliable datagram.
            ///
            /// # Errors
            ///
            /// Those of [`send`](Self::send).
            pub fn send_datagram(&mut self, $($id: $of,)? datagram: &[u8]) -> Result<(), SendError> {
                self.handle.send_datagram($named, datagram)
            }

            /// Takes the next unreliable datagram; `None`: there is none, or no such session.
            pub fn recv_datagram(&mut self $(, $id: $of)?) -> Option<Bytes> {
                self.handle.recv_datagram($named)
            }

            /// Takes the next unreliable datagram into `buf` and returns its length.
            ///
            /// # Errors
            ///
            /// There is none; or it does not fit, and stays.
            pub fn recv_datagram_into(&mut self, $($id: $of,)? buf: &mut [u8]) -> Result<usize, RecvError> {
                self.handle.recv_datagram_into($named, buf)
            }

            /// Waits until there is an event, at most for `timeout`; `None` waits for ever. Returns whether there is one; at once if all
            /// threads have ended and there will be none.
            pub fn poll(&mut self, timeout: Option<Duration>) -> bool {
                self.handle.poll(timeout)
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
        $(impl $type {
            /// Takes the next event, and the session that it is of. What has come of a session that has ended can be read until the next call.
            pub fn poll_event(&mut self) -> Option<(SessionId, Event)> {
                self.handle.poll_event().and_then(|(id, event)| Some((id?, event)))
            }

            /// The sessions that are up, in no order.
            pub fn ids(&self) -> impl Iterator<Item = SessionId> {
                self.handle.ids().flatten()
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

impl Server {
    /// Goes on by itself, on a new thread.
    ///
    /// # Errors
    ///
    /// The system gives no thread, no descriptor to wake it, or does not know the socket's address.
    pub fn spawn(self, config: &ThreadConfig) -> io::Result<ServerThread> {
        Ok(ServerThread { handle: Handle::spawn([self], config)? })
    }
}

impl ServerThread {
    /// Has the thread do something with the server that is not here, between two pumps: keep it short.
    /// Returns whether it does: not if a thousand of them wait already, or it has ended.
    pub fn run(&mut self, run: impl FnOnce(&mut Server) + Send + 'static) -> bool {
        self.handle.run(0, run)
    }
}

impl ServerThreads {
    /// Servers on `addr`, each on a new thread: see [`Server::bind_shards`].
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
    /// There is none, or the system gives no thread, or does not know a socket's address.
    pub fn spawn(servers: Vec<Server>, config: &ThreadConfig) -> io::Result<Self> {
        if servers.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no server to spawn"));
        }
        Ok(Self { handle: Handle::spawn(servers, config)? })
    }

    /// Has the thread of that shard do something with its server, between two pumps: keep it short. Returns whether it does: not if a
    /// thousand of them wait already, or there is no such shard, or its thread has ended.
    pub fn run(&mut self, shard: usize, run: impl FnOnce(&mut Server) + Send + 'static) -> bool {
        self.handle.run(shard, run)
    }

    /// The number of shards.
    #[must_use]
    pub const fn shards(&self) -> usize {
        self.handle.threads.len()
    }
}

impl Client {
    /// Goes on by itself, on a new thread.
    ///
    /// # Errors
    ///
    /// The system gives no thread, no descriptor to wake it, or does not know the socket's address.
    pub fn spawn(self, config: &ThreadConfig) -> io::Result<ClientThread> {
        Ok(ClientThread { handle: Handle::spawn([self], config)? })
    }
}

impl ClientThread {
    /// Takes the next event. Nothing can be sent before [`Event::Connected`] was taken. What has come can be read also after
    /// [`Event::Closed`].
    pub fn poll_event(&mut self) -> Option<Event> {
        Some(self.handle.poll_event()?.1)
    }

    /// Closes the session once everything sent has arrived; an attempt to connect ends at once. What waits
    /// here gets `drain` to be accepted; then the close takes up to the same time again.
    pub fn close(&mut self, code: u16) {
        if !self.handle.close(None, code) {
            let _ = self.run(move |client| client.close(code)); // if it fails, the session is over
        }
    }

    /// Has the thread do something with the client that is not here, between two pumps: keep it short.
    /// Returns whether it does: not if a thousand of them wait already, or it has ended.
    pub fn run(&mut self, run: impl FnOnce(&mut Client) + Send + 'static) -> bool {
        self.handle.run(0, run)
    }
}
