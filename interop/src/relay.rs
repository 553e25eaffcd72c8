//! A lossy network in a box: a UDP port that forwards datagrams, late, twice or not at all.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use whitewater::kcp::wire::{Command, Segment, segments};
use whitewater::net::Clock;
use whitewater_sim::{Link, LinkConfig, Loss};

/// Forwards datagrams between a server and the last client that sent any, until it is dropped.
#[derive(Debug)]
pub struct Relay {
    /// Where it receives datagrams for the server.
    pub address: SocketAddr,
    seed: u64,
    config: LinkConfig,
    pushes: Arc<Mutex<Pushes>>,
    stop: Arc<AtomicBool>,
    threads: [Option<JoinHandle<()>>; 2],
}

impl Relay {
    /// Starts a relay in front of this server, with the same network in both directions.
    ///
    /// # Panics
    ///
    /// If there is no socket, or `config` is out of range.
    #[must_use]
    pub fn start(server: SocketAddr, config: &LinkConfig, seed: u64) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let links = [1, 2].map(|stream| Link::new(config.clone(), seed, stream).unwrap());
        let (stop, pushes) = <(Arc<AtomicBool>, Arc<Mutex<Pushes>>)>::default();
        let (sender, inbox) = channel();
        let (reading, stopped, counted) =
            (socket.try_clone().unwrap(), Arc::clone(&stop), Arc::clone(&pushes));
        let read = thread::spawn(move || read(&reading, &sender, &stopped));
        let pass = thread::spawn(move || pass(&socket, server, links, &inbox, &counted));
        Self { address, seed, config: config.clone(), pushes, stop, threads: [Some(read), Some(pass)] }
    }

    /// What the client has sent so far, if it speaks bare KCP.
    ///
    /// # Panics
    ///
    /// If its thread panicked.
    #[must_use]
    pub fn pushes(&self) -> Pushes {
        self.pushes.lock().unwrap().clone()
    }
}

/// PUSH segments of one session.
#[derive(Clone, Debug, Default)]
pub struct Pushes {
    /// Number of segments, including resends.
    pub sent: usize,
    numbers: HashSet<u32>,
}

impl Pushes {
    /// Number of segments whose number was seen before.
    #[must_use]
    pub fn resent(&self) -> usize {
        self.sent - self.numbers.len()
    }

    fn count(&mut self, datagram: &[u8]) {
        for Segment { header, .. } in segments(datagram).map_while(Result::ok) {
            if header.cmd == Command::Push {
                self.sent += 1;
                self.numbers.insert(header.sn.0);
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.threads.each_mut().map(|thread| thread.take().map(JoinHandle::join));
        if thread::panicking() {
            println!("failed with seed {} over {:?}", self.seed, self.config);
        } else {
            assert!(matches!(ended, [Some(Ok(())), Some(Ok(()))]), "the relay");
        }
    }
}

/// A nearby network. If `loss`, a share from 0 to 1, is above 0, it also delays, reorders and duplicates some
/// datagrams.
#[must_use]
pub fn network(loss: f64) -> LinkConfig {
    let clean = LinkConfig { delay: Duration::from_millis(5), ..LinkConfig::default() };
    if loss == 0.0 {
        return clean;
    }
    LinkConfig {
        jitter: Duration::from_millis(3),
        in_order: true,
        loss: Loss::Random(loss),
        reorder: 0.02,
        late: Duration::from_millis(5),
        duplicate: 0.02,
        ..clean
    }
}

/// Reads datagrams with their senders.
fn read(socket: &UdpSocket, inbox: &Sender<(SocketAddr, Vec<u8>)>, stop: &AtomicBool) {
    socket.set_read_timeout(Some(LOOK_UP)).unwrap();
    let mut buf = vec![0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut buf) {
            Ok((len, from)) => drop(inbox.send((from, buf[..len].to_vec()))), // fails if nobody takes them any more
            Err(error) => assert!(is_nothing(error.kind()), "{error}"),
        }
    }
}

/// Forwards datagrams until the reader ends. Waits on a channel, because the read timeout of a socket is late by
/// milliseconds.
fn pass(
    socket: &UdpSocket,
    server: SocketAddr,
    [mut there, mut back]: [Link; 2],
    inbox: &Receiver<(SocketAddr, Vec<u8>)>,
    pushes: &Mutex<Pushes>,
) {
    let clock = Clock::new();
    let mut client = None;
    loop {
        let next = there.next_arrival().into_iter().chain(back.next_arrival()).min();
        let wait = next.map_or(LOOK_UP, |at| at.since(clock.now()));
        match inbox.recv_timeout(wait) {
            Ok((from, datagram)) if from == server => back.send(clock.now(), &datagram),
            Ok((from, datagram)) => {
                client = Some(from);
                pushes.lock().unwrap().count(&datagram);
                there.send(clock.now(), &datagram);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        for (link, to) in [(&mut there, Some(server)), (&mut back, client)] {
            let Some(to) = to else { continue };
            while let Some(datagram) = link.arrive(clock.now()) {
                let _ = socket.send_to(datagram, to); // a failed send is just another loss
            }
        }
    }
}

/// Whether a socket error only means that a wait is over or was interrupted, or that the other end is gone.
pub(crate) fn is_nothing(kind: ErrorKind) -> bool {
    use ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(kind, WouldBlock | TimedOut | Interrupted | ConnectionRefused)
}

/// How often to check whether to stop.
const LOOK_UP: Duration = Duration::from_millis(50);
