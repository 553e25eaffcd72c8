//! The connections that are up, as a transport of a server.

use super::doors::Doors;
use super::http3::Datagrams;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Relaxed},
};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use whitewater::machine::{Arrival, Underlay, is_beside_udp};
use whitewater::net::{Transport, Waker};
use whitewater::session::shard_of;
use wtransport::quinn::SendDatagramError;

/// The browsers of a listener, for [`Server::attach`](whitewater::Server::attach). When it is dropped, with its server, all connections end.
#[derive(Debug)]
pub struct Browsers {
    hall: Arc<Hall>,
    /// Behind a lock that nobody waits for, so that a server can be shared by reference.
    came: Mutex<Receiver<(Arrival, Vec<u8>)>>,
}

/// What the connections and the server share.
#[derive(Debug)]
pub(super) struct Hall {
    pub(super) doors: Doors,
    epoch: Instant,
    lines: Mutex<HashMap<u32, Arc<Line>>>,
    next: AtomicU32,
    came: SyncSender<(Arrival, Vec<u8>)>,
    waker: OnceLock<Waker>,
    /// Whether the server was woken and has not seen an empty queue since: it need not be woken again, which is a system call.
    is_woken: AtomicBool,
    is_over: AtomicBool,
    pub(super) over: tokio::sync::Notify,
}

/// A connection that is up.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) address: SocketAddr,
    underlay: Underlay,
    way: Way,
    /// When the server last sent it something of a session, ms since the epoch; 0: never.
    in_session: AtomicU64,
    opened: u64,
    bytes: AtomicU64,
}

/// How to send.
#[derive(Debug)]
pub(super) enum Way {
    Datagrams(Datagrams),
    /// A queue of a WebSocket.
    Socket(mpsc::Sender<Vec<u8>>),
}

impl Hall {
    pub(super) fn new(doors: Doors, queue: usize) -> (Arc<Self>, Browsers) {
        let (give, came) = sync_channel(queue.max(1));
        let hall = Arc::new(Self {
            doors,
            epoch: Instant::now(),
            lines: Mutex::default(),
            next: AtomicU32::new(0),
            came: give,
            waker: OnceLock::new(),
            is_woken: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            over: tokio::sync::Notify::new(),
        });
        let browsers = Browsers { hall: Arc::clone(&hall), came: Mutex::new(came) };
        (hall, browsers)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// A connection is up. It gets an address that nobody else has, with its IP address and port in it.
    pub(super) fn open(&self, remote: SocketAddr, underlay: Underlay, way: Way) -> Arc<Line> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let number = loop {
            let number = self.next.fetch_add(1, Relaxed) | MARK;
            if !lines.contains_key(&number) {
                break number;
            }
        };
        let address = address(remote, number);
        let (in_session, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let line = Arc::new(Line { address, underlay, way, in_session, opened: self.now(), bytes });
        lines.insert(number, Arc::clone(&line));
        line
    }

    pub(super) fn close(&self, line: &Line) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        number(line.address).and_then(|number| lines.remove(&number));
    }

    /// A datagram has arrived. Returns whether its sender may stay.
    pub(super) fn take_in(&self, line: &Line, datagram: Vec<u8>, most_without_session: u64) -> bool {
        let counts = &self.doors.counts;
        counts.received.fetch_add(1, Relaxed);
        let bytes = line.bytes.fetch_add(datagram.len() as u64, Relaxed) + datagram.len() as u64;
        if line.in_session.load(Relaxed) == 0 && bytes > most_without_session {
            counts.evicted.fetch_add(1, Relaxed);
            return false;
        }
        let arrival = Arrival { underlay: line.underlay, ..line.address.into() };
        if self.came.try_send((arrival, datagram)).is_err() {
            counts.overflowed.fetch_add(1, Relaxed);
        } else if let Some(waker) = self.waker.get()
            && !self.is_woken.swap(true, AcqRel)
        {
            waker.wake();
        }
        true
    }

    /// How much longer a connection may wait for a session, or `None`: it has waited too long.
    pub(super) fn patience(&self, line: &Line, idle: Duration) -> Option<Duration> {
        let since = line.in_session.load(Relaxed).max(line.opened);
        let waited = Duration::from_millis(self.now().saturating_sub(since));
        let left = idle.checked_sub(waited).filter(|left| !left.is_zero());
        if left.is_none() {
            self.doors.counts.evicted.fetch_add(1, Relaxed);
        }
        left
    }

    /// Whether the server is gone.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }
}

impl Line {
    fn send(&self, hall: &Hall, datagram: &[u8]) {
        let counts = &hall.doors.counts;
        let sent = match &self.way {
            Way::Datagrams(datagrams) => match datagrams.send(datagram) {
                Ok(()) => &counts.sent,
                Err(SendDatagramError::TooLarge) => &counts.too_long,
                Err(_) => &counts.not_sent,
            },
            Way::Socket(queue) if queue.try_send(datagram.to_vec()).is_ok() => &counts.sent,
            Way::Socket(_) => &counts.not_sent,
        };
        sent.fetch_add(1, Relaxed);
    }
}

impl Transport for Browsers {
    fn carries(&self, to: SocketAddr) -> bool {
        number(to).is_some()
    }

    fn receive(&mut self, datagram: &mut Vec<u8>) -> Option<Arrival> {
        let came = self.came.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (arrival, bytes) = came.try_recv().ok().or_else(|| {
            // What comes after this look wakes the server again. What came before it is there.
            self.hall.is_woken.swap(false, AcqRel).then(|| came.try_recv().ok())?
        })?;
        datagram.extend_from_slice(&bytes);
        Some(arrival)
    }

    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let lines = self.hall.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = number(to).and_then(|number| lines.get(&number)).filter(|line| line.address == to);
        let Some(line) = line else {
            self.hall.doors.counts.not_sent.fetch_add(1, Relaxed);
            return;
        };
        if shard_of(datagram).is_some() {
            line.in_session.store(self.hall.now(), Relaxed); // only sessions have a number
        }
        line.send(&self.hall, datagram);
    }

    fn attached(&mut self, waker: Waker) {
        let _ = self.hall.waker.set(waker); // one server
    }
}

impl Drop for Browsers {
    fn drop(&mut self) {
        self.hall.is_over.store(true, Relaxed);
        self.hall.over.notify_one();
    }
}

/// The address of a connection in tables: its own IP address and port, and a scope id that no interface has.
fn address(remote: SocketAddr, number: u32) -> SocketAddr {
    let ip = match remote.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    SocketAddrV6::new(ip, remote.port(), 0, number).into()
}

/// The number in such an address.
fn number(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(v6) if is_beside_udp(address) => Some(v6.scope_id()),
        _ => None,
    }
}

/// In the scope id of each connection. The numbers of interfaces are positive integers of 32 bits with a sign.
const MARK: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_has_its_ip_address_and_cannot_be_mistaken_for_a_native_client() {
        let remote: SocketAddr = "192.0.2.7:5000".parse().unwrap();
        let [one, other] = [1, 2].map(|number| address(remote, number | MARK));
        assert!(one != other && one != remote && one.ip().to_canonical() == remote.ip());
        assert_eq!((number(one), number(remote)), (Some(1 | MARK), None));
        assert_eq!(number("[fe80::1%3]:5000".parse().unwrap()), None);
    }
}
