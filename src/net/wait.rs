//! Waiting for a socket.

use super::shards::Bell;
use std::io;
use std::net::UdpSocket;
use std::time::Duration;

#[cfg(all(feature = "batch", target_os = "linux"))]
pub(super) use by_poll::Waiter;
#[cfg(not(all(feature = "batch", target_os = "linux")))]
pub(super) use by_std::Waiter;

/// By `poll`: exact, and it wakes for room in the send buffer as well.
#[cfg(all(feature = "batch", target_os = "linux"))]
mod by_poll {
    use super::{Bell, Duration, UdpSocket, io};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;

    #[derive(Debug)]
    pub(in crate::net) struct Waiter;

    impl Waiter {
        pub(in crate::net) const fn new(_: &UdpSocket) -> io::Result<Self> {
            Ok(Self)
        }

        /// Waits until there is something to read, or `for_room` to write, or the bell rings, or for `timeout`. It may return earlier.
        #[expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "as where there is no poll")]
        pub(in crate::net) fn wait(
            &mut self,
            socket: &UdpSocket,
            timeout: Option<Duration>,
            for_room: bool,
            bell: Option<&Bell>,
            _: &mut [u8],
        ) -> io::Result<()> {
            let events = if for_room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
            let socket = PollFd::new(socket, events);
            let polled = match bell {
                None => poll(&mut [socket], timeout.as_ref()),
                Some(bell) => poll(&mut [socket, PollFd::new(bell, PollFlags::IN)], timeout.as_ref()),
            };
            if let Some(bell) = bell {
                bell.hush();
            }
            match polled {
                Ok(_) | Err(Errno::INTR) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// By what std has: a look at the next datagram that blocks, with a timeout.
#[cfg(any(test, not(all(feature = "batch", target_os = "linux"))))]
mod by_std {
    use super::{Bell, Duration, UdpSocket, io};
    use std::thread;
    use std::time::Instant;

    #[derive(Debug)]
    pub(in crate::net) struct Waiter {
        /// What was set last.
        timeout: Option<Duration>,
    }

    impl Waiter {
        pub(in crate::net) fn new(socket: &UdpSocket) -> io::Result<Self> {
            Ok(Self { timeout: socket.read_timeout()? })
        }

        /// Waits until there is something to read, or for `timeout`. It may return earlier.
        ///
        /// `scratch` has room for a datagram, which stays with the socket. Room to write is nothing that std can wait for.
        ///
        /// # Errors
        ///
        /// What a receiving call says; `WouldBlock` when there is nothing.
        pub(in crate::net) fn wait(
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

        /// Blocks in the system's receive call: wakes at once for a datagram, late for a timeout.
        fn block(
            &mut self,
            socket: &UdpSocket,
            timeout: Option<Duration>,
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
    }

    /// Sleeps in short steps with a look at the socket after each: exact, for short waits.
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

    /// How late a blocking receive may end. Linux counts its timeout in scheduler ticks, rounded up
    /// and one more: up to 8 ms at 250 Hz. The last part of a wait is slept in steps of [`NAP`].
    const COARSE: Duration = Duration::from_millis(8);

    /// The longest that a datagram lies unseen while a short wait is slept.
    const NAP: Duration = Duration::from_micros(500);
}

#[cfg(test)]
mod tests {
    use super::by_std::Waiter as ByStd;
    use super::*;

    const LONG: Option<Duration> = Some(Duration::from_secs(20));

    #[test]
    fn a_datagram_ends_every_wait_and_stays() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let to = socket.local_addr().unwrap();
        let mut scratch = [0; 100];
        for timeout in [LONG, None] {
            socket.send_to(b"here", to).unwrap();
            Waiter::new(&socket).unwrap().wait(&socket, timeout, false, None, &mut scratch).unwrap();
            ByStd::new(&socket).unwrap().wait(&socket, timeout, false, None, &mut scratch).unwrap();
            assert_eq!(socket.recv(&mut scratch).unwrap(), 4);
        }
    }

    #[test]
    fn a_timeout_ends_every_wait() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut scratch = [0; 100];
        for timeout in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(12)] {
            let _ = Waiter::new(&socket).unwrap().wait(&socket, Some(timeout), false, None, &mut scratch);
            let _ = ByStd::new(&socket).unwrap().wait(&socket, Some(timeout), false, None, &mut scratch);
        }
    }
}
