//! Tasks of a server and its clients over a network that loses, doubles, reorders and cuts, in tokio's paused time: every
//! future ends, what is received is right, and no task or socket is left.
//!
//! Each seed is a run. `TASKS=<runs>` says how many, `TASKS_SEED=<seed>` runs only one.

use std::cell::Cell;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{Path, set_path, sockets};
use tokio::runtime::{Builder, Handle};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep, timeout};
use whitewater::tokio::{Client, Server, Session};
use whitewater::{Channel, ClientConfig, ServerConfig, SessionConfig};

#[test]
fn every_future_ends_and_nothing_is_left() {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("TASKS_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("TASKS").unwrap_or(RUNS),
    };
    let count = seeds.end() - seeds.start() + 1;
    let mut sum = Outcome::default();
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|error| {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(error)
        });
        sum.finished += outcome.finished;
        sum.lost += outcome.lost;
        sum.refused += outcome.refused;
        sum.seconds += outcome.seconds;
    }
    println!("{count} runs: {sum:?}");
    assert!(sum.finished > sum.lost && (sum.lost > 0 || count < 100), "{sum:?}");
}

/// Sessions: all that was to be said was, the network ended it, it never began. And seconds that tokio counted.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    finished: u64,
    lost: u64,
    refused: u64,
    seconds: u64,
}

fn run(seed: u64) -> Outcome {
    getrandom::seed(seed);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let start = Instant::now();
        let mut outcome = timeout(LIMIT, play()).await.expect("a future never ends");
        outcome.seconds = start.elapsed().as_secs();
        outcome
    })
}

async fn play() -> Outcome {
    set_path(GOOD);
    let server = Arc::new(Server::from_socket(socket(1), &server_config()).unwrap());
    let address = server.local_addr();
    let accepting = tokio::spawn(accept(Arc::clone(&server)));
    let outcome = Rc::new(Cell::new(Outcome::default()));
    let clients: Vec<_> = (0..CLIENTS).map(|_| spawn_local(visit(address, Rc::clone(&outcome)))).collect();
    let weather = spawn_local(async {
        for _ in 0..below(6) {
            set_path(bad_path());
            sleep(Duration::from_millis(below(30_000))).await;
            set_path(GOOD);
            sleep(Duration::from_millis(below(5_000))).await;
        }
    });
    for client in clients {
        client.await.unwrap();
    }
    weather.await.unwrap();
    server.shutdown(0).await.unwrap();
    accepting.await.expect("it ends with the server");
    drop(server);
    for _ in 0..60 {
        if sockets() == 0 && Handle::current().metrics().num_alive_tasks() == 0 {
            return outcome.get();
        }
        sleep(Duration::from_secs(1)).await;
    }
    panic!("{} sockets, {} tasks are left", sockets(), Handle::current().metrics().num_alive_tasks());
}

/// Says back what each client says.
async fn accept(server: Arc<Server>) {
    while let Ok(session) = server.accept().await {
        tokio::spawn(async move {
            while let Ok(message) = session.recv(CHAT).await {
                if session.send(CHAT, &message).await.is_err() {
                    break;
                }
            }
        });
    }
}

/// One session of a client, with everything that ends one.
async fn visit(server: SocketAddr, outcome: Rc<Cell<Outcome>>) {
    sleep(Duration::from_millis(below(10_000))).await;
    let config =
        ClientConfig { session: session_config(), ..ClientConfig::insecure(SessionConfig::default()) };
    let attempt = Client::from_socket(socket(0), server, &config);
    // Some give up.
    let Ok(Ok(session)) = timeout(Duration::from_millis(below(40_000)), attempt).await else {
        let mut sum = outcome.get();
        sum.refused += 1;
        return outcome.set(sum);
    };
    let is_through = talk(&session).await;
    let mut sum = outcome.get();
    sum.finished += u64::from(is_through);
    sum.lost += u64::from(!is_through);
    outcome.set(sum);
    match below(3) {
        0 => drop(session),
        1 => {
            session.close(1);
            session.closed().await.unwrap();
        }
        _ => {
            session.kick(2, "").unwrap();
            session.closed().await.unwrap();
        }
    }
}

/// Sends messages and reads them back, by futures of which some are dropped. Returns whether all came.
async fn talk(session: &Session) -> bool {
    let (mut sent, mut heard) = (0, 0);
    while heard < MESSAGES {
        sleep(Duration::from_millis(below(5_000))).await;
        if sent < MESSAGES && sent <= heard + below(3) as u32 {
            let message = [sent.to_le_bytes().as_slice(), &[7; 500]].concat();
            match timeout(Duration::from_millis(below(2_000)), session.send(CHAT, &message)).await {
                Ok(Ok(())) => sent += 1,
                Ok(Err(_)) => return false,
                Err(_) => {} // not sent
            }
        }
        match timeout(Duration::from_millis(below(5_000)), session.recv(CHAT)).await {
            Ok(Ok(message)) => {
                assert_eq!((message.len(), &message[..4]), (504, &heard.to_le_bytes()[..]));
                heard += 1;
            }
            Ok(Err(_)) => return false,
            Err(_) => {} // not yet
        }
    }
    true
}

fn session_config() -> SessionConfig {
    SessionConfig { path_mtu: None, ..SessionConfig::default() }
}

fn server_config() -> ServerConfig {
    ServerConfig {
        session: session_config(),
        accepts_per_second: 1000,
        accept_burst: 1000,
        sessions_per_address: 1000,
        ..ServerConfig::insecure(SessionConfig::default())
    }
}

fn bad_path() -> Path {
    let is_cut = [below(3) == 0, below(3) == 0];
    let room = if below(4) == 0 { 2 } else { GOOD.room };
    Path {
        lost: below(400),
        doubled: below(200),
        delay: below(300),
        jitter: below(100),
        is_cut,
        room,
        full_each: [0, 2, 5][below(3) as usize],
    }
}

/// A socket whose port is even, or odd.
fn socket(odd: u16) -> UdpSocket {
    let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
    std::iter::repeat_with(bind).find(|socket| socket.local_addr().unwrap().port() % 2 == odd).unwrap()
}

fn below(count: u64) -> u64 {
    getrandom::next() % count
}

const CHAT: Channel = Channel::ordered(0);
const CLIENTS: usize = 3;
const MESSAGES: u32 = 8;
const GOOD: Path =
    Path { lost: 0, doubled: 0, delay: 20, jitter: 0, is_cut: [false; 2], room: 1000, full_each: 0 };
/// Of tokio's time, for a run: six storms of half a minute, and the timeouts after them.
const LIMIT: Duration = Duration::from_secs(500);
/// 20 s in release.
const RUNS: u64 = 10_000;
