//! An arena: a server and a few players on this machine, over encrypted sessions and a network that loses datagrams.
//!
//! ```text
//! cargo run --release --features crypto --example arena [-- --help]
//! ```
//!
//! Bots run about and take what lies there, talk, and leave. Each kind of data goes the way that fits it:
//!
//! | what | way | for |
//! |---|---|---|
//! | the map | an unordered channel | all of it, once, beside the rest |
//! | what a bot presses | unreliable datagrams, each with the last few | the newest counts, and a lost one comes with the next |
//! | where everybody is | a sequenced channel | the newest only |
//! | who took what | an unordered channel | all of it; one does not wait for the other |
//! | what is said | ordered channels | all of it, in order |
//!
//! What you would take over is [`protocol`], and how [`server`] and [`bot`] are called once a frame. At the end both sides compare: what
//! is reliable has arrived, each once.

mod args;
mod bot;
mod map;
mod protocol;
#[path = "../echo/relay.rs"]
mod relay;
mod server;
mod table;

use args::{Args, Command};
use bot::Bot;
use relay::Link;
use server::Arena;
use std::error::Error;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use table::Table;

fn main() -> ExitCode {
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(Command::Run(args)) => args,
        Ok(Command::Help) => {
            println!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("arena: {wrong} (--help tells more)");
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("arena: {wrong}");
            ExitCode::FAILURE
        }
    }
}

/// All ends in one loop, as each of them has it by itself: what has come, what is due, and the rest of the frame.
fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut arena = Arena::new(args.clients, args.seed)?;
    let mut bots = Vec::new();
    for number in 0..args.clients {
        let network = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let at = network.local_addr()?;
        let seed = args.seed + u64::from(number);
        let link = Link { loss: args.loss, delay: args.rtt / 2, jitter: Duration::ZERO, seed };
        relay::start(network, arena.server.local_addr()?, link)?;
        bots.push(Bot::new(at, number)?);
    }
    println!(
        "{} players, {:?} of round trip, {:.1} % lost each way, encrypted\n",
        args.clients,
        args.rtt,
        args.loss * 100.0
    );

    let (start, mut table) = (Instant::now(), Table::new());
    let (mut frames, end) = (0, FRAMES * args.seconds);
    while !(arena.is_over() && bots.iter().all(Bot::is_gone)) {
        arena.pump()?;
        for bot in &mut bots {
            bot.pump()?;
        }
        while start.elapsed() >= FRAME * frames {
            for bot in &mut bots {
                bot.frame(frames, frames >= end)?;
            }
            if frames % FRAMES_PER_TICK == 0 {
                arena.tick()?;
            }
            frames += 1;
            if frames % FRAMES == 0 && frames <= end {
                table.print(frames / FRAMES, &arena, &bots);
            }
        }
        if frames > end + PATIENCE {
            return Err("the players do not get away".into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    arena.judge(&bots)?;
    Ok(())
}

/// Frames a second, and one of them.
const FRAMES: u32 = 60;
const FRAME: Duration = Duration::from_micros(16_667);
/// Frames from one tick of the server to the next: 20 Hz.
const FRAMES_PER_TICK: u32 = 3;
/// Frames for which the last messages, and the goodbyes, are waited for.
const PATIENCE: u32 = 30 * FRAMES;
