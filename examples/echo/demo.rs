//! Measures round trips and prints them: over a lossy network on this host, or to a server.

use crate::args::Args;
use crate::client::{self, Outcome, PATIENCE, Progress};
use crate::relay::Link;
use crate::{relay, server};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use whitewater::kcp::{self, Config, Conv};

/// Runs all presets at the same time, each with its own ends and its own network.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let Link { loss, delay, jitter, .. } = args.link;
    print_load(args);
    println!(
        "each way {} % lost, {} ms + up to {} ms\n",
        100.0 * loss,
        delay.as_millis(),
        jitter.as_millis()
    );
    let runs: Vec<_> =
        args.presets.iter().map(|(name, config)| (*name, *config, Progress::default())).collect();
    let outcomes = thread::scope(|scope| {
        let clients: Vec<_> = runs
            .iter()
            .map(|(name, config, progress)| (*name, scope.spawn(|| one(args, config, progress)), progress))
            .collect();
        watch(&clients);
        clients.into_iter().map(|(name, client, _)| (name, join(client))).collect::<Vec<_>>()
    });
    print_head();
    for (name, outcome) in outcomes {
        print_row(name, &outcome.map_err(|error| format!("{name}: {error}"))?);
    }
    Ok(())
}

/// Runs one client over one socket.
pub(crate) fn measure(args: &Args, socket: &mut kcp::Socket) -> io::Result<()> {
    print_load(args);
    let progress = Progress::default();
    let peer = socket.peer_addr().to_string();
    let outcome = thread::scope(|scope| {
        let client = scope.spawn(|| client::run(socket, args.load, &progress));
        let clients = [(peer.as_str(), client, &progress)];
        watch(&clients);
        let [(_, client, _)] = clients;
        join(client)
    })?;
    print_head();
    print_row("", &outcome);
    if outcome.round_trips.is_empty() {
        return Err(io::Error::other("no echo came back"));
    }
    Ok(())
}

/// A server, a network and a client, for as long as the client runs.
fn one(args: &Args, config: &Config, progress: &Progress) -> io::Result<Outcome> {
    let limits = kcp::PeersConfig { kcp: *config, eager: args.eager, ..kcp::PeersConfig::default() };
    let mut listener = kcp::Listener::bind((Ipv4Addr::LOCALHOST, 0), &limits)?;
    let network = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut socket = kcp::Socket::connect(network.local_addr()?, Conv(1), config)?;
    socket.set_eager(args.eager);
    relay::start(network, listener.local_addr()?, args.link)?;
    let running = Arc::new(AtomicBool::new(true));
    let serving = thread::spawn({
        let running = Arc::clone(&running);
        move || server::serve(&mut listener, false, || running.load(Relaxed))
    });
    let outcome = client::run(&mut socket, args.load, progress);
    running.store(false, Relaxed);
    match serving.join() {
        Ok(Err(error)) => Err(error),
        _ => outcome,
    }
}

type Client<'scope, 'a> = (&'a str, ScopedJoinHandle<'scope, io::Result<Outcome>>, &'a Progress);

/// Shows the progress until all have finished: in place on a terminal, otherwise now and then. All presets fit into 80
/// columns.
fn watch(clients: &[Client<'_, '_>]) {
    let (terminal, start) = (io::stderr().is_terminal(), Instant::now());
    let mut said = Duration::ZERO;
    while clients.iter().any(|(_, client, _)| !client.is_finished()) {
        thread::sleep(Duration::from_millis(100));
        let every = Duration::from_millis(if terminal || said.is_zero() { 500 } else { 2000 });
        if start.elapsed() < said + every {
            continue;
        }
        said = start.elapsed();
        let sent = clients.iter().map(|(_, _, progress)| progress.sent.load(Relaxed)).max().unwrap_or(0);
        let mut line = format!("{:4.1} s, back of {sent}:", said.as_secs_f64());
        for (name, _, Progress { delivered, .. }) in clients {
            let _ = write!(line, " {name} {},", delivered.load(Relaxed));
        }
        line.pop();
        eprint!("{}{line}{}", if terminal { "\r" } else { "" }, if terminal { "\x1b[K" } else { "\n" });
        let _ = io::stderr().flush();
    }
    if terminal {
        eprint!("\r\x1b[K");
    }
}

fn join(client: ScopedJoinHandle<'_, io::Result<Outcome>>) -> io::Result<Outcome> {
    client.join().unwrap_or_else(|_| Err(io::Error::other("the client panicked")))
}

fn print_load(args: &Args) {
    let (load, eager) = (args.load, if args.eager { ", flushed at once" } else { "" });
    println!("{} messages a second of {} bytes for {:?}{eager},", load.rate, load.size, load.time);
    println!("then at most {PATIENCE:?} for the last echoes");
}

fn print_head() {
    println!("          echoes        round trip, ms                   resends   bytes sent");
    println!("          came back      p50     p95     p99     max               per payload byte");
}

fn print_row(name: &str, outcome: &Outcome) {
    let ms = |percent| match outcome.percentile(percent) {
        Some(time) if time < Duration::from_millis(10) => format!("{:.1}", time.as_secs_f64() * 1000.0),
        Some(time) => format!("{:.0}", time.as_secs_f64() * 1000.0),
        None => "-".to_owned(),
    };
    let count = format!("{}/{}", outcome.round_trips.len(), outcome.sent);
    println!(
        "{name:<9} {count:<10} {:>7} {:>7} {:>7} {:>7} {:>9} {:>12.2}",
        ms(50),
        ms(95),
        ms(99),
        ms(100),
        outcome.resends,
        outcome.wire_per_byte,
    );
}
