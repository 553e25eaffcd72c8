//! The traffic of one running session.

use super::end::FlowEnd;
use super::report::Run;
use super::workload::{Answer, Traffic, Workload};
use super::{ScenarioError, message};
use whitewater::Time;

/// What a flow has sent and received so far.
pub(super) struct FlowState {
    seed: u64,
    workload: Workload,
    number: u32,
    start: Time,
    there: Direction,
    /// Bob's own messages, or the echo of alice's.
    back: Direction,
    bob_reads: bool,
    run: Run,
}

impl FlowState {
    pub(super) fn new(workload: Workload, seed: u64, number: u32, start: Time) -> Self {
        let (alices, bobs) = (u64::from(number) * 2, u64::from(number) * 2 + 1);
        let back = match workload.answer {
            Answer::Nothing => Direction::new(bobs, Traffic { count: 0, ..workload.traffic }),
            Answer::Echo => Direction::new(alices, Traffic { count: 0, ..workload.traffic }),
            Answer::Traffic(traffic) => Direction::new(bobs, traffic),
        };
        let there = Direction::new(alices, workload.traffic);
        let run = Run { seed, ..Run::default() };
        Self { seed, workload, number, start, there, back, bob_reads: false, run }
    }

    /// When the last message is sent.
    pub(super) fn ends_at(&self) -> Time {
        let last = |traffic: Traffic| self.start + traffic.at(traffic.count.saturating_sub(1));
        last(self.there.traffic).max(last(self.back.traffic)).max(self.reads_at())
    }

    /// Number of messages to deliver.
    pub(super) fn wanted(&self) -> u32 {
        self.workload.wanted.min(self.workload.traffic.count)
    }

    pub(super) fn is_done(&self) -> bool {
        self.run.latencies.len() >= self.wanted() as usize
    }

    /// When the next action is due.
    pub(super) fn next_at(&self) -> Option<Time> {
        let reads = (!self.bob_reads).then(|| self.reads_at());
        [self.there.next_at(self.start), self.back.next_at(self.start), reads].into_iter().flatten().min()
    }

    /// Sends what is due, and lets bob start to read.
    pub(super) fn act(
        &mut self,
        now: Time,
        alice: &mut FlowEnd,
        bob: &mut FlowEnd,
    ) -> Result<(), ScenarioError> {
        let (seed, flow) = (self.seed, self.number);
        self.bob_reads |= self.reads_at() <= now;
        for (direction, end) in [(&mut self.there, alice), (&mut self.back, bob)] {
            while direction.next_at(self.start).is_some_and(|at| at <= now) {
                let index = direction.sent;
                let sent = end.send(now, direction.next_message());
                sent.map_err(|error| ScenarioError::Send { seed, flow, index, error })?;
            }
        }
        Ok(())
    }

    /// Reads what has arrived, checks and measures it.
    pub(super) fn receive(
        &mut self,
        now: Time,
        alice: &mut FlowEnd,
        bob: &mut FlowEnd,
    ) -> Result<(), ScenarioError> {
        let (seed, flow, echoes) = (self.seed, self.number, self.workload.answer == Answer::Echo);
        let wrong = |(index, len)| ScenarioError::Message { seed, flow, index, len };
        while self.bob_reads
            && let Some(index) = self.there.receive(bob).map_err(wrong)?
        {
            if echoes {
                let sent = bob.send(now, &self.there.got);
                sent.map_err(|error| ScenarioError::Send { seed, flow, index, error })?;
            } else {
                self.delivered(now, index);
            }
        }
        while let Some(index) = self.back.receive(alice).map_err(wrong)? {
            if echoes {
                self.delivered(now, index);
            }
        }
        Ok(())
    }

    /// The measurements.
    pub(super) fn into_run(self) -> Run {
        self.run
    }

    fn delivered(&mut self, now: Time, index: u32) {
        if !self.is_done() {
            let sent = self.start + self.workload.traffic.at(index);
            self.run.latencies.push(now.since(sent.max(self.reads_at())));
            self.run.lasted = now.since(self.start);
            self.run.payload += self.workload.traffic.size as u64;
        }
    }

    fn reads_at(&self) -> Time {
        self.start + self.workload.reads_after
    }
}

/// Messages in one direction.
struct Direction {
    stream: u64,
    traffic: Traffic,
    sent: u32,
    received: u32,
    /// The message that arrived last, and the one that was expected.
    got: Vec<u8>,
    want: Vec<u8>,
}

impl Direction {
    const fn new(stream: u64, traffic: Traffic) -> Self {
        Self { stream, traffic, sent: 0, received: 0, got: Vec::new(), want: Vec::new() }
    }

    /// When to send the next message.
    fn next_at(&self, start: Time) -> Option<Time> {
        (self.sent < self.traffic.count).then(|| start + self.traffic.at(self.sent))
    }

    /// The next message to send.
    fn next_message(&mut self) -> &[u8] {
        message::write(&mut self.want, self.stream, self.sent, self.traffic.size);
        self.sent += 1;
        &self.want
    }

    /// Reads the next message and returns its index. If it is the wrong one, returns the expected index and
    /// the length of what came instead.
    fn receive(&mut self, end: &mut FlowEnd) -> Result<Option<u32>, (u32, usize)> {
        if !end.recv(&mut self.got) {
            return Ok(None);
        }
        let index = self.received;
        message::write(&mut self.want, self.stream, index, self.traffic.size);
        if self.got != self.want {
            return Err((index, self.got.len()));
        }
        self.received += 1;
        Ok(Some(index))
    }
}
