//! The replay window behaves like a set of numbers.

use super::script::Script;
use std::collections::BTreeSet;
use whitewater::inside::session::replay::{ReplayWindow, Replayed, WINDOW, expand, truncate};

/// Operations of a script.
pub mod op {
    /// A number this far behind the newest: u16.
    pub const BEHIND: u8 = 0;
    /// A number this far ahead of the newest: u16.
    pub const AHEAD: u8 = 1;
    /// Any number, high half first: u32, u32.
    pub const ANY: u8 = 2;
    /// The same, checked but not marked.
    pub const LOOK: u8 = 3;
    /// Number of operations.
    pub const COUNT: u8 = 4;
}

/// Runs a script: operations.
///
/// # Panics
///
/// If the window answers differently from a set, or the low half of a number does not expand to it.
pub fn replay_window(script: &[u8]) {
    let mut script = Script::new(script);
    let mut window = ReplayWindow::default();
    let mut came = BTreeSet::new();
    while !script.is_done() {
        let newest: Option<u64> = came.last().copied();
        let op = script.u8() % op::COUNT;
        let pn = match op {
            op::BEHIND => newest.unwrap_or_default().saturating_sub(script.u16().into()),
            op::AHEAD => newest.unwrap_or_default().saturating_add(script.u16().into()),
            _ => u64::from(script.u32()) << 32 | u64::from(script.u32()),
        };
        let expected = match newest {
            Some(newest) if u128::from(pn) + u128::from(WINDOW) <= newest.into() => Err(Replayed::Stale),
            _ if came.contains(&pn) => Err(Replayed::Duplicate),
            _ => Ok(()),
        };
        let before = window.clone();
        assert_eq!(window.check(pn), expected, "{pn:#x}");
        if op != op::LOOK && window.mark(pn).is_ok() {
            assert!(came.insert(pn), "{pn:#x} counted twice");
        } else {
            assert_eq!(window, before, "what does not count changes nothing");
        }
        assert_eq!(window.newest(), came.last().copied());
        if op < op::ANY {
            assert_eq!(
                expand(newest, truncate(pn)),
                pn,
                "of a number near the newest the low half is enough"
            );
        }
    }
}

/// Numbers in order, backwards, and across the edges of the window and of the range.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let step = |op: u8, by: u16| [&[op][..], &by.to_le_bytes()].concat();
    let any = |op: u8, pn: u64| {
        let halves = [pn >> 32, pn & 0xffff_ffff].map(|half| u32::try_from(half).unwrap_or_default());
        [&[op][..], &halves.map(u32::to_le_bytes).concat()].concat()
    };
    let edges = [1, 63, 64, 1022, 1023, 1024, 1025, 2047, 2048, 65_535];
    let mut seeds = vec![
        ("forward".to_owned(), step(op::AHEAD, 1).repeat(100)),
        ("again".to_owned(), [step(op::AHEAD, 1), step(op::BEHIND, 0)].concat().repeat(50)),
    ];
    for base in [0, 5000, u64::from(u32::MAX) - 10, 1 << 48, u64::MAX - 2, u64::MAX] {
        let around = edges.map(|by| [step(op::BEHIND, by), step(op::AHEAD, by)].concat()).concat();
        let looks = [any(op::LOOK, u64::MAX), any(op::LOOK, 0)].concat();
        seeds.push((format!("at-{base:x}"), [any(op::ANY, base), around, looks].concat()));
    }
    seeds
}
