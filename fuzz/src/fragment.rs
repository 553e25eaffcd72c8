//! Fragments in any order, some missing or duplicated, yield a packet exactly if a naive model says so, and
//! memory stays bounded whatever arrives.

use super::script::{Script, payload};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;
use whitewater::Time;
use whitewater::machine::DatagramQueue;
use whitewater::packet::{Endpoint, PacketConfig, ReceiveError, Seq16};

/// Operation bytes of a script, each with its arguments.
pub mod op {
    /// A fragment as an honest peer makes it: its packet by the distance from the newest u8, the fragment u8.
    pub const FRAGMENT: u8 = 0;
    /// All fragments of a packet but one, starting at one: the same, and the missing one u8.
    pub const PACKET: u8 = 1;
    /// A fragment of any size, if [`LIES`](super::LIES) is set: packet u8, id u8, last u8, length u16.
    pub const LIE: u8 = 2;
    /// ms u16.
    pub const WAIT: u8 = 3;
    /// The numbers advance by u16, and that packet has no fragments.
    pub const SKIP: u8 = 4;
    /// Number of operations.
    pub const COUNT: u8 = 5;
}

/// Flag in the first byte of a script: fragments may be forged.
pub const LIES: u8 = 1;

/// Runs a script: flags, limits, the first number, then operations [`op`].
///
/// # Panics
///
/// If a packet is reassembled differently from the model.
pub fn fragment_reassembly(bytes: &[u8]) {
    fragment_reassembly_measured(bytes, || 0);
}

/// [`fragment_reassembly`] with `live`, which counts the bytes allocated by the process, so that memory is
/// checked as well.
///
/// # Panics
///
/// If a packet is reassembled differently from the model, or takes too much memory.
pub fn fragment_reassembly_measured(bytes: &[u8], live: fn() -> usize) {
    let mut script = Script::new(bytes);
    let lies = script.u8() & LIES != 0;
    let fragment_above = script.in_range(1, 300);
    let config = PacketConfig {
        protocol_id: PROTOCOL,
        fragment_above,
        payload_max: u32::from(fragment_above) * u32::from(script.in_range(1, 256)),
        reassemblies: script.in_range(1, 256),
        received: script.in_range(64, 1000),
        keepalive: None,
        ..PacketConfig::default()
    };
    let first = Seq16(script.u16());
    let endpoint = Endpoint::new(&config, DatagramQueue::new()).expect("every script has a legal config");
    let mut rig = Rig {
        endpoint,
        config,
        first,
        now: Time::ZERO,
        newest: 0,
        model: Model::default(),
        lies,
        held: 0,
        live,
    };
    for _ in 0..OPERATIONS_MAX {
        if script.is_done() {
            break;
        }
        rig.step(&mut script);
    }
}

struct Rig {
    endpoint: Endpoint<DatagramQueue>,
    config: PacketConfig,
    /// The number of the model's packet 0.
    first: Seq16,
    now: Time,
    /// The newest complete packet, or the number that the numbers advanced to.
    newest: i64,
    model: Model,
    lies: bool,
    /// Bytes allocated by the endpoint.
    held: usize,
    live: fn() -> usize,
}

/// What was received, by numbers that do not wrap.
#[derive(Default)]
struct Model {
    /// Complete packets.
    received: BTreeSet<i64>,
    /// The received fragments of other packets.
    parts: BTreeMap<i64, BTreeSet<u8>>,
    /// The newest packet of which anything was received.
    newest: Option<i64>,
    heard: Option<Time>,
}

impl Rig {
    fn step(&mut self, script: &mut Script<'_>) {
        match script.u8() % op::COUNT {
            op::FRAGMENT => {
                let (number, id) = (self.number(script), script.u8());
                self.arrive(number, id);
            }
            op::PACKET => {
                let (number, from, missing) = (self.number(script), script.u8(), script.u8());
                for id in (0..=u8::MAX).map(|id| id.wrapping_add(from)).filter(|id| *id != missing) {
                    if usize::from(id) < self.fragments(number) {
                        self.arrive(number, id);
                    }
                }
            }
            op::LIE if self.lies => {
                let (number, id, last, len) = (self.number(script), script.u8(), script.u8(), script.u16());
                let data = payload(usize::from(len % 2000), id);
                let _ = self.receive(&datagram(self.sequence(number), Some([id, last]), &data));
            }
            op::WAIT => self.now = self.now + Duration::from_millis(script.u16().into()),
            op::SKIP => {
                self.newest += i64::from(script.u16() % 30_000);
                self.arrive_whole(self.newest);
            }
            _ => {}
        }
    }

    /// A packet close enough to the newest that its number is unambiguous.
    fn number(&self, script: &mut Script<'_>) -> i64 {
        self.newest + i64::from(script.u8()) - BEHIND
    }

    fn sequence(&self, number: i64) -> Seq16 {
        Seq16(self.first.0.wrapping_add(u16::try_from(number.rem_euclid(1 << 16)).unwrap_or_default()))
    }

    /// Length of a packet as an honest peer sends it. It needs fragments if there may be any.
    fn len(&self, number: i64) -> usize {
        let (one, most) = (u64::from(self.config.fragment_above), u64::from(self.config.payload_max));
        let len = if most > one { one + 1 + mix(number) % (most - one) } else { 1 + mix(number) % one };
        usize::try_from(len).unwrap_or_default()
    }

    /// Number of fragments that an honest peer makes of a packet.
    fn fragments(&self, number: i64) -> usize {
        self.len(number).div_ceil(self.config.fragment_above.into())
    }

    fn arrive(&mut self, number: i64, id: u8) {
        let (len, one) = (self.len(number), usize::from(self.config.fragment_above));
        let start = usize::from(id) * one;
        let Ok(last @ 1..) = u8::try_from(self.fragments(number) - 1) else {
            return self.arrive_whole(number);
        };
        if id > last {
            return self.arrive_whole(number);
        }
        let data = bytes_of(number, start..len.min(start + one));
        let bytes = datagram(self.sequence(number), Some([id, last]), &data);
        let expected = self.model.fragment(self.now, number, id, last, &self.config);
        let found = self.receive(&bytes);
        if !self.lies {
            let sequence = self.sequence(number);
            let expected = expected.map(|whole| whole.then(|| bytes_of(number, 0..len)));
            let expected = expected.map_err(|not| not.error(sequence));
            assert_eq!(found, expected, "fragment {id} of 0 to {last} of packet {number}");
        }
    }

    fn arrive_whole(&mut self, number: i64) {
        let expected = self.model.whole(self.now, number, &self.config);
        let found = self.receive(&datagram(self.sequence(number), None, b"x"));
        if !self.lies {
            let sequence = self.sequence(number);
            assert_eq!(found, expected.map(|()| Some(b"x".to_vec())).map_err(|not| not.error(sequence)));
        }
        self.newest = self.newest.max(number);
    }

    fn receive(&mut self, datagram: &[u8]) -> Result<Option<Vec<u8>>, ReceiveError> {
        let before = (self.live)();
        let refused = self.endpoint.stats().rejected.total();
        let found = self.endpoint.receive(self.now, datagram);
        let now = (self.live)();
        let packet = found.map(|packet| packet.map(<[u8]>::to_vec));
        self.held = (self.held + now).saturating_sub(before);
        let most = u64::from(self.config.payload_max);
        assert!(packet.iter().flatten().all(|packet| packet.len() as u64 <= most));
        let stats = self.endpoint.stats();
        assert_eq!(stats.rejected.total(), refused + u64::from(packet.is_err()));
        // One more than there are places; the received numbers; one entry per place.
        let bound = (u64::from(self.config.reassemblies) + 1) * (most + 200) + 20_000;
        assert!(self.held as u64 <= bound, "{} bytes held, {bound} at most", self.held);
        packet
    }
}

/// Why the model rejects something.
enum NotTaken {
    Stale,
    Duplicate,
}

impl NotTaken {
    const fn error(self, sequence: Seq16) -> ReceiveError {
        match self {
            Self::Stale => ReceiveError::Stale { sequence },
            Self::Duplicate => ReceiveError::Duplicate { sequence },
        }
    }
}

impl Model {
    /// Takes a packet without fragments.
    fn whole(&mut self, now: Time, number: i64, config: &PacketConfig) -> Result<(), NotTaken> {
        self.check(now, number, config)?;
        self.heard(now, number, config);
        self.parts.remove(&number);
        self.received.insert(number);
        Ok(())
    }

    /// Takes a fragment. Returns `true` if that completes its packet.
    fn fragment(
        &mut self,
        now: Time,
        number: i64,
        id: u8,
        last: u8,
        config: &PacketConfig,
    ) -> Result<bool, NotTaken> {
        self.check(now, number, config)?;
        if self.newest.is_some_and(|newest| number <= newest - i64::from(config.reassemblies)) {
            return Err(NotTaken::Stale);
        }
        if self.parts.get(&number).is_some_and(|parts| parts.contains(&id)) {
            return Err(NotTaken::Duplicate);
        }
        self.heard(now, number, config);
        let parts = self.parts.entry(number).or_default();
        parts.insert(id);
        let is_whole = parts.len() == usize::from(last) + 1;
        if is_whole {
            self.parts.remove(&number);
            self.received.insert(number);
        }
        Ok(is_whole)
    }

    fn check(&mut self, now: Time, number: i64, config: &PacketConfig) -> Result<(), NotTaken> {
        if self.heard.is_some_and(|heard| now.since(heard) >= config.forget_after) {
            *self = Self::default();
        }
        let oldest = self.received.last().map(|newest| newest - i64::from(config.received));
        if oldest.is_some_and(|oldest| number <= oldest) {
            return Err(NotTaken::Stale);
        }
        if self.received.contains(&number) { Err(NotTaken::Duplicate) } else { Ok(()) }
    }

    fn heard(&mut self, now: Time, number: i64, config: &PacketConfig) {
        self.heard = Some(now);
        let newest = self.newest.map_or(number, |newest| newest.max(number));
        self.newest = Some(newest);
        self.parts.retain(|number, _| *number > newest - i64::from(config.reassemblies));
    }
}

/// A pseudo-random number for the packet.
fn mix(number: i64) -> u64 {
    number.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

/// Some bytes of a packet as an honest peer sends it.
fn bytes_of(number: i64, range: Range<usize>) -> Vec<u8> {
    range.map(|at| (mix(number) ^ at as u64 ^ (at / 256) as u64).to_le_bytes()[0]).collect()
}

fn datagram(sequence: Seq16, fragment: Option<[u8; 2]>, data: &[u8]) -> Vec<u8> {
    let mut bytes = PROTOCOL.to_le_bytes().to_vec();
    bytes.push(u8::from(fragment.is_some()));
    bytes.extend_from_slice(&sequence.0.to_le_bytes());
    bytes.extend(fragment.into_iter().flatten());
    bytes.extend_from_slice(data);
    bytes
}

/// Seed scripts: with and without forgeries, with few places and many, with and without a wrap of the
/// numbers.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    // Bytes per fragment, most fragments, places; each minus one.
    for (size, limits) in [("many", [9u16, 255, 255]), ("few", [99, 3, 1]), ("one", [0, 20, 15])] {
        for (name, flags) in [("honest", 0), ("lies", LIES)] {
            for (turn, first) in [("start", 0u16), ("turn", u16::MAX - 20)] {
                let mut bytes = vec![flags];
                limits.iter().for_each(|limit| bytes.extend_from_slice(&limit.to_le_bytes()));
                bytes.extend_from_slice(&[192, 0]);
                bytes.extend_from_slice(&first.to_le_bytes());
                traffic(&mut bytes);
                seeds.push((format!("{name}-{size}-{turn}"), bytes));
            }
        }
    }
    seeds
}

/// Packets with a fragment that comes later or never; duplicates; others in between.
fn traffic(bytes: &mut Vec<u8>) {
    let base = BEHIND.to_le_bytes()[0];
    for round in 0..30u8 {
        bytes.extend_from_slice(&[op::PACKET, base + 1, round, round % 4, op::PACKET, base + 2, 0, 255]);
        bytes.extend_from_slice(&[op::FRAGMENT, base + 1, 0, op::LIE, base + 1, 1, 3, round, 0]);
        bytes.extend_from_slice(&[op::FRAGMENT, base + 1, round % 4, op::WAIT, 20, round / 20]);
        bytes.extend_from_slice(&[op::SKIP, 3, round / 28 * 100, op::FRAGMENT, base - round, round]);
    }
}

const PROTOCOL: u32 = 0x7777_6c64;
/// How far before the newest packet the numbers in a script start.
const BEHIND: i64 = 150;
/// Longer scripts are cut off here.
const OPERATIONS_MAX: u32 = 300;
