//! The public types for servers and clients on threads.

use super::ThreadConfig;
use super::handle::Handle;
use crate::channel::{Channel, RecvError, SendError};
use crate::message::pack::Payload;
use crate::net;
use crate::session::{
    self, ClientConfig, CloseTextError, Connection, Event, ServerConfig, SessionId, check_close,
    code_of_close,
};
use bytes::Bytes;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;
use zeroize::Zeroizing;

/// A server whose sessions run on one thread, or on several that share a port. Use it if the program's loop must not
/// do I/O or runs too rarely: the threads still acknowledge and retransmit in time. It has the methods of a
/// [`Server`](crate::Server). Only [`poll`](Self::poll) and [`shutdown`](Self::shutdown) block.
///
/// With several threads, this handle delivers the events and data of all of them, and a session's id finds its
/// thread.
///
/// ```
/// use std::time::Duration;
/// use whitewater::thread::{Client, Server, ThreadConfig};
/// use whitewater::{Channel, ClientConfig, Event, ServerConfig, SessionConfig};
///
/// const CHAT: Channel = Channel::ordered(0);
/// let patience = Some(Duration::from_secs(5));
/// let (session, threads) = (SessionConfig::default(), ThreadConfig::default());
/// let mut server = Server::bind("127.0.0.1:0", &ServerConfig::insecure(session.clone()), &threads)?;
/// let mut client = Client::connect(server.local_addr(), &ClientConfig::insecure(session), &threads)?;
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
/// Everything is bounded by the [`ThreadConfig`], whose limits apply to each thread. If a session accepts no more,
/// sending fails with [`SendError::Full`]. If the program does not take what arrived, the receive windows close.
///
/// # Cost
///
/// A thread, which sleeps while there is nothing to do; an allocation and a copy per message in each direction; and a system call to wake
/// a sleeping thread for a command.
///
/// Dropping it ends its sessions and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct Server {
    handle: Handle<session::Server>,
}

/// A client whose session runs on a thread of its own, like [`Server`].
///
/// Dropping it ends its session and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct Client {
    handle: Handle<session::Client>,
}

/// The methods that servers and clients share. Those of a server take the id of a session.
macro_rules! verbs {
    ($type:ident, $named:expr $(, $id:ident: $of:ty)?) => {
        impl $type {
            /// Queues a message.
            ///
            /// # Errors
            ///
            /// The session's queue is full ([`is_full`](SendError::is_full)): [`Event::Writable`] reports when there
            /// is room. Or the message is too long, the handle belongs to no channel of the session, or the session
            /// is not up.
            pub fn send<P: Payload + ?Sized>(&mut self, $($id: $of,)? channel: Channel<P>, message: &P::Sent) -> Result<(), SendError> {
                self.handle.send($named, channel, message)
            }

            /// Takes the next message of a channel. `None`: there is no message yet or no such session, or the
            /// message is not of the channel's type, which ends the session.
            pub fn recv<P: Payload + ?Sized>(&mut self, $($id: $of,)? channel: Channel<P>) -> Option<P::Received> {
                self.handle.recv($named, channel)
            }

            /// Takes the next message of a channel of bytes into `buf` and returns its length.
            ///
            /// # Errors
            ///
            /// There is no message; or it does not fit and stays queued; or the handle belongs to no channel of the
            /// session.
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
            /// There is no datagram, or it does not fit and stays queued.
            pub fn recv_datagram_into(&mut self, $($id: $of,)? buf: &mut [u8]) -> Result<usize, RecvError> {
                self.handle.recv_datagram_into($named, buf)
            }

            /// Whether the session is up and accepts messages, going by the events received so far.
            #[must_use]
            pub fn is_connected(&self $(, $id: $of)?) -> bool {
                self.handle.is_open($named)
            }

            /// The address of the peer. `None`: no event has reported such a session.
            #[must_use]
            pub fn peer_addr(&self $(, $id: $of)?) -> Option<SocketAddr> {
                self.handle.peer_addr($named)
            }

            /// What the peer's application said in the handshake: a client's [`user`](crate::ClientConfig::user), a
            /// server's answer. Empty if no event has reported such a session.
            #[must_use]
            pub fn user(&self $(, $id: $of)?) -> &[u8] {
                self.handle.user($named)
            }

            /// The text that the peer gave when it closed or kicked, after [`Event::Closed`]; see
            /// [`Connection::close_text`]. Empty if there is none.
            #[must_use]
            pub fn close_text(&self $(, $id: $of)?) -> &str {
                self.handle.close_text($named)
            }

            /// Calls a closure with the session on its thread, between two pumps: keep it short. Nothing happens if
            /// there is no such session. Returns whether the thread was told: `false` if a thousand closures wait
            /// already, or the thread has ended.
            pub fn connection(&mut self, $($id: $of,)? run: impl FnOnce(&mut Connection) + Send + 'static) -> bool {
                self.handle.run_at($named, move |driver| {
                    if let Some(connection) = driver.connection_mut($($id)?) {
                        run(connection);
                    }
                })
            }

            /// Closes a session once everything sent has arrived. An attempt to connect ends at once. Queued messages
            /// get `drain` to be accepted by the session; then the close takes up to the same time again.
            pub fn close(&mut self, $($id: $of,)? code: u16) {
                let _ = self.close_with($($id,)? code_of_close(code), "");
            }

            /// Like [`close`](Self::close), with a text for the peer; see [`Connection::close_with`].
            ///
            /// # Errors
            ///
            /// The text is too long or has control characters, or the code is one of the library's own. Then nothing has changed.
            pub fn close_with(&mut self, $($id: $of,)? code: u16, text: &str) -> Result<(), CloseTextError> {
                check_close(code, text)?;
                self.handle.close($named, code, text);
                Ok(())
            }

            /// Ends a session at once; see [`Connection::kick`].
            ///
            /// # Errors
            ///
            /// The text is too long or has control characters, or the code is one of the library's own. Then nothing has changed.
            pub fn kick(&mut self, $($id: $of,)? code: u16, text: &str) -> Result<(), CloseTextError> {
                check_close(code, text)?;
                self.handle.kick($named, code, text);
                Ok(())
            }

            /// Waits for an event, for at most `timeout`; `None` waits forever. Returns whether there is one. If all
            /// threads have ended, it returns at once.
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

verbs!(Server, Some(id), id: SessionId);
verbs!(Client, None);

impl Server {
    /// A server on `addr`, on a new thread: see [`Server::bind`](crate::Server::bind).
    ///
    /// # Errors
    ///
    /// As [`Server::bind`](crate::Server::bind) and [`spawn`](Self::spawn).
    pub fn bind(addr: impl ToSocketAddrs, server: &ServerConfig, config: &ThreadConfig) -> io::Result<Self> {
        Self::spawn(vec![net::Server::bind(addr, server)?], config)
    }

    /// A server on a socket that is bound already, on a new thread: see [`Server::from_socket`](crate::Server::from_socket).
    ///
    /// # Errors
    ///
    /// As [`Server::from_socket`](crate::Server::from_socket) and [`spawn`](Self::spawn).
    pub fn from_socket(socket: UdpSocket, server: &ServerConfig, config: &ThreadConfig) -> io::Result<Self> {
        Self::spawn(vec![net::Server::from_socket(socket, server)?], config)
    }

    /// Binds `count` servers to one port, each on a new thread: see
    /// [`Server::bind_shards`](crate::Server::bind_shards).
    ///
    /// ```no_run
    /// use whitewater::thread::{Server, ThreadConfig};
    /// use whitewater::{Channel, Event, ServerConfig, SessionConfig};
    ///
    /// const CHAT: Channel = Channel::ordered(0);
    /// let threads = std::thread::available_parallelism()?.get().min(64);
    /// let config = ServerConfig::insecure(SessionConfig::default());
    /// let mut server = Server::bind_shards("0.0.0.0:4000", &config, threads, &ThreadConfig::default())?;
    /// while server.poll(None) {
    ///     let Some((id, Event::Readable)) = server.poll_event() else { continue };
    ///     while let Some(message) = server.recv(id, CHAT) {
    ///         let _ = server.send(id, CHAT, &message); // an error concerns this client and must not end the server
    ///     }
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Server::bind_shards`](crate::Server::bind_shards) and [`spawn`](Self::spawn).
    pub fn bind_shards(
        addr: impl ToSocketAddrs,
        server: &ServerConfig,
        count: usize,
        config: &ThreadConfig,
    ) -> io::Result<Self> {
        Self::spawn(net::Server::bind_shards(addr, server, count)?, config)
    }

    /// Runs a server that is already set up, or all servers that [`Server::bind_shards`](crate::Server::bind_shards)
    /// made, in order.
    ///
    /// # Errors
    ///
    /// `servers` is empty, the system has no thread or no descriptor to wake it, or it does not know a socket's
    /// address.
    pub fn spawn(servers: Vec<net::Server>, config: &ThreadConfig) -> io::Result<Self> {
        if servers.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no server to spawn"));
        }
        Ok(Self { handle: Handle::spawn(servers, config)? })
    }

    /// Takes the next event and its session. What a session received before it ended can be read until the next call.
    pub fn poll_event(&mut self) -> Option<(SessionId, Event)> {
        self.handle.poll_event().and_then(|(id, event)| Some((id?, event)))
    }

    /// The connected clients, in no order. The iterator owns its list, so you can send to clients while you iterate.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = SessionId> + use<> {
        let clients: Vec<_> = self.handle.ids().flatten().collect();
        clients.into_iter()
    }

    /// Queues a message for every connected client; it is packed only once. Returns the clients for which this
    /// failed, and why: see [`send`](Self::send).
    pub fn broadcast<P: Payload + ?Sized>(
        &mut self,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        self.send_to(self.clients(), channel, message)
    }

    /// Like [`broadcast`](Self::broadcast), to all clients but one, such as the sender of a message.
    pub fn broadcast_except<P: Payload + ?Sized>(
        &mut self,
        except: SessionId,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        self.send_to(self.clients().filter(|id| *id != except), channel, message)
    }

    fn send_to<P: Payload + ?Sized>(
        &self,
        clients: impl Iterator<Item = SessionId>,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        let mut spare = Vec::new();
        let packed = self.handle.pack(channel, message, &mut spare);
        let send =
            |id| Some((id, packed.and_then(|packed| self.handle.send_packed(Some(id), packed)).err()?));
        clients.filter_map(send).collect()
    }

    /// Admits a client that [asks](Event::Requested) to join, and sends it `user`: see [`session::Server::admit`].
    /// Returns whether the thread was told, like [`at`](Self::at).
    pub fn admit(&mut self, id: SessionId, user: &[u8]) -> bool {
        let user = user.to_vec();
        self.at(id, move |server| log(server.admit(id, &user)))
    }

    /// Rejects a client that [asks](Event::Requested) to join, and tells it why: see [`session::Server::reject`].
    /// Returns whether the thread was told, like [`at`](Self::at).
    pub fn reject(&mut self, id: SessionId, code: u16, user: &[u8]) -> bool {
        let user = user.to_vec();
        self.at(id, move |server| log(server.reject(id, code, &user)))
    }

    /// Sends the client of a session to another server: see [`session::Server::redirect`]. Returns whether the thread
    /// was told, like [`at`](Self::at).
    pub fn redirect(&mut self, id: SessionId, token: &[u8]) -> bool {
        let token = Zeroizing::new(token.to_vec());
        self.at(id, move |server| log(server.redirect(id, &token)))
    }

    /// Calls a closure with the server on the session's thread, between two pumps: keep it short. Returns whether the
    /// thread was told: `false` if a thousand closures wait already, or the thread has ended. Use it for anything
    /// that has no method here: the contents of a request or a pass, statistics, the socket.
    pub fn at(&mut self, id: SessionId, run: impl FnOnce(&mut net::Server) + Send + 'static) -> bool {
        self.handle.run_at(Some(id), run)
    }

    /// The same, with the server of a shard. Shards are numbered from 0.
    pub fn run(&mut self, shard: usize, run: impl FnOnce(&mut net::Server) + Send + 'static) -> bool {
        self.handle.run(shard, run)
    }

    /// The number of shards, which is that of threads.
    #[must_use]
    pub const fn shards(&self) -> usize {
        self.handle.threads.len()
    }
}

impl Client {
    /// As [`Client::ticket`](crate::Client::ticket). Empty until an event has reported that the session is up.
    #[must_use]
    pub fn ticket(&self) -> &[u8] {
        self.handle.ticket(None)
    }

    /// Call this when the machine has changed networks; see
    /// [`Client::path_changed`](crate::Client::path_changed). The client also notices by itself.
    pub fn path_changed(&mut self) {
        self.handle.run_at(None, net::Client::path_changed);
    }

    /// Starts to connect a session, on a new thread: see [`Client::connect`](crate::Client::connect).
    ///
    /// # Errors
    ///
    /// As [`Client::connect`](crate::Client::connect) and [`spawn`](Self::spawn).
    pub fn connect(
        addr: impl ToSocketAddrs,
        client: &ClientConfig,
        config: &ThreadConfig,
    ) -> io::Result<Self> {
        Self::spawn(net::Client::connect(addr, client)?, config)
    }

    /// The same from a socket that is bound already: see [`Client::from_socket`](crate::Client::from_socket).
    ///
    /// # Errors
    ///
    /// As [`Client::from_socket`](crate::Client::from_socket) and [`spawn`](Self::spawn).
    pub fn from_socket(
        socket: UdpSocket,
        addr: impl ToSocketAddrs,
        client: &ClientConfig,
        config: &ThreadConfig,
    ) -> io::Result<Self> {
        Self::spawn(net::Client::from_socket(socket, addr, client)?, config)
    }

    /// Runs a client that is already set up.
    ///
    /// # Errors
    ///
    /// The system has no thread or no descriptor to wake it, or it does not know the socket's address.
    pub fn spawn(client: net::Client, config: &ThreadConfig) -> io::Result<Self> {
        Ok(Self { handle: Handle::spawn([client], config)? })
    }

    /// Takes the next event. Nothing can be sent before [`Event::Connected`]. What arrived can still be read after
    /// [`Event::Closed`].
    pub fn poll_event(&mut self) -> Option<Event> {
        Some(self.handle.poll_event()?.1)
    }

    /// Calls a closure with the client on its thread, between two pumps: keep it short. Returns whether the thread
    /// was told: `false` if a thousand closures wait already, or the thread has ended. Use it for anything that has
    /// no method here: a redirect, statistics, the socket.
    pub fn run(&mut self, run: impl FnOnce(&mut net::Client) + Send + 'static) -> bool {
        self.handle.run(0, run)
    }
}

/// Logs an error that the thread cannot return to the caller.
fn log<E: std::fmt::Display>(result: Result<(), E>) {
    if let Err(error) = result {
        log::debug!("a call to a session's thread came to nothing: {error}");
    }
}
