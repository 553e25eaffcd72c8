//! The links of guests: one for each address from which a ticket is used, so that a session that moves proves that to its host, and not to the relay.

use crate::rate::Bucket;
use crate::slab::Slab;
use crate::ticket::{Guest, GuestTicket, HostGrant};
use siphasher::sip::SipHasher13;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::SocketAddr;

/// A guest, at one address.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) ticket: GuestTicket,
    pub(crate) address: SocketAddr,
    /// The number of its host in the table of hosts.
    pub(crate) host: u32,
    /// When it was last heard from, s.
    pub(crate) heard: u32,
    /// From the guest, and to it.
    pub(crate) up: Bucket,
    pub(crate) down: Bucket,
}

impl Link {
    /// Whether it is a link of this host. Numbers of hosts that are gone may have been given to others.
    pub(crate) fn is_of(&self, host: u32, grant: HostGrant) -> bool {
        self.host == host && Guest::read(&self.ticket).host == grant.host
    }
}

#[derive(Debug)]
pub(crate) struct Links {
    slab: Slab<Link>,
    numbers: HashMap<(GuestTicket, SocketAddr), u32, Keyed>,
    /// The links of each guest of a host.
    guests: HashMap<(u32, u32), [Option<u32>; LINKS_EACH], Keyed>,
}

/// Whether a guest can have another link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    Free,
    /// Once this one is gone.
    After(u32),
    None,
}

/// Links that a guest can have at a time: where it is, where it has been, and where a copy of its ticket is.
const LINKS_EACH: usize = 4;

impl Links {
    pub(crate) fn new(most: usize, hash: Keyed) -> Self {
        let (numbers, guests) = (HashMap::with_hasher(hash), HashMap::with_hasher(hash));
        Self { slab: Slab::new(most, hash.number()), numbers, guests }
    }

    pub(crate) const fn len(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Link> {
        self.slab.get_mut(number)
    }

    pub(crate) fn find(&mut self, ticket: &GuestTicket, address: SocketAddr) -> Option<(u32, &mut Link)> {
        let number = *self.numbers.get(&(*ticket, address))?;
        Some((number, self.slab.get_mut(number)?))
    }

    /// Whether a guest has a link already.
    pub(crate) fn has(&self, guest: Guest) -> bool {
        self.guests.contains_key(&key(guest))
    }

    /// Makes room for another link of a guest, if it has all that it can have: one that was silent since before `since`, s, goes. One that is in use never
    /// does, or whoever copies a ticket could cut off its guest.
    pub(crate) fn room(&mut self, guest: Guest, since: u32) -> Room {
        let Some(all) = self.guests.get(&key(guest)).filter(|all| all.iter().all(Option::is_some)) else {
            return Room::Free;
        };
        let slab = &mut self.slab;
        let heard = all.iter().flatten().filter_map(|number| Some((slab.get_mut(*number)?.heard, *number)));
        match heard.min() {
            Some((heard, silent)) if heard < since => Room::After(silent),
            _ => Room::None,
        }
    }

    /// `None`: there is no room.
    pub(crate) fn open(&mut self, link: Link) -> Option<u32> {
        let (ticket, address, guest) = (link.ticket, link.address, Guest::read(&link.ticket));
        let number = self.slab.insert(link)?;
        self.numbers.insert((ticket, address), number);
        let own = self.guests.entry(key(guest)).or_default();
        if let Some(free) = own.iter_mut().find(|place| place.is_none()) {
            *free = Some(number);
        }
        Some(number)
    }

    pub(crate) fn close(&mut self, number: u32) -> Option<Link> {
        let link = self.slab.remove(number)?;
        self.numbers.remove(&(link.ticket, link.address));
        let guest = key(Guest::read(&link.ticket));
        if let Some(own) = self.guests.get_mut(&guest) {
            own.iter_mut().filter(|place| **place == Some(number)).for_each(|place| *place = None);
            if own.iter().all(Option::is_none) {
                self.guests.remove(&guest);
            }
        }
        Some(link)
    }

    /// Looks at that many of them for one that was silent since before `since`, s.
    pub(crate) fn next_silent(&mut self, count: &mut usize, since: u32) -> Option<u32> {
        self.slab.next_old(count, |link| link.heard < since)
    }

    pub(crate) const fn places(&self) -> usize {
        self.slab.places()
    }
}

const fn key(guest: Guest) -> (u32, u32) {
    (guest.host, guest.guest)
}

/// SipHash-1-3 under a key, because strangers choose what is hashed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed(pub(crate) [u64; 2]);

impl Keyed {
    /// A number that depends on the key.
    pub(crate) fn number(self) -> u32 {
        let [a, b, c, d, ..] = self.hash_one("number").to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        let Self([first, second]) = *self;
        SipHasher13::new_with_keys(first, second)
    }
}
