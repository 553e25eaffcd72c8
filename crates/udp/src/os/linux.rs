//! Linux-specific calls, by rustix.

use super::Until;
use crate::outbox::MOST_EACH;
use crate::{NOWHERE, Socket};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg as _;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, ip_recvtos, ipv6_recvtclass, set_ip_mtu_discover,
    set_ipv6_mtu_discover, set_socket_reuseport,
};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};
use socket2::{Domain, Protocol, SockRef, Type};
use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Waits for a socket by `poll`: exact, and also wakes when the send buffer has room.
#[derive(Debug)]
pub(crate) struct Waiter;

impl Waiter {
    pub(crate) const fn new(_: &UdpSocket) -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for what is in `until`, until the bell rings, or until `timeout` has passed. It may return earlier.
    #[expect(
        clippy::unused_self,
        clippy::needless_pass_by_ref_mut,
        reason = "same signature as without poll"
    )]
    pub(crate) fn wait(
        &mut self,
        (socket, other): (&UdpSocket, Option<&UdpSocket>),
        timeout: Option<Duration>,
        until: Until,
        bell: Option<&Bell>,
        _: &mut [u8],
    ) -> io::Result<()> {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, until.there_is_data);
        events.set(PollFlags::OUT, until.there_is_room);
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let nothing = (socket.as_fd(), PollFlags::empty());
        let also = [other.map(AsFd::as_fd), bell.map(|bell| bell.0.as_fd())];
        let [other, ring] = also.map(|fd| fd.map_or(nothing, |fd| (fd, PollFlags::IN)));
        let all = [(socket.as_fd(), events), other, ring];
        let mut all = all.map(|(fd, events)| PollFd::from_borrowed_fd(fd, events));
        let polled = poll(&mut all, timeout.as_ref());
        if let Some(bell) = bell
            && !all[2].revents().is_empty()
        {
            let _ = rustix::io::read(&bell.0, &mut [0; 8]); // reset the bell
        }
        match polled {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Wakes a thread that waits for its socket: a descriptor that becomes readable when rung.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new(_: &UdpSocket) -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    pub(crate) const fn moved(&self, _: &UdpSocket) {}

    pub(crate) const fn is_at(&self, _: SocketAddr) -> bool {
        false
    }

    /// Ends the current wait of its port, or the next one.
    pub fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes()); // if it is full, it is ringing anyway
    }
}

/// Opens a socket that shares its port with others opened by this function.
pub(crate) fn shared(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    set_socket_reuseport(&socket, true)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}

/// Whether "don't fragment" can be taken back. For IPv6 it cannot.
pub(crate) fn can_allow_fragments(socket: &impl Socket) -> bool {
    SockRef::from(socket.handle()).local_addr().is_ok_and(|address| address.is_ipv4())
}

/// Whether batched calls were used on this socket before, by this process or another one that has it: then the system joins datagrams
/// (GRO). It does not say so in safe code, but quinn-udp requests ECN marks of every socket on which it requests that.
pub(crate) fn was_batched(socket: &impl Socket) -> bool {
    let handle = socket.handle();
    ip_recvtos(handle).unwrap_or(false) || ipv6_recvtclass(handle).unwrap_or(false)
}

/// Lets the system fragment datagrams that are too long for a path whose MTU it knows.
pub(crate) fn allow_fragments(socket: &impl Socket) {
    if let Err(error) = set_ip_mtu_discover(socket.handle(), Ipv4PathMtuDiscovery::WANT) {
        log::debug!("datagrams too long for their path are lost: {error}");
    }
}

/// Forbids fragments. Returns whether the system does that for each address family of the socket.
pub(crate) fn forbid_fragments(socket: &impl Socket) -> bool {
    let handle = socket.handle();
    let is_v4 = SockRef::from(handle).local_addr().is_ok_and(|address| address.is_ipv4());
    set_ip_mtu_discover(handle, Ipv4PathMtuDiscovery::PROBE).is_ok()
        && (is_v4 || set_ipv6_mtu_discover(handle, Ipv6PathMtuDiscovery::PROBE).is_ok())
}

pub(crate) const SENDS_EACH: bool = true;
/// Up to this many datagrams, preparing a smaller array is faster than one of [`MOST_EACH`].
const FEW: usize = 4;

/// Sends datagrams in one call, without addresses if the socket is connected. Returns how many were sent.
pub(crate) fn send_each(
    socket: &impl Socket,
    datagrams: &[(SocketAddr, &[u8])],
    is_connected: bool,
) -> io::Result<usize> {
    if datagrams.len() <= FEW {
        send_up_to::<FEW>(socket, datagrams, is_connected)
    } else {
        send_up_to::<MOST_EACH>(socket, datagrams, is_connected)
    }
}

fn send_up_to<const N: usize>(
    socket: &impl Socket,
    datagrams: &[(SocketAddr, &[u8])],
    is_connected: bool,
) -> io::Result<usize> {
    let mut slots: [Slot<'_>; N] = std::array::from_fn(|index| Slot::new(datagrams.get(index)));
    let mut messages = slots.each_mut().map(|Slot { to, bytes, control }| {
        if is_connected { MMsgHdr::new(bytes, control) } else { MMsgHdr::new_with_addr(to, bytes, control) }
    });
    let count = datagrams.len().min(N);
    let messages = messages.get_mut(..count).unwrap_or_default();
    Ok(sendmmsg(socket.handle(), messages, SendFlags::empty())?)
}

struct Slot<'a> {
    to: SocketAddrAny,
    bytes: [IoSlice<'a>; 1],
    control: SendAncillaryBuffer<'a, 'a, 'a>,
}

impl<'a> Slot<'a> {
    fn new(datagram: Option<&(SocketAddr, &'a [u8])>) -> Self {
        let (to, bytes) = datagram.map_or((NOWHERE, &[][..]), |(to, bytes)| (*to, *bytes));
        Self { to: to.as_any(), bytes: [IoSlice::new(bytes)], control: SendAncillaryBuffer::default() }
    }
}
