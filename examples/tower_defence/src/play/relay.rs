//! A bad network between a player and a real server: datagrams go through a thread that delays and loses them.

use crate::lab::LinkSpec;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use whitewater::Time;
use whitewater_sim::Link;

/// The way to a server with a simulated network on it, for one player. It ends when it is dropped.
#[derive(Debug)]
pub struct Relay {
    at: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts to pass on datagrams, each way over such a link.
    ///
    /// # Errors
    ///
    /// There is no socket or no thread, or no way to the server.
    pub fn start(server: SocketAddr, link: &LinkSpec, seed: u64) -> io::Result<Self> {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?; // nobody but this machine can use it
        let far = match server {
            SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
            SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
        };
        far.connect(server)?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        let new = |stream| Link::new(link.config(), seed, stream).map_err(io::Error::other);
        let mut ways = Ways { near, far, player: None, up: new(1)?, down: new(2)?, start: Instant::now() };
        let (at, is_over) = (ways.near.local_addr()?, Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&is_over);
        let run = move || {
            let mut datagram = vec![0; 1 << 16];
            while !seen.load(Ordering::Relaxed) {
                ways.pass(&mut datagram);
                thread::sleep(LOOK);
            }
        };
        let thread = Some(thread::Builder::new().name("relay".to_owned()).spawn(run)?);
        Ok(Self { at, is_over, thread })
    }

    /// The address that stands for the server.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.at
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join); // it does not panic
    }
}

/// Both directions.
#[derive(Debug)]
struct Ways {
    near: UdpSocket,
    far: UdpSocket,
    /// Where the player sent from last: another port after each session.
    player: Option<SocketAddr>,
    up: Link,
    down: Link,
    start: Instant,
}

impl Ways {
    /// Passes on what has come and what is due. A socket that fails loses a datagram, as networks do: a server that was
    /// away may be back for the next.
    fn pass(&mut self, datagram: &mut [u8]) {
        let now = Time::ZERO + self.start.elapsed();
        for _ in 0..AT_ONCE {
            let Ok((len, from)) = self.near.recv_from(datagram) else { break };
            self.player = Some(from);
            self.up.send(now, datagram.get(..len).unwrap_or_default());
        }
        for _ in 0..AT_ONCE {
            let Ok(len) = self.far.recv(datagram) else { break };
            self.down.send(now, datagram.get(..len).unwrap_or_default());
        }
        while let Some(datagram) = self.up.arrive(now) {
            let _ = self.far.send(datagram);
        }
        while let Some(datagram) = self.down.arrive(now) {
            let _ = self.player.map(|player| self.near.send_to(datagram, player));
        }
    }
}

/// Time between two looks at the sockets.
const LOOK: Duration = Duration::from_millis(1);
/// Most datagrams taken from a socket before the other has its turn.
const AT_ONCE: usize = 256;
