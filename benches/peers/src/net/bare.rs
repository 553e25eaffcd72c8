//! The system's calls with nothing around them: the best that can be reached.

use super::udp::Mover;
use std::mem;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;

/// One datagram per call, by std.
pub(super) struct OneByOne {
    buf: Vec<u8>,
}

impl Mover for OneByOne {
    const NAME: &'static str = "std, one by one";

    fn new(_: &UdpSocket, _: &UdpSocket) -> Self {
        Self { buf: vec![0; 1 << 16] }
    }

    fn send(&mut self, socket: &UdpSocket, to: &[SocketAddr], datagram: &[u8]) {
        for to in to {
            socket.send_to(datagram, to).unwrap();
        }
    }

    fn recv(&mut self, socket: &UdpSocket) -> usize {
        usize::from(socket.recv_from(&mut self.buf).is_ok())
    }
}

/// `sendmmsg` and `recvmmsg`, with headers prepared once.
pub(super) struct Mmsg {
    bytes: Vec<u8>,
    addresses: Vec<libc::sockaddr_in>,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

pub(super) const BATCH: usize = 32;

impl Mover for Mmsg {
    const NAME: &'static str = "bare sendmmsg";

    fn new(_: &UdpSocket, _: &UdpSocket) -> Self {
        // SAFETY: all zeros is a valid value of each of these.
        let (address, part, header) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        Self {
            bytes: vec![0; BATCH << 11],
            addresses: vec![address; BATCH],
            parts: vec![part; BATCH],
            headers: vec![header; BATCH],
        }
    }

    fn send(&mut self, socket: &UdpSocket, to: &[SocketAddr], datagram: &[u8]) {
        for to in to.chunks(BATCH) {
            for (index, to) in to.iter().enumerate() {
                self.parts[index] =
                    libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
                self.addresses[index] = sockaddr(*to);
                self.prepare(index);
            }
            let count = u32::try_from(to.len()).unwrap();
            // SAFETY: each header points to a part and an address that live as long as the call.
            let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), count, 0) };
            assert_eq!(usize::try_from(sent), Ok(to.len()));
        }
    }

    fn recv(&mut self, socket: &UdpSocket) -> usize {
        for index in 0..BATCH {
            self.parts[index] =
                libc::iovec { iov_base: self.bytes[index << 11..].as_mut_ptr().cast(), iov_len: 1 << 11 };
            self.prepare(index);
        }
        let headers = self.headers.as_mut_ptr();
        // SAFETY: each header points to its own part of `bytes`, and to an address.
        let count = unsafe { libc::recvmmsg(socket.as_raw_fd(), headers, BATCH as u32, 0, ptr::null_mut()) };
        usize::try_from(count).unwrap_or(0)
    }
}

impl Mmsg {
    /// Sends the datagrams that were received last back to where they came from.
    pub(super) fn echo(&mut self, socket: &UdpSocket, count: usize) {
        for index in 0..count {
            self.parts[index].iov_len = self.headers[index].msg_len as usize;
        }
        let wanted = u32::try_from(count).unwrap();
        // SAFETY: each header still points to its part and its address.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), wanted, 0) };
        assert_eq!(usize::try_from(sent), Ok(count));
    }

    fn prepare(&mut self, index: usize) {
        let header = &mut self.headers[index].msg_hdr;
        header.msg_iov = &raw mut self.parts[index];
        header.msg_iovlen = 1;
        header.msg_name = (&raw mut self.addresses[index]).cast();
        header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as u32;
    }
}

/// One call for as many datagrams as UDP offloading accepts, with memory prepared beforehand.
pub(super) struct Gso {
    datagrams: Vec<u8>,
    buf: Vec<u8>,
    size: usize,
}

impl Mover for Gso {
    const NAME: &'static str = "bare GSO and GRO";

    fn new(from: &UdpSocket, to: &UdpSocket) -> Self {
        set(from, libc::UDP_SEGMENT, 1200);
        set(to, libc::UDP_GRO, 1);
        Self { datagrams: Vec::new(), buf: vec![0; 1 << 16], size: 0 }
    }

    fn send(&mut self, socket: &UdpSocket, to: &[SocketAddr], datagram: &[u8]) {
        if self.size != datagram.len() {
            self.size = datagram.len();
            self.datagrams = datagram.repeat(65_507 / datagram.len());
        }
        for to in to.chunks(65_507 / datagram.len()) {
            socket.send_to(&self.datagrams[..to.len() * datagram.len()], to[0]).unwrap();
        }
    }

    fn recv(&mut self, socket: &UdpSocket) -> usize {
        socket.recv_from(&mut self.buf).map_or(0, |(len, _)| len / self.size)
    }
}

fn set(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) {
    let len = mem::size_of_val(&value) as u32;
    // SAFETY: the length is that of the value.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, option, (&raw const value).cast(), len)
    };
    assert_eq!(set, 0, "the system has no UDP offloads");
}

fn sockaddr(address: SocketAddr) -> libc::sockaddr_in {
    let SocketAddr::V4(address) = address else { panic!("all are of IPv4") };
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}
