//! Who may come in: counts of connections and handshakes, in all and from each address.

use super::config::WebConfig;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// How many are inside.
#[derive(Debug)]
struct Count {
    most: usize,
    most_per_address: usize,
    /// In all, and for each address.
    inside: Mutex<(usize, HashMap<IpAddr, usize>)>,
}

/// The right to be inside until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    count: Arc<Count>,
    host: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = self.count.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.0 = inside.0.saturating_sub(1);
        if let Some(of_host) = inside.1.get_mut(&self.host) {
            *of_host -= 1;
            if *of_host == 0 {
                inside.1.remove(&self.host);
            }
        }
    }
}

impl Count {
    fn new(most: usize, most_per_address: usize) -> Arc<Self> {
        Arc::new(Self { most, most_per_address, inside: Mutex::default() })
    }

    fn enter(self: &Arc<Self>, host: IpAddr) -> Option<Place> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let of_host = inside.1.get(&host).copied().unwrap_or(0);
        if inside.0 >= self.most || of_host >= self.most_per_address {
            return None;
        }
        inside.0 += 1;
        inside.1.insert(host, of_host + 1);
        drop(inside);
        Some(Place { count: Arc::clone(self), host })
    }

    fn len(&self) -> usize {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The limits of a listener, and what it counts.
#[derive(Debug)]
pub(super) struct Doors {
    connections: Arc<Count>,
    handshakes: Arc<Count>,
    pub(super) counts: Counts,
}

/// A connection that is coming in.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) connection: Place,
    /// Given back when the handshake is over.
    pub(super) handshake: Place,
}

impl Doors {
    pub(super) fn new(config: &WebConfig) -> Self {
        Self {
            connections: Count::new(config.connections, config.connections_per_address),
            handshakes: Count::new(config.handshakes, config.handshakes_per_address),
            counts: Counts::default(),
        }
    }

    /// Lets somebody in, if there is room.
    pub(super) fn knock(&self, ip: IpAddr) -> Option<Guest> {
        let host = host(ip);
        let connection = self.connections.enter(host);
        let guest = connection
            .and_then(|connection| Some(Guest { connection, handshake: self.handshakes.enter(host)? }));
        if guest.is_none() {
            self.counts.refused.fetch_add(1, Relaxed);
        }
        guest
    }

    /// Whether so many are coming in that each has to prove its address first.
    pub(super) fn is_crowded(&self) -> bool {
        self.handshakes.len() * 2 > self.handshakes.most
    }

    pub(super) fn stats(&self) -> WebStats {
        let Counts { refused, failed, evicted, web_transports, web_sockets, .. } = &self.counts;
        let Counts { received, overflowed, sent, too_long, not_sent, .. } = &self.counts;
        let get = |count: &AtomicU64| count.load(Relaxed);
        WebStats {
            connections: self.connections.len(),
            web_transports: get(web_transports),
            web_sockets: get(web_sockets),
            refused: get(refused),
            failed: get(failed),
            evicted: get(evicted),
            received: get(received),
            overflowed: get(overflowed),
            sent: get(sent),
            too_long: get(too_long),
            not_sent: get(not_sent),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) web_transports: AtomicU64,
    pub(super) web_sockets: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) overflowed: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) too_long: AtomicU64,
    pub(super) not_sent: AtomicU64,
}

/// What a listener has counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct WebStats {
    /// Connections that are open or coming in now.
    pub connections: usize,
    /// Connections by WebTransport that came up.
    pub web_transports: u64,
    /// Connections by WebSocket that came up.
    pub web_sockets: u64,
    /// Connections that a limit refused.
    pub refused: u64,
    /// Handshakes that failed or took too long, or were for another path or from another origin.
    pub failed: u64,
    /// Connections that were closed because they had no session for too long, or sent too much without one.
    pub evicted: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams that were dropped because the server did not take them in time.
    pub overflowed: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that were not sent because they are too long for the path.
    pub too_long: u64,
    /// Datagrams that were not sent because the connection was gone or full.
    pub not_sent: u64,
}

/// What counts as one address: as in sessions, an IPv4 address or the /64 network that one IPv6 host may own.
fn host(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> WebConfig {
        let mut config = WebConfig::self_signed(["localhost"]);
        (config.connections, config.connections_per_address) = (6, 3);
        (config.handshakes, config.handshakes_per_address) = (4, 2);
        config
    }

    #[test]
    fn an_address_takes_its_own_places_only() {
        let doors = Doors::new(&config());
        let [one, other] = ["10.0.0.1", "::ffff:10.0.0.2"].map(|ip| ip.parse::<IpAddr>().unwrap());
        let first: Vec<_> = (0..9).filter_map(|_| doors.knock(one)).collect();
        assert_eq!((first.len(), doors.stats().refused), (2, 7), "two handshakes at a time");
        let mut up: Vec<_> = first.into_iter().map(|guest| guest.connection).collect();
        up.extend(doors.knock(one).map(|guest| guest.connection));
        assert!(up.len() == 3 && doors.knock(one).is_none(), "three connections");
        let others: Vec<_> = (0..9).filter_map(|_| doors.knock(other)).collect();
        assert_eq!((others.len(), doors.stats().connections), (2, 5));
        drop((up, others));
        assert_eq!(doors.stats().connections, 0);
        assert!(doors.connections.inside.lock().unwrap().1.is_empty(), "nothing is kept of who has left");
    }

    #[test]
    fn an_ipv6_network_is_one_address_and_a_crowd_has_to_prove_where_it_is() {
        let doors = Doors::new(&config());
        let mut guests = Vec::new();
        let mut knock = |ip: &str| doors.knock(ip.parse().unwrap()).map(|guest| guests.push(guest)).is_some();
        assert!(knock("2001:db8::1") && knock("2001:db8::2") && !knock("2001:db8::3"));
        assert!(!doors.is_crowded() && knock("2001:db8:1::1") && doors.is_crowded());
        assert!(knock("10.0.0.1") && !knock("10.0.0.2"), "four in all");
    }
}
