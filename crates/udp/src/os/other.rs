//! The fallback where [`linux`](super) does not apply: std's calls.

use crate::Socket;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use super::by_std::Waiter;

/// Wakes a thread that waits for its socket, by sending itself an empty datagram from that socket. Here a
/// port has only one socket.
#[derive(Debug)]
pub struct Bell(Mutex<(UdpSocket, SocketAddr)>);

impl Bell {
    pub(crate) fn new(socket: &UdpSocket) -> io::Result<Self> {
        let mut to = socket.local_addr()?;
        if to.ip().is_unspecified() {
            to.set_ip(if to.is_ipv6() { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() });
        }
        Ok(Self(Mutex::new((socket.try_clone()?, to))))
    }

    /// Moves the bell to a new socket. If the system has no descriptor to spare, a wait only ends at its
    /// timeout.
    pub(crate) fn moved(&self, socket: &UdpSocket) {
        if let Ok(Self(new)) = Self::new(socket) {
            std::mem::swap(&mut *self.lock(), &mut *new.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether an empty datagram from this address is a ring of this bell.
    pub(crate) fn is_at(&self, from: SocketAddr) -> bool {
        self.lock().1 == from
    }

    /// Ends the current wait of its port, or the next one.
    pub fn ring(&self) {
        let (socket, to) = &*self.lock();
        let _ = socket.send_to(&[], to); // if this fails, the wait still has a timeout
    }

    fn lock(&self) -> MutexGuard<'_, (UdpSocket, SocketAddr)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn shared(_: SocketAddr) -> io::Result<UdpSocket> {
    let why = "sockets can share a port only on Linux, with the feature `batch`";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

pub(crate) const fn can_allow_fragments(_: &impl Socket) -> bool {
    false
}

pub(crate) const fn forbid_fragments(_: &impl Socket) -> bool {
    false
}

pub(crate) const fn was_batched(_: &impl Socket) -> bool {
    false
}

pub(crate) const fn allow_fragments(_: &impl Socket) {}

pub(crate) fn send_each(_: &impl Socket, _: &[(SocketAddr, &[u8])], _: bool) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) const SENDS_EACH: bool = false;
