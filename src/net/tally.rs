//! What goes through a socket, and its errors: what is loss, what is failure, and how often.

use super::os::{NO_BUFFERS, TOO_LONG};
use crate::counters::stats;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

stats! {
    /// What went through the socket.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct SocketTraffic: AddAssign {
        /// Datagrams received.
        pub received: u64 => "whitewater_socket_datagrams_received_total",
        /// Datagrams that the system took to send.
        pub sent: u64 => "whitewater_socket_datagrams_sent_total",
        /// Calls that receiving took: fewer than datagrams where the system gives several at once.
        pub receive_calls: u64 => "whitewater_socket_calls_total" [call: "receive", "System calls that it took"],
        /// Calls that sending took.
        pub send_calls: u64 => "whitewater_socket_calls_total" [call: "send", "System calls that it took"],
        /// Datagrams that came with the mark of a queue that was filling (ECN's CE).
        pub congestion_marks: u64 => "whitewater_socket_congestion_marks_total",
        /// Of one of several servers on a port: datagrams of another one's session, which were handed on.
        pub handed_on: u64 => "whitewater_socket_handed_on_total",
        /// Times that datagrams could not be sent as one and went one by one.
        pub not_joined: u64 => "whitewater_socket_not_joined_total",
    }
}

stats! {
    /// What the socket reported that is packet loss and not failure.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct SocketStats: AddAssign {
        /// "Unreachable" by ICMP: no such port, host or network, or refused on the way.
        pub unreachable: u64 => "whitewater_socket_errors_total" [kind: "unreachable", LOSS],
        /// Times the send buffer was full; the datagram was kept and sent later.
        pub send_buffer_full: u64 => "whitewater_socket_errors_total" [kind: "send_buffer_full", LOSS],
        /// Datagrams lost because the system had no memory for them (ENOBUFS).
        pub no_buffers: u64 => "whitewater_socket_errors_total" [kind: "no_buffers", LOSS],
        /// Datagrams longer than the socket, the interface or the path takes.
        pub too_long: u64 => "whitewater_socket_errors_total" [kind: "too_long", LOSS],
        /// Of one of several servers on a port: datagrams of another one's session that were lost here, because too many waited there.
        pub not_handed_on: u64 => "whitewater_socket_errors_total" [kind: "not_handed_on", LOSS],
        /// Datagrams lost to any other error on sending.
        pub send_failed: u64 => "whitewater_socket_errors_total" [kind: "send_failed", LOSS],
        /// Of a [`KcpSocket`](super::KcpSocket): datagrams from an address that is not the peer's, dropped.
        pub strangers: u64 => "whitewater_socket_errors_total" [kind: "stranger", LOSS],
        /// Of a [`KcpSocket`](super::KcpSocket): datagrams that the control block rejected; `Stats::rejected` says why. The other drivers
        /// count what they drop in statistics of their own.
        pub rejected: u64 => "whitewater_socket_errors_total" [kind: "rejected", LOSS],
    }
}

/// Counts what goes through a socket and what is lost there, and says now and then that there are losses.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) traffic: SocketTraffic,
    pub(super) stats: SocketStats,
    warned: Option<Instant>,
}

impl Tally {
    /// Counts what a receiving call reported. `Ok` is loss: there may be a datagram behind it. `WouldBlock` is nothing to read.
    pub(super) fn receiving(&mut self, error: io::Error) -> io::Result<()> {
        match Fault::of(&error) {
            Fault::Nothing => return Err(io::ErrorKind::WouldBlock.into()),
            Fault::Unreachable => self.stats.unreachable += 1,
            Fault::TooLong => self.stats.too_long += 1,
            Fault::NoBuffers => self.stats.no_buffers += 1,
            Fault::Other => return Err(error),
        }
        Ok(())
    }

    /// Counts what a sending call reported. `Ok` is the loss of its datagram, `WouldBlock` no room for it.
    pub(super) fn sending(&mut self, error: &io::Error, to: SocketAddr) -> io::Result<()> {
        match Fault::of(error) {
            Fault::Nothing => {
                self.stats.send_buffer_full += 1;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Fault::Unreachable => self.stats.unreachable += 1,
            Fault::TooLong => self.stats.too_long += 1,
            Fault::NoBuffers => self.stats.no_buffers += 1,
            Fault::Other => self.stats.send_failed += 1,
        }
        if log::log_enabled!(log::Level::Warn) && self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            self.warned = Some(Instant::now());
            log::warn!("a datagram to {to} was lost here: {error}; so far: {:?}", self.stats);
        }
        Ok(())
    }
}

/// An error of the socket, by what there is to do about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// Nothing to read, or no room to write; or a signal came first.
    Nothing,
    Unreachable,
    NoBuffers,
    TooLong,
    /// On receiving, the socket has failed; on sending, one datagram is lost.
    Other,
}

impl Fault {
    pub(super) fn of(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::WouldBlock | Kind::TimedOut | Kind::Interrupted => Self::Nothing,
            Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown => Self::Unreachable,
            // std has no kind for the other two.
            _ => match error.raw_os_error() {
                Some(NO_BUFFERS) => Self::NoBuffers,
                Some(TOO_LONG) => Self::TooLong,
                _ => Self::Other,
            },
        }
    }
}

/// What [`SocketStats`] are together.
const LOSS: &str = "What the system reported that counts as loss";

/// A failing socket fails for every datagram.
const WARN_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_icmp_reports_is_loss_and_a_broken_socket_is_not() {
        use io::ErrorKind as Kind;
        for kind in [Kind::ConnectionRefused, Kind::ConnectionReset, Kind::HostUnreachable] {
            assert_eq!(Fault::of(&kind.into()), Fault::Unreachable);
        }
        for kind in [Kind::WouldBlock, Kind::TimedOut, Kind::Interrupted] {
            assert_eq!(Fault::of(&kind.into()), Fault::Nothing);
        }
        assert_eq!(Fault::of(&io::Error::from_raw_os_error(NO_BUFFERS)), Fault::NoBuffers);
        assert_eq!(Fault::of(&io::Error::from_raw_os_error(TOO_LONG)), Fault::TooLong);
        assert_eq!(Fault::of(&Kind::InvalidInput.into()), Fault::Other);
    }
}
