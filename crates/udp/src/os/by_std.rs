//! Waits for a socket with what std offers: a blocking peek at the next datagram, with a timeout. On Windows that timeout is half
//! a second at least, so its poll waits instead.

use super::{Bell, Until};
use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Waiter {
    /// The timeout that was set last.
    #[cfg(not(windows))]
    timeout: Option<Duration>,
}

impl Waiter {
    #[cfg_attr(windows, expect(unused_variables, reason = "poll keeps no timeout"))]
    pub(crate) fn new(socket: &UdpSocket) -> io::Result<Self> {
        Ok(Self {
            #[cfg(not(windows))]
            timeout: socket.read_timeout()?,
        })
    }

    /// Waits until there is something to read, or until `timeout` has passed. It may return earlier.
    ///
    /// `scratch` has room for a datagram, which stays in the socket. Only Windows can wait for room to write.
    ///
    /// # Errors
    ///
    /// As a receiving call; `WouldBlock` if there is nothing.
    pub(crate) fn wait(
        &mut self,
        (socket, other): (&UdpSocket, Option<&UdpSocket>),
        timeout: Option<Duration>,
        until: Until,
        _bell: Option<&Bell>,
        scratch: &mut [u8],
    ) -> io::Result<()> {
        debug_assert!(until.there_is_data, "only Linux, with `batch`, leaves a socket to another process");
        let for_room = until.there_is_room;
        match timeout {
            _ if other.is_some() => nap((socket, other), timeout.unwrap_or(Duration::MAX), scratch),
            Some(timeout) if timeout < COARSE + NAP => nap((socket, None), timeout, scratch),
            Some(timeout) => self.block(socket, Some(timeout - COARSE), for_room, scratch),
            None => self.block(socket, None, for_room, scratch),
        }
    }

    /// Blocks in the system's receive call, which returns at once for a datagram but late for a timeout.
    #[cfg(not(windows))]
    fn block(
        &mut self,
        socket: &UdpSocket,
        timeout: Option<Duration>,
        _for_room: bool,
        scratch: &mut [u8],
    ) -> io::Result<()> {
        if timeout != self.timeout {
            socket.set_read_timeout(timeout)?;
            self.timeout = timeout;
        }
        socket.set_nonblocking(false)?;
        let seen = socket.peek_from(scratch);
        socket.set_nonblocking(true)?;
        seen.map(|_| ())
    }

    /// Blocks in Winsock's poll, which returns at once for a datagram, an error of one or room, but late for a timeout.
    #[cfg(windows)]
    #[expect(clippy::needless_pass_by_ref_mut, reason = "same signature as on other systems")]
    fn block(
        &mut self,
        socket: &UdpSocket,
        timeout: Option<Duration>,
        for_room: bool,
        _scratch: &mut [u8],
    ) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let events = if for_room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        poll(&mut [PollFd::new(socket, events)], timeout.as_ref())?;
        Ok(())
    }
}

/// Sleeps in short steps and peeks at the sockets after each: exact, for short waits.
fn nap(
    (socket, other): (&UdpSocket, Option<&UdpSocket>),
    wait: Duration,
    scratch: &mut [u8],
) -> io::Result<()> {
    let start = Instant::now();
    while let Some(left) = wait.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        thread::sleep(left.min(NAP));
        if other.is_some_and(|other| other.peek_from(scratch).is_ok()) {
            return Ok(());
        }
        match socket.peek_from(scratch) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            seen => return seen.map(|_| ()),
        }
    }
    Ok(())
}

/// How late a blocking call may return. Linux counts its timeout in scheduler ticks, rounded up plus one: up to
/// 8 ms at 250 Hz. Windows has 64 ticks a second. So the last part of a wait is slept in steps of [`NAP`].
const COARSE: Duration = Duration::from_millis(if cfg!(windows) { 16 } else { 8 });

/// The longest that a datagram waits unnoticed during a short wait.
const NAP: Duration = Duration::from_micros(500);
