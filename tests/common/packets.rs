//! A packet endpoint as one end of a simulated path. It sends at a steady rate and records what arrives.

use std::collections::BTreeMap;
use std::time::Duration;
use whitewater::Time;
use whitewater::machine::DatagramQueue;
use whitewater::packet::{Endpoint, PacketConfig, Seq16};
use whitewater_sim::{Link, LinkConfig, Pair, Peer, pop_from};

/// One end. Its packets are numbered from 0 with numbers that do not wrap.
#[derive(Debug)]
pub(crate) struct PacketEnd {
    pub(crate) endpoint: Endpoint<DatagramQueue>,
    /// Time between two packets; `None`: it only sends keepalives.
    pub(crate) every: Option<Duration>,
    next: Time,
    /// Length of the packet with a number.
    len: fn(u32) -> usize,
    /// The latest packet with a given wire number.
    numbers: BTreeMap<u16, u32>,
    pub(crate) sent: u32,
    pub(crate) received: Vec<u32>,
    pub(crate) acked: Vec<u32>,
    pub(crate) lost: Vec<u32>,
}

impl PacketEnd {
    pub(crate) fn new(config: &PacketConfig, every: Option<Duration>, len: fn(u32) -> usize) -> Self {
        let endpoint = Endpoint::starting_at(config, DatagramQueue::new(), Seq16(u16::MAX - 500)).unwrap();
        let (numbers, received, acked, lost) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        Self { endpoint, every, next: Time::ZERO, len, numbers, sent: 0, received, acked, lost }
    }

    fn send(&mut self, now: Time) {
        let payload = payload(self.sent, (self.len)(self.sent));
        let sequence = self.endpoint.send(now, &payload).unwrap();
        self.numbers.insert(sequence.0, self.sent);
        self.sent += 1;
    }
}

impl Peer for PacketEnd {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        if let Ok(Some(found)) = self.endpoint.receive(now, datagram) {
            let number = u32::from_le_bytes(*found.first_chunk().unwrap());
            assert_eq!(found, payload(number, found.len()), "packet {number} at {now}");
            self.received.push(number);
        }
        while let Some(sequence) = self.endpoint.pop_acked() {
            self.acked.extend(self.numbers.remove(&sequence.0)); // keepalives have none
        }
        while let Some(sequence) = self.endpoint.pop_lost() {
            self.lost.extend(self.numbers.get(&sequence.0));
        }
    }

    fn poll(&mut self, now: Time) {
        if let Some(every) = self.every
            && self.next <= now
        {
            self.send(now);
            self.next = now + every;
        }
        self.endpoint.update(now);
    }

    fn next_wake(&self, now: Time) -> Option<Time> {
        let next = self.every.map(|_| self.next);
        next.into_iter().chain(self.endpoint.check(now)).min()
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        pop_from(self.endpoint.output_mut(), datagram)
    }
}

/// The payload of packet `number`: `len` bytes, but at least the number itself.
pub(crate) fn payload(number: u32, len: usize) -> Vec<u8> {
    let fill = (4..len).map(|at| (number as usize * 31 + at + at / 256).to_le_bytes()[0]);
    number.to_le_bytes().into_iter().chain(fill).collect()
}

/// Two ends that send at this rate, over two equal links.
pub(crate) fn packet_pair(
    config: &PacketConfig,
    every: [Option<Duration>; 2],
    len: fn(u32) -> usize,
    link: &LinkConfig,
    seed: u64,
) -> Pair<PacketEnd, PacketEnd> {
    let [alice, bob] = every.map(|every| PacketEnd::new(config, every, len));
    let links = [1, 2].map(|stream| Link::new(link.clone(), seed, stream).unwrap());
    Pair::new(alice, bob, links)
}
