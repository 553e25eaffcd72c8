//! The one contract of all that is without I/O here: datagrams and time in, datagrams out, and when to look again.

use crate::time::Time;
use std::net::SocketAddr;

/// A protocol without I/O. It knows no clock, no socket and no thread, so whoever has a way to carry datagrams can drive it: a UDP
/// socket, as all of [`net`](crate#the-layers) does, a browser's datagrams, a relay, an engine's own socket, a simulator's links.
///
/// A driver does the same for each of them, again and again: hand in what has arrived, call [`handle_timeout`](Self::handle_timeout),
/// send all that [`poll_transmit`](Self::poll_transmit) gives, and wait for a datagram until the time that
/// [`poll_timeout`](Self::poll_timeout) says. What a failed step does not bring does not keep it from the others. What a program sends
/// and receives, and what it is told, are each machine's own.
///
/// Time that goes backwards stands still. Whatever a datagram has in it, a machine does not panic, and work and memory are bounded.
///
/// ```
/// use std::collections::VecDeque;
/// use std::net::SocketAddr;
/// use whitewater::machine::{Arrival, Machine};
/// use whitewater::{Config, Conv, KcpPeer, Time};
///
/// /// Datagrams on their way to one end. Yours may be a channel to a relay, or a data channel of a browser.
/// type Way = VecDeque<Vec<u8>>;
///
/// /// All that a transport of your own takes, whichever machine it is for. Returns when to come again if nothing arrives before.
/// fn drive(machine: &mut impl Machine, now: Time, peer: SocketAddr, arrived: &mut Way, out: &mut Way) -> Option<Time> {
///     while let Some(mut datagram) = arrived.pop_front() {
///         machine.handle_datagram(now, Arrival::from(peer), &mut datagram);
///     }
///     machine.handle_timeout(now);
///     let mut datagram = Vec::new();
///     while machine.poll_transmit(now, &mut datagram).is_some() {
///         out.push_back(std::mem::take(&mut datagram));
///     }
///     machine.poll_timeout()
/// }
///
/// // Where there are no addresses, any will do.
/// let (a, b) = (SocketAddr::from(([10, 0, 0, 1], 1)), SocketAddr::from(([10, 0, 0, 2], 1)));
/// let mut alice = KcpPeer::new(b, Conv(7), &Config::fast())?;
/// let mut bob = KcpPeer::new(a, Conv(7), &Config::fast())?;
/// let (mut there, mut back) = (Way::new(), Way::new());
/// alice.kcp_mut().send(b"over a channel of my own")?;
/// let mut now = Time::ZERO;
/// while bob.kcp().peek_size().is_none() {
///     let next = drive(&mut alice, now, b, &mut back, &mut there);
///     drive(&mut bob, now, a, &mut there, &mut back);
///     now = next.ok_or("it waits for an answer")?;
/// }
/// assert_eq!(bob.kcp_mut().recv_bytes().ok_or("nothing")?, "over a channel of my own");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Machine {
    /// Takes a datagram, which is opened where it lies and of no use afterwards. A bad one changes nothing but a counter. What it makes
    /// due comes out of [`poll_transmit`](Self::poll_transmit).
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]);

    /// Does what is due at `now`, but for sending. The work of one call is bounded; when there is more,
    /// [`poll_timeout`](Self::poll_timeout) says so. It may be called at any time, and does nothing then that is not due.
    fn handle_timeout(&mut self, now: Time);

    /// Writes the next datagram behind what is in `out`, which stays, so that datagrams that leave in one call of the system are written
    /// one behind the other. Returns where it goes; `None`: there is none now, and `out` is as it was.
    ///
    /// ```
    /// # use whitewater::Time;
    /// # use whitewater::machine::{Machine, Transmit};
    /// /// The next datagrams, 32 at most: their bytes, and where each of them ends and goes.
    /// fn gather(machine: &mut impl Machine, now: Time, bytes: &mut Vec<u8>) -> Vec<(usize, Transmit)> {
    ///     let mut ends = Vec::new();
    ///     while ends.len() < 32 {
    ///         let Some(transmit) = machine.poll_transmit(now, bytes) else { break };
    ///         ends.push((bytes.len(), transmit));
    ///     }
    ///     ends
    /// }
    /// ```
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit>;

    /// When to call [`handle_timeout`](Self::handle_timeout) and drain [`poll_transmit`](Self::poll_transmit) next; `None`: not before
    /// something else happens. It may be early, never late, and a time that has passed is one that has come. It changes only by the
    /// calls above and by what the program does with the machine.
    fn poll_timeout(&self) -> Option<Time>;

    /// Begins to end everything, with a code for the peers where the protocol can tell them; returns whether it is over, so that
    /// nothing is left to send. Until then go on as ever, and call it again: what comes in meanwhile is ended as well.
    fn shutdown(&mut self, now: Time, code: u16) -> bool;
}

/// Where a datagram came from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made by whoever brings a transport")]
pub struct Arrival {
    /// Who has sent it, as far as that can be believed.
    pub address: SocketAddr,
    /// What its IP header said; `None`: nothing, or it is not known.
    pub ecn: Option<Ecn>,
}

impl From<SocketAddr> for Arrival {
    fn from(address: SocketAddr) -> Self {
        Self { address, ecn: None }
    }
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made by whoever implements a machine")]
pub struct Transmit {
    /// To whom.
    pub address: SocketAddr,
    /// What its IP header is to say; `None`: nothing. Where that cannot be set it is left out.
    pub ecn: Option<Ecn>,
}

impl From<SocketAddr> for Transmit {
    fn from(address: SocketAddr) -> Self {
        Self { address, ecn: None }
    }
}

/// What the IP header of a datagram says of congestion. Source: RFC 3168 (5), RFC 9331 (4.1).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "two bits, one value of which is `None`")]
pub enum Ecn {
    /// The sender heeds marks, and there was none: ECT(0).
    Capable,
    /// The same, of a sender of L4S: ECT(1).
    Scalable,
    /// A queue on the path was filling: CE.
    Congested,
}

impl Ecn {
    /// The two bits of the IP header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Capable => 0b10,
            Self::Scalable => 0b01,
            Self::Congested => 0b11,
        }
    }

    /// What two bits of the IP header say; `None`: nothing.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 0b11 {
            0b10 => Some(Self::Capable),
            0b01 => Some(Self::Scalable),
            0b11 => Some(Self::Congested),
            _ => None,
        }
    }
}
