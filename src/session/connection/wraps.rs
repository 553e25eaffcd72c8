//! Sessions whose numbers are about to wrap: packet numbers at 16 and 32 bits, segment numbers, the clock on the
//! wire.

use super::{Connection, Next, Parts};
use crate::channel::{Carrier, Channel, ChannelConfig};
use crate::kcp::Kcp;
use crate::seq::{Conv, Sn};
use crate::session::seal::{Keys, Seal};
use crate::session::tests::{built_in, handshake};
use crate::session::wire::Data;
use crate::session::{SessionConfig, concat};
use crate::time::Time;
use crate::wire::DatagramQueue;
use rand::Rng;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use whitewater_sim::SimRng;

const BY_KCP: Channel = Channel::ordered(0);
const IN_PACKETS: Channel = Channel::ordered(1);

struct Draw(SimRng);

impl Draw {
    fn below(&mut self, count: u64) -> u64 {
        self.0.next_u64() % count
    }

    fn one_of<T: Copy, const N: usize>(&mut self, all: [T; N]) -> T {
        all[usize::try_from(self.below(N as u64)).unwrap()]
    }
}

/// Both ends, with what is in flight to each and what has arrived from each.
struct World {
    draw: Draw,
    now: Time,
    ends: [Connection; 2],
    /// Arrival time and bytes.
    under_way: [Vec<(Time, Vec<u8>)>; 2],
    /// Numbers sent, and taken in order by the other end: by KCP, in packets.
    ordered: [[(u32, u32); 2]; 2],
    /// Numbers sent, those that arrived, those known to have arrived.
    datagrams: [(u32, BTreeSet<u32>, BTreeSet<u32>); 2],
}

/// Where the numbers of a world begin: packets by end, segments by end.
#[derive(Clone, Copy, Debug)]
struct Starts {
    packets: [u64; 2],
    segments: [u32; 2],
    now: Time,
}

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 1))
}

impl World {
    fn new(seed: u64, Starts { packets, segments, now }: Starts) -> Self {
        let in_packets = ChannelConfig { carrier: Carrier::Packets, ..IN_PACKETS.config() };
        let channels = vec![BY_KCP.into(), in_packets];
        let config = SessionConfig { channels, key_update: 64, unacked: 64, ..SessionConfig::default() };
        let config = Arc::new(config);
        let (client, server) = handshake(built_in().take(2).last().unwrap(), 1, 2);
        let end = |end: usize, keys: Keys| {
            let mut seal = Seal::new(now, keys);
            seal.start_at(packets[end], packets[1 - end]);
            let parts = Parts {
                seal,
                peer_sid: 1,
                own_sid: 1,
                reset_token: [0; 16],
                peer: address(),
                conv: 7,
                max_datagram: 1200,
                features: 0,
                moves: false,
                is_client: end == 0,
                tail: 0,
                seed: [1, 2],
                user: Box::default(),
                ticket: None,
            };
            let mut connection = Connection::new(now, &config, parts).unwrap();
            connection.log_events(1); // which makes all control blocks
            connection.log_events(0);
            for (channel, kcp) in connection.lanes.blocks() {
                let conv = 7 + u32::from(channel);
                let [snd, rcv] = [end, 1 - end].map(|end| Sn(segments[end]));
                *kcp = Kcp::starting_at(Conv(conv), kcp.config(), DatagramQueue::new(), snd, rcv).unwrap();
            }
            connection
        };
        Self {
            draw: Draw(SimRng::new(seed, 1)),
            now,
            ends: [end(0, client), end(1, server)],
            under_way: Default::default(),
            ordered: Default::default(),
            datagrams: Default::default(),
        }
    }

    /// Lets 10 ms pass on a path that loses, doubles and reorders, or on a good one.
    fn step(&mut self, is_bad: bool) {
        self.now = self.now + Duration::from_millis(10);
        let now = self.now;
        for end in 0..2 {
            for (_, mut datagram) in self.under_way[end].extract_if(.., |(at, _)| *at <= now) {
                let (header, _) = Data::decode(&datagram).unwrap();
                self.ends[end].handle_data(now, address().into(), (header, &mut datagram), &mut Vec::new());
            }
            self.ends[end].handle_timeout(now);
            let mut buf = Vec::new();
            if self.ends[end].wants_random() {
                self.ends[end]
                    .draw(now, &concat(&[&now.as_micros().to_le_bytes(), &end.to_le_bytes(), b"-"]));
            }
            while let Next::Datagram(_) = self.ends[end].append_transmit(now, &mut buf) {
                let (datagram, draw) = (std::mem::take(&mut buf), &mut self.draw);
                if is_bad && draw.below(5) == 0 {
                    continue;
                }
                for _ in 0..1 + u64::from(is_bad && draw.below(8) == 0) {
                    let late = 20 + if is_bad { draw.below(60) } else { 0 };
                    self.under_way[1 - end].push((now + Duration::from_millis(late), datagram.clone()));
                }
            }
            self.take(end);
        }
    }

    fn send(&mut self, end: usize) {
        let (connection, [lane, channel]) = (&mut self.ends[end], &mut self.ordered[end]);
        lane.0 += u32::from(connection.send(BY_KCP, &lane.0.to_le_bytes()).is_ok());
        channel.0 += u32::from(connection.send(IN_PACKETS, &channel.0.to_le_bytes()).is_ok());
        let next = &mut self.datagrams[end].0;
        *next += u32::from(connection.send_datagram(&next.to_le_bytes()).is_ok());
    }

    /// Takes what `end` has received, and what it knows to have arrived.
    fn take(&mut self, end: usize) {
        let (connection, mut room) = (&mut self.ends[end], [0; 4]);
        let [lane, channel] = &mut self.ordered[1 - end];
        while connection.recv_into(BY_KCP, &mut room).is_ok() {
            assert_eq!(u32::from_le_bytes(room), lane.1, "lane");
            lane.1 += 1;
        }
        while let Some(bytes) = connection.recv(IN_PACKETS) {
            assert_eq!(*bytes, channel.1.to_le_bytes(), "in packets");
            channel.1 += 1;
        }
        while connection.recv_datagram_into(&mut room).is_ok() {
            assert!(self.datagrams[1 - end].1.insert(u32::from_le_bytes(room)), "a datagram came twice");
        }
        let delivered = std::iter::from_fn(|| connection.pop_delivered());
        self.datagrams[end].2.extend(delivered.map(|id| u32::try_from(id.0).unwrap()));
    }

    fn check(&self) {
        for (end, connection) in self.ends.iter().enumerate() {
            assert!(connection.is_connected(), "{:?}", connection.events);
            let is_whole = |(sent, taken): &(u32, u32)| sent == taken && *sent > 100;
            assert!(self.ordered[end].iter().all(is_whole), "{:?}", self.ordered);
            let (_, arrived, told) = &self.datagrams[end];
            // Nearly everything that arrived is known to have arrived, since ACKs are repeated.
            assert!(told.is_subset(arrived) && told.len() * 10 >= arrived.len() * 8, "{}", told.len());
        }
    }
}

#[test]
fn sessions_whose_numbers_come_round_keep_their_promises() {
    let mut wrapped = [0; 3];
    for seed in 0..40 {
        let mut draw = Draw(SimRng::new(seed, 2));
        let packets = [(); 2].map(|()| (1u64 << draw.one_of([16, 17, 32, 33, 47])) - 1 - draw.below(300));
        let segments = [(); 2].map(|()| draw.one_of([u32::MAX, u32::MAX / 2]) - draw.one_of([0, 9, 60]));
        let starts = Starts { packets, segments, now: Time::from_millis((1 << 32) - draw.below(4000)) };
        println!("seed {seed}, {starts:?}");
        let mut world = World::new(seed, starts);
        for _ in 0..400 {
            for end in 0..2 {
                if world.draw.below(3) > 0 {
                    world.send(end);
                }
            }
            world.step(true);
        }
        (0..300).for_each(|_| world.step(false));
        world.check();
        for (end, first) in world.ends.iter().zip(packets) {
            let next = end.seal.next();
            wrapped[0] += u32::from(next >> 16 > first >> 16);
            wrapped[1] += u32::from(next >> 32 > first >> 32);
            wrapped[2] += u32::from(end.kcp_stats(BY_KCP).unwrap().snd_nxt.0 < 1 << 20);
        }
    }
    assert!(wrapped.iter().all(|count| *count > 10), "{wrapped:?} came round in 16 bits, in 32, segments");
}
