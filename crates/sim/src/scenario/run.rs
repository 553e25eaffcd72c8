//! One run of a scenario with one seed.

use super::end::FlowEnd;
use super::flow::FlowState;
use super::report::{Report, Run};
use super::workload::Start;
use super::{Scenario, ScenarioError};
use crate::{Group, Link, Pair, SimRng};
use rand::RngExt;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::Conv;

/// Runs `scenario` once and adds the measurements to the report of each flow.
pub(super) fn run(scenario: &Scenario, seed: u64, reports: &mut [Report]) -> Result<(), ScenarioError> {
    let mut running = Running::new(scenario, seed)?;
    while !running.is_done() && running.step()? {}
    running.report(reports);
    Ok(())
}

/// A run in progress.
struct Running {
    flows: Vec<FlowState>,
    pair: Pair<Group<FlowEnd>, Group<FlowEnd>>,
    deadline: Time,
}

impl Running {
    fn new(scenario: &Scenario, seed: u64) -> Result<Self, ScenarioError> {
        let (mut alices, mut bobs, mut flows) = (Vec::new(), Vec::new(), Vec::new());
        for (number, flow) in (0..).zip(&scenario.flows) {
            let (conv, [alice, bob]) = (Conv(number), &flow.mode.ends);
            let ([alice_beat, bob_beat], start) = starts(flow.workload.start, seed, number.into());
            alices.push((conv, FlowEnd::new(conv, alice, alice_beat)?));
            bobs.push((conv, FlowEnd::new(conv, bob, bob_beat)?));
            flows.push(FlowState::new(flow.workload, seed, number, start));
        }
        let [there, back] = &scenario.links;
        let links = [Link::new(there.clone(), seed, 1)?, Link::new(back.clone(), seed, 2)?];
        let deadline = flows.iter().map(FlowState::ends_at).max().unwrap_or_default() + PATIENCE;
        Ok(Self { flows, pair: Pair::new(Group::new(alices), Group::new(bobs), links), deadline })
    }

    fn is_done(&self) -> bool {
        self.flows.iter().all(FlowState::is_done)
    }

    /// Lets the next thing happen: a message to send, a reader that starts, an event in the network. Returns
    /// `false` if nothing more happens, or not in time.
    fn step(&mut self) -> Result<bool, ScenarioError> {
        let next = self.flows.iter().filter_map(FlowState::next_at).min();
        let until = next.map_or(self.deadline, |at| at.min(self.deadline));
        if !self.pair.step(until) {
            self.pair.run_to(until);
            if next != Some(until) {
                return Ok(false);
            }
            self.each_flow(FlowState::act)?;
        }
        self.each_flow(FlowState::receive)?;
        Ok(true)
    }

    fn each_flow(
        &mut self,
        mut act: impl FnMut(&mut FlowState, Time, &mut FlowEnd, &mut FlowEnd) -> Result<(), ScenarioError>,
    ) -> Result<(), ScenarioError> {
        let (now, pair) = (self.pair.now(), &mut self.pair);
        for (index, flow) in self.flows.iter_mut().enumerate() {
            if let (Some(alice), Some(bob)) = (pair.alice.get_mut(index), pair.bob.get_mut(index)) {
                act(flow, now, alice, bob)?;
            }
        }
        Ok(())
    }

    fn report(self, reports: &mut [Report]) {
        let Self { flows, pair, .. } = self;
        for (index, (flow, report)) in flows.into_iter().zip(reports).enumerate() {
            let (Some(alice), Some(bob)) = (pair.alice.get(index), pair.bob.get(index)) else { continue };
            let sent = flow.wanted();
            let run = Run {
                bytes: [alice.wire_bytes, bob.wire_bytes],
                datagrams: [alice.datagrams, bob.datagrams],
                links: [pair.links[0].stats(), pair.links[1].stats()],
                ..flow.into_run()
            };
            report.add(run, sent, alice.resends() + bob.resends());
        }
    }
}

/// When both ends first flush, and when the first message of a flow is sent.
fn starts(start: Start, seed: u64, flow: u64) -> ([Time; 2], Time) {
    match start {
        Start::At { beat, traffic } => ([Time::ZERO + beat; 2], Time::ZERO + traffic),
        Start::Random => {
            let within =
                |stream| INTERVAL.mul_f64(SimRng::new(seed, stream + FLOW_STREAMS * flow).random::<f64>());
            let beats = BEAT_STREAMS.map(|stream| Time::ZERO + within(stream));
            (beats, Time::ZERO + 2 * INTERVAL + within(START_STREAM))
        }
    }
}

/// The range in which first flushes and first messages are spread.
const INTERVAL: Duration = Duration::from_millis(10);
/// How long after the last message to wait for the last delivery.
const PATIENCE: Duration = Duration::from_secs(60);
/// Random streams for the first flushes of alice and bob; the links have streams 1 and 2.
const BEAT_STREAMS: [u64; 2] = [777, 778];
/// The random stream for the time of the first message.
const START_STREAM: u64 = 999;
/// Distance between the streams of one flow and the next.
const FLOW_STREAMS: u64 = 1000;
