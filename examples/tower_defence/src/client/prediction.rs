//! The world from the last snapshot on: our inputs are replayed on top of it, others go on as they went. The server's word wins.

use super::held::Held;
use crate::sim::{Keys, Order, PlayerId, Point, World};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Prediction {
    you: Option<PlayerId>,
    /// The server's word.
    confirmed: World,
    /// What we make of it.
    predicted: World,
    /// Where we took ourselves to be, by ticks: the ring of states.
    states: VecDeque<(u32, Option<Point>)>,
    /// Orders that are not decided, as far as we know.
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

    /// The server's word. Returns how far it is from what we took for it, cells, if our runner was and is on the board.
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

    /// Goes on by a tick.
    pub(super) fn advance(&mut self, keys: Keys) {
        self.step(keys);
    }

    /// Goes back to the server's word, or on to `tick` at once: the clock has jumped.
    pub(super) fn jump(&mut self, tick: u32, held: &Held) {
        self.states.clear();
        self.rewind();
        while self.predicted.tick < tick {
            self.step(held.at(self.predicted.tick + 1));
        }
    }

    /// Numbers an order and shows it as granted, until the server has decided. Returns its number.
    pub(super) fn order(&mut self, order: Order) -> u16 {
        let number = self.next_order;
        self.next_order = number.wrapping_add(1);
        if self.open.len() < OPEN_MAX {
            self.open.push_back((number, order));
        }
        self.grant(order);
        number
    }

    /// Begins again at the server's word, as if it had granted our orders.
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
            let _ = self.predicted.order(you, order); // what the server will refuse, too
            self.predicted.take_events();
        }
    }

    fn step(&mut self, keys: Keys) {
        let mut inputs = self.predicted.seen_inputs();
        if let Some(you) = self.you {
            inputs.set(you, keys);
        }
        self.predicted.step(&inputs);
        self.predicted.take_events(); // it is the server who says what has happened
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

/// States that are kept: four seconds of them.
const STATES: usize = 128;
/// Orders under way at a time.
const OPEN_MAX: usize = 32;
