//! A relay, a host and a guest behind NATs, in virtual time.

mod nat;

pub(crate) use nat::Kind;

use crate::common::{HOST, key, server_key};
use nat::Nat;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use whitewater::inside::session::wire::{Challenge, Hello, Packet};
use whitewater::machine::Machine;
use whitewater::rand_core::Rng as _;
use whitewater::session::token::{Order, PublicToken};
use whitewater::session::{Client, Server, Suite};
use whitewater::{ClientConfig, Event, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_relay::{HostGrant, Now, Relay, RelayConfig};
use whitewater_sim::SimRng;

/// A datagram takes that long between any two ends, and twice that by the relay.
pub(crate) const LEG: Duration = Duration::from_millis(30);

const RELAY: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 1), 4100);
/// Takes everything, and says nothing else, each time from another port.
const OBSERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 66);
const UNIX: u64 = 1_900_000_000;
const SIDES: usize = 2;

/// One of both players, and the NAT that they are behind.
struct Side {
    inside: SocketAddr,
    nat: Nat,
}

#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Sent {
    at: Time,
    count: u64,
    from: SocketAddr,
    to: SocketAddr,
    datagram: Vec<u8>,
}

pub(crate) struct Internet {
    pub(crate) now: Time,
    pub(crate) host: Server,
    pub(crate) guest: Client,
    pub(crate) relay: Relay,
    pub(crate) events: Vec<(Time, Event)>,
    pub(crate) sessions: Vec<SessionId>,
    /// Bytes that went to anybody from the host, and to the host from the guest, before the session was up.
    pub(crate) bytes: (usize, usize),
    /// The part of datagrams that is lost, and from when on none gets straight from one player to the other.
    pub(crate) loss: f64,
    pub(crate) is_cut: bool,
    /// How long the host took to register.
    pub(crate) registered: Duration,
    /// Somebody on the way answers each question of the guest, before anybody else.
    pub(crate) is_observed: bool,
    sides: [Side; SIDES],
    under_way: BinaryHeap<Reverse<Sent>>,
    rng: SimRng,
    count: u64,
    buf: Vec<u8>,
}

impl Internet {
    /// The host has registered, and the guest has a connect token and has not asked yet.
    pub(crate) fn new(seed: u64, kinds: [Kind; SIDES], loss: f64) -> Self {
        let relay = RELAY.into();
        let expires = u32::try_from(UNIX + 3600).unwrap();
        let grant = HostGrant { host: HOST, expires, guests: 8, bytes_per_second: 1_000_000 };
        let tokens = ServerConfig::tokens(SessionConfig::default(), server_key());
        let config = ServerConfig { relay: Some((relay, key().host(grant))), routing_token: 20, ..tokens };
        let host = Server::new(&config, SimRng::new(seed, 1)).unwrap();
        let side = |number: u8, kind| Side {
            inside: ([10, 0, number, 2], 4000 + u16::from(number)).into(),
            nat: Nat::new(kind, Ipv4Addr::new(198, 51, 100, number)),
        };
        let mut internet = Self {
            now: Time::ZERO,
            host,
            guest: Client::new(&ClientConfig::insecure(SessionConfig::default()), SimRng::new(seed, 2))
                .unwrap(),
            relay: Relay::new(key(), RelayConfig::default(), [9; 32]),
            events: Vec::new(),
            sessions: Vec::new(),
            bytes: (0, 0),
            loss,
            is_cut: false,
            registered: Duration::ZERO,
            is_observed: false,
            sides: [side(1, kinds[0]), side(2, kinds[1])],
            under_way: BinaryHeap::new(),
            rng: SimRng::new(seed, 3),
            count: 0,
            buf: Vec::new(),
        };
        assert!(
            internet.run_until(60_000, |internet| internet.host.public_addr(internet.now).is_some()),
            "{seed}"
        );
        internet.registered = internet.now.since(Time::ZERO);
        internet.run_until(3000, |internet| internet.now >= Time::from_millis(2000));
        internet
    }

    /// The guest asks at all addresses of its token. Returns when.
    pub(crate) fn join(&mut self) -> Time {
        let public = self.host.public_addr(self.now).unwrap();
        let expires = u32::try_from(UNIX + 3600).unwrap();
        let order = Order {
            protocol_id: 0,
            suite: Suite::TOKEN,
            client_id: 5,
            match_id: [0; 16],
            created: self.unix(),
            expires: self.unix() + 60,
            addresses: &[public, self.sides[0].inside, RELAY.into()],
            server_key: None,
            routing_token: &key().guest(HOST, 5, expires),
            user: b"",
        };
        let token = server_key().mint(&order, [7; 32], [8; 24]).unwrap();
        let token = PublicToken::decode(&token.encode()).unwrap();
        let config = ClientConfig::token(SessionConfig::default(), &token);
        self.guest = Client::new(&config, SimRng::new(self.rng.next_u64(), 2)).unwrap();
        self.guest.connect(self.now, &token.addresses).unwrap();
        self.now
    }

    /// Whether the guest sends to the host, and not to the relay.
    pub(crate) fn is_direct(&self) -> bool {
        self.guest.peer_addr().is_some_and(|peer| peer != RELAY.into())
    }

    /// Whether the host sends to the guest, and not to the relay.
    pub(crate) fn is_answered_directly(&self) -> bool {
        let address = self.sessions.last().and_then(|id| self.host.peer_addr(*id));
        address.is_some_and(|address| !whitewater::machine::is_beside_udp(address))
    }

    pub(crate) fn run(&mut self, ms: u64) {
        self.run_until(ms, |_| false);
    }

    /// Runs until something holds, at most for so many ms; returns whether it does.
    pub(crate) fn run_until(&mut self, ms: u64, is_done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + Duration::from_millis(ms);
        loop {
            self.transmit();
            if is_done(self) {
                return true;
            }
            let timeouts = [self.host.poll_timeout(), self.guest.poll_timeout()];
            let arrival = self.under_way.peek().map(|Reverse(sent)| sent.at);
            let next = timeouts.into_iter().flatten().chain(arrival).min().unwrap_or(end).max(self.now);
            if next > end {
                self.now = end;
                return false;
            }
            self.now = next;
            let unix = Duration::from_secs(self.unix());
            self.host.set_unix_time(self.now, unix);
            while self.under_way.peek().is_some_and(|Reverse(sent)| sent.at <= next) {
                let Some(Reverse(sent)) = self.under_way.pop() else { break };
                self.arrive(sent);
                self.transmit();
            }
            self.host.handle_timeout(self.now);
            self.guest.handle_timeout(self.now);
        }
    }

    fn unix(&self) -> u64 {
        UNIX + self.now.as_micros() / 1_000_000
    }

    fn arrive(&mut self, Sent { from, to, mut datagram, .. }: Sent) {
        if to == RELAY.into() {
            let now = Now { since_start: Duration::from_micros(self.now.as_micros()), unix: self.unix() };
            let Some(passed) = self.relay.handle(now, from, &datagram) else { return };
            let (to, mut out) = (passed.to, Vec::new());
            passed.append(&mut out);
            return self.send(RELAY.into(), to, out);
        }
        let Some(side) = self.sides.iter().position(|side| {
            to.ip() == side.nat.outward_ip() && side.nat.inward(from, to.port(), side.inside).is_some()
        }) else {
            return;
        };
        if side == 0 {
            self.bytes.1 += datagram.len();
            self.host.handle_datagram(self.now, from.into(), &mut datagram);
        } else {
            self.guest.handle_datagram(self.now, from.into(), &mut datagram);
        }
    }

    fn transmit(&mut self) {
        for side in 0..SIDES {
            loop {
                let mut buf = std::mem::take(&mut self.buf);
                buf.clear();
                let transmit = match side {
                    0 => self.host.poll_transmit(self.now, &mut buf),
                    _ => self.guest.poll_transmit(self.now, &mut buf),
                };
                let Some(transmit) = transmit else {
                    self.buf = buf;
                    break;
                };
                self.bytes.0 += if side == 0 { buf.len() } else { 0 };
                let Side { inside, nat } = &mut self.sides[side];
                let from = nat.outward(*inside, transmit.address);
                let is_direct = transmit.address != RELAY.into();
                if !(is_direct && self.is_cut) {
                    self.send(from, transmit.address, buf);
                }
            }
        }
        while let Some((id, event)) = self.host.poll_event() {
            if event == Event::Connected {
                self.sessions.push(id);
            }
            self.events.push((self.now, event));
        }
        while let Some(event) = self.guest.poll_event() {
            self.events.push((self.now, event));
        }
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, datagram: Vec<u8>) {
        let greets = match Packet::decode(datagram.get(..1200).unwrap_or_default()) {
            Ok(Packet::Hello(Hello { suite, cid, client_stamp, .. })) => Some((suite, cid, client_stamp)),
            Ok(Packet::Connect(connect)) if !connect.has_proof() => Some((connect.suite, connect.cid, 0)),
            _ => None,
        };
        if self.is_observed
            && let Some((suite, cid, client_stamp)) = greets
        {
            let (epoch, cookie) = (1, [7; 16]);
            let mut datagram = Vec::new();
            Challenge { suite, cid, client_stamp, epoch, cookie }.encode(&mut datagram).unwrap();
            self.count += 1;
            let (at, count) = (self.now + Duration::from_millis(1), self.count);
            let port = 1 + u16::try_from(count % 60_000).unwrap();
            self.under_way.push(Reverse(Sent {
                at,
                count,
                from: (OBSERVER, port).into(),
                to: from,
                datagram,
            }));
        }
        let fraction = f64::from(self.rng.next_u32()) / f64::from(u32::MAX);
        if fraction >= self.loss {
            self.count += 1;
            let (at, count) = (self.now + LEG, self.count);
            self.under_way.push(Reverse(Sent { at, count, from, to, datagram }));
        }
    }
}
