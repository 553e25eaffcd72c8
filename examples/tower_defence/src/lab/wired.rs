//! The same game over real sockets between two machines or network namespaces, to compare what carries it. All three go the same way: a server
//! on one side, so many bots, each with a socket of its own, on the other.

use super::{ClientEnd, FRAME, ServerEnd, TICK, Transport};
use crate::bots::Bot;
use crate::headless::{Samples, Traffic, sample};
use crate::server::Server;
use crate::wire::{Hello, Wish};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use whitewater::Time;

/// Serves for so long.
///
/// # Errors
///
/// A socket fails.
pub fn serve(at: SocketAddr, transport: Transport, seconds: u32, seed: u64) -> io::Result<()> {
    let mut end = transport.server(seed, Server::new(seed));
    let mut door: Box<dyn Door> = match transport {
        Transport::Tcp => Box::new(Streams::bind(at)?),
        _ => Box::new(Datagrams::bind(at)?),
    };
    let (start, mut next_tick, mut bytes) = (Instant::now(), Time::ZERO, Vec::new());
    while start.elapsed() < Duration::from_secs(seconds.into()) {
        let now = now(start);
        door.receive(now, end.as_mut())?;
        if end.wake(now).is_some_and(|at| at <= now) {
            end.poll(now);
        }
        if now >= next_tick {
            end.tick(now);
            next_tick = next_tick + TICK;
        }
        while let Some(guest) = end.pop(now, &mut bytes) {
            door.send(guest, &bytes)?;
        }
        door.flush()?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Plays with so many bots for so long, and measures.
///
/// # Errors
///
/// A socket fails, or nobody answers.
pub fn play(at: SocketAddr, transport: Transport, bots: u8, seconds: u32, seed: u64) -> io::Result<Samples> {
    let start = Instant::now();
    let player = |number: u8| Player::connect(at, transport, number, start, seed);
    let mut players = (0..bots).map(player).collect::<io::Result<Vec<_>>>()?;
    let title = format!("{bots} bots, {seconds} s, {transport:?}");
    let mut samples = Samples { title, ..Samples::default() };
    let (mut second, mut before) = (1, (0, 0));
    while start.elapsed() < Duration::from_secs(seconds.into()) {
        let now = now(start);
        for player in &mut players {
            player.go_on(now)?;
            sample(player.end.game_mut(), start.elapsed(), &mut samples);
        }
        if start.elapsed() >= Duration::from_secs(second) {
            let total =
                players.iter().fold((0, 0), |(up, down), player| (up + player.up, down + player.down));
            let each = |now: u32, before: u32| f64::from(now.wrapping_sub(before)) / f64::from(bots.max(1));
            let at = Duration::from_secs(second);
            samples.traffic.push(Traffic { at, up: each(total.0, before.0), down: each(total.1, before.1) });
            (before, second) = (total, second + 1);
        }
        thread::sleep(PAUSE);
    }
    Ok(samples)
}

/// A bot and its socket.
struct Player {
    end: Box<dyn ClientEnd>,
    bot: Bot,
    socket: Socket,
    next_frame: Time,
    /// Bytes sent and received.
    up: u32,
    down: u32,
    bytes: Vec<u8>,
}

enum Socket {
    Udp(UdpSocket),
    Tcp(Stream),
}

impl Player {
    fn connect(
        at: SocketAddr,
        transport: Transport,
        number: u8,
        start: Instant,
        seed: u64,
    ) -> io::Result<Self> {
        let hello = Hello { name: format!("bot {number}"), wish: Wish::Any, ticket: number.into() };
        let mut end = transport.client(now(start), seed, number.into(), &hello);
        let said = hello.encode().map_err(io::Error::other)?;
        let socket = match transport {
            Transport::Sessions => Socket::Udp(open(at)?),
            Transport::Kcp => Socket::Udp(knock(at, number, &said)?),
            Transport::Tcp => {
                let began = Instant::now();
                let mut stream = TcpStream::connect(at)?;
                end.set_rtt(began.elapsed());
                let len = u8::try_from(said.len()).map_err(io::Error::other)?;
                stream.write_all(&[&[number, len], &said[..]].concat())?;
                Socket::Tcp(Stream::new(stream)?)
            }
        };
        let bot = Bot::new(seed ^ u64::from(number));
        Ok(Self { end, bot, socket, next_frame: Time::ZERO, up: 0, down: 0, bytes: Vec::new() })
    }

    fn go_on(&mut self, now: Time) -> io::Result<()> {
        let mut buf = [0; 2048];
        loop {
            let received = match &mut self.socket {
                Socket::Udp(socket) => would_block(socket.recv(&mut buf))?,
                Socket::Tcp(stream) => would_block(stream.socket.read(&mut buf))?,
            };
            let Some(len @ 1..) = received else { break };
            self.down = self.down.wrapping_add(u32::try_from(len).unwrap_or(0));
            let bytes = buf.get(..len).unwrap_or_default();
            if !bytes.starts_with(&KNOCK) {
                self.end.input(now, bytes);
            }
        }
        if self.end.wake(now).is_some_and(|at| at <= now) {
            self.end.poll(now);
        }
        if now >= self.next_frame {
            self.next_frame = now + FRAME;
            self.bot.play(self.end.game_mut());
            self.end.advance(now);
        }
        while self.end.pop(now, &mut self.bytes) {
            self.up = self.up.wrapping_add(u32::try_from(self.bytes.len()).unwrap_or(0));
            match &mut self.socket {
                Socket::Udp(socket) => drop(would_block(socket.send(&self.bytes))?),
                Socket::Tcp(stream) => stream.send(&self.bytes),
            }
        }
        if let Socket::Tcp(stream) = &mut self.socket {
            stream.flush()?;
        }
        Ok(())
    }
}

/// A server's way to its clients.
trait Door {
    fn receive(&mut self, now: Time, end: &mut dyn ServerEnd) -> io::Result<()>;
    fn send(&mut self, guest: usize, bytes: &[u8]) -> io::Result<()>;
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One socket; clients are numbered as they come, or as they say.
struct Datagrams {
    socket: UdpSocket,
    guests: BTreeMap<SocketAddr, usize>,
}

impl Datagrams {
    fn bind(at: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(at)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, guests: BTreeMap::new() })
    }
}

impl Door for Datagrams {
    fn receive(&mut self, now: Time, end: &mut dyn ServerEnd) -> io::Result<()> {
        let mut buf = [0; 2048];
        while let Some((len, from)) = would_block(self.socket.recv_from(&mut buf))? {
            let datagram = buf.get(..len).unwrap_or_default();
            if let Some([number, hello @ ..]) = datagram.strip_prefix(&KNOCK) {
                if !self.guests.contains_key(&from)
                    && let Ok(hello) = Hello::decode(hello)
                {
                    self.guests.insert(from, usize::from(*number));
                    end.expect(usize::from(*number), &hello);
                }
                would_block(self.socket.send_to(&KNOCK, from))?;
                continue;
            }
            let next = self.guests.len();
            let guest = *self.guests.entry(from).or_insert(next);
            end.input(now, guest, datagram);
        }
        Ok(())
    }

    fn send(&mut self, guest: usize, bytes: &[u8]) -> io::Result<()> {
        if let Some((to, _)) = self.guests.iter().find(|(_, known)| **known == guest) {
            would_block(self.socket.send_to(bytes, *to))?;
        }
        Ok(())
    }
}

/// A listener, and a stream each.
struct Streams {
    listener: TcpListener,
    guests: BTreeMap<usize, Stream>,
}

impl Streams {
    fn bind(at: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, guests: BTreeMap::new() })
    }
}

impl Door for Streams {
    fn receive(&mut self, now: Time, end: &mut dyn ServerEnd) -> io::Result<()> {
        while let Some((mut socket, _)) = would_block(self.listener.accept())? {
            socket.set_nonblocking(false)?;
            let (mut head, mut hello) = ([0; 2], Vec::new());
            socket.read_exact(&mut head)?;
            (&mut socket).take(head[1].into()).read_to_end(&mut hello)?;
            let guest = usize::from(head[0]);
            if let Ok(hello) = Hello::decode(&hello) {
                end.expect(guest, &hello);
                self.guests.insert(guest, Stream::new(socket)?);
            }
        }
        let mut buf = [0; 2048];
        for (guest, stream) in &mut self.guests {
            while let Some(len @ 1..) = would_block(stream.socket.read(&mut buf))? {
                end.input(now, *guest, buf.get(..len).unwrap_or_default());
            }
        }
        Ok(())
    }

    fn send(&mut self, guest: usize, bytes: &[u8]) -> io::Result<()> {
        if let Some(stream) = self.guests.get_mut(&guest) {
            stream.send(bytes);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.guests.values_mut().try_for_each(Stream::flush)
    }
}

/// A TCP stream without delay, and what it has not taken yet.
struct Stream {
    socket: TcpStream,
    waiting: Vec<u8>,
}

impl Stream {
    fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, waiting: Vec::new() })
    }

    fn send(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty()
            && let Some(len) = would_block(self.socket.write(&self.waiting))?
        {
            self.waiting.drain(..len);
        }
        Ok(())
    }
}

fn open(at: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = if at.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(at)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Says who comes until the server has heard it: KCP has no handshake.
fn knock(at: SocketAddr, number: u8, hello: &[u8]) -> io::Result<UdpSocket> {
    let socket = open(at)?;
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    let (knock, mut buf) = ([&KNOCK[..], &[number], hello].concat(), [0; 2048]);
    for _ in 0..50 {
        socket.send(&knock)?;
        if would_block(socket.recv(&mut buf))?.is_some() {
            socket.set_nonblocking(true)?;
            return Ok(socket);
        }
    }
    Err(ErrorKind::TimedOut.into())
}

/// `None`: there is nothing yet, or nobody there.
fn would_block<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused => Ok(None),
            // The other side has gone home: it is over soon.
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(None),
            _ => Err(error),
        },
    }
}

fn now(start: Instant) -> Time {
    Time::from_millis(1000) + start.elapsed()
}

/// A datagram that begins so is of the comparison, and of no transport.
const KNOCK: [u8; 4] = [0xff; 4];
/// Between two looks at the sockets.
const PAUSE: Duration = Duration::from_micros(500);
