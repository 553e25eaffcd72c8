//! A relay on a thread, a host, and guests, over loopback.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, UNIX_EPOCH};
use whitewater::session::token::{Order, PublicToken, ServerKey};
use whitewater::session::{HostTicket, Suite};
use whitewater::{Channel, Client, ClientConfig, Server, ServerConfig, SessionConfig};
use whitewater_relay::{Counts, HostGrant, Relay, RelayConfig, RelayKey, serve};

/// Long enough for any machine; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const TALK: Channel = Channel::ordered(0);
pub(crate) const HOST: u32 = 1;

pub(crate) fn key() -> RelayKey {
    RelayKey::new([5; 32])
}

pub(crate) fn unix_time() -> u64 {
    UNIX_EPOCH.elapsed().unwrap().as_secs()
}

pub(crate) fn soon() -> u32 {
    (unix_time() + 300).try_into().unwrap()
}

pub(crate) fn host_ticket() -> HostTicket {
    key().host(HostGrant { host: HOST, expires: soon(), guests: 1000, bytes_per_second: 1_000_000 })
}

/// Runs until it is stopped.
pub(crate) struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counts>>,
}

impl Running {
    pub(crate) fn start(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, socket) = (Arc::clone(&stop), UdpSocket::bind(address).unwrap());
        let thread = thread::spawn(move || {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret).unwrap();
            let relay = Relay::new(key(), RelayConfig::default(), secret);
            let mut counts = relay.counts();
            serve(socket, relay, &stopped, |relay| counts = relay.counts()).unwrap();
            counts
        });
        Self { stop, thread: Some(thread) }
    }

    pub(crate) fn stop(mut self) -> Counts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

pub(crate) fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

pub(crate) fn server_key() -> ServerKey {
    ServerKey::new(9, 0, [3; 32])
}

/// A host whose guests come by the relay.
pub(crate) fn server(relay: SocketAddr) -> Server {
    let tokens = ServerConfig::tokens(SessionConfig::default(), server_key());
    // All guests have one IP address.
    let config = ServerConfig {
        relay: Some((relay, host_ticket())),
        routing_token: 20,
        sessions_per_address: 100,
        half_open_per_address: 100,
        accept_burst: 100,
        ..tokens
    };
    Server::bind("127.0.0.1:0", &config).unwrap()
}

/// A guest whose connect token leads to the host by the relay. Its HELLO is too short for a direct answer, which on this machine would reach it.
pub(crate) fn guest(relay: SocketAddr, number: u8) -> Client {
    let created = unix_time();
    let ticket = key().guest(HOST, number.into(), soon());
    let order = Order {
        protocol_id: 0,
        suite: Suite::TOKEN,
        client_id: number.into(),
        match_id: [0; 16],
        created,
        expires: created + 60,
        addresses: &[relay],
        server_key: None,
        routing_token: &ticket,
        user: b"",
    };
    let token = server_key().mint(&order, [number; 32], [number; 24]).unwrap();
    let token = PublicToken::decode(&token.encode()).unwrap();
    let config = ClientConfig { hello: 1000, ..ClientConfig::token(SessionConfig::default(), &token) };
    Client::connect(&*token.addresses, &config).unwrap()
}
