//! The state of a world 20 times a second in one direction, and a player's inputs 60 times a second in the other, over
//! one pair of UDP sockets and a network that loses packets.
//!
//! ```text
//! cargo run --release --example snapshots [-- --help]
//! ```
//!
//! Nothing is resent. The next packets make up for lost ones:
//!
//! - A snapshot contains only the changes since the last one that the client has acknowledged. If there is none, or it is too
//!   old, the snapshot is sent in full. So a lost snapshot never affects later ones.
//! - A packet of inputs contains all inputs that are not known to have arrived. So the next packet replaces a lost one.
//!
//! To reuse: [`connection`], the rules in [`server`] and [`client`], and the way in which [`delta`] is written. Replace
//! [`world`] by your game. There is no encryption and no login.

mod args;
mod client;
mod connection;
mod delta;
mod inputs;
#[path = "../echo/relay.rs"]
mod relay;
mod server;
mod world;

use args::{Args, Command};
use client::Client;
use connection::Connection;
use server::{InputsArrived, Server, SnapshotsSent};
use std::error::Error;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::Time;
use world::{DOWN, LEFT, RIGHT, UP};

fn main() -> ExitCode {
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(Command::Run(args)) => args,
        Ok(Command::Help) => {
            println!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("snapshots: {wrong} (--help tells more)");
            return ExitCode::from(2);
        }
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("snapshots: {wrong}");
            ExitCode::FAILURE
        }
    }
}

/// Both ends in one loop, as in a game: receive, do what is due, sleep until the next frame.
fn run(Args { link, seconds }: Args) -> Result<(), Box<dyn Error>> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let (to_server, to_client, network) = (bind()?, bind()?, bind()?);
    let network_addr = network.local_addr()?;
    relay::start(network, to_server.local_addr()?, link)?;
    let mut server = Server::new(Connection::new(to_server, network_addr)?, link.seed);
    let mut client = Client::new(Connection::new(to_client, network_addr)?);

    let (start, mut ticks, mut arrived) = (Instant::now(), 0, 0);
    let end = 60 * u32::try_from(seconds)?;
    while ticks < end || (client.is_waiting() && ticks < end + PATIENCE) {
        let now = Time::ZERO + start.elapsed();
        server.receive(now)?;
        client.receive(now)?;
        while let Some((number, snapshot)) = client.pop_snapshot() {
            if server.snapshot(number) != Some(snapshot) {
                return Err(format!("snapshot {number} is not what the server had").into());
            }
            arrived += 1;
        }
        if start.elapsed() >= TICK * ticks {
            if ticks < end {
                client.tick(now, keys(ticks))?;
                server.tick(now)?;
            } else {
                client.send_inputs(now)?; // the last ones may have been lost
            }
            ticks += 1;
        }
        client.connection.update(now);
        server.connection.update(now);
        thread::sleep(Duration::from_millis(1));
    }
    print(&server, &client, end, arrived);
    Ok(())
}

/// The player walks in a square, and stands still at times.
const fn keys(tick: u32) -> u8 {
    match tick / 30 % 5 {
        0 => RIGHT,
        1 => DOWN,
        2 => LEFT,
        3 => UP,
        _ => 0,
    }
}

fn print(server: &Server, client: &Client, inputs: u32, arrived: u32) {
    let SnapshotsSent { full, deltas, delta_bytes, bytes, full_bytes } = server.sent;
    let sent = full + deltas;
    println!("snapshots  {sent} sent, {full} of them full; {arrived} arrived, all as the server had them");
    let mean = |bytes: usize, count: u32| bytes as f64 / f64::from(count.max(1));
    println!(
        "bytes      {:.1} in full, {:.1} as a delta on average; {:.0} % saved in all",
        mean(full_bytes, sent),
        mean(delta_bytes, deltas),
        100.0 * (1.0 - bytes as f64 / full_bytes.max(1) as f64)
    );
    let InputsArrived { at_once, by_redundancy, lost } = server.arrived;
    let under_way = inputs.saturating_sub(at_once + by_redundancy + lost);
    println!(
        "inputs     {inputs} sent; {at_once} arrived at once, {by_redundancy} by redundancy, {} lost\n",
        lost + under_way
    );
    println!("             rtt    loss   sent B/s   arrived B/s");
    for (name, stats) in [("server", server.connection.stats()), ("client", client.connection.stats())] {
        println!(
            "{name:8} {:>4.0} ms {:>5.1} % {:>10.0} {:>13.0}",
            stats.rtt.as_secs_f64() * 1e3,
            stats.loss * 100.0,
            stats.sent_bandwidth,
            stats.acked_bandwidth,
        );
    }
}

/// A frame at 60 Hz.
const TICK: Duration = Duration::from_micros(16_667);
/// Ticks to wait for the last inputs.
const PATIENCE: u32 = 60;
