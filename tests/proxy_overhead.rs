//! What a proxy adds to a datagram: latency and CPU time of nginx, Envoy and Quilkin, beside the direct path.
//!
//! Clients send small datagrams that a server returns, for two seconds by each path in turn. The test asserts that they come back, and prints medians.
//! For figures, set `PROXY_TURNS` to the number of turns; without it there is one. `chrt -r 1` keeps other programs out of them.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[path = "common/balancer.rs"]
mod balancer;
#[path = "common/daemon.rs"]
mod daemon;
#[path = "common/envoy.rs"]
mod envoy;
#[path = "common/network.rs"]
mod network;
#[path = "common/nginx.rs"]
mod nginx;
#[path = "common/quilkin.rs"]
mod quilkin;

use balancer::{Balancer, Kind};
use daemon::Daemon;
use network::{in_own_network, ip};
use quilkin::{Quilkin, Token};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, fs};

/// Quilkin refuses datagrams from loopback addresses.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));
const CLIENTS: u32 = 100;
const DATAGRAMS_A_SECOND: u32 = 60;
/// Of a turn: so few that in half of the turns a busy machine does nothing else for long.
const SECONDS: u32 = 2;
/// Datagrams end with it; only Quilkin looks at it.
const TOKEN: Token = *b"a server";
/// Bytes of a datagram at the server, as in a game; the first eight say when it was sent.
const LEN: usize = 100;

#[test]
fn a_proxy_passes_datagrams_on_and_takes_time_for_it() {
    let Some(program) = quilkin::program() else { return };
    in_own_network("a_proxy_passes_datagrams_on_and_takes_time_for_it", || {
        if quilkin::has_memory_for(CLIENTS.into()) {
            ip(&format!("addr add {HERE}/32 dev lo"));
            measure(&program);
        }
    });
}

fn measure(program: &Path) {
    let server = server();
    let [nginx, envoy] = [Kind::Nginx, Kind::Envoy].map(|kind| Balancer::start(kind, &[server], 60));
    let (Some(nginx), Some(envoy)) = (nginx, envoy) else { return };
    let at = SocketAddr::new(HERE, 7777);
    let quilkin = Quilkin::start(program, at, &[(TOKEN, server)], CLIENTS as usize);
    let paths = [
        ("direct", server, None),
        ("nginx", nginx.address, nginx.daemon.as_ref()),
        ("Envoy", envoy.address, envoy.daemon.as_ref()),
        ("Quilkin", at, Some(&quilkin.daemon)),
    ];
    thread::sleep(Duration::from_secs(1)); // Envoy looks for its servers first
    let turns = env::var("PROXY_TURNS").map_or(1, |turns| turns.parse().unwrap());
    let clients = paths.map(|(_, address, _)| clients_of(address));
    let mut turns_by = paths.map(|_| Vec::new());
    for _ in 0..turns {
        for (((name, _, proxy), clients), turns) in paths.iter().zip(&clients).zip(&mut turns_by) {
            let turn = Turn::play(clients, *proxy);
            assert!(turn.returned > 0.5, "{name}: {} of all", turn.returned);
            turns.push(turn);
        }
    }
    println!(
        "| path | round trip p50, µs | p99, µs | added p50, µs | added p99, µs | CPU for a datagram, µs |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    let direct = &turns_by[0];
    for ((name, ..), turns) in paths.iter().zip(&turns_by) {
        let [p50, p99] = [50, 99].map(|percent| median(turns.iter().map(|turn| turn.percentile(percent))));
        let added = [50, 99].map(|percent| {
            let both = turns.iter().zip(direct);
            median(both.map(|(turn, direct)| turn.percentile(percent) - direct.percentile(percent)))
        });
        let cpu = median(turns.iter().map(|turn| turn.cpu));
        println!("| {name} | {p50:.0} | {p99:.0} | {:.0} | {:.0} | {cpu:.1} |", added[0], added[1]);
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns what it gets, less the token if it is still there.
fn server() -> SocketAddr {
    let socket = UdpSocket::bind((HERE, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buf = [0; 2048];
        loop {
            let (len, from) = socket.recv_from(&mut buf).unwrap();
            let _ = socket.send_to(&buf[..len.min(LEN)], from);
        }
    });
    let health = TcpListener::bind(address).unwrap();
    thread::spawn(move || health.incoming().for_each(drop)); // Envoy asks whether it is there
    address
}

fn clients_of(address: SocketAddr) -> Vec<UdpSocket> {
    let client = |_| {
        let socket = UdpSocket::bind((address.ip(), 0)).unwrap();
        socket.connect(address).unwrap();
        socket
    };
    (0..CLIENTS).map(client).collect()
}

struct Turn {
    /// Round trips in µs, sorted.
    trips: Vec<f64>,
    /// Share of datagrams that came back.
    returned: f64,
    /// CPU time of the proxy for each datagram that it has passed on, µs.
    cpu: f64,
}

impl Turn {
    fn play(clients: &[UdpSocket], proxy: Option<&Daemon>) -> Self {
        let start = Instant::now();
        let listeners: Vec<_> =
            clients.iter().map(|client| listen(client.try_clone().unwrap(), start)).collect();
        let before = proxy.map_or(0.0, cpu_time);
        let beats = SECONDS * DATAGRAMS_A_SECOND;
        let sent = beats * CLIENTS;
        let pause = Duration::from_secs(1) / DATAGRAMS_A_SECOND / CLIENTS;
        for (number, client) in (0..sent).zip(clients.iter().cycle()) {
            thread::sleep((start + pause * number).saturating_duration_since(Instant::now()));
            let mut datagram = [0; LEN + TOKEN.len()];
            datagram[..8].copy_from_slice(&start.elapsed().as_secs_f64().to_be_bytes());
            datagram[LEN..].copy_from_slice(&TOKEN);
            let _ = client.send(&datagram);
        }
        let mut trips: Vec<_> =
            listeners.into_iter().flat_map(|listener| JoinHandle::join(listener).unwrap()).collect();
        trips.sort_by(f64::total_cmp);
        let took = proxy.map_or(0.0, cpu_time) - before;
        let cpu = took / (2.0 * trips.len() as f64);
        Self { returned: trips.len() as f64 / f64::from(sent), trips, cpu }
    }

    fn percentile(&self, percent: usize) -> f64 {
        self.trips[self.trips.len() * percent / 100]
    }
}

/// Round trips of what comes back to this client, in µs, until nothing has come for half a second.
fn listen(client: UdpSocket, start: Instant) -> JoinHandle<Vec<f64>> {
    client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    thread::spawn(move || {
        let mut trips = Vec::new();
        let mut buf = [0; 2048];
        while client.recv(&mut buf).is_ok() {
            let sent = f64::from_be_bytes(*buf.first_chunk().unwrap());
            trips.push((start.elapsed().as_secs_f64() - sent) * 1e6);
        }
        trips
    })
}

/// Of all its threads, in µs.
fn cpu_time(daemon: &Daemon) -> f64 {
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap();
    let time = |thread: fs::DirEntry| {
        let times = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        times.split_whitespace().next().map_or(0.0, |nanos| nanos.parse::<f64>().unwrap() / 1000.0)
    };
    threads.map(|thread| time(thread.unwrap())).sum()
}
