//! renet over netcode, both without I/O, driven as `renet_netcode` drives them: an update every 10 ms sends. A server of
//! netcode holds 1024 clients, so more are on several servers.

use super::Side;
use super::bare::{address, index};
use super::batch::Batch;
use renet::{ConnectionConfig, DefaultChannel, RenetClient, RenetServer};
use renetcode::{
    ClientAuthentication, ConnectToken, NetcodeClient, NetcodeServer, ServerAuthentication, ServerConfig,
    ServerResult,
};
use std::net::SocketAddr;
use std::time::Duration;

/// All servers.
pub(super) struct Servers {
    servers: Vec<Server>,
    /// Answers to handshakes.
    answers: Batch,
    heard: Vec<usize>,
    buf: Vec<u8>,
}

struct Server {
    netcode: NetcodeServer,
    renet: RenetServer,
}

impl Server {
    fn new() -> Self {
        let netcode = NetcodeServer::new(ServerConfig {
            current_time: Duration::ZERO,
            max_clients: MOST,
            protocol_id: PROTOCOL,
            public_addresses: vec![server_address()],
            authentication: ServerAuthentication::Secure { private_key: KEY },
        });
        Self { netcode, renet: RenetServer::new(ConnectionConfig::default()) }
    }

    fn input(&mut self, from: usize, datagram: &mut [u8], answers: &mut Batch) {
        match self.netcode.process_packet(address(from), datagram) {
            ServerResult::None => {}
            ServerResult::PacketToSend { addr, payload } => answers.push(index(addr), payload),
            ServerResult::Payload { client_id, payload } => {
                self.renet.process_packet_from(payload, client_id).expect("it is up");
            }
            ServerResult::ClientConnected { client_id, addr, payload, .. } => {
                self.renet.add_connection(client_id);
                answers.push(index(addr), payload);
            }
            ServerResult::ClientDisconnected { .. } => panic!("it is in use"),
        }
    }

    fn update(&mut self, out: &mut impl FnMut(usize, &[u8])) {
        let Self { netcode, renet } = self;
        renet.update(EVERY);
        while renet.get_event().is_some() {}
        netcode.update(EVERY);
        for id in netcode.clients_id() {
            match netcode.update_client(id) {
                ServerResult::None => {}
                ServerResult::PacketToSend { addr, payload } => out(index(addr), payload),
                other => panic!("{other:?}"),
            }
        }
        for id in netcode.clients_id() {
            for packet in renet.get_packets_to_send(id).expect("it is up") {
                let (to, datagram) = netcode.generate_payload_packet(id, &packet).expect("it is up");
                out(index(to), datagram);
            }
        }
    }
}

impl Servers {
    pub(super) fn new(count: usize, _: u32) -> Self {
        let servers = (0..count.div_ceil(MOST)).map(|_| Server::new()).collect();
        Self { servers, answers: Batch::default(), heard: Vec::new(), buf: Vec::new() }
    }
}

impl Side for Servers {
    fn is_due(&self, now: u32) -> bool {
        is_due(now, 0)
    }

    fn input(&mut self, _: u32, index: usize, datagram: &[u8]) {
        self.buf.clear();
        self.buf.extend_from_slice(datagram);
        self.servers[index / MOST].input(index, &mut self.buf, &mut self.answers);
        self.heard.push(index);
    }

    fn send(&mut self, _: u32, index: usize, message: &[u8]) {
        let message = message.to_vec();
        self.servers[index / MOST].renet.send_message(index as u64, DefaultChannel::ReliableOrdered, message);
    }

    fn update(&mut self, now: u32, mut out: impl FnMut(usize, &[u8])) {
        self.answers.each(&mut out);
        self.answers.clear();
        if is_due(now, 0) {
            self.servers.iter_mut().for_each(|server| server.update(&mut out));
        }
    }

    fn recv(&mut self, _: u32, mut take: impl FnMut(&[u8])) {
        for index in self.heard.drain(..) {
            let renet = &mut self.servers[index / MOST].renet;
            while let Some(message) = renet.receive_message(index as u64, DefaultChannel::ReliableOrdered) {
                take(&message);
            }
        }
    }
}

pub(super) struct Clients {
    clients: Vec<(NetcodeClient, RenetClient)>,
    heard: Vec<usize>,
    buf: Vec<u8>,
}

impl Clients {
    pub(super) fn new(count: usize, _: u32) -> Self {
        let client = |index: usize| {
            let to = vec![server_address()];
            let token =
                ConnectToken::generate(Duration::ZERO, PROTOCOL, 3600, index as u64, 15, to, None, &KEY)
                    .expect("it is in range");
            let secure = ClientAuthentication::Secure { connect_token: token };
            let netcode = NetcodeClient::new(Duration::ZERO, secure).expect("a token");
            (netcode, RenetClient::new(ConnectionConfig::default()))
        };
        Self { clients: (0..count).map(client).collect(), heard: Vec::new(), buf: Vec::new() }
    }
}

impl Side for Clients {
    fn input(&mut self, _: u32, index: usize, datagram: &[u8]) {
        self.buf.clear();
        self.buf.extend_from_slice(datagram);
        let (netcode, renet) = &mut self.clients[index];
        if let Some(payload) = netcode.process_packet(&mut self.buf) {
            renet.process_packet(payload);
            self.heard.push(index);
        }
    }

    fn send(&mut self, _: u32, index: usize, message: &[u8]) {
        let (netcode, renet) = &mut self.clients[index];
        if netcode.is_connected() {
            renet.send_message(DefaultChannel::ReliableOrdered, message.to_vec());
        }
    }

    fn update(&mut self, now: u32, mut out: impl FnMut(usize, &[u8])) {
        let phase = (now % STEP) as usize;
        for index in (phase..self.clients.len()).step_by(STEP as usize) {
            let (netcode, renet) = &mut self.clients[index];
            assert!(!netcode.is_disconnected(), "{:?}", netcode.disconnect_reason());
            if let Some((datagram, _)) = netcode.update(EVERY) {
                out(index, datagram);
            }
            if !netcode.is_connected() {
                continue;
            }
            renet.set_connected();
            renet.update(EVERY);
            for packet in renet.get_packets_to_send() {
                out(index, netcode.generate_payload_packet(&packet).expect("it is up").1);
            }
        }
    }

    fn recv(&mut self, _: u32, mut take: impl FnMut(&[u8])) {
        for index in self.heard.drain(..) {
            let (_, renet) = &mut self.clients[index];
            while let Some(message) = renet.receive_message(DefaultChannel::ReliableOrdered) {
                take(&message);
            }
        }
    }
}

fn is_due(now: u32, phase: u32) -> bool {
    now % STEP == phase
}

fn server_address() -> SocketAddr {
    SocketAddr::from(([11, 0, 0, 1], 4000))
}

/// Most clients of a server of netcode.
const MOST: usize = 1024;
const PROTOCOL: u64 = 7;
const KEY: [u8; 32] = [7; 32];
/// ms between two updates, as of the control blocks.
const STEP: u32 = 10;
const EVERY: Duration = Duration::from_millis(STEP as u64);
