//! An arena: a server and a few players on this machine, over encrypted sessions and a network that loses datagrams.
//!
//! ```text
//! cargo run --release --features crypto --example arena [-- --help]
//! ```
//!
//! Bots run about, pick up items, chat, and leave. Each kind of data has a channel that suits it:
//!
//! | data | channel | because |
//! |---|---|---|
//! | the map | an unordered channel | all of it must arrive, once, without holding up the rest |
//! | a bot's keys | unreliable datagrams, each with the last few frames | the newest count, and the next datagram repeats lost ones |
//! | positions | a sequenced channel | only the newest count |
//! | pickups | an unordered channel | all must arrive, but need not wait for each other |
//! | chat | ordered channels | all must arrive, in order |
//!
//! To reuse: [`protocol`], and the way in which [`server`] and [`bot`] are called once per frame. At the end both sides
//! are compared: everything reliable has arrived exactly once.

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

/// All ends in one loop. Each would do the same by itself: receive, do what is due, sleep until the next frame.
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

/// Frames per second, and the length of one.
const FRAMES: u32 = 60;
const FRAME: Duration = Duration::from_micros(16_667);
/// Frames between two ticks of the server: 20 Hz.
const FRAMES_PER_TICK: u32 = 3;
/// Frames to wait for the last messages and goodbyes.
const PATIENCE: u32 = 30 * FRAMES;
