//! The server, in a process of its own.

use super::cost::{Cpu, memory};
use super::{PROTOCOL, SECRET, SNAPSHOT, TICKS};
use std::io::{self, BufRead};
use std::net::SocketAddr;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};
use whitewater::{Event, Server, ServerConfig, SessionConfig, SessionId};
use whitewater_web::{WebConfig, listen};

/// Serves until standard input ends. A line on it is a number of ticks to send snapshots in.
pub(crate) fn serve(most: u16) -> io::Result<()> {
    // All clients have one address here and come at once. The default limits are for strangers.
    let config = ServerConfig {
        max_sessions: most,
        sessions_per_address: most,
        half_open: most,
        half_open_per_address: most,
        accepts_per_second: u32::from(most) * 4,
        accept_burst: u32::from(most) * 4,
        checked_in_tls: true,
        ..ServerConfig::secret(SessionConfig::new(PROTOCOL, []), SECRET)
    };
    let mut server = Server::bind("127.0.0.1:0", &config)?;
    let mut web = WebConfig::self_signed(["127.0.0.1"]);
    web.addr = ([127, 0, 0, 1], 0).into();
    (web.connections_per_address, web.handshakes_per_address) = (most.into(), most.into());
    web.handshakes = usize::from(most) * 2; // nobody has to prove an address
    let (web, browsers) = listen(&web)?;
    server.attach(browsers)?;
    let hash = web.certificate_hash();
    let place = Place { udp: server.local_addr()?, web: web.local_addr(), url: web.url("127.0.0.1"), hash };
    println!("{}", place.line());
    let (give, orders) = channel();
    std::thread::spawn(move || {
        io::stdin().lock().lines().map_while(Result::ok).all(|line| give.send(line).is_ok())
    });
    let before = memory()?;
    let mut game = Game { server, sessions: Vec::new(), inputs: 0 };
    loop {
        game.play_until(Instant::now() + TICK)?;
        match orders.try_recv() {
            Ok(ticks) => {
                let cpu = Cpu::now()?;
                let snapshots = game.send_snapshots(ticks.parse().map_err(io::Error::other)?)?;
                let now = Cpu::now()?;
                let measured = Measured {
                    snapshots,
                    game_ns: now.game_ns - cpu.game_ns,
                    transport_ns: now.transport_ns - cpu.transport_ns,
                    bytes: memory()?.saturating_sub(before),
                };
                println!("{}", measured.line());
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
    }
}

struct Game {
    server: Server,
    sessions: Vec<SessionId>,
    inputs: u64,
}

impl Game {
    /// Takes inputs.
    fn play_until(&mut self, end: Instant) -> io::Result<()> {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            self.server.poll(Some(left))?;
            while let Some((id, event)) = self.server.poll_event() {
                match event {
                    Event::Connected => self.sessions.push(id),
                    Event::Closed { .. } => self.sessions.retain(|session| *session != id),
                    Event::Readable => {
                        while self.server.recv_datagram(id).is_some() {
                            self.inputs += 1;
                        }
                    }
                    _ => {}
                }
            }
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    /// Sends everybody a snapshot in each tick. Returns how many.
    fn send_snapshots(&mut self, ticks: u32) -> io::Result<u64> {
        let (begun, mut sent) = (Instant::now(), 0);
        for tick in 0..ticks {
            for id in &self.sessions {
                let is_taken = self.server.send_datagram(*id, &[1; SNAPSHOT]).is_ok();
                sent += u64::from(is_taken);
            }
            self.server.flush();
            self.play_until(begun + TICK * (tick + 1))?;
        }
        Ok(sent)
    }
}

/// Where clients connect.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) udp: SocketAddr,
    pub(crate) web: SocketAddr,
    pub(crate) url: String,
    pub(crate) hash: [u8; 32],
}

impl Place {
    fn line(&self) -> String {
        let hash: String = self.hash.iter().map(|byte| format!(" {byte}")).collect();
        format!("{} {} {}{hash}", self.udp, self.web, self.url)
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (udp, web) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let url = words.next()?.to_owned();
        let hash: Vec<u8> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { udp, web, url, hash: hash.try_into().ok()? })
    }
}

/// What the server has measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// That were sent.
    pub(crate) snapshots: u64,
    /// CPU time, of the thread that carries browsers and of the others.
    pub(crate) game_ns: u64,
    pub(crate) transport_ns: u64,
    /// Memory that clients take.
    pub(crate) bytes: u64,
}

impl Measured {
    fn line(&self) -> String {
        format!("{} {} {} {}", self.snapshots, self.game_ns, self.transport_ns, self.bytes)
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [snapshots, game_ns, transport_ns, bytes] = numbers.try_into().ok()?;
        Some(Self { snapshots, game_ns, transport_ns, bytes })
    }
}

const TICK: Duration = Duration::from_nanos(1_000_000_000 / TICKS as u64);
