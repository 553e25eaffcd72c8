//! TCP as a game must use it.

use super::would_block;
use std::io::{self, Write};
use std::net::TcpStream;

/// A TCP stream without delay, and data that it has not accepted yet.
pub(super) struct Stream {
    pub(super) socket: TcpStream,
    waiting: Vec<u8>,
}

impl Stream {
    pub(super) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, waiting: Vec::new() })
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty()
            && let Some(len) = would_block(self.socket.write(&self.waiting))?
        {
            self.waiting.drain(..len);
        }
        Ok(())
    }
}
