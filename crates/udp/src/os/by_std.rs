//! Waits for a socket with what std offers: a blocking peek at the next datagram, with a timeout.

use super::Bell;
use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Waiter {
    /// The timeout that was set last.
    timeout: Option<Duration>,
}

impl Waiter {
    pub(crate) fn new(socket: &UdpSocket) -> io::Result<Self> {
        Ok(Self { timeout: socket.read_timeout()? })
    }

    /// Waits until there is something to read, or until `timeout` has passed. It may return earlier.
    ///
    /// `scratch` has room for a datagram, which stays in the socket. std cannot wait for room to write.
    ///
    /// # Errors
    ///
    /// As a receiving call; `WouldBlock` if there is nothing.
    pub(crate) fn wait(
        &mut self,
        socket: &UdpSocket,
        timeout: Option<Duration>,
        _for_room: bool,
        _bell: Option<&Bell>,
        scratch: &mut [u8],
    ) -> io::Result<()> {
        match timeout {
            Some(timeout) if timeout < COARSE + NAP => nap(socket, timeout, scratch),
            Some(timeout) => self.block(socket, Some(timeout - COARSE), scratch),
            None => self.block(socket, None, scratch),
        }
    }

    /// Blocks in the system's receive call, which returns at once for a datagram but late for a timeout.
    fn block(&mut self, socket: &UdpSocket, timeout: Option<Duration>, scratch: &mut [u8]) -> io::Result<()> {
        if timeout != self.timeout {
            socket.set_read_timeout(timeout)?;
            self.timeout = timeout;
        }
        socket.set_nonblocking(false)?;
        let seen = socket.peek_from(scratch);
        socket.set_nonblocking(true)?;
        seen.map(|_| ())
    }
}

/// Sleeps in short steps and peeks at the socket after each: exact, for short waits.
fn nap(socket: &UdpSocket, wait: Duration, scratch: &mut [u8]) -> io::Result<()> {
    let start = Instant::now();
    while let Some(left) = wait.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        thread::sleep(left.min(NAP));
        match socket.peek_from(scratch) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            seen => return seen.map(|_| ()),
        }
    }
    Ok(())
}

/// How late a blocking receive may return. Linux counts its timeout in scheduler ticks, rounded up plus one:
/// up to 8 ms at 250 Hz. So the last part of a wait is slept in steps of [`NAP`].
const COARSE: Duration = Duration::from_millis(8);

/// The longest that a datagram waits unnoticed during a short wait.
const NAP: Duration = Duration::from_micros(500);
