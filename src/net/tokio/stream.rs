//! A channel as messages and as a stream of bytes. A bare KCP peer has one channel.

use super::core::{Core, Member};
use super::shared::{Handle, State};
use super::waiting::For;
use crate::channel::{RecvError, SendError};
use ::tokio::io::ReadBuf;
use ::tokio::time::{Sleep, sleep};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// One channel of one session.
#[derive(Debug)]
pub(super) struct Way<C: Core> {
    pub(super) handle: Handle<C>,
    pub(super) channel: u8,
}

impl<C: Core> Way<C> {
    /// Queues a message, or as much of a stream as there is room for.
    pub(super) fn poll_send(&self, cx: &Context<'_>, message: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |member, channel| member.write(channel, message))
    }

    pub(super) fn poll_recv(&self, cx: &Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.handle.poll_recv(cx, For::Recv(self.channel), |member| member.read(self.channel, buf))
    }

    pub(super) fn poll_with<T>(
        &self,
        cx: &Context<'_>,
        send: impl FnOnce(&mut C::Member, u8) -> Result<T, SendError>,
    ) -> Poll<io::Result<T>> {
        self.poll(|state, id, channel| {
            let sent = state.core.member(id).map_or(Err(SendError::Closed), |member| send(member, channel));
            Poll::Ready(match sent {
                Ok(sent) => {
                    state.sent(id, channel, cx);
                    Ok(sent)
                }
                Err(error) if error.is_full() => return state.wait(id, For::Send(channel), cx),
                Err(error @ SendError::Closed) => {
                    Err(state.error(id).unwrap_or_else(|| io::Error::new(io::ErrorKind::BrokenPipe, error)))
                }
                Err(error) => Err(io::Error::new(io::ErrorKind::InvalidInput, error)),
            })
        })
    }

    fn poll<T>(
        &self,
        poll: impl FnOnce(&mut State<C>, C::Id, u8) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.handle.shared.poll(|state| poll(state, self.handle.id, self.channel))
    }
}

impl<C: Core> Clone for Way<C> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), channel: self.channel }
    }
}

/// The receiving side of a channel.
#[derive(Debug)]
pub(super) struct Reader<C: Core> {
    pub(super) way: Way<C>,
    /// A message that did not fit, and how much of it has been read.
    rest: Vec<u8>,
    read: usize,
    is_over: bool,
}

impl<C: Core> Reader<C> {
    pub(super) const fn new(way: Way<C>) -> Self {
        Self { way, rest: Vec::new(), read: 0, is_over: false }
    }

    pub(super) fn poll_read(&mut self, cx: &Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.remaining();
        self.take_rest(buf);
        if self.is_over || before == 0 || buf.remaining() < before {
            return Poll::Ready(Ok(()));
        }
        let Self { way, rest, read, is_over } = self;
        let taken = way.poll(|state, id, channel| {
            while buf.remaining() > 0 {
                match state.recv(id, channel, buf.initialize_unfilled()) {
                    Ok(0) if C::Member::HAS_END => {
                        *is_over = true;
                        return Poll::Ready(Ok(()));
                    }
                    Ok(len) => buf.advance(len),
                    Err(RecvError::BufferTooSmall { need, .. }) if buf.remaining() == before => {
                        rest.resize(need, 0);
                        let _ = state.recv(id, channel, rest); // it fits now
                        *read = 0;
                        return Poll::Ready(Ok(()));
                    }
                    Err(_) if buf.remaining() < before => return Poll::Ready(Ok(())),
                    Err(RecvError::Empty) => return state.wait(id, For::Recv(channel), cx),
                    Err(error) => {
                        return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidInput, error)));
                    }
                }
            }
            Poll::Ready(Ok(()))
        });
        ready!(taken)?;
        self.take_rest(buf);
        Poll::Ready(Ok(()))
    }

    fn take_rest(&mut self, buf: &mut ReadBuf<'_>) {
        let rest = self.rest.get(self.read..).unwrap_or_default();
        let rest = rest.get(..buf.remaining()).unwrap_or(rest);
        buf.put_slice(rest);
        self.read += rest.len();
    }
}

/// The sending side of a channel.
#[derive(Debug)]
pub(super) struct Writer<C: Core> {
    pub(super) way: Way<C>,
    shutdown: Shutdown,
    pub(super) patience: Duration,
}

#[derive(Debug)]
enum Shutdown {
    Open,
    /// `unacked` segments have not arrived; when the sleep ends, some more must have.
    Draining {
        unacked: usize,
        sleep: Pin<Box<Sleep>>,
    },
    Done,
}

impl<C: Core> Writer<C> {
    pub(super) const fn new(way: Way<C>) -> Self {
        Self { way, shutdown: Shutdown::Open, patience: PATIENCE }
    }

    pub(super) fn poll_write(&self, cx: &Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if !matches!(self.shutdown, Shutdown::Open) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.way.poll_with(cx, |member, channel| write(member, channel, data))
    }

    pub(super) fn poll_flush(&self) -> Poll<io::Result<()>> {
        if C::Member::HAS_END {
            return Poll::Ready(Ok(()));
        }
        self.way.poll(|state, id, _| {
            state.core.member(id).into_iter().for_each(Member::flush);
            Poll::Ready(Ok(()))
        })
    }

    /// Ends the sending side, and waits until everything has arrived.
    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { way, shutdown, patience } = self;
        if let Shutdown::Open = shutdown {
            ready!(way.poll_with(cx, |member, channel| member.send_end(channel)))?;
            *shutdown = Shutdown::Draining { unacked: usize::MAX, sleep: Box::pin(sleep(*patience)) };
        }
        while let Shutdown::Draining { unacked, sleep } = shutdown {
            let mut left = 0;
            let drained = way.poll(|state, id, channel| {
                left = state.core.member(id).map_or(0, |member| member.unacked(channel));
                if left > 0 { state.wait(id, For::Delivered, cx) } else { state.drained(id) }
            });
            if let Poll::Ready(drained) = drained {
                *shutdown = Shutdown::Done;
                return Poll::Ready(drained);
            }
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if left >= *unacked {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            *unacked = left;
            sleep.as_mut().reset(::tokio::time::Instant::now() + *patience);
        }
        Poll::Ready(Ok(()))
    }
}

impl<C: Core> State<C> {
    fn recv(&mut self, id: C::Id, channel: u8, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.source(id).ok_or(RecvError::Empty)?.read(channel, buf)
    }

    /// The result when nothing is in flight, either because it has arrived or because the session is over.
    fn drained(&self, id: C::Id) -> Poll<io::Result<()>> {
        let closed = self.waiting.get(&id).and_then(|waiting| waiting.closed.as_ref());
        let is_lost = closed.is_none_or(|closed| closed.undelivered.segments > 0);
        Poll::Ready(self.error(id).filter(|_| is_lost).map_or(Ok(()), Err))
    }
}

/// Queues as much of `data` as there is room for.
fn write(member: &mut impl Member, channel: u8, data: &[u8]) -> Result<usize, SendError> {
    let (mut written, mut part) = (0, PART);
    loop {
        let rest = data.get(written..).unwrap_or_default();
        let next = rest.get(..part).unwrap_or(rest);
        if next.is_empty() {
            return Ok(written);
        }
        match member.write(channel, next) {
            Ok(len) => written += len,
            Err(SendError::TooLong { max, .. }) if max < next.len() => part = max,
            // The queue may have room for less than that.
            Err(SendError::Full { .. }) if written == 0 && next.len() > PART_MIN => part = next.len() / 4,
            Err(_) if written > 0 => return Ok(written),
            Err(error) => return Err(error),
        }
    }
}

/// Declares a stream over a channel, its halves, and their tokio traits.
macro_rules! stream {
    ($(#[$docs:meta])* $whole:ident, $read:ident, $write:ident of $core:ty) => {
        $(#[$docs])*
        #[derive(Debug)]
        pub struct $whole  {
            reader: Reader<$core>,
            writer: Writer<$core>,
        }

        #[doc = concat!("The half of a [`", stringify!($whole), "`] that reads.")]
        #[derive(Debug)]
        pub struct $read  {
            reader: Reader<$core>,
        }

        #[doc = concat!("The half of a [`", stringify!($whole), "`] that writes.")]
        #[derive(Debug)]
        pub struct $write  {
            writer: Writer<$core>,
        }

        impl $whole  {
            pub(super) fn new(way: Way<$core>) -> Self {
                Self { reader: Reader::new(way.clone()), writer: Writer::new(way) }
            }

            /// Splits it into two halves for two tasks. Dropping both is like dropping the whole.
            #[must_use]
            pub fn into_split(self) -> ($read , $write ) {
                ($read { reader: self.reader }, $write { writer: self.writer })
            }

            /// How long a shutdown waits while nothing more is acknowledged. Default: 5 s.
            pub const fn set_shutdown_timeout(&mut self, timeout: Duration) {
                self.writer.patience = timeout;
            }
        }

        $crate::net::tokio::stream::stream!(@read $whole );
        $crate::net::tokio::stream::stream!(@read $read );
        $crate::net::tokio::stream::stream!(@write $whole );
        $crate::net::tokio::stream::stream!(@write $write );
    };
    (@read $type:ident) => {
        impl ::tokio::io::AsyncRead for $type  {
            fn poll_read(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ::tokio::io::ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.reader.poll_read(cx, buf)
            }
        }
    };
    (@write $type:ident) => {
        impl ::tokio::io::AsyncWrite for $type  {
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                self.writer.poll_write(cx, buf)
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.writer.poll_flush()
            }

            fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.writer.poll_shutdown(cx)
            }
        }
    };
}

pub(super) use stream;

/// Default of how long a shutdown waits while nothing more is acknowledged.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are queued as a whole or not at all.
const PART: usize = 16 << 10;
/// Bytes below which data is not divided further.
const PART_MIN: usize = 64;
