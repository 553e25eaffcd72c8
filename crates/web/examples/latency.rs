//! How soon the effect of an input is back, for a native client and for WebTransport without a browser, over the same bad network.
//!
//! ```text
//! cargo run --release -p whitewater-web --example latency -- [LOSS % [ROUND TRIP ms [HZ [SECONDS]]]]
//! ```
//!
//! Each client sends a message of 32 bytes on an ordered channel in each tick, and the server sends it back. Between each client and the server is a
//! relay that delays all datagrams of UDP and loses some, each way. The program prints one line of JSON with a third relay, for a browser. It measures
//! when a line comes on standard input, so that a browser can be measured beside it: `just browser-latency` does that. Then it prints a line for each
//! client, with the mean, the median and the 99th percentile in ms, and how many are back. It ends with the next line.

#[path = "../tests/players/mod.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "it is for tests, which use more of it")]
mod players;
#[path = "../../../examples/echo/relay.rs"]
mod relay;

use players::{Player, Way};
use relay::Link;
use std::error::Error;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use whitewater::{Channel, Client, ClientConfig, Event, Server, ServerConfig, SessionConfig};
use whitewater_web::{Web, WebConfig, listen};

const INPUTS: Channel = Channel::ordered(0);
const SECRET: [u8; 32] = [7; 32];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u32| words.get(place).map_or(Ok(default), |word| word.parse());
    let (loss, rtt) = (f64::from(number(0, 5)?) / 100.0, Duration::from_millis(number(1, 60)?.into()));
    let (hz, seconds) = (number(2, 60)?, number(3, 30)?);
    let (tick, ticks) = (Duration::from_secs(1) / hz, hz * seconds);
    let (udp, web) = serve()?;
    let link = |seed| Link { loss, delay: rtt / 2, jitter: Duration::ZERO, seed };
    let [native, quic, browser] =
        [(udp, 1), (web.local_addr(), 2), (web.local_addr(), 3)].map(|(to, seed)| {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            let at = socket.local_addr()?;
            relay::start(socket, to, link(seed)).map(|()| at)
        });
    let hash: String = web.certificate_hash().iter().map(|byte| format!("{byte:02x}")).collect();
    println!(r#"{{"url":"https://{}/","hash":"{hash}"}}"#, browser?);
    io::stdin().read_line(&mut String::new())?;
    let native = native?;
    let native = thread::spawn(move || play_native(native, tick, ticks).map_err(|error| error.to_string()));
    let url = format!("https://{}/", quic?);
    let quic = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let quic = quic.block_on(play_quic(&url, web.certificate_hash(), tick, ticks))?;
    native.join().map_err(|_| "the native client has panicked")??.print("native");
    quic.print("quic");
    io::stdin().read_line(&mut String::new())?; // a browser may need the server for longer
    Ok(())
}

fn session() -> SessionConfig {
    SessionConfig::new(1, [INPUTS.into(), Channel::<[u8]>::unreliable(1).into()])
}

/// Starts a server that sends back what comes.
fn serve() -> io::Result<(SocketAddr, Web)> {
    let mut server = Server::bind("127.0.0.1:0", &ServerConfig::secret(session(), SECRET))?;
    let mut config = WebConfig::self_signed(["127.0.0.1"]);
    config.addr = ([127, 0, 0, 1], 0).into();
    let (web, browsers) = listen(&config)?;
    server.attach(browsers)?;
    let udp = server.local_addr()?;
    thread::spawn(move || -> io::Result<()> {
        loop {
            server.poll(None)?;
            while let Some((id, event)) = server.poll_event() {
                if event == Event::Readable {
                    while let Some(message) = server.recv(id, INPUTS) {
                        let _ = server.send(id, INPUTS, &message); // there is room for seconds
                    }
                }
            }
            server.flush();
        }
    });
    Ok((udp, web))
}

fn play_native(at: SocketAddr, tick: Duration, ticks: u32) -> io::Result<Inputs> {
    let mut client = Client::connect(at, &ClientConfig::secret(session(), SECRET))?;
    while !client.is_connected() {
        client.poll(Some(Duration::from_millis(10)))?;
        while client.poll_event().is_some() {}
    }
    let mut inputs = Inputs::new(tick, ticks);
    while let Some(wait) = inputs.wait() {
        if let Some(input) = inputs.next() {
            let _ = client.send(INPUTS, &input); // one that finds no room is not back
        }
        client.poll(Some(wait))?;
        while client.poll_event().is_some() {}
        while let Some(message) = client.recv(INPUTS) {
            inputs.are_back(&message);
        }
    }
    Ok(inputs)
}

async fn play_quic(url: &str, hash: [u8; 32], tick: Duration, ticks: u32) -> Result<Inputs, Box<dyn Error>> {
    let config = ClientConfig::secret(SessionConfig { max_datagram: 1150, ..session() }, SECRET);
    let mut player = Player::new(Way::web_transport(url, hash).await?, &players::client(config));
    player.run(|session| session.is_connected()).await?;
    let mut inputs = Inputs::new(tick, ticks);
    while let Some(wait) = inputs.wait() {
        let connection = player.session.connection_mut().ok_or("the session is over")?;
        if let Some(input) = inputs.next() {
            let _ = connection.send(INPUTS, &input);
        }
        while let Some(message) = connection.recv(INPUTS) {
            inputs.are_back(&message);
        }
        while player.session.poll_event().is_some() {}
        player.send().await?;
        player.wait(wait).await?;
    }
    Ok(inputs)
}

/// Inputs, and when they were back.
struct Inputs {
    begun: Instant,
    tick: Duration,
    ticks: u32,
    sent: u32,
    /// Times from sending to the effect, ms.
    back: Vec<f64>,
}

impl Inputs {
    fn new(tick: Duration, ticks: u32) -> Self {
        Self { begun: Instant::now(), tick, ticks, sent: 0, back: Vec::new() }
    }

    /// An input, if one is due: 32 bytes that begin with the time.
    fn next(&mut self) -> Option<[u8; 32]> {
        let now = self.begun.elapsed();
        (self.sent < self.ticks && now >= self.tick * self.sent).then(|| {
            self.sent += 1;
            let mut input = [0; 32];
            input[..8].copy_from_slice(&now.as_secs_f64().to_le_bytes());
            input
        })
    }

    /// How long until the next one is due. `None`: all are back, or have had the time to be.
    fn wait(&self) -> Option<Duration> {
        let next =
            if self.sent < self.ticks { self.tick * self.sent } else { self.tick * self.ticks + LATEST };
        let is_over =
            self.back.len() >= self.ticks as usize || self.begun.elapsed() >= self.tick * self.ticks + LATEST;
        (!is_over).then(|| next.saturating_sub(self.begun.elapsed()))
    }

    fn are_back(&mut self, message: &[u8]) {
        if let Some(sent) = message.first_chunk().copied().map(f64::from_le_bytes) {
            self.back.push((self.begun.elapsed().as_secs_f64() - sent) * 1000.0);
        }
    }

    fn print(mut self, name: &str) {
        self.back.sort_by(f64::total_cmp);
        let at = |percent: usize| self.back.get(self.back.len() * percent / 100).copied().unwrap_or(f64::NAN);
        let mean = self.back.iter().sum::<f64>() / self.back.len() as f64;
        let (median, late, back) = (at(50), at(99), self.back.len());
        println!(r#"{{"name":"{name}","mean":{mean:.1},"p50":{median:.1},"p99":{late:.1},"back":{back}}}"#);
    }
}

/// How long the last ones may take.
const LATEST: Duration = Duration::from_secs(3);
