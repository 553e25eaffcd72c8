//! A proxy that tells a server where its clients are, by the PROXY protocol.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Where the proxy sends from.
pub(crate) const PROXY: [u8; 4] = [10, 8, 8, 8];

/// The port of each client at the proxy.
pub(crate) struct Proxy {
    ports: BTreeMap<SocketAddr, u16>,
    clients: BTreeMap<u16, SocketAddr>,
    next: u16,
}

impl Proxy {
    pub(crate) fn new() -> Self {
        Self { ports: BTreeMap::new(), clients: BTreeMap::new(), next: 20_000 }
    }

    /// Forgets everything, as a proxy does that is started again. Its ports are given to others.
    pub(crate) fn restart(&mut self) {
        *self = Self::new();
    }

    /// What arrives at the server, and from where.
    pub(crate) fn pass(&mut self, from: SocketAddr, datagram: &[u8]) -> (SocketAddr, Vec<u8>) {
        let Self { ports, clients, next } = self;
        let port = *ports.entry(from).or_insert_with(|| {
            *next += 1;
            *next
        });
        clients.insert(port, from);
        ((PROXY, port).into(), [&header(from)[..], datagram].concat())
    }

    /// Who gets what the server sends: a client, whoever does not send by the proxy, or nobody.
    pub(crate) fn passes_to(&self, to: SocketAddr) -> Option<SocketAddr> {
        if to.ip() == IpAddr::from(PROXY) { self.clients.get(&to.port()).copied() } else { Some(to) }
    }
}

/// The header before what a client sent to 10.8.8.8:4000.
pub(crate) fn header(client: SocketAddr) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    match client.ip() {
        IpAddr::V4(ip) => header.extend([&[0x21, 0x12, 0, 12][..], &ip.octets(), &PROXY].concat()),
        IpAddr::V6(ip) => header.extend([&[0x21, 0x22, 0, 36][..], &ip.octets(), &[8; 16]].concat()),
    }
    header.extend([client.port().to_be_bytes(), 4000_u16.to_be_bytes()].concat());
    header
}
