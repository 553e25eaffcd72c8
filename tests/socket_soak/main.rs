//! Two hundred sessions and fifty bare KCP peers over real sockets, through a relay that loses, duplicates
//! and reorders datagrams. Players come and go: some say goodbye, some crash, some are kicked, some stay.
//! Every byte arrives in both directions, players who say goodbye get everything delivered first, and the
//! memory of the process does not grow.
//!
//! `SOCKET_SOAK=<seconds>` sets the duration (120 in the gate). Nothing depends on the speed of the machine,
//! except for a timeout of half a minute.

#![cfg(feature = "net")]
#![expect(clippy::indexing_slicing, reason = "a test that panics has found something")]

#[cfg(test)]
#[path = "../common/configs.rs"]
mod configs;
#[cfg(test)]
mod player;
#[cfg(test)]
mod relay;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod stream;

use player::{Kind, Player};
use relay::Relay;
use servers::Servers;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

pub(crate) const SESSIONS: u32 = 200;
pub(crate) const BARE: u32 = 50;
/// Long enough for any machine; a longer wait is a failure.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two visits to each player: a frame of a game.
const FRAME: Duration = Duration::from_millis(10);

#[test]
fn players_come_and_go_over_a_lossy_path_with_every_byte_intact_and_flat_memory() {
    let seconds = std::env::var("SOCKET_SOAK").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(5);
    let duration = Duration::from_secs(seconds);
    let servers = Servers::start();
    let relays = servers.addresses.map(Relay::start);
    let fronts = [0, 1].map(|which| relays[which].address);
    let begin = |number: u32, slot: u32| {
        let bare = slot >= SESSIONS;
        Player::begin(number, bare, fronts[usize::from(bare)])
    };
    let mut players: Vec<_> = (0..SESSIONS + BARE).map(|slot| begin(slot, slot)).collect();
    let (mut next, mut ended, mut memory) = (SESSIONS + BARE, BTreeMap::<Kind, u32>::new(), Vec::new());
    let start = Instant::now();
    while start.elapsed() < duration || players.iter().any(|player| !player.is_caught_up()) {
        let is_over = start.elapsed() >= duration;
        assert!(
            start.elapsed() < duration + PATIENCE,
            "{:?}",
            players.iter().find(|player| !player.is_caught_up())
        );
        let frame = Instant::now();
        for (slot, player) in (0..).zip(&mut players) {
            if is_over {
                player.say_no_more();
            }
            if player.play() && !is_over {
                *ended.entry(player.kind).or_default() += 1;
                *player = begin(next, slot);
                next += 1;
            }
        }
        memory.extend(resident_memory());
        std::thread::sleep(FRAME.saturating_sub(frame.elapsed()));
    }
    let (faults, received) = (relays.map(Relay::stop), servers.stop());
    let heard: u64 = players.iter().map(|player| u64::from(player.heard())).sum();
    println!("{next} players, {received:?} messages, ended: {ended:?}, {faults:?}");
    assert!(received.iter().all(|received| *received > 100 * seconds) && heard > 0);
    assert!(
        faults.iter().all(|faults| faults.lost > 20 * seconds && faults.doubled > 0 && faults.swapped > 0)
    );
    if seconds >= 20 {
        assert_eq!(ended.len(), Kind::ALL.len() - 1, "all but those who stay: {ended:?}");
        is_flat(&memory);
    }
}

/// Memory of the process, bytes; only on Linux.
fn resident_memory() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

/// Checks that the last third is no larger than the second, apart from a few sessions more or less.
fn is_flat(memory: &[u64]) {
    let most = |part: &[u64]| part.iter().max().copied().unwrap_or_default();
    let third = memory.len() / 3;
    let (before, after) = (most(&memory[third..2 * third]), most(&memory[2 * third..]));
    println!("{} KiB, then {} KiB", before / 1024, after / 1024);
    assert!(after <= before + GROWTH_MAX, "{before} bytes have become {after}");
}

/// Minimum size of a page, bytes; larger pages make the bound stricter.
const PAGE: u64 = 4096;
/// 4 KiB for each peer.
const GROWTH_MAX: u64 = 4096 * (SESSIONS + BARE) as u64;
