//! A lossy network in a box: a UDP port that passes datagrams on, late, twice, or not at all.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use whitewater::net::Clock;
use whitewater::sim::{Link, LinkConfig, Loss};

/// Passes datagrams between a server and whoever sent last, by one thread, until it is dropped.
#[derive(Debug)]
pub struct Relay {
    /// Where it takes datagrams for the server.
    pub address: SocketAddr,
    seed: u64,
    config: LinkConfig,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Before this server, with the same network each way.
    ///
    /// # Panics
    ///
    /// Without a socket, or when `config` is out of range.
    #[must_use]
    pub fn start(server: SocketAddr, config: &LinkConfig, seed: u64) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let links = [1, 2].map(|stream| Link::new(config.clone(), seed, stream).unwrap());
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || pass(&socket, server, links, &stopped));
        Self { address, seed, config: config.clone(), stop, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let passed = self.thread.take().map(JoinHandle::join);
        if thread::panicking() {
            println!("failed with seed {} over {:?}", self.seed, self.config);
        } else {
            assert!(matches!(passed, Some(Ok(()))), "the relay");
        }
    }
}

/// A network near by. If it loses a share of datagrams above 0, up to 1, it also delays, reorders and doubles some.
#[must_use]
pub fn network(loss: f64) -> LinkConfig {
    let clean = LinkConfig { delay: Duration::from_millis(5), ..LinkConfig::default() };
    if loss == 0.0 {
        return clean;
    }
    LinkConfig {
        jitter: Duration::from_millis(3),
        in_order: true,
        loss: Loss::Random(loss),
        reorder: 0.02,
        late: Duration::from_millis(5),
        duplicate: 0.02,
        ..clean
    }
}

fn pass(socket: &UdpSocket, server: SocketAddr, [mut there, mut back]: [Link; 2], stop: &AtomicBool) {
    let clock = Clock::new();
    let mut client = None;
    let mut buf = vec![0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        let next = there.next_arrival().into_iter().chain(back.next_arrival()).min();
        let wait = next.map_or(LOOK_UP, |at| at.since(clock.now()).clamp(SHORTEST, LOOK_UP));
        socket.set_read_timeout(Some(wait)).unwrap();
        match socket.recv_from(&mut buf) {
            Ok((len, from)) if from == server => back.send(clock.now(), &buf[..len]),
            Ok((len, from)) => {
                client = Some(from);
                there.send(clock.now(), &buf[..len]);
            }
            Err(error) => assert!(is_nothing(error.kind()), "{error}"),
        }
        for (link, to) in [(&mut there, Some(server)), (&mut back, client)] {
            let Some(to) = to else { continue };
            while let Some(datagram) = link.arrive(clock.now()) {
                let _ = socket.send_to(datagram, to); // a failed send is one more loss
            }
        }
    }
}

/// Whether an error of a socket is no more than the end of a wait, or word of an end that is gone.
pub(crate) fn is_nothing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused)
}

/// How often to look whether it is over.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Zero would be no timeout at all.
const SHORTEST: Duration = Duration::from_micros(50);
