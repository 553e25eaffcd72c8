//! The server's side in memory and in virtual time. A host of ENet holds 4095 peers, so more are on several hosts. Each
//! is served every 10 ms, as control blocks are updated: a call looks at all of its peers.

use super::super::Side;
use super::super::bare::{address, index};
use super::super::batch::Batch;
use super::Clock;
use rusty_enet::{Event, Host, HostSettings, MTU_MAX, Packet, PacketReceived, PeerID, Socket, SocketOptions};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;

pub(crate) struct Hosts {
    hosts: Vec<Host<Memory>>,
    ids: Vec<Option<PeerID>>,
    clock: Clock,
}

impl Hosts {
    pub(crate) fn new(count: usize, _: u32) -> Self {
        let clock = Clock::default();
        let host = |first: usize| {
            let settings = HostSettings {
                peer_limit: MOST.min(count - first),
                channel_limit: 1,
                time: clock.time(),
                ..HostSettings::default()
            };
            Host::new(Memory::default(), settings).expect("a host")
        };
        Self { hosts: (0..count).step_by(MOST).map(host).collect(), ids: vec![None; count], clock }
    }
}

impl Side for Hosts {
    fn is_due(&self, now: u32) -> bool {
        now.is_multiple_of(STEP)
    }

    fn input(&mut self, _: u32, index: usize, datagram: &[u8]) {
        self.hosts[index / MOST].socket_mut().push(index, datagram);
    }

    fn send(&mut self, _: u32, index: usize, message: &[u8]) {
        let id = self.ids[index].expect("it is up");
        self.hosts[index / MOST].peer_mut(id).send(0, &Packet::reliable(message)).expect("it is up");
    }

    fn update(&mut self, now: u32, mut out: impl FnMut(usize, &[u8])) {
        if self.is_due(now) {
            for host in &mut self.hosts {
                host.flush();
                host.socket_mut().leaving.each(&mut out);
                host.socket_mut().leaving.clear();
            }
        }
    }

    fn recv(&mut self, now: u32, mut take: impl FnMut(&[u8])) {
        if !self.is_due(now) {
            return;
        }
        self.clock.0.set(now);
        for host in &mut self.hosts {
            // One call reads 256 datagrams without events at most.
            while {
                if let Some(event) = host.service().expect("no socket to fail") {
                    match event {
                        Event::Connect { peer, .. } => {
                            self.ids[index(peer.address().expect("it is up"))] = Some(peer.id());
                        }
                        Event::Receive { packet, .. } => take(packet.data()),
                        Event::Disconnect { .. } => panic!("it is in use"),
                    }
                    true
                } else {
                    !host.socket().arrived.is_empty()
                }
            } {}
        }
    }
}

/// A socket of which both ends are in memory.
#[derive(Default)]
struct Memory {
    arrived: VecDeque<(usize, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    leaving: Batch,
}

impl Memory {
    fn push(&mut self, index: usize, datagram: &[u8]) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(datagram);
        self.arrived.push_back((index, buffer));
    }
}

impl Socket for Memory {
    type Address = SocketAddr;
    type Error = Infallible;

    fn init(&mut self, _: SocketOptions) -> Result<(), Infallible> {
        Ok(())
    }

    fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> Result<usize, Infallible> {
        self.leaving.push(index(to), datagram);
        Ok(datagram.len())
    }

    fn receive(
        &mut self,
        buffer: &mut [u8; MTU_MAX],
    ) -> Result<Option<(SocketAddr, PacketReceived)>, Infallible> {
        let Some((from, datagram)) = self.arrived.pop_front() else { return Ok(None) };
        buffer[..datagram.len()].copy_from_slice(&datagram);
        let len = datagram.len();
        self.spare.push(datagram);
        Ok(Some((address(from), PacketReceived::Complete(len))))
    }
}

/// Most peers of a host.
const MOST: usize = 4095;
/// ms between two calls.
const STEP: u32 = 10;
