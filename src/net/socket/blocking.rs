//! The methods that pump while they wait.

use super::Socket;
use crate::kcp::{RecvError, SendError};
use crate::time::Time;
use std::io;
use std::time::Duration;

impl Socket {
    /// Queues a message, and pumps when that is due. Waits for room in the send queue, at most for the write timeout.
    /// Returns the bytes queued: the whole message, except in stream mode; see [`Kcp::send`](crate::kcp::Kcp::send).
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the write timeout passes, `InvalidInput` if the message is too long, `TimedOut` if the peer is
    /// gone.
    pub fn send_blocking(&mut self, message: &[u8]) -> io::Result<usize> {
        self.has_sent = true;
        let deadline = self.deadline(self.write_timeout);
        loop {
            let sent = self.send(message);
            if !is_full(&sent) {
                self.update_if_due()?;
                return Ok(sent?);
            }
            let wait = self.pump()?;
            let sent = self.send(message);
            if !is_full(&sent) {
                return Ok(sent?);
            }
            self.wait(wait, deadline)?;
        }
    }

    /// Reads the next message, and pumps until there is one, at most for the read timeout.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the read timeout passes, `InvalidInput` if `buf` is too small (the message stays queued),
    /// `TimedOut` if the peer is gone and all its messages were read.
    pub fn recv_blocking(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let deadline = self.deadline(self.read_timeout);
        if self.acks_wait {
            let now = self.driver.now();
            self.update(now); // otherwise messages that are already there would postpone this
        }
        loop {
            if self.late_acks {
                let received = self.recv_first(buf)?;
                if received != Err(RecvError::NoMessage) {
                    return Ok(received?);
                }
            }
            let pumped = self.pump_if_due();
            let received = self.recv_into(buf);
            if received != Err(RecvError::NoMessage) {
                return Ok(received?);
            }
            self.wait(pumped?, deadline)?;
        }
    }

    /// Pumps until the peer has acknowledged everything, for at most `timeout`. Bare KCP says no goodbye, so call this
    /// before dropping the socket.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the time passes first, `TimedOut` if the peer is gone.
    pub fn drain(&mut self, timeout: Duration) -> io::Result<()> {
        let deadline = self.deadline(Some(timeout));
        loop {
            let wait = self.pump()?;
            if self.kcp().wait_snd() == 0 {
                return Ok(());
            }
            self.wait(wait, deadline)?;
        }
    }

    /// Reads a message that is already there or has arrived. The next call sends its acknowledgement.
    fn recv_first(&mut self, buf: &mut [u8]) -> io::Result<Result<usize, RecvError>> {
        let received = self.recv_into(buf);
        if received != Err(RecvError::NoMessage) {
            return Ok(received);
        }
        // A program that asks and answers in turns waits for a single datagram.
        let most = if std::mem::take(&mut self.has_sent) { 1 } else { usize::MAX };
        self.receive_up_to(most)?;
        self.pump_due = Time::ZERO;
        self.acks_wait = true;
        Ok(self.recv_into(buf))
    }

    /// Pumps if that is due, but does not read again right after a read.
    fn update_if_due(&mut self) -> io::Result<()> {
        let now = self.driver.now();
        if now.since(self.read_at) >= READ_EACH {
            self.pump_if_due()?;
        } else if now >= self.pump_due {
            self.update(now);
        }
        Ok(())
    }

    fn pump_if_due(&mut self) -> io::Result<Option<Duration>> {
        let now = self.driver.now();
        if now < self.pump_due { Ok(Some(self.pump_due.since(now))) } else { self.pump() }
    }

    /// Waits for a datagram, for `wait` or until `deadline`. `WouldBlock` once that has passed.
    fn wait(&mut self, wait: Option<Duration>, deadline: Option<Time>) -> io::Result<()> {
        let left = deadline.map(|deadline| deadline.since(self.driver.now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.pump_due = Time::ZERO;
        self.driver.line.port.wait([wait, left].into_iter().flatten().min())
    }

    fn deadline(&self, timeout: Option<Duration>) -> Option<Time> {
        timeout.map(|timeout| self.driver.now() + timeout)
    }
}

fn is_full(sent: &Result<usize, SendError>) -> bool {
    sent.is_err_and(|error| error.is_full())
}

/// How long a program that only sends may leave the socket unread: much less than a round trip.
const READ_EACH: Duration = Duration::from_millis(1);
