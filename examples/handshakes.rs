//! What the handshake of each kind of session costs: datagrams, bytes, round trips, and the CPU time of each end. The
//! path is perfect.
//!
//! `cargo run --release --features pq,ring --example handshakes`

use std::net::SocketAddr;
use std::time::{Duration, Instant};
use whitewater::machine::Machine;
use whitewater::session::{Cipher, Client, Pattern, Server, Suite, public_key};
use whitewater::{ClientConfig, Event, ServerConfig, SessionConfig, Time};
use whitewater_sim::SimRng;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    println!("| suite | datagrams | bytes to the server | bytes to the client | client, µs | server, µs |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (name, pattern) in
        [("NN", Pattern::Nn), ("NNpsk0", Pattern::NnPsk0), ("NK", Pattern::Nk), ("NKpsk0", Pattern::NkPsk0)]
    {
        for (addition, family) in [("", Suite::Noise as fn(_, _) -> _), (", hybrid", Suite::Hybrid)] {
            let suite = family(pattern, Cipher::ChaChaPoly);
            let mut runs = (0..RUNS).map(|seed| shake(suite, seed)).collect::<Result<Vec<_>, _>>()?;
            runs.sort_unstable_by_key(|run| run.took[0] + run.took[1]);
            let Shaken { datagrams, bytes: [up, down], took: [client, server] } =
                runs.swap_remove(runs.len() / 2);
            let [client, server] = [client, server].map(|took| took.as_micros());
            println!("| {name}{addition} | {datagrams} | {up} | {down} | {client} | {server} |");
        }
    }
    Ok(())
}

/// One handshake, up to the packet that tells the server that the client is there.
struct Shaken {
    datagrams: usize,
    bytes: [usize; 2],
    took: [Duration; 2],
}

fn shake(suite: Suite, seed: u64) -> Result<Shaken, Failure> {
    let (psk, private) = (suite.needs_psk().then(|| [1; 32].into()), [2; 32]);
    let with_key = suite.needs_server_key();
    let server = ServerConfig {
        suites: vec![suite],
        psk: psk.clone(),
        server_key: with_key.then(|| private.into()),
        ..ServerConfig::insecure(SessionConfig::default())
    };
    let server_key = with_key.then(|| public_key(&private));
    let client = ClientConfig { suite, psk, server_key, ..ClientConfig::insecure(SessionConfig::default()) };
    let [here, there] = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 4000)));
    let mut shaken = Shaken { datagrams: 0, bytes: [0; 2], took: [Duration::ZERO; 2] };
    let Shaken { datagrams, bytes: [up, down], took: [of_client, of_server] } = &mut shaken;
    let mut server = Server::new(&server, SimRng::new(seed, 1))?;
    let mut client = timed(of_client, || Client::new(&client, SimRng::new(seed, 2)))?;
    let (now, mut datagram) = (Time::from_millis(1000), Vec::new());
    timed(of_client, || client.connect(now, &[there]))?;
    while !matches!(server.poll_event(), Some((_, Event::Connected))) {
        let before = *datagrams;
        while timed(of_client, || client.poll_transmit(now, &mut datagram)).is_some() {
            (*datagrams, *up) = (*datagrams + 1, *up + datagram.len());
            timed(of_server, || server.handle_datagram(now, here.into(), &mut datagram));
            datagram.clear();
        }
        while !client.is_connected()
            && timed(of_server, || server.poll_transmit(now, &mut datagram)).is_some()
        {
            (*datagrams, *down) = (*datagrams + 1, *down + datagram.len());
            timed(of_client, || client.handle_datagram(now, there.into(), &mut datagram));
            datagram.clear();
        }
        if *datagrams == before {
            return Err("it stands still".into());
        }
    }
    Ok(shaken)
}

fn timed<T>(total: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    *total += start.elapsed();
    done
}

const RUNS: u64 = 501;
