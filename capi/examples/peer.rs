//! The other end of the tests of bindings: a server, a client or a bad network between them, in Rust. Each ends when its standard input does.

use std::error::Error;
use std::io::{BufRead, stdin};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};
use ww::session::Suite;
use ww::session::token::{Order, ServerKey};
use ww::{Channel, Client, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig, SessionId};

const ORDERED: Channel = Channel::ordered(0);
const UNRELIABLE: Channel = Channel::unreliable(1);
const SECRET: [u8; 32] = [7; 32];
const TOKEN_KEY: [u8; 32] = [5; 32];
const PSK: u16 = 0x201;
/// A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server"] => {
            serve(&ServerConfig { suites: vec![suite()?], ..ServerConfig::secret(session(), SECRET) })
        }
        ["server", "tokens"] => serve(&ServerConfig::tokens(session(), ServerKey::new(9, 1, TOKEN_KEY))),
        ["client", address, count] => talk(address.parse()?, count.parse()?),
        ["relay", address, seed] => relay(address.parse()?, seed.parse()?),
        ["token", address, "right"] => token(address.parse()?, TOKEN_KEY),
        ["token", address, "wrong"] => token(address.parse()?, [6; 32]),
        _ => {
            Err("server [tokens] | client ADDRESS COUNT | relay ADDRESS SEED | token ADDRESS right|wrong"
                .into())
        }
    }
}

fn session() -> SessionConfig {
    SessionConfig::new(7, [ORDERED.into(), UNRELIABLE.into()])
}

fn suite() -> Result<Suite, &'static str> {
    Suite::from_code(PSK).ok_or("no such suite")
}

/// Becomes true when the standard input ends.
fn end() -> Arc<AtomicBool> {
    let end = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&end);
    thread::spawn(move || {
        for _ in stdin().lock().lines() {}
        flag.store(true, Ordering::Relaxed);
    });
    end
}

/// Returns each message and each datagram to its sender. Kicks whoever says so.
fn serve(config: &ServerConfig) -> Result<(), Box<dyn Error>> {
    let mut server = Server::bind("127.0.0.1:0", config)?;
    println!("{}", server.local_addr()?);
    let end = end();
    let mut unsent = Unsent::new();
    while !end.load(Ordering::Relaxed) {
        server.poll(Some(Duration::from_millis(5)))?;
        unsent.retain(|(id, message)| is_full(&mut server, *id, message));
        while let Some((id, event)) = server.poll_event() {
            match event {
                Event::Readable => echo(&mut server, id, &mut unsent)?,
                Event::Closed { reason, .. } => {
                    println!("closed: {reason}: {}", server.connection(id).map_or("", |it| it.close_text()));
                }
                _ => {}
            }
        }
        server.pump()?;
    }
    Ok(())
}

type Unsent = Vec<(SessionId, Vec<u8>)>;

fn echo(server: &mut Server, id: SessionId, unsent: &mut Unsent) -> Result<(), Box<dyn Error>> {
    while let Some(message) = server.recv(id, ORDERED) {
        if &message[..] == b"kick me" {
            server.kick(id, 8, "no cheating")?;
        } else if !unsent.is_empty() || is_full(server, id, &message) {
            unsent.push((id, message.to_vec()));
        }
    }
    while let Some(message) = server.recv(id, UNRELIABLE) {
        let _ = server.send(id, UNRELIABLE, &message); // may be lost
    }
    while let Some(datagram) = server.recv_datagram(id) {
        let _ = server.send_datagram(id, &datagram); // the same
    }
    Ok(())
}

fn is_full(server: &mut Server, id: SessionId, message: &[u8]) -> bool {
    server.send(id, ORDERED, message).is_err_and(|error| error.is_full())
}

/// Sends numbers, and expects each of them back once and in order.
fn talk(address: SocketAddr, count: u32) -> Result<(), Box<dyn Error>> {
    let config = ClientConfig { suite: suite()?, ..ClientConfig::secret(session(), SECRET) };
    let mut client = Client::connect(address, &config)?;
    let (mut sent, mut received, start) = (0, 0, Instant::now());
    while received < count {
        if start.elapsed() > PATIENCE {
            return Err(format!("only {received} of {sent} came back").into());
        }
        while sent < count && client.send(ORDERED, &sent.to_le_bytes()).is_ok() {
            sent += 1;
        }
        client.poll(Some(Duration::from_millis(5)))?;
        while let Some(event) = client.poll_event() {
            if let Event::Closed { reason, .. } = event {
                return Err(format!("{reason}: {}", client.close_text()).into());
            }
        }
        while let Some(message) = client.recv(ORDERED) {
            if message[..] != received.to_le_bytes() {
                return Err(format!("{message:?} in the place of {received}").into());
            }
            received += 1;
        }
    }
    println!("{received} in order");
    client.send(ORDERED, b"kick me")?;
    loop {
        client.poll(Some(Duration::from_millis(5)))?;
        if let Some(Event::Closed { reason: CloseReason::Peer(code), .. }) = client.poll_event() {
            println!("kicked with {code}: {}", client.close_text());
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            return Err("never kicked".into());
        }
    }
}

/// Carries datagrams between one client and a server, and loses one in ten each way.
fn relay(server: SocketAddr, seed: u64) -> Result<(), Box<dyn Error>> {
    let (front, back) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    back.connect(server)?;
    println!("{}", front.local_addr()?);
    let client = Arc::new(AtomicU64::new(0));
    let [carried, lost] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let counts = [&carried, &lost].map(Arc::clone);
    let (up, down, to) = (front.try_clone()?, back.try_clone()?, Arc::clone(&client));
    let [ups, downs] = [seed | 1, !seed | 1].map(|seed| chance(seed, counts.clone()));
    thread::spawn(move || {
        forward(&up, &back, ups, |from| client.store(from.port().into(), Ordering::Relaxed))
    });
    thread::spawn(move || {
        let mut downs = downs;
        let mut datagram = [0; 2048];
        loop {
            let Ok(len) = down.recv(&mut datagram) else { continue }; // an ICMP error is just another loss
            let port = u16::try_from(to.load(Ordering::Relaxed)).unwrap_or_default();
            if port != 0 && !downs() {
                let _ = front.send_to(
                    datagram.get(..len).unwrap_or_default(),
                    SocketAddr::from(([127, 0, 0, 1], port)),
                );
            }
        }
    });
    for _ in stdin().lock().lines() {}
    println!("lost {} of {}", lost.load(Ordering::Relaxed), carried.load(Ordering::Relaxed));
    Ok(())
}

fn forward(from: &UdpSocket, to: &UdpSocket, mut is_lost: impl FnMut() -> bool, note: impl Fn(SocketAddr)) {
    let mut datagram = [0; 2048];
    loop {
        let Ok((len, sender)) = from.recv_from(&mut datagram) else { continue };
        note(sender);
        if !is_lost() {
            let _ = to.send(datagram.get(..len).unwrap_or_default());
        }
    }
}

/// Says of one datagram in ten that it gets lost, and counts. xorshift64, Marsaglia 2003.
fn chance(mut random: u64, [carried, lost]: [Arc<AtomicU64>; 2]) -> impl FnMut() -> bool {
    move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let is_lost = random.is_multiple_of(10);
        carried.fetch_add(1, Ordering::Relaxed);
        lost.fetch_add(is_lost.into(), Ordering::Relaxed);
        is_lost
    }
}

/// Prints a connect token for a server, as a matchmaker with that key makes it.
fn token(address: SocketAddr, key: [u8; 32]) -> Result<(), Box<dyn Error>> {
    let created = UNIX_EPOCH.elapsed()?.as_secs() + 1;
    let order = Order {
        protocol_id: 7,
        suite: suite()?,
        client_id: 42,
        match_id: [1; 16],
        created,
        expires: created + 45,
        addresses: &[address],
        server_key: None,
        routing_token: b"",
        user: b"gold",
    };
    let nonce = u64::try_from(UNIX_EPOCH.elapsed()?.as_nanos() & u128::from(u64::MAX))?.to_le_bytes();
    let mut salt = [4; 24];
    salt[..8].copy_from_slice(&nonce);
    let token = ServerKey::new(9, 1, key).mint(&order, [3; 32], salt)?.encode();
    println!("{}", token.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    Ok(())
}
