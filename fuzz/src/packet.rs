//! One endpoint of packets under a script of calls, from an honest user and from any peer.
//!
//! Its twin gets the same calls except for refused ones. What it sends and counts must not differ, so refused
//! datagrams change nothing, ever. What it sends is parsed by a naive parser, and must not acknowledge
//! anything that was not received.

use super::script::{Script, payload};
use std::collections::HashSet;
use std::time::Duration;
use whitewater::Time;
use whitewater::machine::DatagramQueue;
use whitewater::packet::{Endpoint, PacketConfig, Seq16};

/// Operation bytes of a script, each with its arguments.
pub mod op {
    /// Length u16, first payload byte u8.
    pub const SEND: u8 = 0;
    /// Any datagram: length u8, the bytes.
    pub const BYTES: u8 = 1;
    /// A packet of the peer: its number relative to the newest u8, acks, payload length u16.
    pub const PACKET: u8 = 2;
    /// A fragment of one: the same, with its id u8 and the last id u8 before the length.
    pub const FRAGMENT: u8 = 3;
    /// ms u16, then an update.
    pub const WAIT: u8 = 4;
    /// Until `check` says, then an update.
    pub const WAKE: u8 = 5;
    /// Takes up to u8 acknowledged numbers.
    pub const POP: u8 = 6;
    /// The peer's last datagram again with one byte changed: which u8, and how u8.
    pub const AGAIN: u8 = 7;
    /// The peer's numbers advance by u16.
    pub const SKIP: u8 = 8;
    /// Number of operations.
    pub const COUNT: u8 = 9;
}

/// Runs a script: a config, first numbers, then operations [`op`].
///
/// # Panics
///
/// If the endpoint breaks a promise.
pub fn packet_read(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let config = config(&mut script);
    let (first, peer_next) = (Seq16(script.u16()), Seq16(script.u16()));
    let end = || {
        Endpoint::starting_at(&config, DatagramQueue::new(), first).expect("every script has a legal config")
    };
    let mut rig = Rig {
        subject: end(),
        twin: end(),
        config,
        now: Time::ZERO,
        peer_next,
        last: Vec::new(),
        unacked: HashSet::new(),
        received: HashSet::new(),
        refused: 0,
    };
    for _ in 0..OPERATIONS_MAX {
        if script.is_done() {
            break;
        }
        rig.step(&mut script);
        rig.compare();
    }
}

fn config(script: &mut Script<'_>) -> PacketConfig {
    let fragment_above = script.in_range(1, 1400);
    let parts = u32::from(script.u8()) + 1;
    let flags = script.u8();
    PacketConfig {
        protocol_id: PROTOCOL,
        fragment_above,
        payload_max: u32::from(fragment_above) * parts,
        reassemblies: script.in_range(1, 256),
        sent: script.in_range(64, 1 << 15),
        received: script.in_range(64, 1 << 15),
        lost_after: Duration::from_millis(script.in_range(1, 60_000).into()),
        forget_after: Duration::from_millis(script.in_range(1000, 60_000).into()),
        keepalive: (flags & 1 != 0).then(|| Duration::from_millis(script.in_range(1, 1000).into())),
        ..PacketConfig::default()
    }
}

struct Rig {
    subject: Endpoint<DatagramQueue>,
    twin: Endpoint<DatagramQueue>,
    config: PacketConfig,
    now: Time,
    /// Approximately the next number of the peer.
    peer_next: Seq16,
    /// What the peer sent last.
    last: Vec<u8>,
    /// Sent numbers not known to have arrived.
    unacked: HashSet<u16>,
    /// Numbers of the peer's packets that were received completely.
    received: HashSet<u16>,
    refused: u64,
}

impl Rig {
    fn step(&mut self, script: &mut Script<'_>) {
        match script.u8() % op::COUNT {
            op::SEND => {
                let (len, start) = (usize::from(script.u16()), script.u8());
                self.send(&payload(len, start));
            }
            op::BYTES => {
                let len = script.u8();
                self.receive(script.bytes(len.into()));
            }
            op::PACKET => {
                let header = header(script, self.peer_next, None);
                self.receive_with(header, script.u16());
            }
            op::FRAGMENT => {
                let fragment = Some([script.u8(), script.u8()]);
                let header = header(script, self.peer_next, fragment);
                self.receive_with(header, script.u16());
            }
            op::WAIT => self.update(self.now + Duration::from_millis(script.u16().into())),
            op::WAKE => {
                let due = self.subject.check(self.now);
                assert!(due.is_none_or(|due| due >= self.now));
                self.update(due.unwrap_or(self.now));
                let next = self.subject.check(self.now);
                assert!(next.is_none_or(|next| next > self.now), "woken for nothing");
            }
            op::POP => (0..script.u8()).for_each(|_| self.pop()),
            op::AGAIN => {
                let (at, change) = (usize::from(script.u8()), script.u8());
                let mut again = self.last.clone();
                if let Some(byte) = again.get_mut(at) {
                    *byte ^= change;
                }
                self.receive(&again);
            }
            _ => self.peer_next = self.peer_next.add(script.u16()),
        }
    }

    fn send(&mut self, payload: &[u8]) {
        let sent = self.subject.send(self.now, payload);
        let fits = payload.len() as u64 <= self.config.payload_max.into();
        assert_eq!(sent.is_ok(), fits);
        if fits {
            assert_eq!(self.twin.send(self.now, payload), sent);
            assert_eq!(self.drain(), [(sent.map_or(0, |sequence| sequence.0), payload.to_vec())]);
        }
    }

    fn update(&mut self, now: Time) {
        self.now = now;
        self.subject.update(now);
        self.twin.update(now);
        let sent = self.drain();
        assert!(
            sent.len() <= 1 && sent.iter().all(|(_, payload)| payload.is_empty()),
            "keepalives are empty"
        );
    }

    fn pop(&mut self) {
        let acked = self.subject.pop_acked();
        assert_eq!(self.twin.pop_acked(), acked);
        assert_eq!(self.twin.pop_lost(), self.subject.pop_lost());
        assert!(
            acked.is_none_or(|acked| self.unacked.remove(&acked.0)),
            "{acked:?} was not sent, or told before"
        );
    }

    fn receive_with(&mut self, header: Vec<u8>, len: u16) {
        self.receive(&[header, payload(usize::from(len) % 1500, 1)].concat());
    }

    fn receive(&mut self, datagram: &[u8]) {
        let Ok(taken) = self.subject.receive(self.now, datagram) else {
            self.refused += 1;
            return;
        };
        let most = u64::from(self.config.payload_max);
        assert!(taken.is_none_or(|payload| !payload.is_empty() && payload.len() as u64 <= most));
        let (sequence, fragment, ..) = plainly(datagram);
        if fragment.is_none() || taken.is_some() {
            self.received.insert(sequence);
        }
        assert_eq!(self.twin.receive(self.now, datagram), Ok(taken));
        assert!(self.subject.receive(self.now, datagram).is_err(), "the same datagram was taken twice");
        self.refused += 1;
        self.last = datagram.to_vec();
    }

    /// The packets that were sent, reassembled, with their numbers.
    fn drain(&mut self) -> Vec<(u16, Vec<u8>)> {
        let mut packets: Vec<(u16, Vec<u8>)> = Vec::new();
        while let Some(datagram) = self.subject.output_mut().pop() {
            assert_eq!(self.twin.output_mut().pop(), Some(datagram));
            assert!(datagram.len() <= usize::from(self.config.fragment_above) + 15);
            let (sequence, fragment, acks, payload) = plainly(datagram);
            for acked in acks {
                assert!(self.received.contains(&acked), "{acked} was not received");
            }
            match (fragment, packets.last_mut()) {
                (Some([id, _]), Some((number, packet))) if id > 0 => {
                    assert_eq!(*number, sequence);
                    packet.extend_from_slice(payload);
                }
                (fragment, _) => {
                    assert!(fragment.is_none_or(|[id, _]| id == 0));
                    self.unacked.insert(sequence);
                    packets.push((sequence, payload.to_vec()));
                }
            }
        }
        assert!(self.twin.output().is_empty());
        packets
    }

    fn compare(&self) {
        let mut stats = self.subject.stats();
        let rejected = std::mem::take(&mut stats.rejected);
        assert_eq!(rejected.total(), self.refused);
        assert_eq!(stats, self.twin.stats(), "a refused datagram has changed something");
        assert_eq!(self.subject.check(self.now), self.twin.check(self.now));
        let tick = Duration::from_micros(1); // the smoothed value is rounded
        assert!(stats.rtt_min <= stats.rtt + tick && stats.rtt <= stats.rtt_max + tick, "{stats:?}");
        assert!((0.0..=1.0).contains(&stats.loss) && stats.lost + stats.acked <= 2 * stats.sent, "{stats:?}");
        assert!(stats.acked <= stats.sent && stats.keepalives <= stats.sent, "{stats:?}");
    }
}

/// The header of a packet of the peer, valid or not, as the script says.
fn header(script: &mut Script<'_>, peer_next: Seq16, fragment: Option<[u8; 2]>) -> Vec<u8> {
    let sequence = peer_next.add(script.u8().into()).sub(BEHIND);
    let prefix = script.u8();
    let mut header = PROTOCOL.to_le_bytes().to_vec();
    header.push(prefix & !1 | u8::from(fragment.is_some()));
    header.extend_from_slice(&sequence.0.to_le_bytes());
    header.extend(fragment.into_iter().flatten());
    let acks = if prefix & 2 == 0 { 0 } else { 1 + (prefix >> 2 & 0x1f).count_ones() };
    header.extend((0..acks).map(|_| script.u8()));
    header
}

/// Naively parses a valid datagram: number, fragment, acknowledged numbers, payload.
fn plainly(datagram: &[u8]) -> (u16, Option<[u8; 2]>, Vec<u16>, &[u8]) {
    let mut script = Script::new(datagram);
    assert_eq!(script.u32(), PROTOCOL);
    let (prefix, sequence) = (script.u8(), script.u16());
    let fragment = (prefix & 1 != 0).then(|| [script.u8(), script.u8()]);
    let mut acks = Vec::new();
    if prefix & 2 != 0 {
        let newest = if prefix & 4 != 0 { script.u16() } else { sequence.wrapping_sub(script.u8().into()) };
        let told = [3, 4, 5, 6].map(|bit| if prefix >> bit & 1 != 0 { script.u8() } else { 0xff });
        let told = u32::from_le_bytes(told);
        acks.push(newest);
        let older = (0..32u16).filter(|age| told >> age & 1 != 0);
        acks.extend(older.map(|age| newest.wrapping_sub(1 + age)));
    }
    (sequence, fragment, acks, script.bytes(usize::MAX))
}

/// Seed scripts: both ends send, with losses, fragments, duplicates and silence.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (name, fragment_above, keepalive) in [("small", 99u16, 1u8), ("large", 1199, 0)] {
        for (turn, first) in [("start", 0u16), ("turn", u16::MAX - 5)] {
            for (peer, traffic) in [("honest", honest as fn(&mut Vec<u8>)), ("hostile", hostile)] {
                let mut bytes = fragment_above.to_le_bytes().to_vec();
                bytes.extend_from_slice(&[9, keepalive, 15, 0, 192, 0, 192, 0, 231, 3, 40, 35]);
                if keepalive != 0 {
                    bytes.extend_from_slice(&[99, 0]);
                }
                bytes.extend_from_slice(&first.to_le_bytes());
                bytes.extend_from_slice(&first.to_le_bytes());
                traffic(&mut bytes);
                seeds.push((format!("{peer}-{name}-{turn}"), bytes));
            }
        }
    }
    seeds
}

/// Packets both ways, with some of the peer's lost; the peer acknowledges the newest with a distance of 0.
fn honest(bytes: &mut Vec<u8>) {
    let base = BEHIND.to_le_bytes()[0];
    for round in 0..60u8 {
        bytes.extend_from_slice(&[op::SEND, 10, round % 8, round]);
        if round % 5 != 2 {
            bytes.extend_from_slice(&[op::PACKET, base, 0b111_1010, 0, 0xf0, round, 3, 0, round, 0]);
        }
        if round % 6 == 5 {
            bytes.extend_from_slice(&[op::FRAGMENT, 1, 2, base + 1, 0, 20, 0]);
            bytes.extend_from_slice(&[op::FRAGMENT, 2, 2, base + 1, 0, 9, 0]);
            bytes.extend_from_slice(&[op::FRAGMENT, 0, 2, base + 1, 0b10, 0, 20, 0, op::SKIP, 1, 0]);
        }
        bytes.extend_from_slice(&[op::SKIP, 1, 0, op::WAIT, 16, 0, op::WAKE, op::POP, 2]);
    }
}

/// What no honest peer sends, in addition to what it does.
fn hostile(bytes: &mut Vec<u8>) {
    honest(bytes);
    for round in 0..30u8 {
        bytes.extend_from_slice(&[op::AGAIN, round, 1 << (round % 8), op::BYTES, 9, 0x64, 0x6c, 0x77, 0x77]);
        bytes.extend_from_slice(&[round, 1, 2, 3, 4, op::SKIP, 0, 1 << (round % 8)]);
        bytes.extend_from_slice(&[op::FRAGMENT, round, 255, round, 0, 200, 1, op::WAIT, 0, round]);
    }
    honest(bytes);
}

const PROTOCOL: u32 = 0x7777_6c64;
/// How far before the peer's next number the numbers in a script start.
const BEHIND: u16 = 100;
/// Longer scripts are cut off here.
const OPERATIONS_MAX: u32 = 1000;
