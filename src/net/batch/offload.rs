//! What the system does for many datagrams at once.

use super::inbox::Inbox;
use super::socket::Socket;
use crate::session::Ecn;
#[cfg(feature = "batch")]
use quinn_udp::{EcnCodepoint, Transmit, UdpSocketState};
use std::io;
use std::net::SocketAddr;

/// The calls by which one socket receives and sends: with what the system can do for many datagrams at once, or std's, one a
/// datagram. Above it both are the same.
#[derive(Debug)]
pub(in crate::net) struct Offload {
    /// The peer of a connected socket gets no address: not every system takes one then.
    is_connected: bool,
    #[cfg(feature = "batch")]
    state: Option<UdpSocketState>,
    /// std's calls until there is more to move than one datagram at a time.
    is_late: bool,
}

/// Whether a router, or this host, may cut a datagram that is too long for its way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::net) enum Fragments {
    /// As the system has it. Where it is not known how to keep that, the calls are std's.
    Allowed,
    /// No: it is lost, and an interface too narrow for it says so (`too_long`). What a search for the path's MTU needs.
    Forbidden,
}

impl Offload {
    /// std's calls.
    pub(in crate::net) const fn none(is_connected: bool) -> Self {
        Self {
            is_connected,
            #[cfg(feature = "batch")]
            state: None,
            is_late: false,
        }
    }

    /// std's calls for as long as datagrams go one at a time, then the best ones: a call for many costs more than one for one. For
    /// sockets that may send fragments; nobody is told of the marks (ECN) of what comes by std's calls.
    #[cfg(feature = "batch")]
    pub(in crate::net) fn late(socket: &impl Socket, is_connected: bool) -> Self {
        Self { is_late: can_allow_fragments(socket), ..Self::none(is_connected) }
    }

    /// std's calls: there are no others in this build.
    #[cfg(not(feature = "batch"))]
    pub(in crate::net) fn late(_: &impl Socket, is_connected: bool) -> Self {
        Self::none(is_connected)
    }

    /// What is best for a socket whose datagrams may be cut, or not.
    pub(in crate::net) fn suited(socket: &impl Socket, is_connected: bool, fragments: Fragments) -> Self {
        match fragments {
            Fragments::Allowed => Self::late(socket, is_connected),
            Fragments::Forbidden => Self::new(socket, is_connected, fragments),
        }
    }

    /// So many datagrams are about to be sent.
    pub(super) fn will_send(&mut self, socket: &impl Socket, count: usize) {
        if self.is_late && count >= MANY {
            *self = Self::new(socket, self.is_connected, Fragments::Allowed);
        }
    }

    /// The best calls that there are for the socket, which becomes non-blocking.
    #[cfg(feature = "batch")]
    pub(in crate::net) fn new(socket: &impl Socket, is_connected: bool, fragments: Fragments) -> Self {
        if fragments == Fragments::Allowed && !can_allow_fragments(socket) {
            return Self::none(is_connected);
        }
        let state = UdpSocketState::new(socket.into()).inspect_err(|error| {
            log::debug!("datagrams are sent and received one by one: {error}");
        });
        if fragments == Fragments::Allowed {
            allow_fragments(socket);
        }
        Self { state: state.ok(), ..Self::none(is_connected) }
    }

    /// std's calls: there are no others in this build.
    #[cfg(not(feature = "batch"))]
    pub(in crate::net) fn new(_: &impl Socket, is_connected: bool, _: Fragments) -> Self {
        Self::none(is_connected)
    }

    /// Receives as much as one call gives into the inbox, whose last datagrams are forgotten; by calls for one, `most` datagrams and not
    /// many. `WouldBlock` when there is nothing.
    pub(in crate::net) fn recv(
        &mut self,
        socket: &impl Socket,
        inbox: &mut Inbox,
        most: usize,
    ) -> io::Result<()> {
        #[cfg(feature = "batch")]
        if let Some(state) = &self.state {
            return inbox.fill(state, socket);
        }
        let most = if self.is_late { most.min(MANY) } else { 1 };
        let count = inbox.fill_each(most, |buf| socket.recv_from(buf))?;
        if self.is_late && count >= MANY {
            *self = Self::new(socket, self.is_connected, Fragments::Allowed);
        }
        Ok(())
    }

    /// Whether [`Self::send_joined`] writes into IP headers what is asked for; other calls do not.
    pub(super) const fn can_mark(&self) -> bool {
        #[cfg(feature = "batch")]
        if self.state.is_some() {
            return true;
        }
        false
    }

    /// Whether a datagram that is too long for its way may be cut, so that nobody hears that it was.
    pub(in crate::net) fn may_fragment(&self) -> bool {
        #[cfg(feature = "batch")]
        if let Some(state) = &self.state {
            return state.may_fragment();
        }
        true
    }

    /// Arrivals that a call can give.
    pub(in crate::net) const fn slots(&self, wanted: usize) -> usize {
        #[cfg(feature = "batch")]
        if self.state.is_some() {
            return wanted;
        }
        if self.is_late { wanted } else { 1 }
    }

    /// Most datagrams that [`Self::send_joined`] sends; it may become 1 when a driver of the network card turns out not to do it.
    pub(super) fn most_joined(&self) -> usize {
        #[cfg(feature = "batch")]
        if let Some(state) = &self.state {
            return state.max_gso_segments();
        }
        1
    }

    /// Most datagrams that [`Self::send_each`] sends.
    pub(super) const fn most_each(&self) -> usize {
        #[cfg(all(feature = "batch", target_os = "linux"))]
        if self.state.is_some() {
            return super::each::MOST_EACH;
        }
        1
    }

    /// Sends one datagram.
    pub(super) fn send(&self, socket: &impl Socket, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let sent = if self.is_connected { socket.send(datagram) } else { socket.send_to(datagram, to) };
        sent.map(|_| ())
    }

    /// Sends datagrams of `size` bytes that lie one behind the other, the last may be shorter: all of them, or none.
    pub(super) fn send_joined(
        &self,
        socket: &impl Socket,
        datagrams: &[u8],
        size: usize,
        to: SocketAddr,
        ecn: Option<Ecn>,
    ) -> io::Result<()> {
        #[cfg(feature = "batch")]
        if let Some(state) = &self.state {
            let transmit = Transmit {
                destination: to,
                ecn: ecn.map(|ecn| match ecn {
                    Ecn::Capable => EcnCodepoint::Ect0,
                    Ecn::Scalable => EcnCodepoint::Ect1,
                    Ecn::Congested => EcnCodepoint::Ce,
                }),
                contents: datagrams,
                segment_size: Some(size),
                src_ip: None,
            };
            return state.try_send(socket.into(), &transmit);
        }
        let _ = (socket, datagrams, size, to, ecn);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends datagrams to several addresses, and returns how many: fewer when the next one fails, and an error when the first one
    /// does.
    pub(super) fn send_each(
        &self,
        socket: &impl Socket,
        datagrams: &[(SocketAddr, &[u8])],
    ) -> io::Result<usize> {
        #[cfg(all(feature = "batch", target_os = "linux"))]
        if self.state.is_some() && datagrams.len() > 1 {
            return super::each::send_each(socket, datagrams, self.is_connected);
        }
        let Some((to, datagram)) = datagrams.first() else { return Ok(0) };
        self.send(socket, datagram, *to).map(|()| 1)
    }
}

/// So many datagrams at once are worth calls for many: more than an answer and what acknowledges the question.
const MANY: usize = 4;

/// Whether what [`UdpSocketState`] sets can be taken back. For IPv6 it cannot, nor elsewhere than on Linux.
#[cfg(feature = "batch")]
fn can_allow_fragments(socket: &impl Socket) -> bool {
    let address = socket2::SockRef::from(socket).local_addr();
    cfg!(target_os = "linux") && address.is_ok_and(|address| address.is_ipv4())
}

/// Lets the system cut datagrams that are too long for a way that it knows, as without [`UdpSocketState`].
#[cfg(feature = "batch")]
fn allow_fragments(socket: &impl Socket) {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::net::sockopt::set_ip_mtu_discover(socket, rustix::net::sockopt::Ipv4PathMtuDiscovery::WANT)
    {
        log::debug!("datagrams too long for their way are lost: {error}");
    }
    let _ = socket;
}
