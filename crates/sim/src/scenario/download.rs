//! Downloads that never end, with a game beside them.

use super::end::FlowEnd;
use super::report::{Latency, latency};
use super::{Mode, ScenarioError};
use crate::{Group, Link, LinkConfig, Pair};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::Conv;

/// What downloads that never end, and a game beside them, got of a path in a certain time.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Downloads {
    /// Bytes that each has delivered, in order.
    pub payload: Vec<u64>,
    /// Bytes that both ends of each have sent, including 28 for each datagram.
    pub wire: Vec<u64>,
    /// Latencies of the game. A message that had not arrived counts as arriving at the end.
    pub game: Latency,
}

impl Downloads {
    /// Runs a download in each of `modes`, and a game in the mode `game`, 60 messages of 100 bytes per second, for the
    /// time `lasts`. `links` lead from the sender and back.
    ///
    /// # Errors
    ///
    /// If a config is out of range, or a send queue is full.
    pub fn measure(
        modes: &[Mode],
        game: Option<&Mode>,
        links: [LinkConfig; 2],
        lasts: Duration,
        seed: u64,
    ) -> Result<Self, ScenarioError> {
        let (mut alices, mut bobs) = (Vec::new(), Vec::new());
        for (number, mode) in (0..).zip(modes.iter().chain(game)) {
            let [alice, bob] = &mode.ends;
            alices.push((Conv(number), FlowEnd::new(Conv(number), alice, Time::ZERO)?));
            bobs.push((Conv(number), FlowEnd::new(Conv(number), bob, Time::ZERO)?));
        }
        let [there, back] = links;
        let links = [Link::new(there, seed, 1)?, Link::new(back, seed, 2)?];
        let mut running = Running {
            pair: Pair::new(Group::new(alices), Group::new(bobs), links),
            sent: vec![0; modes.len()],
            received: vec![0; modes.len()],
            game: game.map(|_| Vec::new()),
            pending: 0,
            seed,
        };
        running.run(Time::ZERO + lasts)?;
        Ok(running.report(Time::ZERO + lasts))
    }
}

struct Running {
    pair: Pair<Group<FlowEnd>, Group<FlowEnd>>,
    /// Messages of each download.
    sent: Vec<u32>,
    received: Vec<u32>,
    /// Latencies of the game, if there is one, and the number of its messages sent.
    game: Option<Vec<Duration>>,
    pending: u32,
    seed: u64,
}

impl Running {
    fn run(&mut self, end: Time) -> Result<(), ScenarioError> {
        let mut message = Vec::new();
        loop {
            self.fill()?;
            let frame = self.game.as_ref().map_or(end, |_| Time::ZERO + FRAME * self.pending).min(end);
            if !self.pair.step(frame) {
                self.pair.run_to(frame);
                if frame >= end {
                    return Ok(());
                }
                let (index, flow) = (self.pending, self.sent.len());
                self.send(flow, index, &[0; GAME])?;
                self.pending += 1;
            }
            self.receive(&mut message);
        }
    }

    /// Keeps enough waiting.
    fn fill(&mut self) -> Result<(), ScenarioError> {
        let flows = self.sent.iter().zip(&self.received);
        let due: Vec<_> = flows.map(|(&sent, &received)| sent..received + BACKLOG).collect();
        for (flow, messages) in due.into_iter().enumerate() {
            for index in messages {
                self.send(flow, index, &[0; MESSAGE])?;
            }
        }
        for (sent, received) in self.sent.iter_mut().zip(&self.received) {
            *sent = received + BACKLOG;
        }
        Ok(())
    }

    fn send(&mut self, flow: usize, index: u32, message: &[u8]) -> Result<(), ScenarioError> {
        let now = self.pair.now();
        let Some(alice) = self.pair.alice.get_mut(flow) else { return Ok(()) };
        let flow = u32::try_from(flow).unwrap_or(u32::MAX);
        alice.send(now, message).map_err(|error| ScenarioError::Send { seed: self.seed, flow, index, error })
    }

    fn receive(&mut self, message: &mut Vec<u8>) {
        let now = self.pair.now();
        for (flow, received) in self.received.iter_mut().enumerate() {
            let Some(bob) = self.pair.bob.get_mut(flow) else { continue };
            while bob.recv(message) {
                *received += 1;
            }
        }
        let (Some(bob), Some(game)) = (self.pair.bob.get_mut(self.received.len()), &mut self.game) else {
            return;
        };
        while bob.recv(message) {
            let sent = Time::ZERO + FRAME * u32::try_from(game.len()).unwrap_or(u32::MAX);
            game.push(now.since(sent));
        }
    }

    fn report(self, end: Time) -> Downloads {
        let mut game = self.game.unwrap_or_default();
        let missing = u32::try_from(game.len()).unwrap_or(u32::MAX)..self.pending;
        game.extend(missing.map(|number| end.since(Time::ZERO + FRAME * number)));
        let wire = |flow: usize| {
            let ends = [self.pair.alice.get(flow), self.pair.bob.get(flow)];
            ends.into_iter().flatten().map(|end| end.wire_bytes).sum()
        };
        Downloads {
            payload: self.received.iter().map(|&count| u64::from(count) * MESSAGE as u64).collect(),
            wire: (0..self.received.len()).map(wire).collect(),
            game: latency(game),
        }
    }
}

/// Size of the messages of a download: 8 segments with the default mtu.
const MESSAGE: usize = 11_008;
/// Messages of a download under way or waiting.
const BACKLOG: u32 = 1024;
/// Size of a message of the game, and the time between two.
const GAME: usize = 100;
const FRAME: Duration = Duration::from_nanos(16_666_667);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Discipline, Playback, Trace};
    use whitewater::kcp::{Congestion, Modern};

    #[test]
    fn a_download_fills_a_trace_and_a_game_waits_behind_it() {
        let mode = |congestion| Mode::modern(Modern::default()).with_congestion("", congestion);
        let (download, game) = (mode(Congestion::Cubic), mode(Congestion::None));
        let trace: Trace = "1".parse().unwrap(); // 1000 packets per second, in a queue of up to 100 ms
        let playback = Some(Playback { trace, queue: Discipline::DropTail(100) });
        let links = [LinkConfig { playback, ..LinkConfig::default() }, LinkConfig::default()];
        let run = |modes: &[Mode]| {
            Downloads::measure(modes, Some(&game), links.clone(), Duration::from_secs(5), 1).unwrap()
        };
        let alone = run(&[]);
        assert!(alone.payload.is_empty() && alone.game.max <= Duration::from_millis(1), "{alone:?}");
        let beside = run(&[download]);
        assert!((6_000_000..7_520_000).contains(&beside.payload[0]), "{beside:?}");
        assert!(beside.wire[0] > beside.payload[0], "{beside:?}");
        let waits = Duration::from_millis(20)..Duration::from_millis(150);
        assert!(waits.contains(&beside.game.p50), "{beside:?}");
    }
}
