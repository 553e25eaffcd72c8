//! Visits every sequence of choices, depth first. A machine cannot be copied, so each sequence runs from the start.

use std::collections::HashMap;

/// What may differ from the default.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Search {
    /// Any choice in this many first steps, and the default after them.
    Free(usize),
    /// At most `faults` choices other than the default, in the first `steps` steps.
    Faults { faults: u8, steps: usize },
}

#[derive(Debug)]
pub(crate) struct Explorer {
    search: Search,
    /// The choices of this run, up to the last that may still change.
    path: Vec<Choice>,
    /// Steps of this run, and the faults among them.
    step: usize,
    faults: u8,
    /// States from which everything has been visited, or will be, with that many faults left.
    seen: HashMap<u64, u8>,
    pub(crate) runs: u64,
}

#[derive(Clone, Copy, Debug)]
struct Choice {
    taken: usize,
    count: usize,
}

impl Explorer {
    pub(crate) fn new(search: Search) -> Self {
        let (path, seen) = (Vec::new(), HashMap::new());
        Self { search, path, step: 0, faults: 0, seen, runs: 1 }
    }

    /// Which of `count` ways to go on. The first is the default. `None`: the rest of this run has been visited already.
    pub(crate) fn choose(&mut self, count: usize, state: u64) -> Option<usize> {
        let step = self.step;
        self.step += 1;
        if let Some(choice) = self.path.get(step) {
            self.faults += u8::from(choice.taken > 0);
            return Some(choice.taken);
        }
        let (is_open, left) = match self.search {
            Search::Free(steps) => {
                (step < steps, u8::try_from(steps.saturating_sub(step)).unwrap_or(u8::MAX))
            }
            Search::Faults { faults, steps } => {
                let left = faults - self.faults;
                (left > 0 && step < steps, if step < steps { left } else { 0 })
            }
        };
        if step < self.path.len() + TAIL {
            if self.seen.get(&state).is_some_and(|had| *had >= left) {
                return None;
            }
            self.seen.insert(state, left);
        }
        if is_open {
            self.path.push(Choice { taken: 0, count });
        }
        Some(0)
    }

    /// Prepares the next run. Returns whether there is one.
    pub(crate) fn next(&mut self) -> bool {
        (self.step, self.faults) = (0, 0);
        while let Some(choice) = self.path.last_mut() {
            choice.taken += 1;
            if choice.taken < choice.count {
                self.runs += 1;
                return true;
            }
            self.path.pop();
        }
        false
    }

    /// Different states in which there was a choice, or soon after the last one.
    pub(crate) fn states(&self) -> u64 {
        self.seen.len() as u64
    }

    /// The choices other than the default in this run: at which step, and which.
    pub(crate) fn faults(&self) -> Vec<(usize, usize)> {
        let taken = self.path.iter().map(|choice| choice.taken);
        taken.enumerate().filter(|(_, taken)| *taken > 0).collect()
    }
}

/// Steps without a choice in which a run is still compared with those before it.
const TAIL: usize = 8;
