//! Peers that acknowledge only at intervals: nothing is resent needlessly. The example `beats` prints more
//! cells and seeds.

use crate::common::beat::{Cell, Flow, Rule};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// Without loss, at most 1 % is resent, or as much as KCP resends if that is more; of bulk a quarter more,
/// part of its second window.
#[test]
fn without_loss_hardly_anything_is_resent_to_a_peer_that_acks_at_intervals() {
    for cell in Cell::all().into_iter().filter(|cell| cell.loss == 0.0 && cell.flow != Flow::BulkCwnd) {
        let [ours, classic] = cell.beside_classic(SEEDS);
        // With an interval of 100 ms and a snapshot every 50 ms, two of three round trips are never seen.
        let is_blind = (cell.beat, cell.rtt, cell.flow) == (100, 2, Flow::Snapshots);
        let most = if is_blind { classic.resent * 5 / 4 } else { classic.resent };
        let share = if cell.flow == Flow::Bulk { 80 } else { 100 };
        assert!(
            ours.resent <= most.max(ours.messages / share),
            "{cell:?}: {} and {}",
            ours.resent,
            classic.resent
        );
    }
}

/// Bulk takes no longer, and with a congestion window much less: it is not reduced needlessly, and grows by
/// segments.
#[test]
fn without_loss_bulk_to_a_peer_that_acks_at_intervals_is_as_fast_as_kcp() {
    for cell in Cell::all().into_iter().filter(|cell| cell.loss == 0.0) {
        let limit = match cell.flow {
            Flow::Bulk => 1.0,
            Flow::BulkCwnd => 0.8,
            Flow::Input | Flow::Snapshots => continue,
        };
        let [ours, classic] = cell.beside_classic(SEEDS);
        let ratio = ours.took.as_secs_f64() / classic.took.as_secs_f64();
        assert!(ratio <= limit, "{cell:?}: {:?} and {:?}", ours.took, classic.took);
        assert!(ours.resent <= (ours.messages / 40).max(classic.resent), "{cell:?}: {}", ours.resent);
    }
}

/// With loss, latencies are as short as KCP's: in all cells of a receiver together, and in each cell apart
/// from chance.
#[test]
fn with_loss_messages_to_a_peer_that_acks_at_intervals_are_as_early_as_kcp() {
    for rule in [Rule::Ours, Rule::Ikcp, Rule::KcpGo] {
        let (mut logs, mut cells) = (0.0, 0.0);
        let is_flow = |cell: &Cell| matches!(cell.flow, Flow::Input | Flow::Snapshots);
        for cell in
            Cell::all().into_iter().filter(|cell| cell.rule == rule && cell.loss >= 0.05 && is_flow(cell))
        {
            let [ours, classic] = cell.beside_classic(SEEDS);
            let ratio = ours.p99() / classic.p99();
            assert!(ratio <= 1.25, "{cell:?}: {:.1} and {:.1} ms", ours.p99(), classic.p99());
            (logs, cells) = (logs + ratio.ln(), cells + 1.0);
        }
        let mean = f64::exp(logs / cells);
        assert!(mean <= 0.9, "{rule:?}: {mean:.2}");
    }
}
