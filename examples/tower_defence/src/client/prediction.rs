//! Predicts the world from the last snapshot: replays our inputs on top of it, and lets others continue. The server's
//! state always wins.

use super::held::Held;
use crate::sim::{Keys, Order, PlayerId, Point, World};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Prediction {
    you: Option<PlayerId>,
    /// The last state from the server.
    confirmed: World,
    /// Our prediction.
    predicted: World,
    /// Our predicted positions by tick: the ring of states.
    states: VecDeque<(u32, Option<Point>)>,
    /// Orders that are undecided as far as we know.
    open: VecDeque<(u16, Order)>,
    next_order: u16,
}

impl Prediction {
    pub(super) fn new(you: Option<PlayerId>, word: World) -> Self {
        let predicted = word.clone();
        let (states, open) = (VecDeque::new(), VecDeque::new());
        Self { you, confirmed: word, predicted, states, open, next_order: 1 }
    }

    pub(super) const fn you(&self) -> Option<PlayerId> {
        self.you
    }

    pub(super) const fn confirmed(&self) -> &World {
        &self.confirmed
    }

    pub(super) const fn predicted(&self) -> &World {
        &self.predicted
    }

    /// Takes a state from the server. Returns its distance from our prediction, cells, if our runner was and is on the
    /// board.
    pub(super) fn reconcile(&mut self, word: World, held: &Held) -> Option<f32> {
        let error = self.error(&word);
        self.states.retain(|(tick, _)| *tick > word.tick);
        self.confirmed = word;
        if let Some(purse) = self.you.and_then(|you| self.confirmed.purse(you)) {
            let decided = purse.decided;
            self.open.retain(|(number, _)| (1..1 << 15).contains(&number.wrapping_sub(decided)));
        }
        let until = self.predicted.tick;
        self.rewind();
        while self.predicted.tick < until {
            self.step(held.at(self.predicted.tick + 1));
        }
        error
    }

    /// Numbers the orders that are undecided from 1, because another server will decide them.
    pub(super) fn renumber(&mut self) -> impl Iterator<Item = (u16, Order)> + '_ {
        for ((number, _), new) in self.open.iter_mut().zip(1..) {
            *number = new;
        }
        self.next_order = self.open.back().map_or(1, |(last, _)| last + 1);
        self.open.iter().copied()
    }

    /// Goes on from a state of another server.
    pub(super) fn restart(&mut self, word: World) {
        self.confirmed = word;
        self.states.clear();
        self.rewind();
    }

    /// Advances by a tick.
    pub(super) fn advance(&mut self, keys: Keys) {
        self.step(keys);
    }

    /// Returns to the server's state, or jumps to `tick` because the clock has jumped.
    pub(super) fn jump(&mut self, tick: u32, held: &Held) {
        self.states.clear();
        self.rewind();
        while self.predicted.tick < tick {
            self.step(held.at(self.predicted.tick + 1));
        }
    }

    /// Numbers an order and shows it as granted until the server has decided. Returns its number.
    pub(super) fn order(&mut self, order: Order) -> u16 {
        let number = self.next_order;
        self.next_order = number.wrapping_add(1);
        if self.open.len() < OPEN_MAX {
            self.open.push_back((number, order));
        }
        self.grant(order);
        number
    }

    /// Starts again from the server's state, as if it had granted our orders.
    fn rewind(&mut self) {
        self.predicted = self.confirmed.clone();
        for index in 0..self.open.len() {
            if let Some((_, order)) = self.open.get(index) {
                self.grant(*order);
            }
        }
    }

    fn grant(&mut self, order: Order) {
        if let Some(you) = self.you {
            let _ = self.predicted.order(you, order); // the server will refuse it, too
            self.predicted.take_events();
        }
    }

    fn step(&mut self, keys: Keys) {
        let mut inputs = self.predicted.seen_inputs();
        if let Some(you) = self.you {
            inputs.set(you, keys);
        }
        self.predicted.step(&inputs);
        self.predicted.take_events(); // only the server tells what has happened
        if self.states.len() >= STATES {
            self.states.pop_front();
        }
        self.states.push_back((self.predicted.tick, self.place(&self.predicted)));
    }

    fn error(&self, word: &World) -> Option<f32> {
        let (_, ours) = self.states.iter().find(|(tick, _)| *tick == word.tick)?;
        let (ours, is) = ((*ours)?, self.place(word)?);
        let [x, y] = [ours.x - is.x, ours.y - is.y].map(super::smooth::cells);
        Some(x.hypot(y))
    }

    fn place(&self, world: &World) -> Option<Point> {
        world.runner(self.you?).filter(|runner| runner.alive).map(|runner| runner.at)
    }
}

/// States kept: four seconds.
const STATES: usize = 128;
/// Most undecided orders.
const OPEN_MAX: usize = 32;
