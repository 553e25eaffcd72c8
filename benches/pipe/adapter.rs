//! whitewater as a [`Peer`].

use super::{CONV, Peer, Port};
use whitewater::Repairs;
use whitewater::Time;
use whitewater::kcp::{Config, Conv, Kcp, Modern, Recovery, RecvError};
use whitewater::machine::Output;

pub(crate) struct Whitewater(pub(crate) Kcp<Port>);

/// The same with loss detection by timing, and at most `REPAIRS` % of repairs.
#[allow(dead_code, reason = "each binary that shares this module uses its part")]
pub(crate) struct ByTime<const REPAIRS: u8>(Whitewater);

#[allow(dead_code, reason = "each binary that shares this module uses its part")]
impl Whitewater {
    fn with(window: u16, recovery: Recovery, port: Port) -> Self {
        let config = Config {
            snd_wnd: window,
            rcv_wnd: window.max(Config::default().rcv_wnd),
            snd_queue: 4 * u32::from(window),
            snd_queue_bytes: 1 << 30,
            recovery,
            ..Config::default()
        };
        Self(Kcp::new(Conv(CONV), &config, port).expect("the configuration is valid"))
    }
}

impl<const REPAIRS: u8> Peer for ByTime<REPAIRS> {
    const NAME: &'static str = "ww by time";

    fn new(window: u16, port: Port) -> Self {
        let repairs = if REPAIRS > 0 { Repairs::Budget(REPAIRS) } else { Repairs::Off };
        let modern = Modern { repairs, ..Modern::default() };
        Self(Whitewater::with(window, Recovery::Modern(modern), port))
    }

    fn send(&mut self, message: &[u8]) {
        self.0.send(message);
    }

    fn recv(&mut self, buf: &mut [u8]) -> Option<usize> {
        self.0.recv(buf)
    }

    fn input(&mut self, now: u32, datagram: &[u8]) {
        self.0.input(now, datagram);
    }

    fn update(&mut self, now: u32) {
        self.0.update(now);
    }

    fn wait_snd(&self) -> usize {
        self.0.wait_snd()
    }
}

impl Output for Port {
    fn output(&mut self, datagram: &[u8]) {
        self.carry(datagram);
    }
}

impl Peer for Whitewater {
    const NAME: &'static str = "ww";

    fn new(window: u16, port: Port) -> Self {
        Self::with(window, Recovery::Classic, port)
    }

    fn send(&mut self, message: &[u8]) {
        self.0.send(message).expect("the send queue has room");
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
