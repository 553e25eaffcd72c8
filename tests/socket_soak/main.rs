//! Two hundred sessions and fifty bare KCP peers over real sockets and a relay that loses, doubles and swaps datagrams. They come and go:
//! some say goodbye, some crash, some are sent away, some stay. Every byte arrives both ways, whoever says goodbye has everything
//! delivered, and the memory of the process does not grow.
//!
//! `SOCKET_SOAK=<seconds>` says for how long (the gate: 120). Nothing depends on how fast the machine is, but for a deadline of half a minute.

#![cfg(feature = "net")]
#![expect(clippy::indexing_slicing, reason = "a test that panics has found something")]

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
/// Long enough for any machine; who waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at each player: what a frame of a game is.
const FRAME: Duration = Duration::from_millis(10);

#[test]
fn players_come_and_go_over_a_lossy_path_and_every_byte_is_right_and_memory_is_flat() {
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

/// What the process has of memory, bytes; on Linux only.
fn resident_memory() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

/// The last third is no larger than the second, but for what a few sessions more or less are.
fn is_flat(memory: &[u64]) {
    let most = |part: &[u64]| part.iter().max().copied().unwrap_or_default();
    let third = memory.len() / 3;
    let (before, after) = (most(&memory[third..2 * third]), most(&memory[2 * third..]));
    println!("{} KiB, then {} KiB", before / 1024, after / 1024);
    assert!(after <= before + GROWTH_MAX, "{before} bytes have become {after}");
}

/// Bytes of a page, at least: a larger one makes the bound stricter.
const PAGE: u64 = 4096;
/// 4 KiB for each of those who are there.
const GROWTH_MAX: u64 = 4096 * (SESSIONS + BARE) as u64;
