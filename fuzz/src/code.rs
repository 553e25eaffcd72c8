//! The decoder of repairs returns only missing segments; without forgeries, they are intact.

use super::script::{Script, payload};
use std::collections::HashSet;
use whitewater::inside::code::{COVER_MAX, Decoder, DecoderConfig, Encoder};
use whitewater::kcp::{Millis, Sn};

/// The operations of a script.
pub mod op {
    /// A segment arrives: its distance from the base.
    pub const SEGMENT: u8 = 0;
    /// A repair as an honest peer makes it: the offset of its first segment, its span, its index, and a bit
    /// pattern that says, cyclically, which segments after the first it leaves out.
    pub const REPAIR: u8 = 1;
    /// A repair of any bytes, if [`LIES`](super::LIES) is set: the offset, a length, the payload.
    pub const LIE: u8 = 2;
    /// Everything missing from the base on arrives, up to a number of segments, and the base moves.
    pub const CATCH_UP: u8 = 3;
    /// Segments before the base are dropped: how far before.
    pub const FORGET: u8 = 4;
    /// Number of operations.
    pub const COUNT: u8 = 5;
}

/// Flag in the first byte of a script: repairs may be forged.
pub const LIES: u8 = 1;

/// A receiver, and what its peer has sent.
struct Link {
    encoder: Encoder,
    decoder: Decoder,
    config: DecoderConfig,
    /// All segments before it have arrived.
    nxt: Sn,
    /// The segments from `nxt` on that have arrived.
    arrived: HashSet<u32>,
    /// Repairs rejected and accepted, and segments rebuilt.
    counts: [u64; 3],
}

/// Runs a script. Every segment that the decoder returns was missing or dropped, lies within the window, is
/// no longer than allowed and, without forgeries, intact. Every rejection is counted.
///
/// # Panics
///
/// If that does not hold.
pub fn code_decode(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let lies = script.u8() & LIES != 0;
    let config = DecoderConfig {
        segments: script.in_range(0, 600),
        bytes: 100 * u32::from(script.in_range(0, 600)),
        mss: script.in_range(0, 1400),
    };
    let (decoder, nxt) = (Decoder::new(&config), Sn(script.u32()));
    let (encoder, arrived) = (Encoder::new(), HashSet::new());
    let mut link = Link { encoder, decoder, config, nxt, arrived, counts: [0; 3] };
    while !script.is_done() {
        match script.u8() % op::COUNT {
            op::SEGMENT => {
                let sn = link.nxt.sub(BEHIND).add(script.u8().into());
                link.arrive(sn);
            }
            op::REPAIR => {
                let (first, span, index) = (script.u8(), script.u8() % COVER_MAX + 1, script.u8());
                link.repair(first, span, index, script.u8());
            }
            op::LIE if lies => {
                let (first, len) = (script.u8(), script.in_range(0, 1500));
                link.take(first, script.bytes(len.into()));
            }
            op::CATCH_UP => {
                let most = script.u8();
                (0..most).for_each(|_| link.arrive(link.nxt));
            }
            op::FORGET => link.decoder.forget_before(link.nxt.sub(script.u8().into())),
            _ => {}
        }
        link.recover(lies);
    }
    link.check_counters(lies);
}

impl Link {
    fn arrive(&mut self, sn: Sn) {
        let (frg, data) = sent(sn, self.config.mss);
        self.decoder.received(sn, frg, &data);
        self.note(sn);
    }

    fn note(&mut self, sn: Sn) {
        if !sn.is_before(self.nxt) {
            self.arrived.insert(sn.0);
        }
        while self.arrived.remove(&self.nxt.0) {
            self.nxt = self.nxt.add(1);
        }
    }

    fn repair(&mut self, first: u8, span: u8, index: u8, holes: u8) {
        let sn = self.nxt.sub(BEHIND).add(first.into());
        self.encoder.begin(index);
        for offset in (0..span).filter(|offset| *offset == 0 || holes >> (offset % 8) & 1 == 0) {
            let sn = sn.add(offset.into());
            let (frg, data) = sent(sn, self.config.mss);
            let len = u16::try_from(data.len()).unwrap_or_default();
            assert!(self.encoder.add(sn, frg, len, |to| to.copy_from_slice(&data)));
        }
        let mut payload = vec![0; self.encoder.payload_len()];
        assert_eq!(self.encoder.finish(&mut payload), Some(payload.len()));
        self.take(first, &payload);
    }

    fn take(&mut self, first: u8, payload: &[u8]) {
        let sn = self.nxt.sub(BEHIND).add(first.into());
        let taken = self.decoder.repair(sn, Millis(0), payload, self.nxt, WINDOW);
        self.counts[usize::from(taken.is_ok())] += 1;
    }

    fn recover(&mut self, lies: bool) {
        let (nxt, mss) = (self.nxt, self.config.mss);
        let remembers_all = self.config.segments >= 512 && self.config.bytes >= 512 * (u32::from(mss) + 7);
        let mut found = Vec::new();
        while let Some(recovered) = self.decoder.recover() {
            let sn = recovered.sn;
            assert!(sn.is_before(nxt.add(WINDOW.into())), "{sn} is beyond the window");
            let has_arrived = sn.is_before(nxt) || self.arrived.contains(&sn.0);
            assert!(!remembers_all || !has_arrived, "{sn} has arrived");
            assert!(!found.contains(&sn), "{sn} was given twice");
            assert!(recovered.data.len() <= mss.into());
            if !lies {
                let (frg, data) = sent(sn, mss);
                assert_eq!((recovered.frg, recovered.data), (frg, data.as_slice()), "{sn}");
            }
            found.push(sn);
        }
        self.counts[2] += found.len() as u64;
        found.into_iter().for_each(|sn| self.note(sn));
    }

    fn check_counters(&self, lies: bool) {
        let stats = self.decoder.stats();
        let rejected = stats.rejected;
        let [refused, taken, recovered] = self.counts;
        let dropped = rejected.contradictory + rejected.stale + rejected.unpaid;
        assert_eq!(rejected.total(), refused + dropped);
        assert!(recovered + stats.needless <= taken, "{stats:?}");
        let of_lies = [rejected.contradictory, rejected.truncated, rejected.span, rejected.holes];
        assert!(lies || (of_lies == [0; 4] && rejected.too_long == 0), "{rejected:?}");
    }
}

/// The segment `sn`, `frg` and data, as the peer sent it.
fn sent(sn: Sn, mss: u16) -> (u8, Vec<u8>) {
    let bits = sn.0.wrapping_mul(0x9e37_79b1);
    let [frg, start, low, high] = bits.to_le_bytes();
    let len = u32::from(u16::from_le_bytes([low, high])) % (u32::from(mss) + 1);
    (frg, payload(usize::try_from(len).unwrap_or_default(), start))
}

/// Seed scripts: with and without forgeries, with much and little memory, with and without a wrap of the
/// numbers.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let rooms: [(&str, [u16; 3]); 3] =
        [("roomy", [512, 600, 100]), ("tight", [20, 600, 50]), ("bytes", [512, 9, 30])];
    for (room, limits) in rooms {
        for (name, flags) in [("honest", 0), ("lies", LIES)] {
            for (turn, start) in [("start", 0u32), ("turn", u32::MAX - 20)] {
                let mut bytes = vec![flags];
                limits.iter().for_each(|limit| bytes.extend_from_slice(&limit.to_le_bytes()));
                bytes.extend_from_slice(&start.to_le_bytes());
                traffic(&mut bytes, flags);
                seeds.push((format!("{name}-{room}-{turn}"), bytes));
            }
        }
    }
    seeds
}

/// Rounds of segments, some of which get lost, and repairs.
fn traffic(bytes: &mut Vec<u8>, flags: u8) {
    let base = BEHIND.to_le_bytes()[0];
    for round in 0..20u8 {
        for offset in (0..30).filter(|offset| (offset * 7 + round) % 10 > round % 3) {
            bytes.extend_from_slice(&[op::SEGMENT, base + offset]);
        }
        for index in 0..4 {
            bytes.extend_from_slice(&[
                op::REPAIR,
                base - 3 * index,
                15 + round,
                round * 4 + index,
                3 * round,
            ]);
        }
        if flags & LIES != 0 {
            bytes.extend_from_slice(&[op::LIE, base, 20, 0, round, round.wrapping_mul(37)]);
            bytes.extend((0..18u8).map(|at| at.wrapping_mul(round)));
        }
        bytes.extend_from_slice(&[op::CATCH_UP, 30, op::FORGET, 40]);
    }
}

/// How far before `nxt` offsets start.
const BEHIND: u32 = 100;
/// The receive window.
const WINDOW: u16 = 140;
