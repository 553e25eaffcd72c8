//! The ring of inputs: sent until they are known to have arrived, and replayed on top of snapshots.

use crate::receipts::Receipts;
use crate::sim::Keys;
use crate::wire::{INPUTS_MAX, Inputs};
use std::collections::VecDeque;
use whitewater::Time;

#[derive(Debug)]
pub(super) struct Held {
    /// Inputs of consecutive ticks, the oldest first.
    ring: VecDeque<Input>,
    /// The last tick whose input is known to have arrived.
    arrived: u32,
    /// For each datagram, its last tick.
    receipts: Receipts<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Input {
    tick: u32,
    keys: Keys,
    given: Time,
    has_effect: bool,
}

impl Held {
    pub(super) const fn new() -> Self {
        Self { ring: VecDeque::new(), arrived: 0, receipts: Receipts::new() }
    }

    /// Stores the keys held in `tick`. If ticks were skipped, the ring starts anew.
    pub(super) fn push(&mut self, tick: u32, keys: Keys, given: Time) {
        if self.ring.back().is_some_and(|last| last.tick + 1 != tick) {
            self.ring.clear();
            self.arrived = 0;
        }
        if self.ring.len() >= RING {
            self.ring.pop_front();
        }
        self.ring.push_back(Input { tick, keys, given, has_effect: false });
    }

    /// The keys held in `tick`, or if that is unknown, the last ones.
    pub(super) fn at(&self, tick: u32) -> Keys {
        let found = self.ring.binary_search_by_key(&tick, |input| input.tick).ok();
        let input = found.and_then(|index| self.ring.get(index)).or_else(|| self.ring.back());
        input.map_or(Keys::default(), |input| input.keys)
    }

    /// The inputs to send: all that are not known to have arrived and that the server may still use.
    pub(super) fn packet(&self, snapshot: u32) -> Inputs {
        let from = snapshot.max(self.arrived);
        let open: Vec<&Input> = self.ring.iter().filter(|input| input.tick > from).collect();
        let newest = open.get(open.len().saturating_sub(INPUTS_MAX)..).unwrap_or_default();
        Inputs {
            first: newest.first().map_or(0, |input| input.tick),
            keys: newest.iter().map(|input| input.keys).collect(),
            is_lost: false,
        }
    }

    /// Notes the datagram that carries everything up to the newest input.
    pub(super) fn sent(&mut self, datagram: u64) {
        if let Some(last) = self.ring.back() {
            self.receipts.note(datagram, last.tick);
        }
    }

    /// A datagram has arrived, and with it all inputs in it and before it.
    pub(super) fn delivered(&mut self, datagram: u64) {
        if let Some(tick) = self.receipts.take(datagram)
            && self.ring.back().is_some_and(|last| tick <= last.tick)
        {
            self.arrived = self.arrived.max(tick);
        }
    }

    /// When each input was given whose effect is in a snapshot of `tick`. `newest`: the last input that the server had.
    pub(super) fn effects(&mut self, tick: u32, newest: u32) -> impl Iterator<Item = Time> {
        let seen = self.ring.iter_mut().filter(move |input| input.tick <= tick.min(newest));
        seen.filter_map(|input| (!std::mem::replace(&mut input.has_effect, true)).then_some(input.given))
    }
}

/// Inputs kept: four seconds.
const RING: usize = 128;
