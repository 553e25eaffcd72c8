//! One run in virtual time with an event log of its sender.

use crate::args::Events;
use std::error::Error;
use std::io::Write;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::Conv;
use whitewater_sim::scenario::{Answer, EndMode, Traffic};
use whitewater_sim::{KcpEnd, Link, Pair};

/// Runs, and writes the log of alice line by line. Returns the number of lines.
pub(crate) fn run(events: &Events, log: &mut impl Write) -> Result<usize, Box<dyn Error>> {
    let [alice, bob] = &events.mode.ends;
    let link = |stream| Link::new(events.link.clone(), events.seed, stream);
    let mut pair = Pair::new(end(alice)?, end(bob)?, [link(1)?, link(2)?]);
    pair.alice.kcp_mut().log_events(Time::ZERO, usize::MAX);
    let (traffic, start) = (events.workload.traffic, Duration::from_millis(20));
    let answer = if let Answer::Traffic(answer) = events.workload.answer { answer.count } else { 0 };
    let (mut sent, mut answered, mut lines) = (0, 0, 0);
    let last = Time::ZERO + start + traffic.at(traffic.count) + PATIENCE;
    while pair.now() < last && (sent < traffic.count || pair.alice.kcp().wait_snd() > 0) {
        let now = pair.now();
        let is_due = |traffic: Traffic, index: u32| Time::ZERO + start + traffic.at(index) <= now;
        while sent < traffic.count
            && is_due(traffic, sent)
            && pair.alice.send(now, &vec![1; traffic.size]).is_ok()
        {
            sent += 1;
        }
        if let Answer::Traffic(of_bob) = events.workload.answer {
            while answered < answer
                && is_due(of_bob, answered)
                && pair.bob.send(now, &vec![2; of_bob.size]).is_ok()
            {
                answered += 1;
            }
        }
        let until = now + Duration::from_millis(1);
        pair.run_until(Duration::from_millis(1), |pair| {
            read(&mut pair.alice);
            read(&mut pair.bob);
            false
        });
        pair.run_to(until);
        lines += pair.alice.kcp_mut().write_log(log)?;
    }
    log.flush()?;
    Ok(lines)
}

fn end(mode: &EndMode) -> Result<KcpEnd, whitewater::ConfigError> {
    KcpEnd::new(Conv(1), &mode.config, mode.drive, Time::ZERO)
}

fn read(end: &mut KcpEnd) {
    let mut message = Vec::new();
    while end.recv(&mut message) {}
}

/// How long to wait for the last messages.
const PATIENCE: Duration = Duration::from_secs(10);
