//! What a datagram on loopback costs with std's calls, with plain system calls, and with the library's
//! batched I/O, both without and with everything the system offers. One thread sends some and then receives
//! them, so its CPU time is that of both ends.

use super::bare::{Gso, Mmsg, OneByOne};
use crate::runs::cpu_time;
use crate::table::Spread;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use whitewater_udp::{Mode, Port};

/// A way to move datagrams.
pub(super) trait Mover {
    const NAME: &'static str;

    fn new(from: &UdpSocket, to: &UdpSocket) -> Self;

    /// Sends the datagram to each address.
    fn send(&mut self, socket: &UdpSocket, to: &[SocketAddr], datagram: &[u8]);

    /// Makes one receiving call. Returns how many datagrams it returned.
    fn recv(&mut self, socket: &UdpSocket) -> usize;
}

/// Each load in each way `rounds` times. In each round the ways take turns.
pub(crate) fn table(rounds: usize) {
    println!(
        "CPU ns per datagram, median of {rounds} interleaved rounds [least..most]; datagrams per second of both ends in one thread"
    );
    let bulk = Load { size: 1200, addresses: 1, burst: 54, count: 200_000 };
    bulk.table(
        "1200 B to one address",
        rounds,
        &[
            (OneByOne::NAME, run::<OneByOne>),
            (Mmsg::NAME, run::<Mmsg>),
            (Gso::NAME, run::<Gso>),
            (Ours::<true>::NAME, run::<Ours<true>>),
            (Ours::<false>::NAME, run::<Ours<false>>),
        ],
    );
    for (size, burst) in [(1200, 50), (64, 100)] {
        let many = Load { size, addresses: 1000, burst, count: 200_000 };
        many.table(
            &format!("{size} B to each of 1000 addresses"),
            rounds,
            &[
                (OneByOne::NAME, run::<OneByOne>),
                (Mmsg::NAME, run::<Mmsg>),
                (Ours::<true>::NAME, run::<Ours<true>>),
                (Ours::<false>::NAME, run::<Ours<false>>),
            ],
        );
    }
}

/// What is sent.
#[derive(Clone, Copy)]
struct Load {
    size: usize,
    /// Number of destinations, used in turn.
    addresses: u16,
    /// Datagrams sent before they are received: fewer than fit in a receive buffer of the usual size.
    burst: usize,
    count: usize,
}

type RunFn = fn(Load) -> Cost;

/// ns per datagram.
struct Cost {
    send: f64,
    recv: f64,
    wall: f64,
}

impl Load {
    fn table(self, name: &str, rounds: usize, ways: &[(&str, RunFn)]) {
        println!("{name}");
        let mut costs: Vec<_> = ways.iter().map(|_| [const { Vec::new() }; 3]).collect();
        for _ in 0..rounds {
            for ((_, run), [send, recv, wall]) in ways.iter().zip(&mut costs) {
                let cost = run(self);
                send.push(cost.send);
                recv.push(cost.recv);
                wall.push(cost.wall);
            }
        }
        for ((name, _), costs) in ways.iter().zip(costs) {
            let [send, recv, wall] = costs.map(Spread::of);
            println!(
                "  {name:20} send {:6.0} [{send}]  receive {:6.0} [{recv}]  {:5.2} million a second",
                send.median,
                recv.median,
                1e3 / wall.median
            );
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn run<M: Mover>(load: Load) -> Cost {
    let [from, to] = [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED].map(|ip| UdpSocket::bind((ip, 0)).unwrap());
    from.set_nonblocking(true).unwrap();
    to.set_nonblocking(true).unwrap();
    let port = to.local_addr().unwrap().port();
    let address = |index: u16| {
        let [high, low] = (index + 1).to_be_bytes();
        SocketAddr::from(([127, 0, high, low], port))
    };
    let addresses: Vec<_> = (0..load.addresses).map(address).cycle().take(load.count).collect();
    let datagram = vec![7; load.size];
    let mut mover = M::new(&from, &to);
    let (mut sending, mut receiving) = (Duration::ZERO, Duration::ZERO);
    let mut start = Instant::now();
    for (index, burst) in addresses.chunks(load.burst).enumerate() {
        if index == 100 {
            (sending, receiving, start) = (Duration::ZERO, Duration::ZERO, Instant::now());
        }
        let begin = cpu_time();
        mover.send(&from, burst, &datagram);
        let sent = cpu_time();
        let mut left = burst.len();
        while left > 0 {
            let got = mover.recv(&to);
            assert!(got > 0, "lost {left} of {}", burst.len());
            left -= got;
        }
        sending += sent - begin;
        receiving += cpu_time() - sent;
    }
    let counted = load.count - 100 * load.burst;
    let each = |time: Duration| time.as_secs_f64() * 1e9 / counted as f64;
    Cost { send: each(sending), recv: each(receiving), wall: each(start.elapsed()) }
}

/// The library's I/O, with or without what the system offers.
struct Ours<const BATCHED: bool> {
    from: Port,
    to: Port,
}

impl<const BATCHED: bool> Mover for Ours<BATCHED> {
    const NAME: &'static str = if BATCHED { "ours, batched" } else { "ours, plain" };

    fn new(from: &UdpSocket, to: &UdpSocket) -> Self {
        let mode = if BATCHED { Mode::Whole } else { Mode::Plain };
        let [from, to] = [from, to].map(|socket| Port::new(socket.try_clone().unwrap(), mode, 32).unwrap());
        Self { from, to }
    }

    fn send(&mut self, _: &UdpSocket, to: &[SocketAddr], datagram: &[u8]) {
        for to in to {
            self.from.stage().extend_from_slice(datagram);
            self.from.commit(*to, 0);
            if self.from.is_due() {
                self.from.flush();
            }
        }
        self.from.flush();
    }

    fn recv(&mut self, _: &UdpSocket) -> usize {
        let mut count = 0;
        if self.to.read(usize::MAX).unwrap() {
            while let Some(datagram) = self.to.pop() {
                count += usize::from(datagram.bytes.first() == Some(&7));
            }
        }
        count
    }
}
