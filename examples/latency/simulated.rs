//! Virtual time: the same seeds give the same figures.

use crate::Outcome;
use crate::args::Args;
use crate::progress::Bar;
use whitewater_sim::scenario::{Report, Scenario, ScenarioError};

/// Runs every mode, one after the other.
pub(crate) fn run(args: &Args) -> Result<Vec<Outcome>, ScenarioError> {
    let bar = Bar::new(args.seeds * args.modes.len() as u64);
    let mut outcomes = Vec::new();
    let mut done = 0;
    for mode in &args.modes {
        let scenario = Scenario::new(args.workload, args.link.clone(), mode.clone());
        let mut all = Report::default();
        for seed in 1..=args.seeds {
            bar.show(done, &mode.name);
            let one = scenario.run([seed])?;
            all.runs.extend(one.runs);
            all.sent += one.sent;
            all.delivered += one.delivered;
            all.resends += one.resends;
            done += 1;
        }
        outcomes.push((mode.name.clone(), all));
    }
    Ok(outcomes)
}
