//! Counts the traffic of a socket and its errors, and tells packet loss from failure.

use crate::os::{EXPIRED, NO_BUFFERS, TOO_LONG};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Traffic of a socket, and errors that count as packet loss rather than failure.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Counts {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams that the system accepted for sending.
    pub sent: u64,
    /// System calls to receive.
    pub receive_calls: u64,
    /// System calls to send.
    pub send_calls: u64,
    /// Datagrams received with the mark of a queue that was filling up (ECN's CE).
    pub congestion_marks: u64,
    /// Times that datagrams could not be sent as one batch and were sent one by one.
    pub not_joined: u64,
    /// ICMP errors: no such port, host or network, refused on the way, or too many hops.
    pub unreachable: u64,
    /// Times the send buffer was full; the datagram was kept and sent later.
    pub send_buffer_full: u64,
    /// Datagrams lost because the system had no memory for them (ENOBUFS).
    pub no_buffers: u64,
    /// Datagrams too long for the socket, the interface or the path.
    pub too_long: u64,
    /// Datagrams lost to any other error on sending.
    pub send_failed: u64,
}

/// Counts, and now and then logs a warning about losses.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    warned: Option<Instant>,
}

impl Tally {
    pub(crate) const fn sent(&mut self, datagrams: usize) {
        self.counts.sent += datagrams as u64;
        self.counts.send_calls += 1;
    }

    /// Counts an error of a receiving call. `Ok` means loss: another datagram may follow. `WouldBlock`:
    /// nothing to read.
    pub(crate) fn receiving(&mut self, error: io::Error) -> io::Result<()> {
        match Fault::of(&error) {
            Fault::Nothing => Err(io::ErrorKind::WouldBlock.into()),
            Fault::Other => Err(error),
            fault => {
                self.lost(fault);
                Ok(())
            }
        }
    }

    /// Counts an error of a sending call. `Ok` means its datagram is lost, `WouldBlock` that there is no room
    /// for it.
    pub(crate) fn sending(&mut self, error: &io::Error, to: SocketAddr) -> io::Result<()> {
        let fault = Fault::of(error);
        self.lost(fault);
        if fault == Fault::Nothing {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if log::log_enabled!(log::Level::Warn) && self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            self.warned = Some(Instant::now());
            log::warn!("lost a datagram to {to} on this host: {error}; so far: {:?}", self.counts);
        }
        Ok(())
    }

    pub(crate) fn not_joined(&mut self, error: &io::Error) {
        self.counts.not_joined += 1;
        self.counts.unreachable += u64::from(Fault::of(error) == Fault::Unreachable);
    }

    const fn lost(&mut self, fault: Fault) {
        let counts = &mut self.counts;
        *match fault {
            Fault::Nothing => &mut counts.send_buffer_full,
            Fault::Unreachable => &mut counts.unreachable,
            Fault::NoBuffers => &mut counts.no_buffers,
            Fault::TooLong => &mut counts.too_long,
            Fault::Other => &mut counts.send_failed,
        } += 1;
    }
}

/// An error of the socket, by how to react to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// Nothing to read, no room to write, or interrupted by a signal.
    Nothing,
    Unreachable,
    NoBuffers,
    TooLong,
    /// On receiving, the socket has failed; on sending, one datagram is lost.
    Other,
}

impl Fault {
    pub(crate) fn of(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::WouldBlock | Kind::TimedOut | Kind::Interrupted => Self::Nothing,
            Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown => Self::Unreachable,
            // std has no kind for the others.
            _ => match error.raw_os_error() {
                Some(EXPIRED) => Self::Unreachable,
                Some(NO_BUFFERS) => Self::NoBuffers,
                Some(TOO_LONG) => Self::TooLong,
                _ => Self::Other,
            },
        }
    }
}

/// A failing socket fails for every datagram, so limit the warnings.
const WARN_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmp_errors_are_loss_and_a_broken_socket_is_failure() {
        use io::ErrorKind as Kind;
        for kind in [Kind::ConnectionRefused, Kind::ConnectionReset, Kind::HostUnreachable] {
            assert_eq!(Fault::of(&kind.into()), Fault::Unreachable);
        }
        assert_eq!(Fault::of(&io::Error::from_raw_os_error(EXPIRED)), Fault::Unreachable);
        if cfg!(windows) {
            let reset = io::Error::from_raw_os_error(10_054); // WSAECONNRESET
            assert_eq!(Fault::of(&reset), Fault::Unreachable);
        }
        for kind in [Kind::WouldBlock, Kind::TimedOut, Kind::Interrupted] {
            assert_eq!(Fault::of(&kind.into()), Fault::Nothing);
        }
        assert_eq!(Fault::of(&io::Error::from_raw_os_error(NO_BUFFERS)), Fault::NoBuffers);
        assert_eq!(Fault::of(&io::Error::from_raw_os_error(TOO_LONG)), Fault::TooLong);
        assert_eq!(Fault::of(&Kind::InvalidInput.into()), Fault::Other);
    }
}
