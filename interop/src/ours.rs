//! Our ends: one that asks, one that sends, one that echoes.

use crate::PATIENCE;
use crate::messages::{Load, total};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use whitewater::kcp::{self, Config, Conv, PeerEvent, Stats};
use whitewater_kcp_go as kcp_go;

/// Sends all messages and collects the echo until it has as many bytes.
///
/// # Panics
///
/// If that takes too long.
#[must_use]
pub fn ask(server: SocketAddr, conv: u32, config: &Config, messages: &[Vec<u8>]) -> (Vec<Vec<u8>>, Stats) {
    let mut socket = kcp::Socket::connect(server, Conv(conv), config).unwrap();
    socket.set_read_timeout(Some(PATIENCE));
    socket.set_write_timeout(Some(PATIENCE));
    let (mut back, mut buf) = (Vec::new(), vec![0; 1 << 17]);
    for message in messages {
        let mut rest = &message[..];
        while !rest.is_empty() {
            let len = socket.send_blocking(rest).unwrap();
            rest = &rest[len..];
        }
        while let Ok(len) = socket.recv_into(&mut buf) {
            back.push(buf[..len].to_vec());
        }
    }
    let (deadline, bytes) = (Instant::now() + PATIENCE, total(messages));
    let mut left = bytes.saturating_sub(total(&back));
    while left > 0 {
        match socket.recv_blocking(&mut buf) {
            Ok(len) => {
                back.push(buf[..len].to_vec());
                left = left.saturating_sub(len);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}: {:?}", socket.stats()),
        }
        assert!(Instant::now() < deadline, "{left} of {bytes} bytes did not come back: {:?}", socket.stats());
    }
    // They have the data, but the acknowledgement may be lost.
    let _ = socket.drain(Duration::from_secs(2));
    (back, socket.stats())
}

/// Sends each message of a load when it is due, and waits for the answer to all of them.
///
/// # Panics
///
/// If that takes too long.
#[must_use]
pub fn send(server: SocketAddr, conv: u32, config: &Config, load: &Load) -> Stats {
    let mut socket = kcp::Socket::connect(server, Conv(conv), config).unwrap();
    socket.set_write_timeout(Some(PATIENCE));
    let (start, message, mut buf) = (Instant::now(), vec![0; load.size], [0; 16]);
    for number in 0..load.count {
        loop {
            let left = load.due(number).saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left));
            let early = socket.recv_blocking(&mut buf).map_err(|error| error.kind());
            assert_eq!(early, Err(ErrorKind::WouldBlock), "before all was sent");
        }
        assert_eq!(socket.send_blocking(&message).unwrap(), message.len());
    }
    socket.set_read_timeout(Some(PATIENCE));
    let said = socket.recv_blocking(&mut buf);
    assert!(said.is_ok(), "{said:?}: {:?}", socket.stats());
    socket.stats()
}

/// A listener that echoes everything, on a thread, until it is dropped.
#[derive(Debug)]
pub struct Echo {
    /// Its address.
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counted>>,
}

/// The counters of a listener.
#[derive(Clone, Debug)]
pub struct Counted {
    /// For all peers.
    pub all: kcp::PeersStats,
    /// For each peer that is still there.
    pub peers: Vec<Stats>,
    /// For the envelope around KCP.
    pub kcp_go: Option<kcp_go::Stats>,
}

impl Echo {
    /// Starts it on a port of its own.
    ///
    /// # Panics
    ///
    /// If there is no socket, or `limits` are out of range.
    #[must_use]
    pub fn start(limits: &kcp::PeersConfig) -> Self {
        let mut listener = kcp::Listener::bind((Ipv4Addr::LOCALHOST, 0), limits).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serve = move || {
            let (mut ids, mut buf) = (Vec::new(), vec![0; 1 << 17]);
            while !stopped.load(Ordering::Relaxed) {
                listener.poll(Some(Duration::from_millis(5))).unwrap();
                while let Some(event) = listener.poll_event() {
                    let PeerEvent::Readable(id) = event else { continue };
                    if !ids.contains(&id) {
                        ids.push(id);
                    }
                    let Some(peer) = listener.peer(id) else { continue };
                    while let Ok(len) = peer.recv_into(&mut buf) {
                        assert_eq!(peer.send(&buf[..len]), Ok(len), "{:?}", peer.stats());
                    }
                }
            }
            let peers = ids.into_iter().filter_map(|id| Some(listener.peer(id)?.stats())).collect();
            Counted { all: listener.stats(), peers, kcp_go: kcp_go::Stats::of(listener.peers().envelope()) }
        };
        Self { address, stop, thread: Some(thread::spawn(serve)) }
    }

    /// Stops it.
    ///
    /// # Panics
    ///
    /// If its thread panicked.
    #[must_use]
    pub fn stop(mut self) -> Counted {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        let stopped = thread.join();
        println!("our listener: {stopped:?}");
    }
}
