//! One UDP socket as the drivers use it: reads and writes never block, waiting is a call of its
//! own, and errors are sorted into loss and failure.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// What the socket reported that is packet loss and not failure.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct SocketStats {
    /// "Unreachable" by ICMP: no such port, host or network, or refused on the way.
    pub unreachable: u64,
    /// Times the send buffer was full; the datagram was kept and sent later.
    pub send_buffer_full: u64,
    /// Datagrams lost because the system had no memory for them (ENOBUFS).
    pub no_buffers: u64,
    /// Datagrams longer than the socket, the interface or the path takes.
    pub too_long: u64,
    /// Datagrams lost to any other error on sending.
    pub send_failed: u64,
    /// Of a [`KcpSocket`](super::KcpSocket): datagrams from an address that is not the peer's, dropped.
    pub strangers: u64,
    /// Of a [`KcpSocket`](super::KcpSocket): datagrams that the control block rejected; `Stats::rejected` says why. The other drivers
    /// count what they drop in statistics of their own.
    pub rejected: u64,
}

/// A non-blocking socket, connected or not.
#[derive(Debug)]
pub(super) struct Port {
    socket: UdpSocket,
    connected: bool,
    buf: Box<[u8]>,
    /// A datagram that [`Port::wait`] took into `buf`: its length and source.
    arrived: Option<(usize, SocketAddr)>,
    /// The datagram that the full send buffer did not take.
    held: Option<(Vec<u8>, SocketAddr)>,
    read_timeout: Option<Duration>,
    warned: Option<Instant>,
    pub(super) stats: SocketStats,
}

impl Port {
    /// Takes over a socket, with datagrams going to its peer only when it is `connected`.
    pub(super) fn new(socket: UdpSocket, connected: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let read_timeout = socket.read_timeout()?;
        Ok(Self {
            socket,
            connected,
            buf: vec![0; MAX_DATAGRAM].into_boxed_slice(),
            arrived: None,
            held: None,
            read_timeout,
            warned: None,
            stats: SocketStats::default(),
        })
    }

    /// Goes on with another socket, that is not connected.
    pub(super) fn replace(&mut self, socket: UdpSocket) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        self.read_timeout = socket.read_timeout()?;
        (self.socket, self.connected) = (socket, false);
        (self.arrived, self.held) = (None, None);
        Ok(())
    }

    /// The same socket once more.
    pub(super) fn try_clone(&self) -> io::Result<UdpSocket> {
        self.socket.try_clone()
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The next datagram that has arrived, and its source.
    pub(super) fn recv(&mut self) -> io::Result<Option<(&[u8], SocketAddr)>> {
        for _ in 0..FAULTS_PER_DATAGRAM {
            if self.arrived.is_some() || !self.try_recv()? {
                break;
            }
        }
        let Some((len, from)) = self.arrived.take() else { return Ok(None) };
        Ok(self.buf.get(..len).map(|datagram| (datagram, from)))
    }

    /// Sends one datagram, which may be lost. When the send buffer is full it is kept: the port
    /// [is full](Self::is_full) then and takes no other until [`Self::retry`] has sent it.
    pub(super) fn send(&mut self, datagram: &[u8], to: SocketAddr) {
        let sent = self.try_send(datagram, to);
        if sent.is_err_and(|fault| matches!(fault, Fault::Nothing)) {
            self.stats.send_buffer_full += 1;
            self.held = Some((datagram.to_vec(), to));
        }
    }

    /// Whether a datagram waits for room in the send buffer.
    pub(super) const fn is_full(&self) -> bool {
        self.held.is_some()
    }

    /// Sends the datagram that was kept, if there is room now.
    pub(super) fn retry(&mut self) {
        if let Some((datagram, to)) = self.held.take()
            && matches!(self.try_send(&datagram, to), Err(Fault::Nothing))
        {
            self.held = Some((datagram, to));
        }
    }

    /// `wait`, but not longer than a full send buffer should be left alone: std cannot ask a
    /// socket whether it has room again.
    pub(super) fn limit(&self, wait: Option<Duration>) -> Option<Duration> {
        if self.is_full() { Some(wait.map_or(RETRY, |wait| wait.min(RETRY))) } else { wait }
    }

    /// Waits until a datagram has arrived, or for `wait`. It may return earlier.
    pub(super) fn wait(&mut self, wait: Option<Duration>) -> io::Result<()> {
        if self.arrived.is_some() || wait.is_some_and(|wait| wait.is_zero()) {
            return Ok(());
        }
        match wait {
            Some(wait) if wait < COARSE + NAP => self.nap(wait),
            Some(wait) => self.block(Some(wait - COARSE)),
            None => self.block(None),
        }
    }

    /// Sleeps in short steps with a look at the socket after each: exact, for short waits.
    fn nap(&mut self, wait: Duration) -> io::Result<()> {
        let start = Instant::now();
        while let Some(left) = wait.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            thread::sleep(left.min(NAP));
            self.try_recv()?;
            if self.arrived.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Blocks in the system's receive call: wakes at once for a datagram, late for a timeout.
    fn block(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if timeout != self.read_timeout {
            self.socket.set_read_timeout(timeout)?;
            self.read_timeout = timeout;
        }
        self.socket.set_nonblocking(false)?;
        let received = self.try_recv();
        self.socket.set_nonblocking(true)?;
        received.map(|_| ())
    }

    /// Takes one datagram into `buf`, if the socket has one. An error that is loss is counted;
    /// then there may be a datagram behind it, and the answer is `true`.
    fn try_recv(&mut self) -> io::Result<bool> {
        let error = match self.socket.recv_from(&mut self.buf) {
            Ok(arrived) => {
                self.arrived = Some(arrived);
                return Ok(false);
            }
            Err(error) => error,
        };
        match Fault::of(&error) {
            Fault::Nothing => return Ok(false),
            Fault::Unreachable => self.stats.unreachable += 1,
            Fault::TooLong => self.stats.too_long += 1,
            Fault::NoBuffers => self.stats.no_buffers += 1,
            Fault::Other => return Err(error),
        }
        Ok(true)
    }

    fn try_send(&mut self, datagram: &[u8], to: SocketAddr) -> Result<(), Fault> {
        let sent =
            if self.connected { self.socket.send(datagram) } else { self.socket.send_to(datagram, to) };
        let Err(error) = sent else { return Ok(()) };
        let fault = Fault::of(&error);
        match fault {
            Fault::Nothing => return Err(fault),
            Fault::Unreachable => self.stats.unreachable += 1,
            Fault::TooLong => self.stats.too_long += 1,
            Fault::NoBuffers => self.stats.no_buffers += 1,
            Fault::Other => self.stats.send_failed += 1,
        }
        self.warn(to, &error);
        Err(fault)
    }

    /// Says that a datagram was lost here, at most once in [`WARN_EVERY`].
    fn warn(&mut self, to: SocketAddr, error: &io::Error) {
        if log::log_enabled!(log::Level::Warn) && self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            self.warned = Some(Instant::now());
            log::warn!("a datagram to {to} was lost here: {error}; so far: {:?}", self.stats);
        }
    }
}

/// An error of the socket, by what there is to do about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    /// Nothing to read, or no room to write; or a signal came first.
    Nothing,
    Unreachable,
    NoBuffers,
    TooLong,
    /// On receiving, the socket has failed; on sending, one datagram is lost.
    Other,
}

impl Fault {
    fn of(error: &io::Error) -> Self {
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
                Some(code) if NO_BUFFERS.contains(&code) => Self::NoBuffers,
                Some(code) if TOO_LONG.contains(&code) => Self::TooLong,
                _ => Self::Other,
            },
        }
    }
}

/// Room for any datagram: UDP's length field has 16 bits.
const MAX_DATAGRAM: usize = 1 << 16;

/// How late a blocking receive may end. Linux counts its timeout in scheduler ticks, rounded up
/// and one more: up to 8 ms at 250 Hz. The last part of a wait is slept in steps of [`NAP`].
const COARSE: Duration = Duration::from_millis(8);

/// The longest that a datagram lies unseen while a short wait is slept.
const NAP: Duration = Duration::from_micros(500);

/// Between two attempts to write to a full send buffer: a Gbit/s drains 128 KiB of it.
const RETRY: Duration = Duration::from_millis(1);

/// Errors in a row that are taken for loss before one call gives up looking for a datagram.
const FAULTS_PER_DATAGRAM: usize = 16;

/// A failing socket fails for every datagram.
const WARN_EVERY: Duration = Duration::from_secs(1);

/// ENOBUFS. Source: the errno tables of Linux, of the BSDs with macOS, and of Winsock.
const NO_BUFFERS: &[i32] = if cfg!(windows) {
    &[10_055]
} else if cfg!(target_os = "linux") || cfg!(target_os = "android") {
    &[105]
} else {
    &[55]
};

/// EMSGSIZE, from the same tables.
const TOO_LONG: &[i32] = if cfg!(windows) {
    &[10_040]
} else if cfg!(target_os = "linux") || cfg!(target_os = "android") {
    &[90]
} else {
    &[40]
};

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
        assert_eq!(Fault::of(&io::Error::from_raw_os_error(NO_BUFFERS[0])), Fault::NoBuffers);
        assert_eq!(Fault::of(&io::Error::from_raw_os_error(TOO_LONG[0])), Fault::TooLong);
        assert_eq!(Fault::of(&Kind::InvalidInput.into()), Fault::Other);
    }

    #[test]
    fn a_datagram_longer_than_udp_carries_is_counted_and_not_fatal() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let mut port = Port::new(socket, false).unwrap();
        port.send(&vec![0; 70_000], to);
        assert_eq!((port.stats.too_long, port.is_full()), (1, false));
        port.send(b"short", to);
        port.wait(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(port.recv().unwrap().map(|(datagram, _)| datagram), Some(&b"short"[..]));
    }

    #[test]
    fn what_a_full_send_buffer_did_not_take_leaves_later() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let mut port = Port::new(socket, false).unwrap();
        port.held = Some((b"late".to_vec(), to));
        assert!(port.is_full() && port.limit(None) == Some(RETRY));
        port.retry();
        assert!(!port.is_full() && port.limit(None).is_none());
        port.wait(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(port.recv().unwrap(), Some((&b"late"[..], to)));
    }
}
