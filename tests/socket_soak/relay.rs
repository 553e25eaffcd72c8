//! A lossy path: passes datagrams between a server and its clients, and damages some of the traffic.

use rand::Rng;
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use whitewater_sim::SimRng;

/// Runs until it is stopped.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Faults>,
}

/// The faults that it caused.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) passed: u64,
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) swapped: u64,
}

impl Relay {
    pub(crate) fn start(server: SocketAddr) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        front.set_nonblocking(true).unwrap();
        let (address, stop) = (front.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut path = Path {
                front,
                server,
                ways: HashMap::new(),
                rng: SimRng::new(1, 1),
                faults: Faults::default(),
            };
            while !stopped.load(Ordering::Relaxed) {
                path.carry();
                thread::sleep(LATER);
            }
            path.faults
        });
        Self { address, stop, thread }
    }

    pub(crate) fn stop(self) -> Faults {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

struct Path {
    front: UdpSocket,
    server: SocketAddr,
    ways: HashMap<SocketAddr, Way>,
    rng: SimRng,
    faults: Faults,
}

/// The socket by which the server knows a client.
struct Way {
    socket: UdpSocket,
    /// A datagram to the server and one to the client that the next one will overtake.
    held: [Option<Vec<u8>>; 2],
    used: Instant,
}

impl Path {
    /// Passes on what has arrived.
    fn carry(&mut self) {
        let mut buf = [0; 2000];
        let now = Instant::now();
        let Self { front, server, ways, rng, faults } = self;
        // An error is an ICMP message about an end that is gone.
        while let Ok((len, from)) = front.recv_from(&mut buf) {
            let way = ways.entry(from).or_insert_with(|| Way::new(*server, now));
            way.used = now;
            let Way { socket, held: [held, _], .. } = way;
            pass(&buf[..len], held, rng, faults, |datagram| drop(socket.send(datagram)));
        }
        for (client, Way { socket, held: [_, held], .. }) in &mut *ways {
            while let Ok(len) = socket.recv(&mut buf) {
                pass(&buf[..len], held, rng, faults, |datagram| drop(front.send_to(datagram, client)));
            }
        }
        ways.retain(|_, way| now.duration_since(way.used) < FORGOTTEN);
    }
}

impl Way {
    fn new(server: SocketAddr, now: Instant) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, held: [None, None], used: now }
    }
}

/// One in 20 is lost, one in 100 is duplicated, one in 50 comes after the next.
fn pass(
    datagram: &[u8],
    held: &mut Option<Vec<u8>>,
    rng: &mut SimRng,
    faults: &mut Faults,
    mut send: impl FnMut(&[u8]),
) {
    match rng.next_u64() % 100 {
        0..5 => {
            faults.lost += 1;
            return;
        }
        5 => {
            faults.doubled += 1;
            send(datagram);
        }
        6..8 if held.is_none() => {
            faults.swapped += 1;
            *held = Some(datagram.to_vec());
            return;
        }
        _ => {}
    }
    faults.passed += 1;
    send(datagram);
    if let Some(held) = held.take() {
        send(&held);
    }
}

/// The longest that any datagram is delayed.
const LATER: Duration = Duration::from_millis(3);
/// A client that has been silent for this long does not come back.
const FORGOTTEN: Duration = Duration::from_secs(12);
