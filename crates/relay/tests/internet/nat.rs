//! A NAT: what it lets out, and what back in.
//!
//! Source: RFC 4787, which names how mappings and filters depend on the other end.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

/// The kinds of NATs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// None: a public address.
    Open,
    /// One port for all destinations, and everybody may send to it.
    Cone,
    /// One port for all destinations, to which those may send that were sent to.
    Restricted,
    /// Another port for each destination, which alone may send to it.
    Symmetric,
}

pub(crate) struct Nat {
    kind: Kind,
    public: Ipv4Addr,
    /// The ports of those inside, for all destinations or for one.
    ports: BTreeMap<(SocketAddr, Option<SocketAddr>), u16>,
    /// Who was sent to from which port.
    sent: BTreeSet<(u16, SocketAddr)>,
}

impl Nat {
    pub(crate) fn new(kind: Kind, public: Ipv4Addr) -> Self {
        Self { kind, public, ports: BTreeMap::new(), sent: BTreeSet::new() }
    }

    pub(crate) fn outward_ip(&self) -> Ipv4Addr {
        self.public
    }

    /// From where the others see a datagram.
    pub(crate) fn outward(&mut self, from: SocketAddr, to: SocketAddr) -> SocketAddr {
        if self.kind == Kind::Open {
            return (self.public, from.port()).into();
        }
        let next = 20_000 + u16::try_from(self.ports.len()).unwrap();
        let port = *self.ports.entry((from, (self.kind == Kind::Symmetric).then_some(to))).or_insert(next);
        self.sent.insert((port, to));
        (self.public, port).into()
    }

    /// To whom inside a datagram goes. `inside` is who is there without a NAT.
    pub(crate) fn inward(&self, from: SocketAddr, port: u16, inside: SocketAddr) -> Option<SocketAddr> {
        if self.kind == Kind::Open {
            return (port == inside.port()).then_some(inside);
        }
        let (mapped, _) = self.ports.iter().find(|(_, mapped)| **mapped == port)?;
        (self.kind == Kind::Cone || self.sent.contains(&(port, from))).then_some(mapped.0)
    }
}
