//! A server's sockets.

use super::stream::Stream;
use super::{KNOCK, would_block};
use crate::lab::ServerEnd;
use crate::wire::Hello;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use whitewater::Time;

/// The server's connection to its clients.
pub(super) trait Door {
    fn receive(&mut self, now: Time, end: &mut dyn ServerEnd) -> io::Result<()>;
    fn send(&mut self, guest: usize, bytes: &[u8]) -> io::Result<()>;
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One socket. Clients are numbered in the order in which they arrive, or by the number that they send.
pub(super) struct Datagrams {
    socket: UdpSocket,
    guests: BTreeMap<SocketAddr, usize>,
}

impl Datagrams {
    pub(super) fn bind(at: SocketAddr) -> io::Result<Self> {
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

/// A listener, and a stream for each client.
pub(super) struct Streams {
    listener: TcpListener,
    guests: BTreeMap<usize, Stream>,
}

impl Streams {
    pub(super) fn bind(at: SocketAddr) -> io::Result<Self> {
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
