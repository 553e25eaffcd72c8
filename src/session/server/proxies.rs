//! Proxies that tell where their clients are, by the PROXY protocol: limits, proofs and sessions are then those of the clients, and only the answers
//! go by the proxy.
//!
//! A header is before each datagram, or only before the first that a proxy sends from a port. Until a datagram is authentic, the last one that
//! claims to come from an address says how it is reached, as it does without a proxy. An authentic one says it for its session, and nothing
//! else changes that.

use super::stats::Refusal;
use crate::hash::{Given, Keyed};
use crate::machine::{Arrival, is_beside_udp};
use crate::session::wire::ProxyHeader;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

#[derive(Debug)]
pub(super) struct Proxies {
    trusted: Vec<IpAddr>,
    /// The last datagram: whose it was, and the port of a proxy that it came by.
    last: Option<(SocketAddr, Option<SocketAddr>)>,
    asked: Recent,
    /// The port at a proxy by which the client of a session was last heard from, where it is now; and whose each port is.
    ways: HashMap<u32, SocketAddr, Given>,
    held: HashMap<SocketAddr, (u32, SocketAddr), Keyed>,
}

impl Proxies {
    /// `key` makes the hash of what strangers choose.
    pub(super) fn new(trusted: &[IpAddr], key: impl FnOnce() -> [u64; 2]) -> Option<Self> {
        if trusted.is_empty() {
            return None;
        }
        let hash = Keyed(key());
        let trusted = trusted.iter().map(IpAddr::to_canonical).collect();
        let (ways, held) = (HashMap::default(), HashMap::with_hasher(hash));
        Some(Self { trusted, last: None, asked: Recent::new(hash), ways, held })
    }

    /// Takes the header off, if a proxy has sent this. Returns whose it is, and what is left; that may be nothing.
    pub(super) fn open<'a>(
        &mut self,
        from: Arrival,
        datagram: &'a mut [u8],
    ) -> Result<(Arrival, &'a mut [u8]), Refusal> {
        let (proxy, mut start) = (from.address, 0);
        let client = if is_beside_udp(proxy) || !self.trusted.contains(&proxy.ip().to_canonical()) {
            None
        } else if ProxyHeader::begins(datagram) {
            let header = ProxyHeader::decode(datagram).ok_or(Refusal::Proxy)?;
            start = header.len;
            if header.client.is_none()
                || self.held.get(&proxy).is_some_and(|(_, held)| Some(*held) != header.client)
            {
                self.held.remove(&proxy); // the port is somebody else's now
            }
            header.client
        } else {
            let held = || self.held.get(&proxy).map(|(_, client)| *client);
            Some(self.asked.client(proxy).or_else(held).ok_or(Refusal::Proxy)?)
        };
        if let Some(client) = client {
            self.asked.note(client, proxy);
        }
        let address = client.unwrap_or(proxy);
        self.last = Some((address, client.map(|_| proxy)));
        Ok((Arrival { address, ..from }, datagram.get_mut(start..).unwrap_or_default()))
    }

    /// The port of the proxy that the last datagram came by.
    fn via(&self) -> Option<SocketAddr> {
        self.last?.1
    }

    /// Where to send what goes to an address that no session holds.
    pub(super) fn way(&self, to: SocketAddr) -> SocketAddr {
        let last = self.last.filter(|(address, _)| *address == to).map(|(_, via)| via.unwrap_or(to));
        last.or_else(|| self.asked.way(to)).unwrap_or(to)
    }

    /// Where to send what goes to the client of a session, if that is a proxy.
    pub(super) fn way_of(&self, id: u32) -> Option<SocketAddr> {
        self.ways.get(&id).copied()
    }

    /// The client of a session is where the last datagram came from.
    pub(super) fn hold(&mut self, id: u32, client: SocketAddr) {
        let via = self.via();
        if via != self.way_of(id) {
            self.release(id);
            if let Some(via) = via {
                self.ways.insert(id, via);
                self.held.insert(via, (id, client));
            }
        }
    }

    /// A session is over.
    pub(super) fn release(&mut self, id: u32) {
        if let Some(via) = self.ways.remove(&id)
            && self.held.get(&via).is_some_and(|(holder, _)| *holder == id)
        {
            self.held.remove(&via);
        }
    }
}

/// Clients that have sent anything, and their proxies, both ways: at least the last few, and at most twice as many.
#[derive(Debug)]
struct Recent {
    young: Pairs,
    old: Pairs,
}

#[derive(Debug)]
struct Pairs {
    proxies: HashMap<SocketAddr, SocketAddr, Keyed>,
    clients: HashMap<SocketAddr, SocketAddr, Keyed>,
}

impl Recent {
    fn new(hash: Keyed) -> Self {
        let pairs = || Pairs { proxies: HashMap::with_hasher(hash), clients: HashMap::with_hasher(hash) };
        Self { young: pairs(), old: pairs() }
    }

    fn way(&self, client: SocketAddr) -> Option<SocketAddr> {
        self.young.proxies.get(&client).or_else(|| self.old.proxies.get(&client)).copied()
    }

    fn client(&self, proxy: SocketAddr) -> Option<SocketAddr> {
        self.young.clients.get(&proxy).or_else(|| self.old.clients.get(&proxy)).copied()
    }

    fn note(&mut self, client: SocketAddr, proxy: SocketAddr) {
        if self.young.clients.get(&proxy) == Some(&client) && self.young.proxies.get(&client) == Some(&proxy)
        {
            return;
        }
        let Self { young, old } = self;
        if young.proxies.len().max(young.clients.len()) >= STRANGERS {
            std::mem::swap(young, old);
            young.proxies.clear();
            young.clients.clear();
        }
        young.proxies.insert(client, proxy);
        young.clients.insert(proxy, client);
    }
}

/// Strangers that are remembered: each is answered at once, if at all.
const STRANGERS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u32) -> SocketAddr {
        (number.to_be_bytes(), 9).into()
    }

    fn proxies() -> Proxies {
        Proxies::new(&[[10, 8, 8, 8].into()], || [1, 2]).unwrap()
    }

    fn port(port: u16) -> SocketAddr {
        ([10, 8, 8, 8], port).into()
    }

    fn told(client: SocketAddr) -> Vec<u8> {
        let IpAddr::V4(ip) = client.ip() else { unreachable!("they are of IPv4") };
        let header =
            [b"\r\n\r\n\0\r\nQUIT\n".as_slice(), &[0x21, 0x12, 0, 12], &ip.octets(), &[9; 4]].concat();
        [&header[..], &client.port().to_be_bytes(), &[0, 1]].concat()
    }

    fn opens(proxies: &mut Proxies, from: SocketAddr, datagram: &[u8]) -> Option<SocketAddr> {
        proxies.open(from.into(), &mut datagram.to_vec()).ok().map(|(from, _)| from.address)
    }

    #[test]
    fn the_last_strangers_are_remembered_and_never_more_than_twice_as_many() {
        let mut recent = Recent::new(Keyed([1, 2]));
        for number in 0..20_000 {
            recent.note(at(number), port((number % 60_000) as u16));
            recent.note(at(7), port((number % 60_000) as u16)); // one that comes by ever other ports
            let Recent { young, old } = &recent;
            assert!(
                [young, old].iter().all(|pairs| pairs.proxies.len().max(pairs.clients.len()) <= STRANGERS)
            );
            assert!(number < 100 || recent.way(at(number - 100)).is_some());
        }
    }

    #[test]
    fn a_port_is_of_the_client_that_was_told_last_and_of_a_session_until_then() {
        let (mut proxies, a, b) = (proxies(), at(1), at(2));
        assert_eq!(opens(&mut proxies, port(5), b"data"), None);
        assert_eq!(opens(&mut proxies, port(5), &told(a)), Some(a));
        proxies.hold(77, a);
        for stranger in 100..10_000 {
            opens(&mut proxies, port(6), &told(at(stranger)));
        }
        assert_eq!(opens(&mut proxies, port(5), b"data"), Some(a), "it is held");
        assert_eq!(opens(&mut proxies, port(5), &told(b)), Some(b), "the proxy has given it to another");
        assert_eq!(opens(&mut proxies, port(5), b"data"), Some(b));
        proxies.hold(88, b);
        proxies.release(77);
        assert_eq!(proxies.held.len(), 1, "another session holds it");
        proxies.release(88);
        assert!(proxies.held.is_empty() && proxies.ways.is_empty());
    }

    #[test]
    fn an_answer_goes_the_way_that_the_datagram_came() {
        let (mut proxies, a) = (proxies(), at(1));
        opens(&mut proxies, port(5), &told(a));
        assert_eq!((proxies.way(a), proxies.via()), (port(5), Some(port(5))));
        opens(&mut proxies, a, b"data"); // by itself
        assert_eq!((proxies.way(a), proxies.via()), (a, None));
        opens(&mut proxies, at(3), b"data");
        assert_eq!(proxies.way(a), port(5), "as far as is known");
    }
}
