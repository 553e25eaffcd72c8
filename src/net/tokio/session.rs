//! A connected session: lanes, datagrams, channels, events.

use super::super::error::Error;
use super::core::Sessions;
use super::core::{Closed, Core as _};
use super::lane::{Lane, Reader, Writer, stream};
use super::shared::Handle;
use super::waiting::For;
use crate::kcp::RecvError;
use crate::message::Message;
use crate::message::channel::Received;
use crate::seq::Seq16;
use crate::session::{Blob, CloseReason, Connection, DatagramId, Event, SendError, SessionId, Undelivered};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use zeroize::Zeroizing;

/// A session of a [`Server`](super::Server) or a [`Client`](super::Client). Clones are handles to the same
/// session, for as many tasks as you like.
///
/// Sending a message on a reliable lane waits for room, and receiving waits for arrival; for a stream of
/// bytes use [`lane`](Self::lane). Sending datagrams and on channels never waits for room: late data is
/// worthless.
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
pub struct Session<M: Message + Send + 'static = Blob> {
    handle: Handle<Sessions<M>>,
}

impl<M: Message + Send + 'static> Session<M> {
    pub(super) const fn new(handle: Handle<Sessions<M>>) -> Self {
        Self { handle }
    }

    /// Sends a message on a reliable lane; waits for room. Returns the number of bytes queued: all of them,
    /// except that a stream may accept fewer.
    ///
    /// # Errors
    ///
    /// If the message is too long ([`Error::Send`]), there is no such lane, or the session is over.
    pub async fn send(&self, lane: usize, message: &[u8]) -> io::Result<usize> {
        let lane = self.of(lane);
        poll_fn(|cx| lane.poll_send(cx, message)).await
    }

    /// Receives the next message of a reliable lane and returns its length.
    ///
    /// # Errors
    ///
    /// If it does not fit, in which case it stays ([`Error::Recv`]), or the session is over and every message
    /// was read.
    pub async fn recv(&self, lane: usize, buf: &mut [u8]) -> io::Result<usize> {
        let lane = self.of(lane);
        poll_fn(|cx| lane.poll_recv(cx, buf)).await
    }

    /// A lane as a stream of bytes. Take it only once, and do not use that lane in another way.
    #[must_use]
    pub fn lane(&self, lane: usize) -> LaneStream<M> {
        LaneStream::new(self.of(lane))
    }

    /// Queues an unreliable datagram; see [`Connection::send_datagram`], also for its errors.
    pub fn send_datagram(&self, datagram: &[u8]) -> Result<DatagramId, SendError> {
        self.with(|connection| connection.send_datagram(datagram)).ok_or(SendError::Closed)?
    }

    /// Receives the next unreliable datagram and returns its length.
    ///
    /// # Errors
    ///
    /// If it does not fit, in which case it stays ([`Error::Recv`]), or the session is over and every
    /// datagram was read.
    pub async fn recv_datagram(&self, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.handle.poll_recv(cx, For::Other, |source| source.recv_datagram(buf))).await
    }

    /// Queues a message of a channel; see [`Connection::send_message`], also for its errors.
    pub fn send_message(&self, channel: usize, message: M) -> Result<Seq16, SendError> {
        let now = self.handle.shared.clock.now();
        self.with(|connection| connection.send_message(channel, now, message)).ok_or(SendError::Closed)?
    }

    /// Queues a block of a channel; see [`Connection::send_block`], also for its errors.
    pub fn send_block(&self, channel: usize, block: &[u8]) -> Result<(), SendError> {
        self.with(|connection| connection.send_block(channel, block)).ok_or(SendError::Closed)?
    }

    /// Receives the next message or block of a channel.
    ///
    /// # Errors
    ///
    /// If the session is over and every message was read.
    pub async fn recv_message(&self, channel: usize) -> io::Result<Received<M>> {
        let recv = |source: &mut Connection<M>| source.recv_message(channel).ok_or(RecvError::NoMessage);
        poll_fn(|cx| self.handle.poll_recv(cx, For::Other, recv)).await
    }

    /// The next event of the session itself: [`Event::Moved`], [`Event::Redirected`]. `None`: the session is
    /// over. Only the newest 16 unread events are kept.
    pub async fn event(&self) -> Option<Event> {
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
        let now = self.handle.shared.clock.now();
        self.handle.shared.change(|state| state.core.close(now, self.handle.id, code));
    }

    /// The token for the server to go to after [`Event::Redirected`]; see
    /// [`session::Client::take_redirect`](crate::session::Client::take_redirect).
    #[must_use]
    pub fn take_redirect(&self) -> Option<Zeroizing<Vec<u8>>> {
        self.handle.shared.change(|state| match &mut state.core {
            Sessions::Client(session) => session.take_redirect(),
            Sessions::Server(_) => None,
        })
    }

    /// Gives direct access to the session, for statistics or for many messages at a time. `None`: it is gone.
    /// The other sessions of the socket wait meanwhile.
    pub fn with<T>(&self, call: impl FnOnce(&mut Connection<M>) -> T) -> Option<T> {
        self.handle.with(call)
    }

    /// The address of the peer; `None`: the session is gone.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.handle.shared.lock().core.member(self.handle.id).map(|connection| connection.peer())
    }

    /// The local address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.shared.local_addr
    }

    /// Its id at the server; `None` at the client's end.
    #[must_use]
    pub fn id(&self) -> Option<SessionId> {
        self.handle.id
    }

    fn of(&self, lane: usize) -> Lane<Sessions<M>> {
        Lane { handle: self.handle.clone(), lane }
    }
}

impl<M: Message + Send + 'static> Clone for Session<M> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone() }
    }
}

stream! {
    /// A reliable lane as a stream of bytes: [`AsyncRead`](::tokio::io::AsyncRead) and
    /// [`AsyncWrite`](::tokio::io::AsyncWrite), best on a lane with
    /// [`Config::stream`](crate::kcp::Config::stream), which packs small writes together.
    ///
    /// # The end
    ///
    /// - `shutdown` ends what this end writes, and waits until all of it is acknowledged. It fails with `TimedOut` if nothing
    ///   more is acknowledged for [this long](Self::set_shutdown_timeout). The peer reads everything written and then the end: 0
    ///   bytes. Reading from the peer continues as before. On the wire the end is an empty message.
    /// - If an end reads the end of the stream and closes the session at the same moment, the peer's `shutdown` may not learn
    ///   that everything has arrived, and fails. So let the end that shut down last close or drop the session.
    /// - If it is dropped without `shutdown`, the stream has no end. The session continues while something else holds it;
    ///   otherwise it closes, see [`Session`], and the peer reads everything written and then an error. So half of a file never
    ///   looks like a whole one.
    LaneStream, LaneReadHalf, LaneWriteHalf<M> of Sessions<M>
}
