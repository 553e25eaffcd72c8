//! What a relay costs beside coturn, Debian's TURN server: CPU time for a datagram, and how much later it arrives. Both run as processes on this machine
//! and pass on the same datagrams, from guests to hosts and back, taking turns.
//!
//! `cargo build --release -p whitewater-relay && cargo run --release -p whitewater-relay --example load -- 5`, for 5 s each time

mod relayed;
mod turn;

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

pub(crate) type Failure = Box<dyn Error>;

/// A process that relays, and its pairs.
pub(crate) trait Relaying {
    /// The same, without a relay.
    fn pid(&self) -> Option<u32>;
    fn pairs(&self) -> usize;
    /// Sends from a guest to its host.
    fn up(&mut self, pair: usize, payload: &[u8]) -> Result<(), Failure>;
    /// Sends back what has arrived at a host. Returns how many datagrams that were.
    fn answer(&mut self, pair: usize) -> Result<usize, Failure>;
    /// Takes what has arrived at a guest: the payload of a datagram.
    fn down(&mut self, pair: usize, payload: &mut Vec<u8>) -> Result<bool, Failure>;
}

fn main() -> Result<(), Failure> {
    let run = Duration::from_secs(env::args().nth(1).map_or(Ok(5), |seconds| seconds.parse())?);
    let mut ends: Vec<(&str, Box<dyn Relaying>)> = vec![
        ("no relay", Box::new(Direct::new()?)),
        ("whitewater-relay", Box::new(relayed::Relayed::start()?)),
    ];
    match turn::Turn::start() {
        Ok(turn) => ends.push(("coturn", Box::new(turn))),
        Err(error) => println!("without coturn: {error}"),
    }
    let mut measured: Vec<Vec<Measured>> = ends.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, end), measured) in ends.iter_mut().zip(&mut measured) {
            measured.push(measure(&mut **end, run)?);
        }
    }
    println!(
        "| | µs of CPU for a datagram | datagrams a second a core | round trip p50, µs | p99, µs | lost |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for ((name, _), measured) in ends.iter().zip(&mut measured) {
        measured.sort_by(|one, other| one.cpu.total_cmp(&other.cpu));
        let Some(Measured { cpu, p50, p99, lost }) = measured.get(ROUNDS / 2) else { continue };
        let rate = if *cpu > 0.0 { format!("{:.0}", 1e6 / cpu) } else { "-".into() };
        println!("| {name} | {cpu:.2} | {rate} | {p50} | {p99} | {lost} |");
    }
    Ok(())
}

struct Measured {
    /// µs of the relay's CPU time for each datagram that it passed on, either way.
    cpu: f64,
    p50: u128,
    p99: u128,
    lost: usize,
}

/// Each guest sends a datagram every 10 ms, at a time of its own, and the host sends it back.
fn measure(end: &mut dyn Relaying, run: Duration) -> Result<Measured, Failure> {
    let (start, before) = (Instant::now(), cpu(end)?);
    let (mut sent, mut passed, mut trips) = (0, 0, Vec::new());
    let mut payload = vec![DATA; PAYLOAD];
    let mut received = Vec::new();
    let mut due = Duration::ZERO;
    while start.elapsed() < run + Duration::from_millis(100) {
        while start.elapsed() >= due && due < run {
            let stamp = start.elapsed().as_nanos().to_le_bytes();
            payload.iter_mut().skip(1).zip(stamp).for_each(|(to, from)| *to = from);
            end.up(sent % end.pairs(), &payload)?;
            sent += 1;
            due += EACH / u32::try_from(end.pairs())?;
        }
        for pair in 0..end.pairs() {
            passed += end.answer(pair)?;
            while end.down(pair, &mut received)? {
                passed += 1;
                let stamp = received.get(1..).and_then(<[u8]>::first_chunk);
                let stamp = stamp.map_or(0, |stamp| u128::from_le_bytes(*stamp));
                trips.push(start.elapsed().as_nanos().saturating_sub(stamp) / 1000);
            }
        }
        thread::sleep(Duration::from_micros(50));
    }
    let spent = cpu(end)? - before;
    trips.sort_unstable();
    let at = |part: usize| trips.get(trips.len() * part / 100).copied().unwrap_or_default();
    let cpu = spent.as_secs_f64() * 1e6 / f64::from(u32::try_from(passed)?);
    Ok(Measured { cpu, p50: at(50), p99: at(99), lost: sent - trips.len() })
}

/// CPU time of the relay so far: ticks of 10 ms.
fn cpu(end: &dyn Relaying) -> Result<Duration, Failure> {
    let Some(pid) = end.pid() else { return Ok(Duration::ZERO) };
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks = fields.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(10 * ticks))
}

/// Guests and hosts that reach each other.
struct Direct {
    guests: Vec<UdpSocket>,
    hosts: Vec<UdpSocket>,
    buf: Vec<u8>,
}

impl Direct {
    fn new() -> Result<Self, Failure> {
        let (guests, hosts) = (sockets()?, sockets()?);
        for (guest, host) in guests.iter().zip(&hosts) {
            guest.connect(host.local_addr()?)?;
            host.connect(guest.local_addr()?)?;
        }
        Ok(Self { guests, hosts, buf: vec![0; 2000] })
    }
}

impl Relaying for Direct {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn pairs(&self) -> usize {
        self.guests.len()
    }

    fn up(&mut self, pair: usize, payload: &[u8]) -> Result<(), Failure> {
        self.guests.get(pair).ok_or("no such pair")?.send(payload)?;
        Ok(())
    }

    fn answer(&mut self, pair: usize) -> Result<usize, Failure> {
        let (host, mut count) = (self.hosts.get(pair).ok_or("no such pair")?, 0);
        while let Some((len, _)) = next(host, &mut self.buf)? {
            host.send(self.buf.get(..len).unwrap_or_default())?;
            count += 1;
        }
        Ok(count)
    }

    fn down(&mut self, pair: usize, payload: &mut Vec<u8>) -> Result<bool, Failure> {
        let guest = self.guests.get(pair).ok_or("no such pair")?;
        let Some((len, _)) = next(guest, &mut self.buf)? else { return Ok(false) };
        payload.clear();
        payload.extend_from_slice(self.buf.get(..len).unwrap_or_default());
        Ok(true)
    }
}

pub(crate) fn sockets() -> Result<Vec<UdpSocket>, Failure> {
    (0..PAIRS).map(|_| socket()).collect()
}

pub(crate) fn socket() -> Result<UdpSocket, Failure> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

pub(crate) fn next(socket: &UdpSocket, buf: &mut [u8]) -> Result<Option<(usize, SocketAddr)>, Failure> {
    match socket.recv_from(buf) {
        Ok(received) => Ok(Some(received)),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Waits for an answer to what is sent again and again.
pub(crate) fn asked(socket: &UdpSocket, to: SocketAddr, question: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut buf = [0; 2000];
    for _ in 0..100 {
        socket.send_to(question, to)?;
        for _ in 0..50 {
            if let Some((len, _)) = next(socket, &mut buf)? {
                return Ok(buf.get(..len).unwrap_or_default().to_vec());
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
    Err("nobody answers".into())
}

pub(crate) fn free_address() -> Result<SocketAddr, Failure> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?)
}

/// A process that ends with its owner.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PAIRS: usize = 100;
const PAYLOAD: usize = 200;
/// The first byte of what a session sends.
const DATA: u8 = 0xa6;
const EACH: Duration = Duration::from_millis(10);
const ROUNDS: usize = 3;
