//! Sessions: an ordered channel by KCP, the same in packets, and a stream; each with a checksum and encrypted.

use super::{COUNT, DELAY, Load, MESSAGE, Wire};
use std::collections::VecDeque;
use std::net::SocketAddr;
use whitewater::channel::Carrier;
use whitewater::kcp::Config;
use whitewater::machine::Machine as _;
use whitewater::session::{Client, Server, Suite};
use whitewater::{Channel, ChannelConfig, ClientConfig, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::SimRng;

pub(super) fn rows(row: &dyn Fn(&str, &dyn Fn(Load) -> Wire)) {
    for (suite, name) in [(Suite::Checked, "checksum"), (Suite::TOKEN, "encrypted")] {
        for (by, means) in [(By::Kcp, "by KCP"), (By::Stream, "stream"), (By::Packets, "in packets")] {
            row(&format!("session, {name}, {means}"), &|load| run(suite, by, load));
        }
    }
}

/// What carries the messages.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Kcp,
    Stream,
    Packets,
}

impl By {
    const fn channel(self) -> Channel {
        if matches!(self, Self::Stream) { Channel::stream(0) } else { Channel::ordered(0) }
    }
}

/// One direction of the path.
type Way = VecDeque<(u32, Vec<u8>)>;

fn arrive(way: &mut Way, now: u32) -> Option<Vec<u8>> {
    let is_there = way.front().is_some_and(|(at, _)| *at <= now);
    if is_there { way.pop_front().map(|(_, datagram)| datagram) } else { None }
}

fn run(suite: Suite, by: By, load: Load) -> Wire {
    let mut ends = Ends::new(suite, by);
    while ends.session.is_none() || ends.client.connection().is_none() {
        ends.step();
    }
    ends.wire = Wire::default();
    let (mut sent, mut got) = (0, 0);
    while got < COUNT * MESSAGE as u64 {
        got += ends.take(by);
        for _ in 0..load.quota().min(COUNT - sent) {
            if !ends.send(by) {
                break;
            }
            sent += 1;
        }
        ends.step();
    }
    (0..2 * DELAY).for_each(|_| ends.step()); // the last ones are acknowledged
    ends.wire
}

struct Ends {
    now: u32,
    server: Server,
    client: Client,
    ways: [Way; 2],
    wire: Wire,
    session: Option<SessionId>,
}

impl Ends {
    fn new(suite: Suite, by: By) -> Self {
        let kcp = Config { snd_wnd: 1024, rcv_wnd: 1024, ..Config::default() };
        let carrier = if by == By::Packets { Carrier::Packets } else { Carrier::Kcp };
        let config = SessionConfig {
            channels: vec![ChannelConfig { kcp, carrier, ..by.channel().config() }],
            send_memory: 1 << 20,
            receive_memory: 1 << 20,
            ..SessionConfig::default()
        };
        let psk = suite.needs_psk().then(|| [7; 32].into());
        let server =
            ServerConfig { suites: vec![suite], psk: psk.clone(), ..ServerConfig::insecure(config.clone()) };
        let client = ClientConfig { suite, psk, ..ClientConfig::insecure(config) };
        let (server, mut client) =
            (Server::new(&server, random(1)).unwrap(), Client::new(&client, random(2)).unwrap());
        client.connect(Time::ZERO, &[there()]).unwrap();
        Self { now: 0, server, client, ways: Default::default(), wire: Wire::default(), session: None }
    }

    fn time(&self) -> Time {
        Time::from_millis(self.now.into())
    }

    /// Advances by one ms.
    fn step(&mut self) {
        self.now += 1;
        let (now, at) = (self.now, self.time());
        let Self { server, client, ways: [up, down], wire, session, .. } = self;
        while let Some(mut datagram) = arrive(up, now) {
            server.handle_datagram(at, here().into(), &mut datagram);
        }
        while let Some(mut datagram) = arrive(down, now) {
            client.handle_datagram(at, there().into(), &mut datagram);
        }
        server.handle_timeout(at);
        client.handle_timeout(at);
        while let Some((id, _)) = server.poll_event() {
            *session = Some(id);
        }
        while client.poll_event().is_some() {}
        let mut datagram = Vec::new();
        while server.poll_transmit(at, &mut datagram).is_some() {
            wire.add(&datagram);
            down.push_back((now + DELAY, std::mem::take(&mut datagram)));
        }
        while client.poll_transmit(at, &mut datagram).is_some() {
            wire.add(&datagram);
            up.push_back((now + DELAY, std::mem::take(&mut datagram)));
        }
    }

    /// Bytes of messages received.
    fn take(&mut self, by: By) -> u64 {
        let Some(connection) = self.session.and_then(|id| self.server.connection_mut(id)) else { return 0 };
        let mut bytes = 0;
        while let Some(message) = connection.recv(by.channel()) {
            bytes += message.len() as u64;
        }
        bytes
    }

    /// Sends a message. Returns whether there is room for more.
    fn send(&mut self, by: By) -> bool {
        let connection = self.client.connection_mut();
        connection.is_some_and(|connection| connection.send(by.channel(), &[0x5a; MESSAGE]).is_ok())
    }
}

fn random(seed: u64) -> SimRng {
    SimRng::new(seed, 1)
}

fn here() -> SocketAddr {
    ([10, 0, 0, 1], 1000).into()
}

fn there() -> SocketAddr {
    ([10, 0, 0, 2], 2000).into()
}
