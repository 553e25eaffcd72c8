//! A server of sessions and a listener of bare KCP, which check and echo what they receive.

use super::player::CHAT;
use super::stream::{LONGEST, check};
use crate::configs;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use whitewater::kcp::{self, Config, PeerId};
use whitewater::session::Suite;
use whitewater::{ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig, SessionId};

/// Both run until they are stopped.
pub(crate) struct Servers {
    pub(crate) addresses: [SocketAddr; 2],
    stop: Arc<AtomicBool>,
    threads: [thread::JoinHandle<u64>; 2],
}

impl Servers {
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let server = Server::bind("127.0.0.1:0", &server_config()).unwrap();
        let listener = kcp::Listener::bind("127.0.0.1:0", &listener_config()).unwrap();
        let addresses = [server.local_addr().unwrap(), listener.local_addr().unwrap()];
        let stops = [Arc::clone(&stop), Arc::clone(&stop)];
        let [first, second] = stops;
        let threads =
            [thread::spawn(move || serve(server, &first)), thread::spawn(move || listen(listener, &second))];
        Self { addresses, stop, threads }
    }

    /// Stops both. Returns how many messages each has received.
    pub(crate) fn stop(self) -> [u64; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.map(|thread| thread.join().unwrap())
    }
}

/// What a player has sent.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    player: u32,
    count: u32,
}

impl Heard {
    fn take(&mut self, bytes: &[u8]) {
        let (player, sequence) = check(bytes);
        assert_eq!(sequence, self.count, "the next message of player {player}");
        assert!(self.count == 0 || self.player == player, "{player} speaks for {}", self.player);
        *self = Self { player, count: sequence + 1 };
    }
}

fn serve(mut server: Server, stop: &AtomicBool) -> u64 {
    let (mut heard, mut total, mut buf) = (HashMap::<SessionId, Heard>::new(), 0, vec![0; LONGEST]);
    while !stop.load(Ordering::Relaxed) {
        server.poll(Some(TICK)).unwrap();
        while let Some((id, event)) = server.poll_event() {
            let of = heard.entry(id).or_default();
            while let Ok(len) = server.recv_into(id, CHAT, &mut buf) {
                of.take(&buf[..len]);
                total += 1;
                let _ = server.send(id, CHAT, &buf[..len]); // who is gone is not told
                if is_sent_away(of.player) && of.count == HEARD_ENOUGH {
                    server.close(id, SENT_AWAY);
                }
            }
            if let Event::Closed { reason, .. } = event {
                let of = heard.remove(&id).unwrap_or_default();
                match reason {
                    CloseReason::Peer(said) => assert_eq!(of.count & CODE, said.into(), "before its goodbye"),
                    CloseReason::Local(SENT_AWAY) | CloseReason::Timeout => {}
                    other => panic!("player {} is gone: {other:?}", of.player),
                }
            }
        }
    }
    total
}

fn listen(mut listener: kcp::Listener, stop: &AtomicBool) -> u64 {
    let (mut heard, mut total, mut buf) = (HashMap::<PeerId, Heard>::new(), 0, vec![0; LONGEST]);
    while !stop.load(Ordering::Relaxed) {
        listener.poll(Some(TICK)).unwrap();
        while let Some(event) = listener.poll_event() {
            match event {
                kcp::PeerEvent::Readable(id) => {
                    let (of, peer) = (heard.entry(id).or_default(), listener.peer(id).unwrap());
                    while let Ok(len) = peer.recv_into(&mut buf) {
                        of.take(&buf[..len]);
                        total += 1;
                        peer.send(&buf[..len]).unwrap();
                    }
                }
                kcp::PeerEvent::Closed { id, .. } => drop(heard.remove(&id)),
                _ => {}
            }
        }
    }
    total
}

/// Allows all players to come from one address.
fn server_config() -> ServerConfig {
    ServerConfig {
        sessions_per_address: 1024,
        half_open: 1024,
        half_open_per_address: 1024,
        accepts_per_second: 1000,
        accept_burst: 1000,
        suites: vec![SUITE],
        psk: SUITE.needs_psk().then(|| PSK.into()),
        ..ServerConfig::insecure(session_config())
    }
}

pub(crate) fn client_config() -> ClientConfig {
    let psk = SUITE.needs_psk().then(|| PSK.into());
    ClientConfig { suite: SUITE, psk, ..ClientConfig::insecure(session_config()) }
}

/// Distinguishes silence from a busy machine.
pub(crate) fn session_config() -> SessionConfig {
    SessionConfig { timeout: Duration::from_secs(10), ..SessionConfig::default() }
}

fn listener_config() -> kcp::PeersConfig {
    kcp::PeersConfig {
        kcp: kcp_config(),
        max_peers_per_address: 1024,
        accepts_per_second: 1000,
        accept_burst: 1000,
        idle_timeout: Duration::from_secs(10),
        ..kcp::PeersConfig::default()
    }
}

pub(crate) fn kcp_config() -> Config {
    configs::turbo()
}

/// Whether the server kicks a player after a number of messages.
pub(crate) const fn is_sent_away(player: u32) -> bool {
    player % 4 == 2
}

pub(crate) const HEARD_ENOUGH: u32 = 40;
pub(crate) const SENT_AWAY: u16 = 0x7e57;
/// The bits of a count that fit the close code.
pub(crate) const CODE: u32 = 0x3fff;
/// The strongest suite in this build.
const SUITE: Suite = if cfg!(feature = "crypto") { Suite::TOKEN } else { Suite::Checked };
const PSK: [u8; 32] = [7; 32];
const TICK: Duration = Duration::from_millis(5);
