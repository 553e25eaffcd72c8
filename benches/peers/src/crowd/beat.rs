//! Control blocks that are updated each 10 ms, each at a moment of its own: what their `check` says as well.

use super::{Side, anywhere};
use crate::pipe::{Link, MTU, Peer, Port, TICK};

pub(super) struct Beat<P> {
    peers: Vec<P>,
    /// Those of each ms of a beat.
    beats: [Vec<usize>; TICK as usize],
    port: Port,
    /// Those that a datagram came for.
    heard: Vec<usize>,
    buf: Vec<u8>,
}

impl<P: Peer> Beat<P> {
    pub(super) fn new(count: usize, seed: u32) -> Self {
        let port = Link::port(0, 0, 0, 64);
        let peers = (0..count).map(|_| P::new(128, port.clone())).collect();
        let mut beats = [const { Vec::new() }; TICK as usize];
        (0..count).for_each(|index| beats[anywhere(index, 7 + u64::from(seed)) % beats.len()].push(index));
        Self { peers, beats, port, heard: Vec::new(), buf: vec![0; MTU] }
    }
}

impl<P: Peer> Side for Beat<P> {
    fn input(&mut self, now: u32, index: usize, datagram: &[u8]) {
        self.peers[index].input(now, datagram);
        self.heard.push(index);
    }

    fn send(&mut self, _: u32, index: usize, message: &[u8]) {
        self.peers[index].send(message);
    }

    fn update(&mut self, now: u32, mut out: impl FnMut(usize, &[u8])) {
        self.port.set_clock(now);
        for &index in &self.beats[(now % TICK) as usize] {
            self.peers[index].update(now);
            self.port.deliver(now, |_, datagram| out(index, datagram));
        }
    }

    fn recv(&mut self, mut take: impl FnMut(&[u8])) {
        for index in self.heard.drain(..) {
            while let Some(len) = self.peers[index].recv(&mut self.buf) {
                take(&self.buf[..len]);
            }
        }
    }
}
