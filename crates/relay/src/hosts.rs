//! The hosts, which have proven that they have the secret of their ticket, and where they are.

use crate::links::Keyed;
use crate::slab::Slab;
use crate::ticket::HostGrant;
use std::collections::HashMap;
use std::net::SocketAddr;

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) grant: HostGrant,
    pub(crate) address: SocketAddr,
    /// When it registered last, s.
    pub(crate) heard: u32,
    /// Its guests that have a link.
    pub(crate) guests: u16,
}

#[derive(Debug)]
pub(crate) struct Hosts {
    slab: Slab<Host>,
    by_grant: HashMap<u32, u32, Keyed>,
    by_address: HashMap<SocketAddr, u32, Keyed>,
}

impl Hosts {
    pub(crate) fn new(most: usize, hash: Keyed) -> Self {
        let (by_grant, by_address) = (HashMap::with_hasher(hash), HashMap::with_hasher(hash));
        Self { slab: Slab::new(most, hash.number()), by_grant, by_address }
    }

    pub(crate) const fn len(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Host> {
        self.slab.get_mut(number)
    }

    /// Who sends from an address.
    pub(crate) fn at(&self, address: SocketAddr) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    /// The number of the host that a grant is for.
    pub(crate) fn of(&self, host: u32) -> Option<u32> {
        self.by_grant.get(&host).copied()
    }

    /// Whether a grant may be used: one that has expired only by whoever has registered with it, and an older one not any more.
    pub(crate) fn allows(&mut self, grant: &HostGrant, unix: u64) -> bool {
        match self.of(grant.host).and_then(|number| self.slab.get_mut(number)) {
            Some(host) if host.grant == *grant => true,
            Some(host) => u64::from(grant.expires) > unix && grant.expires > host.grant.expires,
            None => u64::from(grant.expires) > unix,
        }
    }

    /// A host has proven its ticket at `address`; if it has another host there, that one is gone. `None`: there is no room.
    pub(crate) fn register(&mut self, grant: HostGrant, address: SocketAddr, heard: u32) -> Option<u32> {
        let own = self.of(grant.host);
        if let Some(other) = self.at(address).filter(|other| own != Some(*other)) {
            self.remove(other);
        }
        let number = match own {
            Some(number) => number,
            None => self.slab.insert(Host { grant, address, heard, guests: 0 })?,
        };
        let host = self.slab.get_mut(number)?;
        self.by_address.remove(&host.address);
        (host.grant, host.address, host.heard) = (grant, address, heard);
        self.by_address.insert(address, number);
        self.by_grant.insert(grant.host, number);
        Some(number)
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(host) = self.slab.remove(number) {
            self.by_grant.remove(&host.grant.host);
            self.by_address.remove(&host.address);
        }
    }

    /// Looks at that many of them for one that was silent since before `since`, s.
    pub(crate) fn next_silent(&mut self, count: &mut usize, since: u32) -> Option<u32> {
        self.slab.next_old(count, |host| host.heard < since)
    }

    pub(crate) const fn places(&self) -> usize {
        self.slab.places()
    }
}
