//! How many messages are there in time, and what that costs.

use super::ours;
use std::error::Error;
use std::slice::from_ref;
use std::time::Duration;
use whitewater::Repairs;
use whitewater_sim::scenario::{Cell, Family, Mode, Score};

/// Prints each path of a player's input, with a deadline of the way there and five more messages.
pub(crate) fn print(seeds: u64) -> Result<(), Box<dyn Error>> {
    println!("messages that are late, at so many times the bytes of KCP fast; up to 1 % holds\n");
    println!("| | in time | deadline | auto | repairs 30 % | 130 % |\n|---|---:|---:|---:|---:|---:|");
    let family = Family::input();
    let (mut held, mut scores) = ([0; 4], vec![Vec::new(); 4]);
    for cell in &family.cells {
        let within = cell.link.delay + GAPS * cell.workload.traffic.every;
        let modes = [
            Repairs::Deadline(u16::try_from(within.as_millis())?),
            Repairs::Auto,
            Repairs::Budget(30),
            Repairs::Budget(130),
        ];
        let base = cell.scenario(&Mode::fast()).run(1..=seeds)?;
        let mut row = format!("| {} | {} ms |", cell.name, within.as_millis());
        for ((repairs, held), scores) in modes.into_iter().zip(&mut held).zip(&mut scores) {
            let (late, score) = run(cell, repairs, within, seeds, from_ref(&base))?;
            *held += u32::from(late <= 0.01);
            row += &format!(" {:.2} % at {:.2} |", 100.0 * late, score.bytes);
            scores.push(score.bytes);
        }
        println!("{row}");
    }
    let mean =
        |bytes: &Vec<f64>| (bytes.iter().map(|bytes| bytes.ln()).sum::<f64>() / bytes.len() as f64).exp();
    let held = held
        .iter()
        .zip(&scores)
        .map(|(held, bytes)| format!(" {held} of {} at {:.2} |", bytes.len(), mean(bytes)));
    println!("| holds | |{}", held.collect::<String>());
    Ok(())
}

/// The share of messages that are late, and the score.
fn run(
    cell: &Cell,
    repairs: Repairs,
    within: Duration,
    seeds: u64,
    base: &[whitewater_sim::scenario::Report],
) -> Result<(f64, Score), Box<dyn Error>> {
    let report = cell.scenario(&ours(repairs)).run(1..=seeds)?;
    let latencies = || report.runs.iter().flat_map(|run| &run.latencies);
    let late = latencies().filter(|latency| **latency > within).count();
    Ok((late as f64 / latencies().count() as f64, Score::of(from_ref(&report), base)))
}

/// How many messages later one must be there.
const GAPS: u32 = 5;
