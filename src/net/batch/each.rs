//! Datagrams to several addresses in one call, where the system has one: `sendmmsg` of Linux.

use super::socket::Socket;
use rustix::net::addr::SocketAddrArg as _;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Most datagrams a call: by then the call itself is a small part of the cost.
pub(super) const MOST_EACH: usize = 32;
/// The same for a few, that are sooner made ready.
const FEW: usize = 4;

/// Sends the datagrams, without their addresses when the socket is connected; returns how many.
pub(super) fn send_each(
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
    Ok(sendmmsg(socket, messages, SendFlags::empty())?)
}

/// What a message header points to.
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

/// The address of a slot that no datagram needs.
const NOWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
