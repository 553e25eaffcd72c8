//! The host's side of a relay: guests that come by it, as peers of the host's server.

use crate::ticket::HostTicket;
use crate::wire::{COOKIE, Cookie, Head, REGISTERED, RELAYED, Register, of_guest};
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use whitewater::machine::{Arrival, is_beside_udp};
use whitewater::net::{Transport, Waker};
use whitewater_udp::{Mode, Port, socket_for};

/// Guests of a relay, for [`Server::attach`](whitewater::Server::attach). It registers there, again every 5 s, and at once when the relay was started
/// again. Limits of the server count the guests' own addresses.
#[derive(Debug)]
pub struct RelayedGuests {
    relay: SocketAddr,
    /// Not connected: one that is keeps the address of a network that this host may leave.
    socket: UdpSocket,
    ticket: HostTicket,
    came: Mutex<Receiver<Came>>,
    /// Until there is a server.
    comes: Option<SyncSender<Came>>,
    frame: Vec<u8>,
    shared: Arc<Shared>,
}

type Came = (SocketAddr, Box<[u8]>);

#[derive(Debug)]
struct Shared {
    start: Instant,
    /// When the relay last said that it knows the host, ms after the start; 0: never.
    registered: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    fn millis(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

/// Says whether the relay knows the host.
#[derive(Clone, Debug)]
pub struct Registration(Arc<Shared>);

impl Registration {
    /// Whether guests can come: the relay has accepted the host's ticket, or said so again, in the last 15 s.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let registered = self.0.registered.load(Relaxed);
        registered > 0 && self.0.millis().saturating_sub(registered) <= 15_000
    }
}

impl RelayedGuests {
    /// Guests that come by the relay at `relay`, by the ticket that the matchmaker has given this host.
    ///
    /// # Errors
    ///
    /// If there is no socket that can send there.
    pub fn new(relay: SocketAddr, ticket: HostTicket) -> io::Result<Self> {
        let socket = socket_for(relay)?;
        socket.set_nonblocking(true)?;
        let (comes, came) = sync_channel(WAITING_MAX);
        let (comes, came) = (Some(comes), Mutex::new(came));
        let (registered, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { start: Instant::now(), registered, is_over });
        Ok(Self { relay, socket, ticket, came, comes, frame: Vec::new(), shared })
    }

    /// Whether the relay knows this host; keep it, and attach the rest.
    #[must_use]
    pub fn registration(&self) -> Registration {
        Registration(Arc::clone(&self.shared))
    }
}

impl Transport for RelayedGuests {
    fn carries(&self, to: SocketAddr) -> bool {
        link(to).is_some()
    }

    fn receive(&mut self, datagram: &mut Vec<u8>) -> Option<Arrival> {
        let (from, bytes) = self.came.get_mut().unwrap_or_else(PoisonError::into_inner).try_recv().ok()?;
        datagram.extend_from_slice(&bytes);
        Some(from.into())
    }

    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let Some(link) = link(to) else { return };
        self.frame.clear();
        self.frame.extend_from_slice(Head::of_host(link).as_ref());
        self.frame.extend_from_slice(datagram);
        let _ = self.socket.send_to(&self.frame, self.relay); // what has no room is lost, as on any network
    }

    fn attached(&mut self, waker: Waker) {
        let Some(comes) = self.comes.take() else { return };
        let (relay, ticket, shared) = (self.relay, self.ticket, Arc::clone(&self.shared));
        let opened = self.socket.try_clone().and_then(|socket| Port::new(socket, Mode::Whole, SLOTS));
        let started = opened.and_then(|port| {
            let cookie = Cookie::default();
            let reader = Reader { relay, port, ticket, cookie, asked: None, comes, waker, shared };
            thread::Builder::new().name("relayed guests".into()).spawn(|| reader.run())
        });
        if let Err(error) = started {
            log::warn!("the relay cannot be heard: {error}");
        }
    }
}

impl Drop for RelayedGuests {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
    }
}

/// Registers, and takes what the relay sends.
struct Reader {
    relay: SocketAddr,
    port: Port,
    ticket: HostTicket,
    cookie: Cookie,
    /// When it was asked to register last.
    asked: Option<Instant>,
    comes: SyncSender<Came>,
    waker: Waker,
    shared: Arc<Shared>,
}

impl Reader {
    fn run(mut self) {
        while !self.shared.is_over.load(Relaxed) {
            if self.is_due(REGISTER_EACH) {
                self.register();
            }
            match self.port.has_next(SLOTS) {
                Ok(true) => self.take(),
                Ok(false) => {
                    if let Err(error) = self.port.wait(Some(LOOK_EACH)) {
                        return log::warn!("the relay cannot be heard any more: {error}");
                    }
                }
                Err(error) => return log::warn!("the relay cannot be heard any more: {error}"),
            }
        }
    }

    fn is_due(&self, after: Duration) -> bool {
        self.asked.is_none_or(|asked| asked.elapsed() >= after)
    }

    fn register(&mut self) {
        self.asked = Some(Instant::now());
        let Self { ticket, cookie, .. } = self;
        let register = Register { ticket: ticket.ticket, cookie: *cookie, proof: ticket.proof(cookie) };
        let _ = self.port.socket().send_to(&register.encode(), self.relay); // it is sent again
    }

    fn take(&mut self) {
        let mut has_come = false;
        while let Some(datagram) = self.port.pop() {
            if datagram.from != self.relay {
                continue;
            }
            match datagram.bytes.split_first() {
                Some((&RELAYED, body)) => {
                    if let Some((link, guest, bytes)) = of_guest(body) {
                        let came = (address(guest, link), bytes.into());
                        let sent = self.comes.try_send(came);
                        has_come |= sent.is_ok();
                        if matches!(sent, Err(TrySendError::Disconnected(_))) {
                            return;
                        }
                    }
                }
                Some((&REGISTERED, [])) => self.shared.registered.store(self.shared.millis(), Relaxed),
                Some((&COOKIE, body)) => {
                    if let Ok(cookie) = body.try_into() {
                        self.cookie = cookie;
                        if self.is_due(REGISTER_SOONEST) {
                            self.register();
                        }
                    }
                }
                _ => {} // a link that is gone: its guest will open another
            }
        }
        if has_come {
            self.waker.wake();
        }
    }
}

/// The address of a guest in the tables of the server: its own, and a scope id that no interface has.
fn address(guest: SocketAddr, link: u32) -> SocketAddr {
    let ip = match guest.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    SocketAddrV6::new(ip, guest.port(), 0, link | MARK).into()
}

/// The link in such an address.
fn link(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(v6) if is_beside_udp(address) => Some(v6.scope_id() & !MARK),
        _ => None,
    }
}

/// In the scope id of each guest. The numbers of interfaces are positive integers of 32 bits with a sign.
const MARK: u32 = 1 << 31;
/// The relay forgets a host after 60 s, and a NAT on the way forgets its port after 30 s.
const REGISTER_EACH: Duration = Duration::from_secs(5);
/// Whoever forges cookies makes a host send no more often than that.
const REGISTER_SOONEST: Duration = Duration::from_millis(20);
/// How often to look whether it is over.
const LOOK_EACH: Duration = Duration::from_millis(250);
/// Arrivals of one call.
const SLOTS: usize = 16;
/// Most datagrams that wait for the server.
const WAITING_MAX: usize = 1024;
