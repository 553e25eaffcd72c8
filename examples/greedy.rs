//! How long a game's messages, 60 a second on channel 0, take over loopback beside writers that always have more to
//! send on other channels: with tokio, blocking drivers and threads. Prints milliseconds after the time at which each
//! message was due.
//!
//! ```sh
//! cargo run --release --features tokio --example greedy        # 5 s each
//! cargo run --release --features tokio --example greedy -- 20
//! ```

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use whitewater::thread::ThreadConfig;
use whitewater::{Channel, ClientConfig, Event, ServerConfig, SessionConfig, tokio as asynchronous};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const GAME: Channel = Channel::ordered(0);
/// The channels of writers that always have more to send.
const BULK: [Channel; 4] =
    [Channel::ordered(1), Channel::ordered(2), Channel::ordered(3), Channel::ordered(4)];
const PATIENCE: Duration = Duration::from_secs(30);
/// Runs a flow beside this many greedy writers.
type Run = fn(&Flow, usize) -> Result<()>;
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(5), |arg| arg.parse())?;
    println!("| driver | greedy writers | p50, ms | p99, ms | longest, ms | arrived | others, MB/s |");
    println!("|---|---|---|---|---|---|---|");
    let drivers: [(_, Run); 4] = [
        ("tokio", threads_of_tokio),
        ("tokio, one thread", thread_of_tokio),
        ("blocking", blocking),
        ("threads", threads),
    ];
    for (name, run) in drivers {
        for writers in [0, 1, 4, 16] {
            let flow = Flow::new(60 * seconds);
            run(&flow, writers)?;
            flow.print(name, writers);
        }
    }
    Ok(())
}

/// The messages of a game, and when they arrived.
struct Flow {
    start: Instant,
    count: u32,
    took: Mutex<Vec<Duration>>,
    others: AtomicUsize,
}

impl Flow {
    fn new(count: u32) -> Self {
        Self { start: Instant::now(), count, took: Mutex::default(), others: AtomicUsize::new(0) }
    }

    /// When a message is due. The first half second lets the others fill all queues.
    fn due(&self, number: u32) -> Instant {
        self.start + Duration::from_millis(500) + Duration::from_secs(1) * number / 60
    }

    fn took(&self) -> MutexGuard<'_, Vec<Duration>> {
        self.took.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn message(number: u32) -> [u8; 100] {
        let mut message = [0; 100];
        message[..4].copy_from_slice(&number.to_le_bytes());
        message
    }

    /// A message has arrived, or bytes of the other writers.
    fn take(&self, channel: Channel, message: &[u8]) {
        if channel != GAME {
            self.others.fetch_add(message.len(), Relaxed);
        } else if let Some(number) = message.first_chunk() {
            self.took().push(self.due(u32::from_le_bytes(*number)).elapsed());
        }
    }

    fn is_over(&self) -> bool {
        self.took().len() == self.count as usize || self.due(self.count).elapsed() > PATIENCE
    }

    fn print(&self, name: &str, writers: usize) {
        let mut took = self.took().clone();
        took.sort_unstable();
        let at = |share: usize| {
            took.get(took.len() * share / 100)
                .or(took.last())
                .map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
        };
        let rate = self.others.load(Relaxed) as f64 / self.start.elapsed().as_secs_f64() / 1e6;
        let [p50, p99, longest] = [50, 99, 100].map(at);
        println!(
            "| {name} | {writers} | {p50:.2} | {p99:.2} | {longest:.2} | {} of {} | {rate:.0} |",
            took.len(),
            self.count
        );
    }
}

/// The channels for this many writers, one each.
fn bulk(writers: usize) -> impl Iterator<Item = Channel> {
    BULK.into_iter().cycle().take(writers)
}

fn channels() -> impl Iterator<Item = Channel> {
    [GAME].into_iter().chain(BULK)
}

fn session() -> SessionConfig {
    SessionConfig { channels: channels().map(Into::into).collect(), ..SessionConfig::default() }
}

fn server() -> ServerConfig {
    ServerConfig::insecure(session())
}

fn client() -> ClientConfig {
    ClientConfig::insecure(session())
}

const CHUNK: [u8; 1000] = [9; 1000];

fn threads_of_tokio(flow: &Flow, writers: usize) -> Result<()> {
    tokio(&::tokio::runtime::Builder::new_multi_thread().enable_all().build()?, flow, writers)
}

fn thread_of_tokio(flow: &Flow, writers: usize) -> Result<()> {
    tokio(&::tokio::runtime::Builder::new_current_thread().enable_all().build()?, flow, writers)
}

fn tokio(runtime: &::tokio::runtime::Runtime, flow: &Flow, writers: usize) -> Result<()> {
    let shared = Arc::new(Flow::new(flow.count));
    let whole = Arc::clone(&shared);
    runtime.block_on(async move {
        let server = asynchronous::Server::bind(ANY, &server())?;
        let to = server.local_addr();
        let near = asynchronous::Client::connect(to, &client()).await?;
        let far = server.accept().await?;
        for channel in channels() {
            let (far, flow) = (far.clone(), Arc::clone(&shared));
            ::tokio::spawn(async move {
                while let Ok(message) = far.recv(channel).await {
                    flow.take(channel, &message);
                }
            });
        }
        for channel in bulk(writers) {
            let near = near.clone();
            ::tokio::spawn(async move { while near.send(channel, &CHUNK).await.is_ok() {} });
        }
        for number in 0..shared.count {
            ::tokio::time::sleep_until(shared.due(number).into()).await;
            near.send(GAME, &Flow::message(number)).await?;
        }
        while !shared.is_over() {
            ::tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    })?;
    flow.took().clone_from(&whole.took());
    flow.others.store(whole.others.load(Relaxed), Relaxed);
    Ok(())
}

fn blocking(flow: &Flow, writers: usize) -> Result<()> {
    let mut server = whitewater::Server::bind(ANY, &server())?;
    let mut client = whitewater::Client::connect(server.local_addr()?, &client())?;
    thread::scope(|scope| {
        scope.spawn(move || {
            while !flow.is_over() {
                if server.poll(Some(Duration::from_millis(1))).is_err() {
                    return;
                }
                while let Some((id, _)) = server.poll_event() {
                    for channel in channels() {
                        while let Some(message) = server.recv(id, channel) {
                            flow.take(channel, &message);
                        }
                    }
                }
            }
        });
        let mut next = 0;
        while !flow.is_over() {
            client.poll(Some(Duration::from_millis(1)))?;
            while client.poll_event().is_some() {}
            bulk(writers).for_each(|channel| while client.send(channel, &CHUNK).is_ok() {});
            while next < flow.count
                && flow.due(next) <= Instant::now()
                && client.send(GAME, &Flow::message(next)).is_ok()
            {
                next += 1;
            }
        }
        Ok(())
    })
}

fn threads(flow: &Flow, writers: usize) -> Result<()> {
    let config = ThreadConfig::default();
    let mut server = whitewater::thread::Server::bind(ANY, &server(), &config)?;
    let target = server.local_addr();
    let mut client = whitewater::thread::Client::connect(target, &client(), &config)?;
    let (up, is_up) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            while !flow.is_over() {
                server.poll(Some(Duration::from_millis(10)));
                while let Some((id, event)) = server.poll_event() {
                    if event == Event::Connected {
                        let _ = up.send(());
                    }
                    for channel in channels() {
                        while let Some(message) = server.recv(id, channel) {
                            flow.take(channel, &message);
                        }
                    }
                }
            }
        });
        is_up.recv_timeout(PATIENCE)?;
        let mut next = 0;
        while !flow.is_over() {
            client.poll(Some(Duration::from_millis(1)));
            while client.poll_event().is_some() {}
            bulk(writers).for_each(|channel| while client.send(channel, &CHUNK).is_ok() {});
            while next < flow.count
                && flow.due(next) <= Instant::now()
                && client.send(GAME, &Flow::message(next)).is_ok()
            {
                next += 1;
            }
        }
        Ok(())
    })
}
