//! A bot with its own socket.

use super::stream::Stream;
use super::{KNOCK, now, would_block};
use crate::bots::Bot;
use crate::lab::{ClientEnd, FRAME, Transport};
use crate::wire::{Hello, Wish};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use whitewater::Time;

/// A bot and its socket.
pub(super) struct Player {
    pub(super) end: Box<dyn ClientEnd>,
    bot: Bot,
    socket: Socket,
    next_frame: Time,
    /// Bytes sent and received.
    pub(super) up: u32,
    pub(super) down: u32,
    bytes: Vec<u8>,
}

enum Socket {
    Udp(UdpSocket),
    Tcp(Stream),
}

impl Player {
    pub(super) fn connect(
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

    pub(super) fn go_on(&mut self, now: Time) -> io::Result<()> {
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

fn open(at: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = if at.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(at)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Repeats who joins until the server has heard it: KCP has no handshake.
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
