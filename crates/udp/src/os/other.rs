//! What there is where [`linux`](super) is not: std's calls.

use crate::Socket;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use super::by_std::Waiter;

/// Wakes a thread that waits for its socket: by an empty datagram from there to itself. There is one socket on a port here.
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

    /// From now on it wakes who waits for this one. Where the system has no descriptor to spare, that is the longest sleep's to do.
    pub(crate) fn moved(&self, socket: &UdpSocket) {
        if let Ok(Self(new)) = Self::new(socket) {
            std::mem::swap(&mut *self.lock(), &mut *new.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether an empty datagram from there is one of its own.
    pub(crate) fn is_at(&self, from: SocketAddr) -> bool {
        self.lock().1 == from
    }

    /// Ends the wait of its port, or the next one.
    pub fn ring(&self) {
        let (socket, to) = &*self.lock();
        let _ = socket.send_to(&[], to); // who waits does not wait for ever
    }

    fn lock(&self) -> MutexGuard<'_, (UdpSocket, SocketAddr)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn shared(_: SocketAddr) -> io::Result<UdpSocket> {
    let why = "sockets share out a port on Linux, with the feature `batch`";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

pub(crate) const fn can_allow_fragments(_: &impl Socket) -> bool {
    false
}

pub(crate) const fn allow_fragments(_: &impl Socket) {}

pub(crate) fn send_each(_: &impl Socket, _: &[(SocketAddr, &[u8])], _: bool) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) const SENDS_EACH: bool = false;
