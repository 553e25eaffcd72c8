//! A connected session: messages, streams, datagrams, events.

use super::super::client::one_network;
use super::super::driver::{ONE_PEER, mode};
use super::super::error::Error;
use super::core::Sessions;
use super::core::{Closed, Core as _};
use super::shared::Handle;
use super::stream::{Reader, Way, Writer, stream};
use super::waiting::For;
use crate::channel::{AnyChannel, Channel, RecvError, SendError};
use crate::message::pack::Payload;
use crate::session::{
    CloseReason, CloseTextError, Connection, DatagramId, Event, Pass, RedirectError, SecondNetwork,
    SessionId, Undelivered, check_close, code_of_close,
};
use bytes::Bytes;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use whitewater_udp::Port;
use zeroize::Zeroizing;

/// A session of a [`Server`](super::Server) or a [`Client`](super::Client). Clones are handles to the same
/// session, for as many tasks as you like.
///
/// [`send`](Self::send) waits for room, and [`recv`](Self::recv) for a message. [`stream`](Self::stream) reads and
/// writes a stream channel as bytes. Sending datagrams never waits.
///
/// # The end
///
/// [`close`](Self::close) first lets everything sent arrive, for at most `drain` of the config, and then
/// tells the peer. The same happens, with code 0, when the last clone and the last stream is dropped: in the
/// background, while the runtime lives. What had arrived when a session ends can still be read; then calls
/// fail with [`Error::Closed`].
///
/// # Cancelling
///
/// Everything happens within one poll: a future that is dropped before it is ready has done nothing, and
/// nothing is lost or duplicated.
#[derive(Debug)]
pub struct Session {
    handle: Handle<Sessions>,
}

impl Session {
    pub(super) const fn new(handle: Handle<Sessions>) -> Self {
        Self { handle }
    }

    /// Sends a message; waits for room.
    ///
    /// # Errors
    ///
    /// The message is too long, the handle belongs to no channel of the session, or the session is over.
    pub async fn send<P: Payload + ?Sized>(&self, channel: Channel<P>, message: &P::Sent) -> io::Result<()> {
        let (handle, mut spare) = (AnyChannel::from(channel), Vec::new());
        let packed = P::pack(message, &mut spare);
        let (bytes, bits) = packed.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let way = self.way(channel.number());
        poll_fn(|cx| way.poll_with(cx, |connection, _| connection.send_packed(handle, bytes, bits))).await
    }

    /// The same, without waiting; see [`Connection::send`], also for its errors.
    pub fn try_send<P: Payload + ?Sized>(
        &self,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Result<(), SendError> {
        self.connection(|connection| connection.send(channel, message)).ok_or(SendError::Closed)?
    }

    /// Takes the next message of a channel.
    ///
    /// # Errors
    ///
    /// The handle belongs to no channel of the session, or the session is over and every message was taken.
    pub async fn recv<P: Payload + ?Sized>(&self, channel: Channel<P>) -> io::Result<P::Received> {
        let recv = |source: &mut Connection| {
            source.check(channel)?;
            source.recv(channel).ok_or(RecvError::Empty)
        };
        poll_fn(|cx| self.handle.poll_recv(cx, For::Recv(channel.number()), recv)).await
    }

    /// Takes the next message of a channel of bytes into `buf` and returns its length.
    ///
    /// # Errors
    ///
    /// It does not fit and stays, the handle belongs to no channel of the session, or the session is over and every
    /// message was taken.
    pub async fn recv_into(&self, channel: Channel, buf: &mut [u8]) -> io::Result<usize> {
        let what = For::Recv(channel.number());
        poll_fn(|cx| self.handle.poll_recv(cx, what, |source| source.recv_into(channel, buf))).await
    }

    /// A stream channel as a stream of bytes. Take it only once, and do not use the channel in any other way. On a
    /// channel of another kind, reading and writing fail.
    #[must_use]
    pub fn stream(&self, channel: Channel) -> Stream {
        Stream::new(self.way(channel.number()))
    }

    /// Queues an unreliable datagram; see [`Connection::send_datagram`], also for its errors.
    pub fn send_datagram(&self, datagram: &[u8]) -> Result<DatagramId, SendError> {
        self.connection(|connection| connection.send_datagram(datagram)).ok_or(SendError::Closed)?
    }

    /// Takes the next unreliable datagram.
    ///
    /// # Errors
    ///
    /// The session is over and every datagram was taken.
    pub async fn recv_datagram(&self) -> io::Result<Bytes> {
        let recv = |source: &mut Connection| source.recv_datagram().ok_or(RecvError::Empty);
        poll_fn(|cx| self.handle.poll_recv(cx, For::Datagram, recv)).await
    }

    /// Takes the next unreliable datagram into `buf` and returns its length.
    ///
    /// # Errors
    ///
    /// It does not fit and stays, or the session is over and every datagram was taken.
    pub async fn recv_datagram_into(&self, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.handle.poll_recv(cx, For::Datagram, |source| source.recv_datagram_into(buf))).await
    }

    /// Takes the next event of the session itself, [`Event::Moved`] or [`Event::Redirected`], without waiting.
    #[must_use]
    pub fn poll_event(&self) -> Option<Event> {
        let mut state = self.handle.shared.lock();
        state.waiting.get_mut(&self.handle.id)?.events.pop_front()
    }

    /// The next event of the session itself: [`Event::Moved`], [`Event::Redirected`]. `None`: the session is
    /// over. Only the newest 16 unread events are kept.
    pub async fn next_event(&self) -> Option<Event> {
        poll_fn(|cx| {
            self.handle.shared.poll(|state| {
                let known = state.waiting.get_mut(&self.handle.id);
                match known.and_then(|known| known.events.pop_front()) {
                    Some(event) => Poll::Ready(Some(event)),
                    None => state.wait::<Event>(self.handle.id, For::Event, cx).map(Result::ok),
                }
            })
        })
        .await
    }

    /// Waits until the session is over. Returns why it ended, and what is not known to have arrived.
    ///
    /// # Errors
    ///
    /// If the socket has failed.
    pub async fn closed(&self) -> io::Result<(CloseReason, Undelivered)> {
        poll_fn(|cx| {
            self.handle.shared.poll(|state| {
                let closed = state.waiting.get(&self.handle.id).and_then(|known| known.closed.as_ref());
                if let Some(Closed { error: Error::Closed { reason }, undelivered, .. }) = closed {
                    return Poll::Ready(Ok((*reason, *undelivered)));
                }
                state.wait(self.handle.id, For::Closed, cx)
            })
        })
        .await
    }

    /// Closes the session once everything sent has arrived; see [`Connection::close`].
    /// [`closed`](Self::closed) waits for it.
    pub fn close(&self, code: u16) {
        let _ = self.close_with(code_of_close(code), "");
    }

    /// Like [`close`](Self::close), with a text for the peer; see [`Connection::close_with`], also for its errors.
    pub fn close_with(&self, code: u16, text: &str) -> Result<(), CloseTextError> {
        check_close(code, text)?;
        let now = self.handle.shared.clock.now();
        self.handle.shared.change(|state| state.core.close(now, self.handle.id, code, text));
        Ok(())
    }

    /// Ends the session at once; see [`Connection::kick`], also for its errors.
    pub fn kick(&self, code: u16, text: &str) -> Result<(), CloseTextError> {
        check_close(code, text)?;
        let now = self.handle.shared.clock.now();
        self.connection(|connection| connection.kick(now, code, text)).unwrap_or(Ok(()))
    }

    /// Redirects the client of this session to another server; see
    /// [`session::Server::redirect`](crate::session::Server::redirect), also for its errors. At a client's end it
    /// always fails.
    pub fn redirect(&self, token: &[u8]) -> Result<(), RedirectError> {
        let now = self.handle.shared.clock.now();
        let call = |server: &mut crate::session::Server, id| server.redirect(now, id, token);
        self.at_server(call).ok_or(RedirectError::Closed)?
    }

    /// The claims of the connect token with which the client of this session was admitted, if there was one.
    #[must_use]
    pub fn pass(&self) -> Option<Pass> {
        self.at_server(|server, id| server.pass(id).cloned())?
    }

    fn at_server<T>(&self, call: impl FnOnce(&mut crate::session::Server, SessionId) -> T) -> Option<T> {
        let id = self.handle.id?;
        self.handle.shared.change(|state| Some(call(state.core.server()?, id)))
    }

    /// The token for the next server, after [`Event::Redirected`]; see
    /// [`session::Client::take_redirect`](crate::session::Client::take_redirect).
    #[must_use]
    pub fn take_redirect(&self) -> Option<Zeroizing<Vec<u8>>> {
        self.handle.shared.change(|state| match &mut state.core {
            Sessions::Client(session) => session.take_redirect(),
            Sessions::Server(_) => None,
        })
    }

    /// Calls a closure with the session, for statistics or for many messages at a time. `None`: the session is gone.
    /// The other sessions of the socket wait meanwhile.
    pub fn connection<T>(&self, call: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.handle.with(call)
    }

    /// Whether everything sent on a reliable channel is known to have arrived. Also `true` if the session is gone.
    /// See [`Connection::is_delivered`].
    pub fn is_delivered(&self, channel: impl Into<AnyChannel>) -> bool {
        self.connection(|connection| connection.is_delivered(channel)).unwrap_or(true)
    }

    /// Whether the session is up and accepts messages.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        let mut state = self.handle.shared.lock();
        state.core.member(self.handle.id).is_some_and(|connection| connection.is_connected())
    }

    /// The address of the peer; `None`: the session is gone.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.handle.shared.lock().core.member(self.handle.id).map(|connection| connection.peer_addr())
    }

    /// What the peer's application said in the handshake: a client's [`user`](crate::ClientConfig::user), a server's answer. Empty if
    /// the session is gone.
    #[must_use]
    pub fn user(&self) -> Vec<u8> {
        let mut state = self.handle.shared.lock();
        state.source(self.handle.id).map_or_else(Vec::new, |connection| connection.user().to_vec())
    }

    /// At a client: what [`ClientConfig::ticket`](crate::ClientConfig::ticket) takes for the next session with this
    /// server; see [`Connection::ticket`]. Empty if the session is gone.
    #[must_use]
    pub fn ticket(&self) -> Vec<u8> {
        let mut state = self.handle.shared.lock();
        state.source(self.handle.id).map_or_else(Vec::new, |connection| connection.ticket().to_vec())
    }

    /// The text that the peer gave when it closed or kicked, once [`closed`](Self::closed) has returned; see
    /// [`Connection::close_text`]. Empty if there is none.
    #[must_use]
    pub fn close_text(&self) -> String {
        let mut state = self.handle.shared.lock();
        state.source(self.handle.id).map_or_else(String::new, |connection| connection.close_text().to_owned())
    }

    /// Call this at a client when the machine has changed networks; see
    /// [`Client::path_changed`](crate::Client::path_changed). The session also notices by itself, while
    /// anything is sent or received. At a server it does nothing.
    pub fn path_changed(&self) {
        self.handle.shared.path_changed.store(true, Relaxed);
        self.handle.shared.change(|_| ());
    }

    /// Gives a client a second network; see [`Client::set_second_network`](crate::Client::set_second_network), also for its errors. At a server it is an
    /// error as well (`Unsupported`).
    pub fn set_second_network(&self, socket: UdpSocket, purpose: SecondNetwork) -> io::Result<()> {
        let now = self.handle.shared.clock.now();
        self.handle.shared.change(|state| {
            let Sessions::Client(client) = &mut state.core else { return Err(one_network()) };
            let port = Port::new(socket, mode(client.session_config()), ONE_PEER)?;
            client.set_second_network(now, None); // what follows is another network
            if !client.set_second_network(now, Some(purpose)) {
                return Err(one_network());
            }
            state.second = Some(Some(port));
            Ok(())
        })
    }

    /// Takes the second network of a client away.
    pub fn remove_second_network(&self) {
        let now = self.handle.shared.clock.now();
        self.handle.shared.change(|state| {
            if let Sessions::Client(client) = &mut state.core {
                client.set_second_network(now, None);
                state.second = Some(None);
            }
        });
    }

    /// The network that a client uses: 0 for the first, 1 for the second.
    #[must_use]
    pub fn network(&self) -> u8 {
        let state = self.handle.shared.lock();
        if let Sessions::Client(client) = &state.core { client.network() } else { 0 }
    }

    /// The local address. That of a client is another one once its socket has been replaced.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.shared.lock().local_addr
    }

    /// Its id at the server; `None` at the client's end.
    #[must_use]
    pub fn id(&self) -> Option<SessionId> {
        self.handle.id
    }

    fn way(&self, channel: u8) -> Way<Sessions> {
        Way { handle: self.handle.clone(), channel }
    }
}

impl Clone for Session {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone() }
    }
}

stream! {
    /// A channel as a stream of bytes: [`AsyncRead`](::tokio::io::AsyncRead) and
    /// [`AsyncWrite`](::tokio::io::AsyncWrite).
    ///
    /// # The end
    ///
    /// - `shutdown` ends what this end writes, and waits until all of it is acknowledged. It fails with `TimedOut` if
    ///   nothing more is acknowledged for [this long](Self::set_shutdown_timeout). The peer reads what was written,
    ///   and then the end: 0 bytes. Reading continues. On the wire, the end is an empty message.
    /// - If one end closes the session as soon as it reads 0 bytes, the other end's `shutdown` may not hear that
    ///   everything arrived, and fails. So let the end that shut down last close or drop the session.
    /// - If it is dropped without `shutdown`, there is no end. The session continues while another handle exists.
    ///   Otherwise it closes, see [`Session`], and the peer reads what was written and then an error. So half a file
    ///   never looks like a whole one.
    Stream, ReadHalf, WriteHalf of Sessions
}
