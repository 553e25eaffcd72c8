//! The calls that pump while they wait.

use super::Socket;
use crate::kcp::{RecvError, SendError};
use crate::time::Time;
use std::io;
use std::time::Duration;

impl Socket {
    /// Queues a message and pumps when that is due. Waits for room in the send queue, at most for
    /// the write timeout. Returns the bytes queued: all of them, but in stream mode see
    /// [`Kcp::send`](crate::kcp::Kcp::send).
    ///
    /// # Errors
    ///
    /// `WouldBlock` when the write timeout passes, `InvalidInput` when the message is longer than
    /// a message can be, `TimedOut` when the peer is gone.
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

    /// Takes the next message, and pumps until there is one, at most for the read timeout.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when the read timeout passes, `InvalidInput` when `buf` is too small (the
    /// message stays), `TimedOut` when the peer is gone and every message it sent was taken.
    pub fn recv_blocking(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let deadline = self.deadline(self.read_timeout);
        if self.acks_wait {
            let now = self.driver.now();
            self.update(now); // or messages that always are there already would keep them back
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

    /// Pumps until the peer has acknowledged everything, at most for `timeout`. Bare KCP says no
    /// goodbye, so this is what to do before dropping the socket.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when the time passes first, `TimedOut` when the peer is gone.
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

    /// Takes a message that is there, or has arrived; what acknowledges it is for the next call to send.
    fn recv_first(&mut self, buf: &mut [u8]) -> io::Result<Result<usize, RecvError>> {
        let received = self.recv_into(buf);
        if received != Err(RecvError::NoMessage) {
            return Ok(received);
        }
        // Who asks and answers in turn has one datagram to wait for.
        let most = if std::mem::take(&mut self.has_sent) { 1 } else { usize::MAX };
        self.receive_up_to(most)?;
        self.pump_due = Time::ZERO;
        self.acks_wait = true;
        Ok(self.recv_into(buf))
    }

    /// Pumps if that is due, but does not read again what was read a moment ago.
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

    /// Waits for a datagram, for `wait` or until `deadline`; `WouldBlock` when that has passed.
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

/// How long a program that sends and does not receive may leave the socket unread: much less than a round trip is taken to be.
const READ_EACH: Duration = Duration::from_millis(1);
