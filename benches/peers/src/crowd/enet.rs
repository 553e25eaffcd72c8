//! ENet, by rusty_enet: one host with all sessions, and one host per client.

mod hosts;

use super::Side;
use super::udp::{Host, socket};
pub(super) use hosts::Hosts;
use rusty_enet::{
    Event, Host as Enet, HostSettings, MTU_MAX, Packet, PacketReceived, PeerID, ReadWrite, Socket,
    SocketOptions,
};
use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;

pub(super) struct Server {
    enet: Enet<Counted>,
    address: SocketAddr,
    ids: Vec<PeerID>,
}

impl Server {
    pub(super) fn new(addresses: &[SocketAddr]) -> Self {
        let socket = socket();
        let address = socket.local_addr().expect("it is bound");
        let settings =
            HostSettings { peer_limit: addresses.len(), channel_limit: 1, ..HostSettings::default() };
        Self {
            enet: Enet::new(Counted { socket, sent: 0 }, settings).expect("a host"),
            address,
            ids: Vec::new(),
        }
    }
}

impl Host for Server {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn step(&mut self, _: u32, _: u32, sends: &[usize], message: &[u8], take: &mut dyn FnMut(&[u8])) {
        let Self { enet, ids, .. } = self;
        for id in sends.iter().filter_map(|index| ids.get(*index)) {
            enet.peer_mut(*id).send(0, &Packet::reliable(message)).expect("it is up");
        }
        while let Some(event) = enet.service().expect("a socket") {
            match event {
                Event::Connect { peer, .. } => ids.push(peer.id()),
                Event::Receive { packet, .. } => take(packet.data()),
                Event::Disconnect { .. } => panic!("it is in use"),
            }
        }
    }

    fn sent(&self) -> u64 {
        self.enet.socket().sent
    }
}

/// A socket that counts what it sends.
struct Counted {
    socket: UdpSocket,
    sent: u64,
}

impl Socket for Counted {
    type Address = SocketAddr;
    type Error = io::Error;

    fn init(&mut self, options: SocketOptions) -> io::Result<()> {
        self.socket.init(options)?;
        socket2::SockRef::from(&self.socket).set_recv_buffer_size(2 << 20)
    }

    fn send(&mut self, address: SocketAddr, buffer: &[u8]) -> io::Result<usize> {
        self.sent += 1;
        Socket::send(&mut self.socket, address, buffer)
    }

    fn receive(&mut self, buffer: &mut [u8; MTU_MAX]) -> io::Result<Option<(SocketAddr, PacketReceived)>> {
        self.socket.receive(buffer)
    }
}

type Client = Enet<ReadWrite<SocketAddr, io::Error>>;

pub(super) struct Clients {
    clients: Vec<Client>,
    /// Clients with something to do, besides those whose turn it is: each has one turn every 10 ms.
    busy: Vec<usize>,
    arrived: Vec<Packet>,
    clock: Clock,
}

impl Clients {
    pub(super) fn new(count: usize, _: u32) -> Self {
        Self::by(count, Clock::default(), HostSettings::default)
    }

    /// In virtual time.
    pub(super) fn simulated(count: usize, _: u32) -> Self {
        let clock = Clock::default();
        Self::by(count, clock.clone(), || HostSettings { time: clock.time(), ..HostSettings::default() })
    }

    fn by(count: usize, clock: Clock, settings: impl Fn() -> HostSettings) -> Self {
        let client = || {
            let settings = HostSettings { peer_limit: 1, channel_limit: 1, ..settings() };
            let mut client = Client::new(ReadWrite::new(), settings).expect("a host");
            client.connect(SERVER, 1, 0).expect("a place");
            client
        };
        Self { clients: (0..count).map(|_| client()).collect(), busy: Vec::new(), arrived: Vec::new(), clock }
    }
}

impl Side for Clients {
    fn input(&mut self, _: u32, index: usize, datagram: &[u8]) {
        self.clients[index].socket_mut().write(SERVER, datagram.to_vec());
        self.busy.push(index);
    }

    fn send(&mut self, _: u32, index: usize, message: &[u8]) {
        let peer = self.clients[index].peer_mut(PeerID(0));
        if peer.connected() {
            peer.send(0, &Packet::reliable(message)).expect("it is up");
        }
        self.busy.push(index);
    }

    fn update(&mut self, now: u32, mut out: impl FnMut(usize, &[u8])) {
        let Self { clients, busy, arrived, clock } = self;
        clock.0.set(now);
        busy.extend((now as usize % 10..clients.len()).step_by(10));
        for index in busy.drain(..) {
            serve(&mut clients[index], |packet| arrived.push(packet));
            while let Some((_, datagram)) = clients[index].socket_mut().read() {
                out(index, &datagram);
            }
        }
    }

    fn recv(&mut self, now: u32, mut take: impl FnMut(&[u8])) {
        let Self { clients, busy, arrived, clock } = self;
        clock.0.set(now);
        busy.iter().for_each(|index| serve(&mut clients[*index], |packet| arrived.push(packet)));
        arrived.drain(..).for_each(|packet| take(packet.data()));
    }
}

fn serve(client: &mut Client, mut take: impl FnMut(Packet)) {
    while let Some(event) = client.service().expect("no socket to fail") {
        match event {
            Event::Connect { .. } => {}
            Event::Receive { packet, .. } => take(packet),
            Event::Disconnect { .. } => panic!("it is in use"),
        }
    }
}

/// Virtual time, ms.
#[derive(Clone, Default)]
struct Clock(Rc<Cell<u32>>);

impl Clock {
    fn time(&self) -> Box<dyn Fn() -> Duration> {
        let now = Rc::clone(&self.0);
        Box::new(move || Duration::from_millis(u64::from(now.get()) + 1000))
    }
}

/// The address that clients believe the server to have.
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);
