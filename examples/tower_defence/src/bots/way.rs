//! The cost of each cell on the way to a goal: a flow that runners follow.

use crate::sim::{At, Board};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The cost from each cell to a goal.
#[derive(Debug, Default)]
pub(super) struct Way {
    costs: BTreeMap<At, u32>,
}

impl Way {
    /// The cheapest ways to `goal`. `cost`: the cost of walking over a cell. Source: Dijkstra, 1959.
    pub(super) fn to(board: &Board, goal: At, cost: impl Fn(At) -> u32) -> Self {
        let mut costs = BTreeMap::new();
        let mut heap = BinaryHeap::from([Reverse((0, goal))]);
        while let Some(Reverse((so_far, at))) = heap.pop() {
            if costs.contains_key(&at) {
                continue;
            }
            costs.insert(at, so_far);
            let open = board.neighbours(at).filter(|next| board.cell(*next).is_open());
            heap.extend(open.map(|next| Reverse((so_far + cost(next), next))));
        }
        Self { costs }
    }

    /// The next cell on the way.
    pub(super) fn next(&self, board: &Board, at: At) -> Option<At> {
        let known = board.neighbours(at).filter_map(|next| Some((self.costs.get(&next)?, next)));
        let (cost, next) = known.min()?;
        (self.costs.get(&at).is_none_or(|here| cost < here)).then_some(next)
    }
}
