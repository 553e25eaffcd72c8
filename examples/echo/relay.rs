//! A lossy network in a box: a UDP port that forwards datagrams, late or not at all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The network between the two ends, the same in each direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Share of the datagrams that get lost, 0 to 1.
    pub(crate) loss: f64,
    pub(crate) delay: Duration,
    /// Most that is added to the delay, uniformly distributed.
    pub(crate) jitter: Duration,
    pub(crate) seed: u64,
}

/// A datagram on its way. Of two that are due at once, the one that arrived first is sent first.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct OnTheWay {
    due: Instant,
    number: u64,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// Forwards datagrams between `to` and the last sender to `socket`. The threads run until the process ends.
pub(crate) fn start(socket: UdpSocket, to: SocketAddr, link: Link) -> io::Result<()> {
    let (sender, receiver) = channel();
    let out = socket.try_clone()?;
    thread::spawn(move || receive(&socket, to, link, &sender));
    thread::spawn(move || deliver(&out, &receiver));
    Ok(())
}

fn receive(socket: &UdpSocket, server: SocketAddr, link: Link, way: &Sender<OnTheWay>) {
    let mut client = None;
    let mut chance = [Chance(link.seed), Chance(link.seed ^ u64::MAX)];
    let mut buf = vec![0; 1 << 16];
    for number in 0.. {
        // An error is an ICMP message about an end that is gone; it counts as loss.
        let Ok((len, from)) = socket.recv_from(&mut buf) else { continue };
        let [up, down] = &mut chance;
        let (to, chance) = if from == server { (client, down) } else { (Some(server), up) };
        if from != server {
            client = Some(from);
        }
        let (lost, late) = (chance.next() < link.loss, link.jitter.mul_f64(chance.next()));
        let Some(to) = to.filter(|_| !lost) else { continue };
        let bytes = buf.get(..len).unwrap_or_default().to_vec();
        if way.send(OnTheWay { due: Instant::now() + link.delay + late, number, to, bytes }).is_err() {
            return;
        }
    }
}

fn deliver(socket: &UdpSocket, way: &Receiver<OnTheWay>) {
    let mut waiting = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while let Some(Reverse(OnTheWay { due, .. })) = waiting.peek()
            && *due <= now
            && let Some(Reverse(OnTheWay { to, bytes, .. })) = waiting.pop()
        {
            let _ = socket.send_to(&bytes, to); // a failed send is just another loss
        }
        let wait = waiting.peek().map_or(Duration::MAX, |Reverse(next)| next.due - now);
        match way.recv_timeout(wait) {
            Ok(datagram) => waiting.push(Reverse(datagram)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Numbers from 0 to 1 that only depend on the seed. Source: splitmix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }
}
