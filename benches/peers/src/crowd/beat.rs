//! Control blocks that are each updated every 10 ms, at different times, which is also what their `check`
//! says. A table of addresses and convs finds the owner of a datagram, as in a server with one socket.

use super::bare::address;
use super::{Side, anywhere};
use crate::pipe::{CONV, Link, MTU, Peer, Port, TICK};
use std::collections::HashMap;
use std::net::SocketAddr;

pub(super) struct Beat<P> {
    peers: Vec<P>,
    table: HashMap<(SocketAddr, u32), usize>,
    /// The control blocks that are updated in each ms of an interval.
    beats: [Vec<usize>; TICK as usize],
    port: Port,
    /// The control blocks that have received a datagram.
    heard: Vec<usize>,
    buf: Vec<u8>,
}

impl<P: Peer> Beat<P> {
    pub(super) fn new(count: usize, seed: u32) -> Self {
        let port = Link::port(0, 0, 0, 64);
        let peers = (0..count).map(|_| P::new(128, port.clone())).collect();
        let mut beats = [const { Vec::new() }; TICK as usize];
        (0..count).for_each(|index| beats[anywhere(index, 7 + u64::from(seed)) % beats.len()].push(index));
        let table = (0..count).map(|index| ((address(index), CONV), index)).collect();
        Self { peers, table, beats, port, heard: Vec::new(), buf: vec![0; MTU] }
    }
}

impl<P: Peer> Side for Beat<P> {
    fn input(&mut self, now: u32, index: usize, datagram: &[u8]) {
        let conv = datagram.first_chunk().map_or(0, |conv| u32::from_le_bytes(*conv));
        let index = self.table[&(address(index), conv)];
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

    fn recv(&mut self, _: u32, mut take: impl FnMut(&[u8])) {
        for index in self.heard.drain(..) {
            while let Some(len) = self.peers[index].recv(&mut self.buf) {
                take(&self.buf[..len]);
            }
        }
    }
}
