//! The one interface of all protocols here, none of which does I/O: datagrams and the time go in, datagrams
//! and the time of the next call come out.

pub use crate::wire::{DatagramQueue, Output};

use crate::time::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// A protocol without I/O. It has no clock, no socket and no thread, so you can drive it by any means of
/// carrying datagrams: a UDP socket, as [`net`](crate#the-layers) does, a browser's datagrams, a relay, a
/// game engine's own socket, or the links of a simulator.
///
/// A driver repeats the same steps: pass in what has arrived, call [`handle_timeout`](Self::handle_timeout),
/// send everything that [`poll_transmit`](Self::poll_transmit) returns, then wait for a datagram until the
/// time that [`poll_timeout`](Self::poll_timeout) returns. If one step fails, go on with the others. A server with
/// connect tokens also has to be told the [time of day](Self::set_unix_time). How a program sends and receives data,
/// and which events it gets, is up to each machine.
///
/// Time never goes backwards: an earlier time counts as the latest one so far. Whatever a datagram contains,
/// a machine does not panic, and its work and memory are bounded.
///
/// ```
/// use std::collections::VecDeque;
/// use std::net::SocketAddr;
/// use whitewater::Time;
/// use whitewater::kcp::{self, Config, Conv};
/// use whitewater::machine::{Arrival, Machine};
///
/// /// Datagrams on their way to one end. Yours may be a channel to a relay, or a data channel of a browser.
/// type Way = VecDeque<Vec<u8>>;
///
/// /// All that your own transport has to do, for any machine. Returns when to call again if nothing arrives.
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
/// let mut alice = kcp::Link::new(b, Conv(7), &Config::default())?;
/// let mut bob = kcp::Link::new(a, Conv(7), &Config::default())?;
/// let (mut there, mut back) = (Way::new(), Way::new());
/// alice.kcp_mut().send(b"over a channel of my own")?;
/// let mut now = Time::ZERO;
/// while bob.kcp().peek_size().is_none() {
///     let next = drive(&mut alice, now, b, &mut back, &mut there);
///     drive(&mut bob, now, a, &mut there, &mut back);
///     now = next.ok_or("it waits for an answer")?;
/// }
/// assert_eq!(bob.kcp_mut().recv().ok_or("nothing")?, "over a channel of my own");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Machine {
    /// Takes a datagram and decrypts it in place, so the bytes are garbage afterwards. A bad datagram changes
    /// nothing but a counter. Whatever should be sent in response comes out of
    /// [`poll_transmit`](Self::poll_transmit).
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]);

    /// Does what is due at `now`, except for sending. The work per call is bounded; if there is more to do,
    /// [`poll_timeout`](Self::poll_timeout) says so. You may call this at any time; if nothing is due, it
    /// does nothing.
    fn handle_timeout(&mut self, now: Time);

    /// Appends the next datagram to `out`, which keeps its content, so that datagrams for one system call can
    /// be written one after another. Returns where the datagram goes. Returns `None`, and leaves `out`
    /// unchanged, if there is none.
    ///
    /// ```
    /// # use whitewater::Time;
    /// # use whitewater::machine::{Machine, Transmit};
    /// /// The next datagrams, at most 32: their bytes, and where each of them ends and goes.
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

    /// Says what time it is: `unix` since 1970. Call it once a second, before the datagrams that have arrived are passed
    /// in, with what the system's clock shows, even if that has jumped. Only a server with connect tokens needs it, to
    /// see which have expired; until it is told for the first time, it accepts none. By default this does nothing.
    ///
    /// ```
    /// # use whitewater::Time;
    /// # use whitewater::machine::Machine;
    /// # fn tell(machine: &mut impl Machine, now: Time) {
    /// machine.set_unix_time(now, std::time::UNIX_EPOCH.elapsed().unwrap_or_default());
    /// # }
    /// ```
    fn set_unix_time(&mut self, _now: Time, _unix: Duration) {}

    /// Call this when this machine changes networks: a phone has gone from Wi-Fi to LTE. What was measured of
    /// the path is forgotten. Returns whether the peers follow to another port, so that you may send from
    /// one. By default this does nothing: only clients need it, see
    /// [`session::Client`](crate::session::Client#method.path_changed).
    fn path_changed(&mut self, _now: Time) -> bool {
        false
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and drain [`poll_transmit`](Self::poll_transmit)
    /// next; `None`: not before something else happens. It may be early but never late; a time in the past
    /// means now. It changes only through the calls above and through what the program does with the machine.
    fn poll_timeout(&self) -> Option<Time>;

    /// Starts to shut everything down, and tells the peers `code` if the protocol can. Returns whether that
    /// is complete, so that nothing is left to send. Until then, keep driving the machine and call this
    /// again: sessions that come in meanwhile are shut down as well.
    fn shutdown(&mut self, now: Time, code: u16) -> bool;

    /// Gives everything up at once, because nobody will drive the machine any longer. What the peers are told, if the protocol can, comes
    /// out of [`poll_transmit`](Self::poll_transmit). Without a goodbye to say, it does nothing, which is the default.
    fn abandon(&mut self, _now: Time) {}
}

/// Where a datagram came from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "built by every transport")]
pub struct Arrival {
    /// The sender, as far as that address can be trusted.
    pub address: SocketAddr,
    /// The ECN mark in its IP header; `None` if there was none or it is unknown.
    pub ecn: Option<Ecn>,
    /// What it came in.
    pub underlay: Underlay,
    /// By which of the networks of this end: 0, or the one that a client [has besides](crate::session::Client::set_second_network).
    pub network: u8,
}

impl From<SocketAddr> for Arrival {
    fn from(address: SocketAddr) -> Self {
        Self { address, ecn: None, underlay: Underlay::default(), network: 0 }
    }
}

/// Whether a peer is not reached by UDP, but by what a program has attached beside its socket. UDP has no such address: it
/// is one of IPv6 with a scope id above `i32::MAX`.
#[must_use]
pub const fn is_beside_udp(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(address) if address.scope_id() > i32::MAX.cast_unsigned())
}

/// What carries the datagrams of a peer. The default is UDP, which promises nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "built by every transport")]
pub struct Underlay {
    /// They are encrypted and authenticated by TLS, as those of WebTransport.
    pub is_private: bool,
    /// They arrive in order, and none is lost on the way, as those of a WebSocket. The queue before it may drop some.
    pub is_lossless: bool,
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "built by every machine")]
pub struct Transmit {
    /// The receiver.
    pub address: SocketAddr,
    /// The ECN mark to set in its IP header; `None`: no mark. It is left out if the system cannot set it.
    pub ecn: Option<Ecn>,
    /// By which of the networks of this end it leaves, as in an [`Arrival`].
    pub network: u8,
}

impl From<SocketAddr> for Transmit {
    fn from(address: SocketAddr) -> Self {
        Self { address, ecn: None, network: 0 }
    }
}

/// A mark for congestion in the IP header of a datagram. Source: RFC 3168 (5), RFC 9331 (4.1).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "two bits, and `None` stands for one of their values")]
pub enum Ecn {
    /// The sender reacts to marks, and the path has not marked the datagram: ECT(0).
    Capable,
    /// The same, for an L4S sender: ECT(1).
    Scalable,
    /// A queue on the path was filling up: CE.
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

    /// Reads the two bits of the IP header; `None`: no mark.
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
