//! The relay, without I/O: a datagram and the time go in, at most one datagram comes out.

use crate::counts::Counts;
use crate::hosts::{Host, Hosts};
use crate::links::{Keyed, Link, Links, Room};
use crate::rate::Bucket;
use crate::ticket::{self, GUEST_LEN, Guest, GuestTicket, RelayKey, is_same};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::inside::session::wire::relayed::{
    COOKIE, Head, REGISTER, RELAYED, Register, address_bytes, of_host,
};

/// How many a relay serves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a program sets some of them")]
pub struct RelayConfig {
    /// Most hosts at a time: up to 2^20.
    pub hosts: usize,
    /// Most links of guests at a time: up to 2^20. Each takes about 250 bytes.
    pub links: usize,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self { hosts: 1 << 16, links: 1 << 18 }
    }
}

/// Passes datagrams on between guests and hosts that have tickets.
///
/// A guest sends what it would send to a server, with its ticket after each datagram. The host gets that behind the number of a link and the guest's
/// address, and answers by the number. Nothing is stored for whoever has no ticket, and they are sent no more than they have sent.
#[derive(Debug)]
pub struct Relay {
    key: RelayKey,
    /// Makes cookies.
    secret: [u8; 32],
    hosts: Hosts,
    links: Links,
    counts: Counts,
    /// The last look for what is silent.
    swept: Duration,
}

/// What proves a host's address.
type Cookie = [u8; 16];

/// A datagram to send: a head and a body.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Passed<'a> {
    /// Where to.
    pub to: SocketAddr,
    head: Head,
    body: &'a [u8],
}

impl Passed<'_> {
    /// Appends the datagram.
    pub fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.head.as_ref());
        out.extend_from_slice(self.body);
    }
}

/// What time it is.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "these are both clocks that there are")]
pub struct Now {
    /// Since the relay began: it never goes backwards.
    pub since_start: Duration,
    /// s since 1970.
    pub unix: u64,
}

impl Now {
    fn seconds(self) -> u32 {
        u32::try_from(self.since_start.as_secs()).unwrap_or(u32::MAX)
    }

    fn micros(self) -> u64 {
        u64::try_from(self.since_start.as_micros()).unwrap_or(u64::MAX)
    }
}

impl Relay {
    /// `secret` is random: cookies and the order of tables depend on it.
    #[must_use]
    pub fn new(key: RelayKey, config: RelayConfig, secret: [u8; 32]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] =
            ticket::first(ticket::mac(&secret, &[b"hash"]));
        let hash = Keyed([[a, b, c, d, e, f, g, h], [i, j, k, l, m, n, o, p]].map(u64::from_le_bytes));
        Self {
            key,
            secret,
            hosts: Hosts::new(config.hosts, hash),
            links: Links::new(config.links, hash),
            counts: Counts::default(),
            swept: Duration::ZERO,
        }
    }

    /// What it has counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { hosts: self.hosts.len() as u64, links: self.links.len() as u64, ..self.counts }
    }

    /// Takes a datagram, and returns the one that follows from it, if any.
    pub fn handle<'a>(&mut self, now: Now, from: SocketAddr, datagram: &'a [u8]) -> Option<Passed<'a>> {
        self.sweep(now);
        match datagram.split_first() {
            Some((&REGISTER, body)) => self.register(now, from, body),
            Some((&RELAYED, body)) => self.pass_down(now, from, body),
            _ => self.pass_up(now, from, datagram),
        }
    }

    /// A host registers: first without a cookie, then with the one that it was sent, which proves its address, and the proof that the ticket is its own.
    fn register(&mut self, now: Now, from: SocketAddr, body: &[u8]) -> Option<Passed<'static>> {
        let Some(Register { ticket, cookie, proof }) = Register::decode(body) else {
            self.counts.malformed += 1;
            return None;
        };
        if !self.is_cookie(now, from, &cookie) {
            return self.ask(now, from);
        }
        let opened = self.key.open_host(&ticket).filter(|(_, host)| is_same(&host.proof(&cookie), &proof));
        let Some((grant, _)) = opened else {
            self.counts.forged += 1;
            return None;
        };
        if !self.hosts.allows(&grant, now.unix) {
            self.counts.expired += 1;
            return None;
        }
        if self.hosts.register(grant, from, now.seconds()).is_none() {
            self.counts.full += 1;
            return None;
        }
        Some(Passed { to: from, head: Head::registered(from), body: &[] })
    }

    /// Tells whoever sends as a host to register.
    fn ask(&mut self, now: Now, from: SocketAddr) -> Option<Passed<'static>> {
        self.counts.cookies += 1;
        let cookie = self.cookie(epoch(now), from);
        Some(Passed { to: from, head: Head::cookie(&cookie), body: &[] })
    }

    fn pass_down<'a>(&mut self, now: Now, from: SocketAddr, body: &'a [u8]) -> Option<Passed<'a>> {
        let Some((number, datagram)) = of_host(body) else {
            self.counts.malformed += 1;
            return None;
        };
        let Some(host) = self.hosts.at(from) else {
            self.counts.strangers += 1;
            let is_long = body.len() >= size_of::<Cookie>(); // nobody is sent more than they have sent
            return if is_long { self.ask(now, from) } else { None };
        };
        let grant = self.hosts.get_mut(host)?.grant;
        let Some(link) = self.links.get_mut(number).filter(|link| link.is_of(host, grant)) else {
            self.counts.gone += 1;
            return Some(Passed { to: from, head: Head::gone(number), body: &[] });
        };
        if !link.down.spend(now.micros(), datagram, grant.bytes_per_second) {
            self.counts.too_fast += 1;
            return None;
        }
        self.counts.passed_to_guests += 1;
        self.counts.bytes_to_guests += datagram.len() as u64;
        Some(Passed { to: link.address, head: Head::EMPTY, body: datagram })
    }

    fn pass_up<'a>(&mut self, now: Now, from: SocketAddr, datagram: &'a [u8]) -> Option<Passed<'a>> {
        let Some((datagram, ticket)) = datagram.split_last_chunk::<GUEST_LEN>() else {
            self.counts.malformed += 1;
            return None;
        };
        let known = self.links.find(ticket, from).map(|(number, link)| (number, link.host));
        let number = match known {
            Some((number, host)) if self.hosts.get_mut(host).is_some() => number,
            Some((number, _)) => {
                self.close(number); // its host is gone, or is back under another number
                self.open(now, from, ticket)?
            }
            None => self.open(now, from, ticket)?,
        };
        let link = self.links.get_mut(number)?;
        let Host { address: to, grant, .. } = *self.hosts.get_mut(link.host)?;
        if !link.is_of(link.host, grant) {
            self.counts.no_host += 1;
            return None;
        }
        if !link.up.spend(now.micros(), datagram, grant.bytes_per_second) {
            self.counts.too_fast += 1;
            return None;
        }
        link.heard = now.seconds();
        self.counts.passed_to_hosts += 1;
        self.counts.bytes_to_hosts += datagram.len() as u64;
        Some(Passed { to, head: Head::of_guest(number, from), body: datagram })
    }

    /// Opens a link for a guest that has none at this address.
    fn open(&mut self, now: Now, from: SocketAddr, ticket: &GuestTicket) -> Option<u32> {
        let guest = Guest::read(ticket);
        let Some(host) = self.hosts.of(guest.host) else {
            self.counts.no_host += 1;
            return None;
        };
        if !self.key.opens_guest(ticket) {
            self.counts.forged += 1;
            return None;
        }
        if u64::from(guest.expires) <= now.unix && !self.links.has(guest) {
            self.counts.expired += 1;
            return None;
        }
        match self.links.room(guest, now.seconds().saturating_sub(LINK_IN_USE)) {
            Room::Free => {}
            Room::After(silent) => self.close(silent),
            Room::None => {
                self.counts.crowded += 1;
                return None;
            }
        }
        let is_new = !self.links.has(guest);
        let Some(own) = self.hosts.get_mut(host).filter(|own| !is_new || own.guests < own.grant.guests)
        else {
            self.counts.crowded += 1;
            return None;
        };
        let (up, down) = (Bucket::default(), Bucket::default());
        let link = Link { ticket: *ticket, address: from, host, heard: now.seconds(), up, down };
        let Some(number) = self.links.open(link) else {
            self.counts.full += 1;
            return None;
        };
        own.guests += u16::from(is_new);
        self.counts.opened += 1;
        Some(number)
    }

    fn close(&mut self, number: u32) {
        if let Some(link) = self.links.close(number)
            && !self.links.has(Guest::read(&link.ticket))
            && let Some(host) = self.hosts.get_mut(link.host)
        {
            host.guests = host.guests.saturating_sub(1);
        }
    }

    /// Looks at a few of those that may be silent, so that it has been all around in [`ROUND`].
    fn sweep(&mut self, now: Now) {
        let passed = now.since_start.saturating_sub(self.swept);
        if passed < SWEEP_EACH {
            return;
        }
        self.swept = now.since_start;
        let share = |places: usize| {
            let part = places as u128 * passed.as_micros() / ROUND.as_micros();
            usize::try_from(part).unwrap_or(usize::MAX).saturating_add(1).min(SWEEP_MAX)
        };
        let mut count = share(self.links.places());
        let since = now.seconds().saturating_sub(LINK_SILENT);
        while let Some(silent) = self.links.next_silent(&mut count, since) {
            self.close(silent);
        }
        let mut count = share(self.hosts.places());
        let since = now.seconds().saturating_sub(HOST_SILENT);
        while let Some(silent) = self.hosts.next_silent(&mut count, since) {
            self.hosts.remove(silent);
        }
    }

    fn cookie(&self, epoch: u64, address: SocketAddr) -> Cookie {
        ticket::first(ticket::mac(&self.secret, &[&[COOKIE], &epoch.to_be_bytes(), &address_bytes(address)]))
    }

    fn is_cookie(&self, now: Now, from: SocketAddr, cookie: &Cookie) -> bool {
        let epoch = epoch(now);
        [epoch, epoch.wrapping_sub(1)].iter().any(|epoch| is_same(&self.cookie(*epoch, from), cookie))
    }
}

fn epoch(now: Now) -> u64 {
    now.since_start.as_secs() / COOKIE_LIFE
}

/// How long a cookie is good, s, and once more.
const COOKIE_LIFE: u64 = 30;
/// A link whose guest is silent for longer is closed, s. Sessions are over after 20 s unless they say otherwise.
const LINK_SILENT: u32 = 120;
/// The same of a host, which registers every 5 s.
const HOST_SILENT: u32 = 60;
/// A link is in use if its guest was heard from within this time, s: clients answer a ping every 2 s.
const LINK_IN_USE: u32 = 5;
/// How long it takes to look at all.
const ROUND: Duration = Duration::from_secs(10);
const SWEEP_EACH: Duration = Duration::from_millis(10);
/// Most that are looked at at once.
const SWEEP_MAX: usize = 4096;

#[cfg(test)]
mod tests;
