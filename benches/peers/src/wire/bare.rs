//! Bare KCP: messages, each in a segment of its own, and streams, which fill up their segments.

use super::{COUNT, DELAY, Load, MESSAGE, Wire};
use crate::ikcp::Ikcp;
use crate::pipe::{ByTime, CONV, Link, MTU, Peer, Port, Whitewater};
use crate::rust::Rust;
use whitewater::Time;
use whitewater::kcp::{self, Config, Conv, Kcp, RecvError};

pub(super) fn rows(row: &dyn Fn(&str, &dyn Fn(Load) -> Wire)) {
    row("ikcp.c, messages", &run::<Ikcp>);
    row("kcp, messages", &run::<Rust>);
    row("ww classic, messages", &run::<Whitewater>);
    row("ww, messages", &run::<ByTime<0>>);
    row("ww, stream", &run::<Stream>);
}

fn run<P: Peer>(load: Load) -> Wire {
    let ports = [1, 2].map(|seed| Link::port(DELAY, 0, seed, 1 << 14));
    let [there, back] = &ports;
    let (mut sender, mut receiver) = (P::new(WINDOW, there.clone()), P::new(WINDOW, back.clone()));
    let (mut now, mut sent, mut got, mut buf) = (0, 0, 0, vec![0; MTU]);
    while got < COUNT * MESSAGE as u64 || sender.wait_snd() > 0 {
        now += 1;
        ports.iter().for_each(|port| port.set_clock(now));
        there.deliver(now, |at, datagram| receiver.input(at, datagram));
        back.deliver(now, |at, datagram| sender.input(at, datagram));
        while let Some(len) = receiver.recv(&mut buf) {
            got += len as u64;
        }
        for _ in 0..load.quota().min(COUNT - sent) {
            if sender.wait_snd() >= 2 * usize::from(WINDOW) {
                break;
            }
            sender.send(&[0x5a; MESSAGE]);
            sent += 1;
        }
        sender.update(now);
        receiver.update(now);
    }
    let mut wire = Wire::default();
    for port in ports {
        wire.bytes += port.bytes();
        wire.datagrams += port.datagrams();
    }
    wire
}

/// Our control block, with loss detection by timing, as a stream of bytes.
struct Stream(Kcp<Port>);

impl Peer for Stream {
    const NAME: &'static str = "ww stream";

    fn new(window: u16, port: Port) -> Self {
        let config = Config {
            snd_wnd: window,
            rcv_wnd: window,
            snd_queue: 4 * u32::from(window),
            stream: true,
            ..Config::default()
        };
        Self(Kcp::new(Conv(CONV), &config, port).expect("the configuration is valid"))
    }

    fn send(&mut self, message: &[u8]) {
        match self.0.send(message) {
            Ok(_) | Err(kcp::SendError::Full { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn recv(&mut self, buf: &mut [u8]) -> Option<usize> {
        match self.0.recv_into(buf) {
            Ok(len) => Some(len),
            Err(RecvError::NoMessage) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn input(&mut self, now: u32, datagram: &[u8]) {
        self.0.input(Time::from_millis(now.into()), datagram).expect("the datagram is valid");
    }

    fn update(&mut self, now: u32) {
        self.0.update(Time::from_millis(now.into()));
    }

    fn wait_snd(&self) -> usize {
        self.0.wait_snd()
    }
}

const WINDOW: u16 = 1024;
