//! Runs a game with bots for some seconds over a link.

use super::samples::{Latency, Samples, Snapshot, Traffic};
use crate::client::{Client, Sample};
use crate::lab::{Lab, LinkSpec, Transport};
use crate::server::Counts;
use crate::wire::{self, Hello, Wish};
use std::time::Duration;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number of players.
    pub bots: u8,
    /// Duration.
    pub seconds: u32,
    /// The network.
    pub link: LinkSpec,
    /// The transport.
    pub transport: Transport,
    /// The same seed gives the same game.
    pub seed: u64,
}

impl Default for Settings {
    /// 8 bots for a minute, over sessions with 60 ms and 5 %.
    fn default() -> Self {
        let (link, transport) = (LinkSpec::default(), Transport::Sessions);
        Self { bots: 8, seconds: 60, link, transport, seed: 1 }
    }
}

/// The result of a run, besides the samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// The server's counters.
    pub counts: Counts,
    /// The last wave, and the remaining health of the base.
    pub wave: u16,
    /// See `wave`.
    pub base: u16,
}

/// Plays and measures.
#[must_use]
pub fn run(settings: &Settings) -> (Samples, Outcome) {
    let Settings { bots, seconds, link, transport, seed } = settings;
    let mut lab = Lab::new(*transport, link, *seed);
    for number in 0..*bots {
        let name = format!("bot {number}");
        lab.join(Hello { name, wish: Wish::Any, ticket: u64::from(number) }, true);
    }
    let title = format!("{bots} bots, {seconds} s, {link}, {transport:?}, seed {seed}");
    let mut samples = Samples { title, ..Samples::default() };
    let (start, mut before) = (lab.now(), (0, 0));
    for second in 1..=*seconds {
        for _ in 0..30 {
            lab.run_tick();
            let at = lab.now().since(start);
            for guest in 0..lab.guests() {
                if let Some(client) = lab.client_mut(guest) {
                    sample(client, at, &mut samples);
                }
            }
        }
        let now = total(&lab);
        let each = |now: u64, before: u64| {
            f64::from(u32::try_from(now - before).unwrap_or(u32::MAX)) / f64::from((*bots).max(1))
        };
        let at = Duration::from_secs(second.into());
        samples.traffic.push(Traffic { at, up: each(now.0, before.0), down: each(now.1, before.1) });
        before = now;
    }
    let (server, world) = (lab.server(), lab.server().world());
    (samples, Outcome { counts: server.counts(), wave: world.wave, base: world.base })
}

/// Collects what a client has measured since the last call.
pub(crate) fn sample(client: &mut Client, at: Duration, samples: &mut Samples) {
    let taken = client.take_samples();
    let full = client.confirmed().map_or(0, |world| wire::full_len(world, client.you()));
    for one in taken {
        match one {
            Sample::Snapshot(bytes) => samples.snapshots.push(Snapshot { at, bytes, full }),
            Sample::Error(error) => samples.errors.push((at, error)),
            Sample::Effect(took) => samples.latencies.push(Latency { at, took }),
        }
    }
}

/// Bytes of all clients so far, up and down.
fn total(lab: &Lab) -> (u64, u64) {
    let each = (0..lab.guests()).filter_map(|guest| lab.traffic(guest));
    each.fold((0, 0), |(up, down), traffic| (up + traffic.0.bytes, down + traffic.1.bytes))
}
