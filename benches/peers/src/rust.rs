//! The crate kcp as a [`Peer`].

use crate::pipe::{CONV, Peer, Port};
use kcp::{Error, Kcp};
use std::io::{self, Write};

pub(crate) struct Rust(Kcp<Port>);

impl Peer for Rust {
    const NAME: &'static str = "kcp";

    fn new(window: u16, port: Port) -> Self {
        let mut kcp = Kcp::new(CONV, port);
        kcp.set_wndsize(window, window);
        kcp.set_nodelay(true, 10, 2, true);
        Self(kcp)
    }

    fn send(&mut self, message: &[u8]) {
        self.0.send(message).expect("the send queue has no limit");
    }

    fn recv(&mut self, buf: &mut [u8]) -> Option<usize> {
        match self.0.recv(buf) {
            Ok(len) => Some(len),
            Err(Error::RecvQueueEmpty) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn input(&mut self, _now: u32, datagram: &[u8]) {
        self.0.input(datagram).expect("the datagram is valid");
    }

    fn update(&mut self, now: u32) {
        self.0.update(now).expect("the port takes everything");
    }

    fn wait_snd(&self) -> usize {
        self.0.wait_snd()
    }
}

impl Write for Port {
    fn write(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.carry(datagram);
        Ok(datagram.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
