//! The sizes of a socket's buffers in the operating system.

use crate::Socket;
use socket2::SockRef;
use std::io;

/// The sizes of a socket's buffers in the operating system, bytes.
///
/// A receive buffer that is too small causes loss: whatever arrives between two reads must fit into it. A
/// send buffer that is too large is a queue that no congestion control sees. The default is 2 MiB to receive
/// and 512 KiB to send. Every driver requests that when it takes over a socket with less, and reports what it
/// got. To use less, set it afterwards.
///
/// Linux silently limits both to `net.core.rmem_max` and `net.core.wmem_max`, which are mostly 208 KiB. It
/// reports twice the size that was set, and counts its own overhead of about 1 KiB per datagram against it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a socket has two")]
pub struct SocketBuffers {
    /// For datagrams that have arrived and were not read yet.
    pub receive: usize,
    /// For datagrams that were sent and have not left yet.
    pub send: usize,
}

impl Default for SocketBuffers {
    fn default() -> Self {
        Self { receive: 2 << 20, send: 512 << 10 }
    }
}

impl SocketBuffers {
    pub(crate) fn of(socket: &impl Socket) -> io::Result<Self> {
        let socket = SockRef::from(socket.handle());
        Ok(Self { receive: socket.recv_buffer_size()?, send: socket.send_buffer_size()? })
    }

    /// Requests these sizes. If the system refuses a size above its limit, tries half of it, and so on.
    pub(crate) fn set(self, socket: &impl Socket) -> io::Result<()> {
        let socket = SockRef::from(socket.handle());
        as_much_as_possible(self.receive, |size| socket.set_recv_buffer_size(size))?;
        as_much_as_possible(self.send, |size| socket.set_send_buffer_size(size))
    }

    /// Requests these sizes if the socket has less. Failure is harmless: the socket works as it is.
    pub(crate) fn grow(self, socket: &impl Socket) {
        let grown = Self::of(socket).and_then(|has| {
            Self { receive: self.receive.max(has.receive), send: self.send.max(has.send) }.set(socket)
        });
        if let Err(error) = grown {
            log::debug!("the socket keeps its buffers as they are: {error}");
        }
    }
}

fn as_much_as_possible(size: usize, set: impl Fn(usize) -> io::Result<()>) -> io::Result<()> {
    let mut size = size;
    while let Err(error) = set(size) {
        size /= 2;
        if size < LEAST {
            return Err(error);
        }
    }
    Ok(())
}

/// Below this the system's own size is better.
const LEAST: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_size_is_halved() {
        let set = std::cell::Cell::new(0);
        let limit = |size| {
            set.set(size);
            if size > 300_000 { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
        };
        as_much_as_possible(2 << 20, limit).unwrap();
        assert_eq!(set.get(), 256 << 10);
        assert!(as_much_as_possible(2 << 20, |_| Err(io::ErrorKind::Other.into())).is_err());
    }
}
