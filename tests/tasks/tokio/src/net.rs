//! Sockets, and the network between them.

use real_tokio::io::Interest;
pub use real_tokio::net::{ToSocketAddrs, lookup_host};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// What happens to datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// Per thousand.
    pub lost: u64,
    pub doubled: u64,
    /// ms, and at most that many more.
    pub delay: u64,
    pub jitter: u64,
    /// Nothing comes through to, and from, sockets whose port is even: which clients have, if a test gives them such.
    pub is_cut: [bool; 2],
    /// How many datagrams a socket holds. More are lost.
    pub room: usize,
    /// Every so many sends find the buffer full, if not 0.
    pub full_each: u64,
}

#[derive(Default)]
struct Network {
    path: Path,
    inboxes: BTreeMap<SocketAddr, Inbox>,
    sends: u64,
}

#[derive(Default)]
struct Inbox {
    arrived: VecDeque<(Vec<u8>, SocketAddr)>,
    reader: Option<Waker>,
}

thread_local! {
    static NETWORK: RefCell<Network> = RefCell::default();
}

/// Sets what happens to datagrams of this thread from now on.
pub fn set_path(path: Path) {
    NETWORK.with_borrow_mut(|network| network.path = path);
}

/// How many sockets there are.
pub fn sockets() -> usize {
    NETWORK.with_borrow(|network| network.inboxes.len())
}

/// A socket that has an address of the system, and nothing else of it.
#[derive(Debug)]
pub struct UdpSocket {
    socket: std::net::UdpSocket,
    address: SocketAddr,
}

impl UdpSocket {
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        let mut address = socket.local_addr()?;
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        NETWORK.with_borrow_mut(|network| network.inboxes.insert(address, Inbox::default()));
        Ok(Self { socket, address })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    pub fn poll_recv_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        NETWORK.with_borrow_mut(|network| {
            let inbox = network.inboxes.get_mut(&self.address).ok_or(io::ErrorKind::NotFound)?;
            if inbox.arrived.is_empty() {
                inbox.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(Ok(()))
        })
    }

    /// There is room again a millisecond later.
    pub fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_full = NETWORK.with_borrow_mut(|network| {
            network.sends += 1;
            network.path.full_each > 0 && network.sends.is_multiple_of(network.path.full_each)
        });
        if !is_full {
            return Poll::Ready(Ok(()));
        }
        let waker = cx.waker().clone();
        real_tokio::spawn(async move {
            real_tokio::time::sleep(Duration::from_millis(1)).await;
            waker.wake();
        });
        Poll::Pending
    }

    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let next =
            NETWORK.with_borrow_mut(|network| network.inboxes.get_mut(&self.address)?.arrived.pop_front());
        let (bytes, from) = next.ok_or(io::ErrorKind::WouldBlock)?;
        let len = bytes.len().min(buf.len());
        buf[..len].copy_from_slice(&bytes[..len]);
        Ok((len, from))
    }

    pub fn try_send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        let path = NETWORK.with_borrow(|network| network.path);
        let [cut_to, cut_from] = path.is_cut;
        let is_cut =
            cut_to && to.port().is_multiple_of(2) || cut_from && self.address.port().is_multiple_of(2);
        let [lost, doubled, jitter] = [(); 3].map(|()| whitewater_simulated_random::next());
        if is_cut || lost % 1000 < path.lost {
            return Ok(datagram.len());
        }
        let delay = path.delay + jitter % (path.jitter + 1);
        for copy in 0..1 + u64::from(doubled % 1000 < path.doubled) {
            let (bytes, from) = (datagram.to_vec(), self.address);
            real_tokio::spawn(async move {
                real_tokio::time::sleep(Duration::from_millis(delay + copy)).await;
                arrive(to, bytes, from);
            });
        }
        Ok(datagram.len())
    }

    pub fn try_send(&self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::NotConnected.into())
    }

    pub fn try_io<T>(&self, _: Interest, calls: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        calls()
    }
}

fn arrive(to: SocketAddr, bytes: Vec<u8>, from: SocketAddr) {
    let reader = NETWORK.with_borrow_mut(|network| {
        let room = network.path.room;
        let inbox = network.inboxes.get_mut(&to).filter(|inbox| inbox.arrived.len() < room)?;
        inbox.arrived.push_back((bytes, from));
        inbox.reader.take()
    });
    reader.into_iter().for_each(Waker::wake);
}

impl Drop for UdpSocket {
    fn drop(&mut self) {
        let _ = NETWORK.try_with(|network| network.borrow_mut().inboxes.remove(&self.address));
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for UdpSocket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsSocket for UdpSocket {
    fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
        self.socket.as_socket()
    }
}
