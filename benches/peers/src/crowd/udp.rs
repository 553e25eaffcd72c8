//! The same crowd over loopback sockets in real time. One thread has the server with its single socket, and
//! its CPU time counts. The other has all clients, each with a socket of its own. Both look at their sockets
//! every ms, so that a late datagram costs no less.

use super::bare::{Bare, ByTime};
use super::beat::Beat;
use super::enet;
use super::sessions::{CHANNEL, Clients};
use super::still::Sleeper;
use super::{Agenda, SIZE, START, Side, WARM, thread_time};
use crate::ikcp::Ikcp;
use crate::pipe::{CONV, Peer};
use crate::rust::Rust;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::kcp::{self, Config, Conv, PeerId};
use whitewater::session::{Cipher, Pattern, Suite};
use whitewater::{Event, Server, ServerConfig, SessionConfig, SessionId};

pub(crate) fn table(sessions: usize, seconds: u32) {
    println!(
        "{sessions} sessions over loopback, 30 x 64 B a second both ways, {seconds} s; the server, a session"
    );
    let base = one(NAMES[0], sessions, seconds);
    base.print(NAMES[0], &base);
    for name in &NAMES[1..] {
        one(name, sessions, seconds).print(name, &base);
    }
}

/// One row, for a profiler.
pub(crate) fn profile(name: &str, sessions: usize, seconds: u32) {
    let found = one(name, sessions, seconds);
    found.print(name, &found);
}

const NAMES: [&str; 6] = ["ikcp.c", "kcp", "rusty_enet", "by-time", "sessions", "encrypted"];

fn one(name: &str, sessions: usize, seconds: u32) -> Found {
    let end = WARM + seconds * 1000;
    match name {
        "ikcp.c" => run(sessions, end, OneByOne::<Ikcp>::new, Beat::<Ikcp>::new),
        "kcp" => run(sessions, end, OneByOne::<Rust>::new, Beat::<Rust>::new),
        "rusty_enet" => run(sessions, end, enet::Server::new, enet::Clients::new),
        "by-time" => run(sessions, end, Listener::new, Bare::<ByTime>::new),
        "sessions" => run(sessions, end, Sessions::checked, Clients::new),
        "encrypted" => run(sessions, end, Sessions::encrypted, Clients::encrypted),
        _ => panic!("{name}: none of {NAMES:?}"),
    }
}

struct Found {
    /// Datagrams sent by the server, per session and second.
    datagrams: f64,
    /// Percentage of the messages that did not arrive in time.
    missing: f64,
    /// µs from sending to receiving, in both directions.
    p50: u32,
    p99: u32,
    /// ns per session in 1/30 s.
    cpu: f64,
}

impl Found {
    fn print(&self, name: &str, base: &Self) {
        let Self { datagrams, missing, p50, p99, cpu } = self;
        println!(
            "  {name:12}{datagrams:6.1} datagrams per second; {:5.2}, {:5.2} ms p50, p99; {cpu:5.0} ns per tick of 1/30 s ({:.2}x){}",
            f64::from(*p50) / 1e3,
            f64::from(*p99) / 1e3,
            cpu / base.cpu,
            if *missing > 0.5 { format!("; {missing:.1} % of messages missing") } else { String::new() }
        );
    }
}

/// A server and its socket.
pub(super) trait Host {
    fn address(&self) -> SocketAddr;
    /// Handles the ms in `from..=now`: receives, and sends for the sessions in `sends`.
    fn step(&mut self, from: u32, now: u32, sends: &[usize], message: &[u8], take: &mut dyn FnMut(&[u8]));
    /// Datagrams sent so far.
    fn sent(&self) -> u64;
}

fn run<H: Host + 'static, C: Side>(
    sessions: usize,
    end: u32,
    host: fn(&[SocketAddr]) -> H,
    clients: impl Fn(usize, u32) -> C,
) -> Found {
    let sockets = Sockets::new(sessions);
    let (clock, (tell, told), addresses) = (Instant::now(), mpsc::channel(), sockets.addresses());
    let server = thread::Builder::new().name("server".to_owned()).spawn(move || {
        let mut host = host(&addresses);
        tell.send(host.address()).expect("somebody waits");
        let mut times = Vec::new();
        let mut warm = (0, 0.0);
        each_ms(clock, end, &Agenda::new(addresses.len(), 3), |from, now, sends, message| {
            if now >= WARM && warm.0 == 0 {
                warm = (host.sent(), thread_time());
            }
            host.step(from, now, sends, message, &mut |message| note(&mut times, clock, now, message));
        });
        (times, host.sent() - warm.0, thread_time() - warm.1)
    });
    let server = server.expect("a thread");
    let address = told.recv().expect("a server");
    let mut times =
        converse(clock, end, (&sockets, &Agenda::new(sessions, 5)), address, &mut clients(sessions, 1));
    let (others, sent, cpu) = server.join().expect("no panic");
    times.extend(others);
    times.sort_unstable();
    let seconds = f64::from(end - WARM) / 1000.0;
    let each = sessions as f64 * seconds;
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    Found {
        datagrams: sent as f64 / each,
        missing: 100.0 - times.len() as f64 / (each * 60.0) * 100.0,
        p50: at(0.5),
        p99: at(0.99),
        cpu: cpu * 1e9 / each / 30.0,
    }
}

/// The clients' side.
pub(super) fn converse(
    clock: Instant,
    end: u32,
    (sockets, agenda): (&Sockets, &Agenda),
    to: SocketAddr,
    side: &mut impl Side,
) -> Vec<u32> {
    sockets.all.iter().for_each(|socket| socket.connect(to).expect("a way"));
    let mut times = Vec::new();
    each_ms(clock, end, agenda, |from, now, sends, message| {
        sockets.receive(|index, datagram| side.input(now, index, datagram));
        side.recv(now, |message| note(&mut times, clock, now, message));
        sends.iter().for_each(|index| side.send(now, *index, message));
        for ms in from..=now {
            side.update(ms, |index, datagram| drop(sockets.all[index].send(datagram)));
        }
    });
    times
}

/// Calls `step` once per ms, or once for several when it is late: with the first and the last ms, who sends
/// in them, and what.
pub(super) fn each_ms(
    clock: Instant,
    end: u32,
    agenda: &Agenda,
    mut step: impl FnMut(u32, u32, &[usize], &[u8]),
) {
    let (mut next, mut sends, mut message) = (0, Vec::new(), [0x5a; SIZE]);
    while next < end {
        let now = clock.elapsed().as_millis() as u32;
        if now < next {
            thread::sleep(Duration::from_millis(next.into()).saturating_sub(clock.elapsed()));
            continue;
        }
        sends.clear();
        (next..=now).filter(|ms| *ms >= START).for_each(|ms| sends.extend_from_slice(agenda.of(ms)));
        message[..4].copy_from_slice(&micros(clock).to_le_bytes());
        step(next, now, &sends, &message);
        next = now + 1;
    }
}

fn note(times: &mut Vec<u32>, clock: Instant, now: u32, message: &[u8]) {
    if now >= WARM {
        let sent = message.first_chunk().map_or(0, |sent| u32::from_le_bytes(*sent));
        times.push(micros(clock) - sent);
    }
}

fn micros(clock: Instant) -> u32 {
    clock.elapsed().as_micros() as u32
}

/// The clients' sockets.
pub(super) struct Sockets {
    all: Vec<UdpSocket>,
    ready: OwnedFd,
}

impl Sockets {
    pub(super) fn new(count: usize) -> Self {
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
        let all: Vec<_> = (0..count).map(|_| socket()).collect();
        for (socket, index) in all.iter().zip(0..) {
            let data = epoll::EventData::new_u64(index);
            epoll::add(&ready, socket, data, epoll::EventFlags::IN).expect("room");
        }
        Self { all, ready }
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.all.iter().map(|socket| socket.local_addr().expect("it is bound")).collect()
    }

    fn receive(&self, mut take: impl FnMut(usize, &[u8])) {
        let (mut events, mut buf) = (Vec::with_capacity(1024), [0; 2048]);
        loop {
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            if epoll::wait(&self.ready, spare, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap_or(0) == 0 {
                return;
            }
            for event in &events {
                let index = event.data.u64() as usize;
                if let Ok(len) = self.all[index].recv(&mut buf) {
                    take(index, &buf[..len]);
                }
            }
        }
    }
}

pub(super) fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.set_nonblocking(true).expect("an option");
    socket
}

/// Control blocks as their users drive them: one call per datagram, whose session is found by its address,
/// and each updated every 10 ms.
pub(super) struct OneByOne<P> {
    socket: UdpSocket,
    addresses: Vec<SocketAddr>,
    indices: HashMap<SocketAddr, usize>,
    blocks: Beat<P>,
    sent: u64,
}

impl<P: Peer> OneByOne<P> {
    pub(super) fn new(addresses: &[SocketAddr]) -> Self {
        let socket = socket();
        socket2::SockRef::from(&socket).set_recv_buffer_size(2 << 20).expect("an option");
        socket2::SockRef::from(&socket).set_send_buffer_size(2 << 20).expect("an option");
        Self {
            socket,
            addresses: addresses.to_vec(),
            indices: addresses.iter().zip(0..).map(|(address, index)| (*address, index)).collect(),
            blocks: Beat::new(addresses.len(), 0),
            sent: 0,
        }
    }
}

impl<P: Peer> Host for OneByOne<P> {
    fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("it is bound")
    }

    fn step(&mut self, from: u32, now: u32, sends: &[usize], message: &[u8], take: &mut dyn FnMut(&[u8])) {
        let Self { socket, addresses, indices, blocks, sent } = self;
        let mut buf = [0; 2048];
        loop {
            match socket.recv_from(&mut buf) {
                Ok((len, from)) => blocks.input(now, indices[&from], &buf[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {} // about a datagram that did not arrive
            }
        }
        blocks.recv(now, take);
        sends.iter().for_each(|index| blocks.send(now, *index, message));
        for ms in from..=now {
            blocks.update(ms, |index, datagram| {
                let _ = socket.send_to(datagram, addresses[index]); // lost
                *sent += 1;
            });
        }
    }

    fn sent(&self) -> u64 {
        self.sent
    }
}

/// Bare KCP peers, which detect losses by timing.
pub(super) struct Listener {
    listener: kcp::Listener,
    ids: Vec<PeerId>,
}

impl Listener {
    pub(super) fn new(addresses: &[SocketAddr]) -> Self {
        let config = kcp::PeersConfig {
            kcp: Config { snd_wnd: 32, snd_queue: 4096, ..Config::default() },
            max_peers: addresses.len(),
            memory: 1 << 40,
            ..kcp::PeersConfig::registered()
        };
        let mut listener = kcp::Listener::bind((Ipv4Addr::LOCALHOST, 0), &config).expect("a port");
        let ids = addresses.iter().map(|to| listener.register(*to, Conv(CONV)).expect("there is room"));
        Self { ids: ids.collect(), listener }
    }
}

impl Host for Listener {
    fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("it is bound")
    }

    fn step(&mut self, _: u32, _: u32, sends: &[usize], message: &[u8], take: &mut dyn FnMut(&[u8])) {
        let Self { listener, ids } = self;
        for index in sends {
            listener.peer(ids[*index]).expect("it is up").send(message).expect("room");
        }
        listener.pump().expect("a socket");
        let mut buf = [0; 2048];
        while let Some(event) = listener.poll_event() {
            let kcp::PeerEvent::Readable(id) = event else { continue };
            let peer = listener.peer(id).expect("it is up");
            while let Ok(len) = peer.recv_into(&mut buf) {
                take(&buf[..len]);
            }
        }
    }

    fn sent(&self) -> u64 {
        self.listener.socket_traffic().sent
    }
}

impl Sleeper for Listener {
    fn rest(&mut self, time: Duration) {
        self.listener.poll(Some(time)).expect("a socket");
        while self.listener.poll_event().is_some() {}
    }

    fn received(&self) -> u64 {
        self.listener.socket_traffic().received
    }
}

pub(super) struct Sessions {
    server: Server,
    ids: Vec<SessionId>,
}

impl Sessions {
    pub(super) fn checked(addresses: &[SocketAddr]) -> Self {
        Self::new(addresses.len(), Suite::Checked)
    }

    pub(super) fn encrypted(addresses: &[SocketAddr]) -> Self {
        Self::new(addresses.len(), Suite::Noise(Pattern::Nn, Cipher::AesGcm))
    }

    fn new(count: usize, suite: Suite) -> Self {
        let most = u16::try_from(count).expect("a shard"); // all of one address
        let config = ServerConfig {
            max_sessions: most,
            memory: 1 << 40,
            sessions_per_address: most,
            half_open: most,
            half_open_per_address: most,
            accepts_per_second: 1_000_000,
            accept_burst: 1_000_000,
            challenges_per_second: 1_000_000,
            suites: vec![suite],
            ..ServerConfig::insecure(SessionConfig::default())
        };
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), &config).expect("a port");
        Self { server, ids: Vec::new() }
    }
}

impl Host for Sessions {
    fn address(&self) -> SocketAddr {
        self.server.local_addr().expect("it is bound")
    }

    fn step(&mut self, _: u32, _: u32, sends: &[usize], message: &[u8], take: &mut dyn FnMut(&[u8])) {
        let Self { server, ids } = self;
        for index in sends {
            if let Some(id) = ids.get(*index) {
                server.send(*id, CHANNEL, message).expect("room");
            }
        }
        server.pump().expect("a socket");
        while let Some((id, event)) = server.poll_event() {
            match event {
                Event::Connected => ids.push(id),
                Event::Readable => {
                    while let Some(message) = server.recv(id, CHANNEL) {
                        take(&message);
                    }
                }
                _ => panic!("{event:?}"),
            }
        }
    }

    fn sent(&self) -> u64 {
        self.server.socket_traffic().sent
    }
}

impl Sleeper for Sessions {
    fn rest(&mut self, time: Duration) {
        self.server.poll(Some(time)).expect("a socket");
        while let Some((_, event)) = self.server.poll_event() {
            assert_eq!(event, Event::Connected);
        }
    }

    fn received(&self) -> u64 {
        self.server.socket_traffic().received
    }
}
