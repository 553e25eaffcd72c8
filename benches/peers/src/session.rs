//! A session as a [`Peer`]: a client and a server without I/O, with one ordered channel. The first end of a
//! pipe is the client.

use crate::pipe::{Peer, Port};
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use whitewater::kcp::{Config, Recovery};
use whitewater::machine::Machine as _;
use whitewater::session::{Cipher, Client, Connection, Pattern, Server, Suite};
use whitewater::{Channel, ChannelConfig, ClientConfig, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::SimRng;

/// Protected by a checksum or encrypted.
pub(crate) struct Sessions<const IS_ENCRYPTED: bool> {
    end: End,
    port: Port,
    datagram: Vec<u8>,
}

enum End {
    Client(Box<Client>),
    Server(Box<Server>, Option<SessionId>),
}

impl<const IS_ENCRYPTED: bool> Sessions<IS_ENCRYPTED> {
    fn connection(&mut self) -> Option<&mut Connection> {
        match &mut self.end {
            End::Client(session) => session.connection_mut(),
            End::Server(server, id) => {
                if id.is_none() {
                    *id = server.clients().next();
                }
                server.connection_mut((*id)?)
            }
        }
    }

    /// Sends everything there is to send.
    fn transmit(&mut self, now: Time) {
        let Self { end, port, datagram } = self;
        loop {
            datagram.clear();
            let to = match end {
                End::Client(session) => session.poll_transmit(now, datagram),
                End::Server(server, _) => server.poll_transmit(now, datagram),
            };
            if to.is_none() {
                return;
            }
            port.carry(datagram);
        }
    }
}

impl<const IS_ENCRYPTED: bool> Peer for Sessions<IS_ENCRYPTED> {
    const NAME: &'static str = if IS_ENCRYPTED { "encrypted session" } else { "session" };

    fn new(window: u16, port: Port) -> Self {
        thread_local!(static HAS_CLIENT: Cell<bool> = const { Cell::new(false) });
        let kcp = Config {
            snd_wnd: window,
            rcv_wnd: window.max(Config::default().rcv_wnd),
            snd_queue: 4 * u32::from(window),
            snd_queue_bytes: 1 << 30,
            recovery: Recovery::default(),
            ..Config::default()
        };
        let session = SessionConfig {
            channels: vec![ChannelConfig { kcp, ..CHANNEL.config() }],
            send_memory: 1 << 30,
            receive_memory: 1 << 30,
            path_mtu: None, // a path of 1400 bytes carries no probes
            ..SessionConfig::default()
        };
        let suite = if IS_ENCRYPTED { Suite::Noise(Pattern::Nn, Cipher::AesGcm) } else { Suite::Checked };
        let random = SimRng::new(HAS_CLIENT.get().into(), 1);
        let end = if HAS_CLIENT.replace(!HAS_CLIENT.get()) {
            let insecure = ServerConfig::insecure(session);
            let config = ServerConfig { suites: vec![suite], memory: 1 << 40, ..insecure };
            End::Server(Box::new(Server::new(&config, random).expect("the configuration is valid")), None)
        } else {
            let config = ClientConfig { suite, ..ClientConfig::insecure(session) };
            let mut client = Client::new(&config, random).expect("the configuration is valid");
            client.connect(Time::ZERO, &[PEER]).expect("it is new");
            End::Client(Box::new(client))
        };
        Self { end, port, datagram: Vec::new() }
    }

    fn send(&mut self, message: &[u8]) {
        let connection = self.connection().expect("it is up, for `wait_snd` says so");
        connection.send(CHANNEL, message).expect("the send queue has room");
    }

    fn recv(&mut self, buf: &mut [u8]) -> Option<usize> {
        self.connection()?.recv_into(CHANNEL, buf).ok()
    }

    fn input(&mut self, now: u32, datagram: &[u8]) {
        self.input_mut(now, &mut datagram.to_vec());
    }

    fn input_mut(&mut self, now: u32, datagram: &mut [u8]) {
        let now = Time::from_millis(now.into());
        match &mut self.end {
            End::Client(session) => session.handle_datagram(now, PEER.into(), datagram),
            End::Server(server, _) => server.handle_datagram(now, PEER.into(), datagram),
        }
    }

    fn update(&mut self, now: u32) {
        let now = Time::from_millis(now.into());
        match &mut self.end {
            End::Client(session) => {
                session.handle_timeout(now);
                while session.poll_event().is_some() {}
            }
            End::Server(server, _) => {
                server.handle_timeout(now);
                while server.poll_event().is_some() {}
            }
        }
        self.transmit(now);
    }

    /// Until the session is up: more than any limit on waiting.
    fn wait_snd(&self) -> usize {
        let connection = match &self.end {
            End::Client(session) => session.connection(),
            End::Server(server, id) => id.and_then(|id| server.connection(id)),
        };
        let stats = connection.and_then(|connection| connection.kcp_stats(CHANNEL));
        stats.map_or(usize::MAX, |stats| stats.in_flight as usize + stats.snd_queue as usize)
    }
}

const CHANNEL: Channel = Channel::ordered(0);
/// The address that each end believes the other to have.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1000);
