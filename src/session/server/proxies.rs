//! Proxies that tell where their clients are, by the PROXY protocol: limits, proofs and sessions are then those of the clients, and only the answers
//! go by the proxy.
//!
//! A header is before each datagram. Without one nothing is taken from a proxy: one that puts it before the first datagram only would pass on a header that
//! a client has put before its second. Until a datagram is authentic, the last one that claims to come from an address says how it is reached, as it does
//! without a proxy. An authentic one says it for its session, and nothing else changes that.

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
    /// The ports of the proxies of clients, and clients without a proxy, who do not crowd out the others.
    asked: Recent,
    direct: Recent,
    /// The port of a proxy by which the client of a session was last heard from; `None`: without one.
    ways: HashMap<u32, Option<SocketAddr>, Given>,
}

impl Proxies {
    /// `key` makes the hash of what strangers choose.
    pub(super) fn new(trusted: &[IpAddr], key: impl FnOnce() -> [u64; 2]) -> Option<Self> {
        if trusted.is_empty() {
            return None;
        }
        let trusted = trusted.iter().map(IpAddr::to_canonical).collect();
        let recent = Recent::new(Keyed(key()));
        Some(Self { trusted, last: None, asked: recent.clone(), direct: recent, ways: HashMap::default() })
    }

    /// Takes the header off, if a proxy has sent this. Returns whose it is, and what is left; that may be nothing.
    pub(super) fn open<'a>(
        &mut self,
        from: Arrival,
        datagram: &'a mut [u8],
    ) -> Result<(Arrival, &'a mut [u8]), Refusal> {
        let sender = from.address;
        if is_beside_udp(sender) || !self.trusted.contains(&sender.ip().to_canonical()) {
            self.direct.note(sender, sender);
            self.last = Some((sender, None));
            return Ok((from, datagram));
        }
        let header = ProxyHeader::decode(datagram).ok_or(Refusal::Proxy)?;
        let address = header.client.unwrap_or(sender);
        if header.client.is_some() {
            self.asked.note(address, sender);
        }
        self.last = Some((address, header.client.map(|_| sender)));
        Ok((Arrival { address, ..from }, datagram.get_mut(header.len..).unwrap_or_default()))
    }

    /// Where to send what goes to an address that no session holds. `None`: nobody knows, and sent to the address itself it could show a client
    /// where the server is.
    pub(super) fn way(&self, to: SocketAddr) -> Option<SocketAddr> {
        let last = self.last.filter(|(address, _)| *address == to).map(|(_, via)| via.unwrap_or(to));
        last.or_else(|| self.asked.way(to)).or_else(|| self.direct.way(to))
    }

    /// The same for what goes to the client of a session, at its own address.
    pub(super) fn way_of(&self, id: u32, to: SocketAddr) -> Option<SocketAddr> {
        self.ways.get(&id).map_or_else(|| self.way(to), |via| Some(via.unwrap_or(to)))
    }

    /// The client of a session has sent the last datagram.
    pub(super) fn heard(&mut self, id: u32) {
        if let Some((_, via)) = self.last {
            self.ways.insert(id, via);
        }
    }

    /// A session is over.
    pub(super) fn release(&mut self, id: u32) {
        self.ways.remove(&id);
    }
}

/// The ways to clients that have sent anything: at least to the last few, and at most to twice as many.
#[derive(Clone, Debug)]
struct Recent {
    young: HashMap<SocketAddr, SocketAddr, Keyed>,
    old: HashMap<SocketAddr, SocketAddr, Keyed>,
}

impl Recent {
    fn new(hash: Keyed) -> Self {
        Self { young: HashMap::with_hasher(hash), old: HashMap::with_hasher(hash) }
    }

    fn way(&self, client: SocketAddr) -> Option<SocketAddr> {
        self.young.get(&client).or_else(|| self.old.get(&client)).copied()
    }

    fn note(&mut self, client: SocketAddr, way: SocketAddr) {
        if self.young.len() >= STRANGERS && !self.young.contains_key(&client) {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(client, way);
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
            assert!([young, old].iter().all(|pairs| pairs.len() <= STRANGERS));
            assert!(number < 100 || recent.way(at(number - 100)).is_some());
        }
    }

    #[test]
    fn an_answer_goes_the_way_that_the_datagram_came_and_a_session_keeps_its_own() {
        let (mut proxies, a) = (proxies(), at(1));
        assert_eq!(opens(&mut proxies, port(5), b"data"), None);
        assert_eq!(opens(&mut proxies, port(5), &told(a)), Some(a));
        assert_eq!(proxies.way(a), Some(port(5)));
        proxies.heard(77);
        opens(&mut proxies, port(6), &told(a)); // which is not authentic
        assert_eq!((proxies.way(a), proxies.way_of(77, a)), (Some(port(6)), Some(port(5))));
        assert_eq!(opens(&mut proxies, a, b"data"), Some(a), "by itself");
        assert_eq!(proxies.way(a), Some(a));
        opens(&mut proxies, at(3), b"data");
        assert_eq!(proxies.way(a), Some(port(6)), "as far as is known");
        proxies.heard(77); // it is reached directly
        assert_eq!(proxies.way_of(77, a), Some(a));
        proxies.release(77);
        assert!(proxies.ways.is_empty());
    }

    #[test]
    fn nothing_goes_to_an_address_whose_proxy_is_forgotten_and_those_without_one_crowd_out_nobody() {
        let (mut proxies, a) = (proxies(), at(1));
        opens(&mut proxies, port(5), &told(a));
        for number in 2..20_000 {
            opens(&mut proxies, at(number), b"data");
        }
        assert_eq!((proxies.way(a), proxies.way(at(19_990))), (Some(port(5)), Some(at(19_990))));
        for number in 2..20_000 {
            opens(&mut proxies, port(5), &told(at(number)));
        }
        assert_eq!((proxies.way(a), proxies.way_of(77, a)), (None, None));
    }
}
