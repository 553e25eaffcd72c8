//! Measures joins a second, on connections that are kept open: `crates/matchmaker/tests/load.sh` starts a matchmaker on one core and this on another.
//!
//! ```text
//!   load NAME PID ADDRESS ROOT.pem SERVERS-TOKEN-FILE BACKEND-TOKEN-FILE [CONNECTIONS [SECONDS]]
//! ```
//!
//! It prints a row of a table: the name, joins a second, joins for each second of CPU time of the process with that number, which depends less on
//! what else the machine does, and in ms what half of the joins take at most, and 99 of a hundred. The matchmaker needs a higher `--joins-per-address`,
//! as all joins are from one.

use axum::http::Method;
use std::env;
use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use whitewater_matchmaker::Bearer;
use whitewater_matchmaker::client::Client;
use whitewater_matchmaker::messages::{Allocation, Hex, Id, Identity, Join, Lease, Report};

const SERVERS: u16 = 100;
const REGIONS: [&str; 4] = ["eu", "us-east", "us-west", "asia"];
/// Most seconds: these servers report once, so their leases lapse later.
const SECONDS_MAX: u64 = 12;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = env::args().skip(1).collect();
    let [name, pid, at, root, servers, backend, rest @ ..] = &words[..] else {
        return Err(
            "load NAME PID ADDRESS ROOT.pem SERVERS-TOKEN-FILE BACKEND-TOKEN-FILE [CONNECTIONS [SECONDS]]"
                .into(),
        );
    };
    let count: usize = rest.first().map_or(Ok(32), |word| word.parse())?;
    let seconds: u64 = rest.get(1).map_or(Ok(10), |word| word.parse())?;
    let (at, root): (SocketAddr, _) = (at.parse()?, fs::read(root)?);
    let connect = || Client::tls(at, "localhost", &root);
    register(&mut connect()?, &secret(servers)?).await?;
    let (backend, next) = (Arc::new(secret(backend)?), Arc::new(AtomicU64::new(1)));
    let (begun, cpu_before) = (Instant::now(), cpu(pid)?);
    let end = begun + Duration::from_secs(seconds.min(SECONDS_MAX));
    let mut tasks = Vec::new();
    for _ in 0..count {
        tasks.push(tokio::spawn(joins(connect()?, Arc::clone(&backend), Arc::clone(&next), end)));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await?.map_err(|wrong| wrong.to_string())?);
    }
    let (took, busy) = (begun.elapsed(), cpu(pid)? - cpu_before);
    times.sort();
    let percentile = |percent: usize| {
        times.get(times.len() * percent / 100).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    let count = f64::from(u32::try_from(times.len())?);
    let (rate, rate_of_cpu) = (count / took.as_secs_f64(), count / busy);
    println!("| {name} | {rate:.0} | {rate_of_cpu:.0} | {:.1} | {:.1} |", percentile(50), percentile(99));
    Ok(())
}

/// CPU time of a process so far, s. Source: proc(5), fields 14 and 15 of `stat`, in ticks of 10 ms.
fn cpu(pid: &str) -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("no such format")?;
    let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(f64::from(ticks) / 100.0)
}

fn secret(path: &str) -> Result<Bearer, Box<dyn Error>> {
    Bearer::new(fs::read_to_string(path)?.trim()).ok_or_else(|| "a secret that is too short".into())
}

async fn register(client: &mut Client, token: &Bearer) -> Result<(), Box<dyn Error>> {
    for (number, region) in (0..SERVERS).zip(REGIONS.iter().cycle()) {
        let identity: Identity = client.ask((Method::POST, "/servers"), token, &()).await?;
        let report = Report {
            name: format!("{region} {number}"),
            addresses: vec![SocketAddr::from(([192, 0, 2, 1], 4000 + number))],
            region: (*region).to_owned(),
            capacity: 65_535,
            players: 0,
            arrived: Vec::new(),
            rtt_ms: 0.0,
            loss: 0.0,
            routing_token: Hex::default(),
            draining: false,
        };
        let secret = Bearer::new(&identity.secret).ok_or("a secret that is too short")?;
        let path = format!("/servers/{}", identity.server.0);
        client.ask::<Lease>((Method::PUT, &path), &secret, &report).await?;
    }
    Ok(())
}

/// One player after the other on one connection. Returns the time of each join.
async fn joins(
    mut client: Client,
    backend: Arc<Bearer>,
    next: Arc<AtomicU64>,
    end: Instant,
) -> Result<Vec<Duration>, Box<dyn Error + Send + Sync>> {
    let mut times = Vec::new();
    let regions = vec!["us-west".to_owned(), "eu".to_owned()];
    while Instant::now() < end {
        let clients = vec![Id(next.fetch_add(1, Relaxed))];
        let join = Join { clients, regions: regions.clone(), match_id: Hex::default() };
        let begun = Instant::now();
        client.ask::<Allocation>((Method::POST, "/join"), &backend, &join).await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}
