//! The public types for servers and clients on threads.

use super::ThreadConfig;
use super::handle::Handle;
use crate::channel::{Channel, RecvError, SendError};
use crate::message::pack::Payload;
use crate::net;
use crate::session::{
    self, ClientConfig, CloseTextError, Connection, Event, ServerConfig, SessionId, check_text,
};
use bytes::Bytes;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;
use zeroize::Zeroizing;

/// The server's end of sessions, on one thread or on several that share a port: a program whose loop must not do I/O, or runs too rarely,
/// still acknowledges and retransmits in time. It has the calls of a [`Server`](crate::Server); none of them blocks but [`poll`](Self::poll)
/// and [`shutdown`](Self::shutdown).
///
/// With several threads, events and data of all of them come out here, and sessions are addressed by their ids wherever they are.
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
/// Everything is bounded, see [`ThreadConfig`], whose limits apply to each thread: if a session accepts no more, sending fails with
/// [`SendError::Full`]; if the program does not take what arrived, the windows of the peers close.
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

/// The client's end of a session on a thread of its own, like [`Server`].
///
/// Dropping it ends its session and waits for that, as [`shutdown`](Self::shutdown) does.
#[derive(Debug)]
pub struct Client {
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

            /// Whether the session is up and takes what is sent, as far as the events that were taken tell.
            #[must_use]
            pub fn is_connected(&self $(, $id: $of)?) -> bool {
                self.handle.is_open($named)
            }

            /// Where the peer of a session is; `None`: no event has told of such a session.
            #[must_use]
            pub fn peer_addr(&self $(, $id: $of)?) -> Option<SocketAddr> {
                self.handle.peer_addr($named)
            }

            /// What the peer's application said in the handshake: a client's [`user`](crate::ClientConfig::user), a server's answer.
            /// Empty if no event has told of such a session.
            #[must_use]
            pub fn user(&self $(, $id: $of)?) -> &[u8] {
                self.handle.user($named)
            }

            /// The text with which the peer closed or kicked, for [`Event::Closed`]; see [`Connection::close_text`]. Empty if there
            /// is none.
            #[must_use]
            pub fn close_text(&self $(, $id: $of)?) -> &str {
                self.handle.close_text($named)
            }

            /// Has the thread do something with a session, between two pumps: keep it short. Nothing happens if there is no such session.
            /// Returns whether the thread was told: not if a thousand of these wait already, or it has ended.
            pub fn connection(&mut self, $($id: $of,)? run: impl FnOnce(&mut Connection) + Send + 'static) -> bool {
                self.handle.run_at($named, move |driver| {
                    if let Some(connection) = driver.connection_mut($($id)?) {
                        run(connection);
                    }
                })
            }

            /// Closes a session once everything sent has arrived; an attempt to connect ends at once. What waits here gets `drain` to be
            /// accepted; then the close takes up to the same time again.
            pub fn close(&mut self, $($id: $of,)? code: u16) {
                let _ = self.close_with($($id,)? code, ""); // there is no text to refuse
            }

            /// [`close`](Self::close) with a text for the peer, see [`Connection::close_with`].
            ///
            /// # Errors
            ///
            /// The text is too long, or has control characters. Then nothing has changed.
            pub fn close_with(&mut self, $($id: $of,)? code: u16, text: &str) -> Result<(), CloseTextError> {
                check_text(text)?;
                self.handle.close($named, code, text);
                Ok(())
            }

            /// Ends a session at once, see [`Connection::kick`].
            ///
            /// # Errors
            ///
            /// The text is too long, or has control characters. Then nothing has changed.
            pub fn kick(&mut self, $($id: $of,)? code: u16, text: &str) -> Result<(), CloseTextError> {
                check_text(text)?;
                self.handle.kick($named, code, text);
                Ok(())
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

    /// So many servers on one port, each on a new thread: see [`Server::bind_shards`](crate::Server::bind_shards).
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

    /// Takes a server that is set up already, or all of those that [`Server::bind_shards`](crate::Server::bind_shards) made, in order.
    ///
    /// # Errors
    ///
    /// There is none, or the system gives no thread, no descriptor to wake it, or does not know a socket's address.
    pub fn spawn(servers: Vec<net::Server>, config: &ThreadConfig) -> io::Result<Self> {
        if servers.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no server to spawn"));
        }
        Ok(Self { handle: Handle::spawn(servers, config)? })
    }

    /// Takes the next event, and the session that it is of. What has come of a session that has ended can be read until the next call.
    pub fn poll_event(&mut self) -> Option<(SessionId, Event)> {
        self.handle.poll_event().and_then(|(id, event)| Some((id?, event)))
    }

    /// The clients that are connected, in no order. The iterator owns its list, so you can send to them while you go through it.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = SessionId> + use<> {
        let clients: Vec<_> = self.handle.ids().flatten().collect();
        clients.into_iter()
    }

    /// Queues a message for every client that is connected; it is packed only once. Returns the clients that it could not be queued for,
    /// and why: see [`send`](Self::send).
    pub fn broadcast<P: Payload + ?Sized>(
        &mut self,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        self.send_to(self.clients(), channel, message)
    }

    /// [`broadcast`](Self::broadcast) to all clients but one, such as the one that a message came from.
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

    /// Lets a client in that [asks](Event::Requested), and tells it `user`: see [`session::Server::admit`]. Returns whether the thread
    /// was told, as [`at`](Self::at).
    pub fn admit(&mut self, id: SessionId, user: &[u8]) -> bool {
        let user = user.to_vec();
        self.at(id, move |server| log(server.admit(id, &user)))
    }

    /// Sends a client away that [asks](Event::Requested), and tells it why: see [`session::Server::reject`]. Returns whether the
    /// thread was told, as [`at`](Self::at).
    pub fn reject(&mut self, id: SessionId, code: u16, user: &[u8]) -> bool {
        let user = user.to_vec();
        self.at(id, move |server| log(server.reject(id, code, &user)))
    }

    /// Sends the client of a session to another server: see [`session::Server::redirect`]. Returns whether the thread
    /// was told, as [`at`](Self::at).
    pub fn redirect(&mut self, id: SessionId, token: &[u8]) -> bool {
        let token = Zeroizing::new(token.to_vec());
        self.at(id, move |server| log(server.redirect(id, &token)))
    }

    /// Has the thread of a session do something with its server, between two pumps: keep it short. Returns whether it does: not if a
    /// thousand of them wait already, or its thread has ended. It is for whatever has no call here: what a request or a pass says,
    /// statistics, the socket.
    pub fn at(&mut self, id: SessionId, run: impl FnOnce(&mut net::Server) + Send + 'static) -> bool {
        self.handle.run_at(Some(id), run)
    }

    /// The same with the server of a shard, which are numbered from 0.
    pub fn run(&mut self, shard: usize, run: impl FnOnce(&mut net::Server) + Send + 'static) -> bool {
        self.handle.run(shard, run)
    }

    /// The number of shards: of threads.
    #[must_use]
    pub const fn shards(&self) -> usize {
        self.handle.threads.len()
    }
}

impl Client {
    /// A session that begins to connect, on a new thread: see [`Client::connect`](crate::Client::connect).
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

    /// Takes a client that is set up already.
    ///
    /// # Errors
    ///
    /// The system gives no thread, no descriptor to wake it, or does not know the socket's address.
    pub fn spawn(client: net::Client, config: &ThreadConfig) -> io::Result<Self> {
        Ok(Self { handle: Handle::spawn([client], config)? })
    }

    /// Takes the next event. Nothing can be sent before [`Event::Connected`] was taken. What has come can be read also after
    /// [`Event::Closed`].
    pub fn poll_event(&mut self) -> Option<Event> {
        Some(self.handle.poll_event()?.1)
    }

    /// Has the thread do something with the client, between two pumps: keep it short. Returns whether it does: not if a thousand of them
    /// wait already, or it has ended. It is for whatever has no call here: a redirect, statistics, the socket.
    pub fn run(&mut self, run: impl FnOnce(&mut net::Client) + Send + 'static) -> bool {
        self.handle.run(0, run)
    }
}

/// What the thread cannot return to whoever called.
fn log<E: std::fmt::Display>(result: Result<(), E>) {
    if let Err(error) = result {
        log::debug!("a call to a session's thread came to nothing: {error}");
    }
}
