//! Two network namespaces without names, each with a TUN device as its only link. A namespace lives as long as this
//! process holds its descriptor, and a thread enters it, so nothing is left behind and no other process notices.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;

pub(super) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);

/// A namespace and what comes out of its link.
pub(super) struct Space {
    namespace: File,
    pub(super) tun: File,
}

impl Space {
    /// A namespace with the address `own`, from which only `peer` can be reached.
    pub(super) fn new(own: Ipv4Addr, peer: Ipv4Addr) -> io::Result<Self> {
        // A namespace belongs to a thread: one of its own leaves the caller where it is.
        let build = move || {
            // SAFETY: it changes this thread alone.
            check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            for which in ["all", "default"] {
                fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1").ok();
            }
            let namespace = File::open("/proc/thread-self/ns/net")?;
            let tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
            let flags = libc::IFF_TUN | libc::IFF_NO_PI;
            Request::new("tun0").call(&tun, libc::TUNSETIFF, [flags as i16])?;
            // SAFETY: `tun` is open, and the call takes a number.
            check(unsafe { libc::fcntl(tun.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            Request::new("tun0").call(&socket, libc::SIOCSIFADDR, address(own))?;
            Request::new("tun0").call(&socket, libc::SIOCSIFDSTADDR, address(peer))?;
            Request::new("tun0").call(&socket, libc::SIOCSIFTXQLEN, [8192_i32])?;
            for name in ["lo", "tun0"] {
                Request::new(name).call(&socket, libc::SIOCSIFFLAGS, [libc::IFF_UP as i16])?;
            }
            Ok(Self { namespace, tun })
        };
        thread::spawn(build).join().expect("no panic")
    }

    /// Moves the calling thread, its sockets and processes from now on into the namespace.
    pub(super) fn enter(&self) -> io::Result<()> {
        // SAFETY: it changes this thread alone.
        check(unsafe { libc::setns(self.namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
    }
}

/// Gives the calling thread, and what it starts, real-time priority: other work on the machine would otherwise be in
/// the figures.
pub(super) fn hurry(priority: i32) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: it reads `param` and changes this thread alone.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const param) }).map(drop)
}

/// `struct ifreq`.
#[repr(C)]
struct Request {
    name: [u8; 16],
    data: [u8; 24],
}

impl Request {
    fn new(name: &str) -> Self {
        let mut request = Self { name: [0; 16], data: [0; 24] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        request
    }

    fn call<T>(mut self, file: &impl AsRawFd, request: libc::Ioctl, arg: T) -> io::Result<()> {
        assert!(size_of::<T>() <= self.data.len());
        // SAFETY: the argument fits into `data`, and `self` is as long as a `struct ifreq`.
        check(unsafe {
            std::ptr::write_unaligned(self.data.as_mut_ptr().cast(), arg);
            libc::ioctl(file.as_raw_fd(), request, &raw mut self)
        })
        .map(drop)
    }
}

fn address(ip: Ipv4Addr) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from(ip).to_be() },
        sin_zero: [0; 8],
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
