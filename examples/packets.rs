//! Packets that are acknowledged and never resent: two ends that send 60 a second each, as the state of a game, and
//! print once a second what they measured. Over UDP on this machine, or over a simulated phone's link.
//!
//! ```text
//! cargo run --release --example packets             # 5 s over UDP
//! cargo run --release --example packets -- sim 60   # a simulated minute over a bad link
//! ```
//!
//! To reuse: `over_udp` is everything that an endpoint needs from its owner; `Player` is what a game does with it. A
//! lost packet is not resent, because the next one has newer state. Put what must arrive into each packet until one of
//! them is acknowledged; `Player::input` learns which are.

#![expect(clippy::indexing_slicing, reason = "`len` is what was written")]

use std::error::Error;
use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::Time;
use whitewater::machine::DatagramQueue;
use whitewater::packet::{Endpoint, PacketConfig};
use whitewater_sim::{Link, LinkConfig, Pair, Peer, pop_from};

type AnyError = Box<dyn Error>;

fn main() -> Result<(), AnyError> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let seconds = |index: usize| args.get(index).map_or(Ok(5), |seconds| seconds.parse());
    match args.first().map(String::as_str) {
        Some("sim") => over_a_simulated_path(seconds(1)?),
        _ => over_udp(seconds(0)?),
    }
}

/// Two sockets and a loop: receive, do what is due, send.
fn over_udp(seconds: u64) -> Result<(), AnyError> {
    let (alice, bob) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    alice.connect(bob.local_addr()?)?;
    bob.connect(alice.local_addr()?)?;
    let mut ends = [(Player::new("alice")?, alice), (Player::new("bob")?, bob)];
    for (_, socket) in &ends {
        socket.set_nonblocking(true)?;
    }
    let (start, mut buf) = (Instant::now(), [0; 1500]);
    while start.elapsed() < Duration::from_secs(seconds) {
        let now = Time::ZERO + start.elapsed();
        for (player, socket) in &mut ends {
            loop {
                match socket.recv(&mut buf) {
                    Ok(len) => player.input(now, &buf[..len]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
            }
            player.poll(now);
            while let Some(datagram) = player.endpoint.output_mut().pop() {
                drop(socket.send(datagram)); // a datagram that cannot be sent is lost
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The same players over a path that loses, delays and reorders, in virtual time.
fn over_a_simulated_path(seconds: u64) -> Result<(), AnyError> {
    let link = |stream| Link::new(LinkConfig::mobile(), 42, stream);
    let mut pair = Pair::new(Player::new("alice")?, Player::new("bob")?, [link(1)?, link(2)?]);
    pair.run_for(Duration::from_secs(seconds));
    Ok(())
}

/// One end of the game. It is a [`Peer`], so the simulator can drive it as well as a socket.
struct Player {
    name: &'static str,
    endpoint: Endpoint<DatagramQueue>,
    next_packet: Time,
    next_report: Time,
    /// Packets received from the peer, and packets of ours that it received, since the last report.
    received: u32,
    acked: u32,
}

impl Player {
    fn new(name: &'static str) -> Result<Self, AnyError> {
        // Both ends have the same id. Datagrams of other programs are refused.
        let config = PacketConfig { protocol_id: 0x6578_616d, ..PacketConfig::default() };
        let endpoint = Endpoint::new(&config, DatagramQueue::new())?;
        let (next_packet, next_report) = (Time::ZERO, Time::from_millis(1000));
        Ok(Self { name, endpoint, next_packet, next_report, received: 0, acked: 0 })
    }

    fn report(&mut self, now: Time) {
        let stats = self.endpoint.stats();
        println!(
            "{:>3} s {:>5}: rtt {:5.1} ms, jitter {:4.1} ms, loss {:4.1} %, {:.1} kB/s out, {:.1} kB/s in, {} received, {} acked, {:?}",
            now.as_millis() / 1000,
            self.name,
            stats.rtt.as_secs_f64() * 1e3,
            stats.jitter.as_secs_f64() * 1e3,
            stats.loss * 100.0,
            stats.sent_bandwidth / 1e3,
            stats.received_bandwidth / 1e3,
            self.received,
            self.acked,
            stats.pace.mode,
        );
        (self.received, self.acked) = (0, 0);
    }
}

impl Peer for Player {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        match self.endpoint.receive(now, datagram) {
            Ok(Some(_state)) => self.received += 1,
            Ok(None) => {} // a keepalive, or a part of a larger packet
            Err(error) => println!("{now} {:>5}: {error}", self.name), // also counted in the statistics
        }
        while let Some(_sequence) = self.endpoint.pop_acked() {
            self.acked += 1; // the peer knows what was in that packet
        }
    }

    fn poll(&mut self, now: Time) {
        if self.next_packet <= now {
            self.next_packet = self.next_packet + Duration::from_micros(16_667);
            let state = [0; 100];
            if let Err(error) = self.endpoint.send(now, &state) {
                println!("{error}");
            }
        }
        if self.next_report <= now {
            self.next_report = self.next_report + Duration::from_secs(1);
            self.report(now);
        }
        self.endpoint.update(now);
    }

    fn next_wake(&self, now: Time) -> Option<Time> {
        let own = self.next_packet.min(self.next_report);
        self.endpoint.check(now).map_or(Some(own), |at| Some(at.min(own)))
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        pop_from(self.endpoint.output_mut(), datagram)
    }
}
