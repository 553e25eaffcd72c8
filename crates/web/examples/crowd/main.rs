//! What players in browsers cost a server beside native ones: CPU time, memory and bytes. Linux only.
//!
//! ```text
//! cargo run --release -p whitewater-web --example crowd -- [CLIENTS [SECONDS [ROUNDS]]]
//! ```
//!
//! For each kind of players the program starts itself as a server, and plays against it: 30 times a second each client sends an input of 32 bytes
//! and gets a snapshot of 200 bytes, as datagrams of its session. The server measures itself, so that clients do not count. The kinds take turns,
//! and the table has medians of the rounds. Only ratios within one run mean something: other programs on the machine change the rest.

mod clients;
mod cost;
mod server;

use clients::{Kind, Played};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// A second.
const TICKS: u32 = 30;
/// Bytes.
const SNAPSHOT: usize = 200;
const INPUT: usize = 32;
const PROTOCOL: u64 = 1;
const SECRET: [u8; 32] = [7; 32];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    if let [serve, most] = words.as_slice()
        && serve == "serve"
    {
        return Ok(server::serve(most.parse()?)?);
    }
    let number = |place: usize, default: u32| words.get(place).map_or(Ok(default), |word| word.parse());
    let (clients, seconds, rounds) = (number(0, 500)?, number(1, 10)?, number(2, 3)?);
    println!("{clients} clients, {seconds} s of {TICKS} ticks, median of {rounds} rounds\n");
    let mut runs = Kind::ALL.map(|kind| (kind, Vec::new()));
    for round in 1..=rounds {
        for (kind, runs) in &mut runs {
            let run = run(*kind, clients, seconds * TICKS)?;
            eprintln!("round {round}: {kind:?} {run:?}");
            runs.push(run);
        }
    }
    println!("{HEAD}");
    let native = runs.first().map_or(f64::NAN, |(_, runs)| median(runs, Run::cpu));
    for (kind, runs) in &runs {
        let of = |figure: fn(&Run) -> f64| median(runs, figure);
        let wire = |bytes: f64| if bytes > 0.0 { format!("{bytes:.0}") } else { "-".to_owned() };
        println!(
            "| {} | {:.0} | {:.2} % | {:.1} µs | {:.1} | {:.1} µs | {:.0} kB | {:.0} | {} |",
            kind.name(),
            of(|run| run.sessions),
            of(|run| run.arrived * 100.0),
            of(Run::cpu),
            of(Run::cpu) / native,
            of(|run| run.transport_cpu),
            of(|run| run.memory / 1000.0),
            of(|run| run.snapshot),
            wire(of(|run| run.snapshot_on_wire)),
        );
    }
    Ok(())
}

const HEAD: &str = "\
| players | sessions | snapshots that arrive | CPU a client and tick | of native | of it for QUIC, TLS, TCP | memory a client | bytes of a session's \
datagram with a snapshot | of UDP |
|---|---:|---:|---:|---:|---:|---:|---:|---:|";

/// What was measured with one kind of clients.
#[derive(Debug)]
struct Run {
    sessions: f64,
    /// Share of the snapshots.
    arrived: f64,
    /// CPU time of the server's thread a client and tick, and of the thread that carries browsers, µs.
    game_cpu: f64,
    transport_cpu: f64,
    /// Bytes a client.
    memory: f64,
    /// Bytes of datagrams from the server, for each snapshot: those of sessions, and those of UDP.
    snapshot: f64,
    snapshot_on_wire: f64,
}

impl Run {
    fn cpu(&self) -> f64 {
        self.game_cpu + self.transport_cpu
    }
}

fn median(runs: &[Run], figure: impl Fn(&Run) -> f64) -> f64 {
    let mut figures: Vec<_> = runs.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

fn run(kind: Kind, clients: u32, ticks: u32) -> Result<Run, Box<dyn Error>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["serve", &clients.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut orders, answers) = (child.stdin.take().ok_or("no pipe")?, child.stdout.take().ok_or("no pipe")?);
    let mut answers = BufReader::new(answers).lines();
    let mut answer = move || answers.next().unwrap_or_else(|| Err(std::io::ErrorKind::UnexpectedEof.into()));
    let place = server::Place::parse(&answer()?).ok_or("the server says something else")?;
    let crowd = clients::Crowd::join(kind, clients, &place)?;
    let sessions = crowd.wait();
    crowd.measure(true);
    writeln!(orders, "{ticks}")?;
    let measured = server::Measured::parse(&answer()?).ok_or("the server says something else")?;
    let Played { snapshots, bytes, bytes_on_wire } = crowd.end();
    drop(orders); // it ends
    child.wait()?;
    let each = f64::from(sessions) * f64::from(ticks);
    Ok(Run {
        sessions: sessions.into(),
        arrived: snapshots as f64 / measured.snapshots as f64,
        game_cpu: measured.game_ns as f64 / 1000.0 / each,
        transport_cpu: measured.transport_ns as f64 / 1000.0 / each,
        memory: measured.bytes as f64 / f64::from(sessions),
        snapshot: bytes as f64 / snapshots as f64,
        snapshot_on_wire: bytes_on_wire as f64 / snapshots as f64,
    })
}
