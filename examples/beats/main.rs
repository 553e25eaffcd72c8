//! Needless resends to KCPs that acknowledge at intervals, and their cost. Prints the cells in which modern recovery is
//! worse than classic, or with `all` every cell.
//!
//! ```sh
//! cargo run --release --example beats                # seeds 1 to 3
//! cargo run --release --example beats -- 101 3 all   # seeds 101 to 103
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a program that measures may stop where it fails"
)]

#[path = "../../tests/common/beat.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod beat;

use beat::{Cell, Flow, Outcome};
use std::thread;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| args.get(at).and_then(|arg| arg.parse().ok()).unwrap_or(default);
    let (first, count): (u64, u64) = (number(0, 1), number(1, 3));
    let everything = args.iter().any(|arg| arg == "all");
    let only = args.get(2).cloned().unwrap_or_default();
    let cells: Vec<_> =
        Cell::all().into_iter().filter(|cell| format!("{cell:?}").contains(&only) || only == "all").collect();
    let halves: Vec<_> = (0..2)
        .map(|half| {
            let cells: Vec<_> = cells.iter().skip(half).step_by(2).copied().collect();
            thread::spawn(move || {
                cells
                    .into_iter()
                    .map(|cell| (cell, cell.beside_classic(first..first + count)))
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let mut worse = [0; 3];
    println!(
        "| acknowledges | beat | RTT | jitter | loss | flow | resent | classic | p99, ms | classic | took, s | classic | worse |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (cell, [ours, classic]) in halves.into_iter().flat_map(|half| half.join().unwrap()) {
        let verdict = verdict(&cell, &ours, &classic);
        (0..3).for_each(|at| worse[at] += usize::from(verdict[at]));
        if everything || verdict != [false; 3] {
            let names =
                ["resent", "p99", "took"].iter().zip(verdict).filter(|(_, is)| *is).map(|(name, _)| *name);
            let Cell { rule, beat, rtt, jitter, loss, flow } = cell;
            println!(
                "| {rule:?} | {beat} | {rtt} | {jitter} | {loss} | {flow:?} | {} | {} | {:.1} | {:.1} | {:.2} | {:.2} | {} |",
                ours.resent,
                classic.resent,
                ours.p99(),
                classic.p99(),
                ours.took.as_secs_f64(),
                classic.took.as_secs_f64(),
                names.collect::<Vec<_>>().join(" ")
            );
        }
    }
    println!(
        "of {} cells worse by resends {}, by p99 {}, by time {}",
        cells.len(),
        worse[0],
        worse[1],
        worse[2]
    );
}

/// Three verdicts: without loss, more than 1 % is resent and more than with classic; with loss, the p99 is longer; bulk
/// takes longer.
fn verdict(cell: &Cell, ours: &Outcome, classic: &Outcome) -> [bool; 3] {
    let is_bulk = matches!(cell.flow, Flow::Bulk | Flow::BulkCwnd);
    let is_clean = cell.loss == 0.0;
    [
        is_clean && ours.resent > (ours.messages / 100).max(classic.resent),
        !is_clean && !is_bulk && ours.p99() > classic.p99(),
        is_bulk && ours.took > classic.took,
    ]
}
