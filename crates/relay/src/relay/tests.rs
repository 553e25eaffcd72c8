//! A relay in virtual time, with hosts and guests by hand.

use super::*;
use crate::ticket::HostGrant;
use std::collections::BTreeMap;
use whitewater::inside::session::wire::relayed::{FromRelay, GONE, HOST_TICKET_LEN, REGISTERED};
use whitewater::session::HostTicket;

/// When a world begins, s since 1970.
const BEGIN: u32 = 1_900_000_000;
const LATER: u32 = BEGIN + 600;
const KEY: [u8; 32] = [5; 32];

fn at(number: u32) -> SocketAddr {
    let [_, a, b, c] = number.to_be_bytes();
    ([10, a, b, c], 1000).into()
}

struct World {
    relay: Relay,
    key: RelayKey,
    millis: u64,
    /// Bytes from each address, and to it.
    account: BTreeMap<SocketAddr, (usize, usize)>,
}

impl World {
    fn new() -> Self {
        Self::with(RelayConfig::default())
    }

    fn with(config: RelayConfig) -> Self {
        let key = RelayKey::new(KEY);
        Self { relay: Relay::new(key.clone(), config, [9; 32]), key, millis: 0, account: BTreeMap::new() }
    }

    /// What follows from a datagram, and where it goes.
    fn give(&mut self, from: SocketAddr, datagram: &[u8]) -> Option<(SocketAddr, Vec<u8>)> {
        let since_start = Duration::from_millis(self.millis);
        let now = Now { since_start, unix: u64::from(BEGIN) + since_start.as_secs() };
        let (to, mut out) = (self.relay.handle(now, from, datagram)?, Vec::new());
        to.append(&mut out);
        self.account.entry(from).or_default().0 += datagram.len();
        self.account.entry(to.to).or_default().1 += out.len();
        Some((to.to, out))
    }

    fn grant(&self, host: u32) -> HostTicket {
        self.key.host(HostGrant { host, expires: LATER, guests: 100, bytes_per_second: 100_000 })
    }

    /// Registers a host at an address; returns whether that went well.
    fn register(&mut self, from: SocketAddr, ticket: &HostTicket) -> bool {
        let mut register = Register { ticket: *ticket.ticket(), cookie: [0; 16], proof: [0; 16] };
        let (to, cookie) = self.give(from, &register.encode()).unwrap();
        assert_eq!((to, cookie[0]), (from, COOKIE));
        register.cookie = cookie[1..].try_into().unwrap();
        register.proof = ticket.proof(&register.cookie);
        self.give(from, &register.encode()) == Some((from, Head::registered(from).as_ref().to_vec()))
    }

    /// What the host gets of a guest's datagram: where, and the link.
    fn up(&mut self, from: SocketAddr, ticket: &GuestTicket, datagram: &[u8]) -> Option<(SocketAddr, u32)> {
        let (to, mut out) = self.give(from, &[datagram, ticket].concat())?;
        let Some(FromRelay::Guest(link, guest, bytes)) = FromRelay::decode(&mut out) else {
            panic!("not a guest's")
        };
        assert_eq!((guest, &*bytes), (from, datagram));
        Some((to, link))
    }

    fn down(&mut self, host: SocketAddr, link: u32, datagram: &[u8]) -> Option<(SocketAddr, Vec<u8>)> {
        self.give(host, &[Head::of_host(link).as_ref(), datagram].concat())
    }

    fn count(&self, of: impl Fn(Counts) -> u64) -> u64 {
        of(self.relay.counts())
    }
}

#[test]
fn what_a_guest_sends_gets_to_its_host_and_the_answer_back() {
    let mut world = World::new();
    let hosts = [1, 2].map(|host| (at(host), world.grant(host)));
    for (address, ticket) in &hosts {
        assert!(world.register(*address, ticket));
    }
    for guest in 10..30 {
        let (host, _) = hosts[guest as usize % 2];
        let ticket = world.key.guest(1 + guest % 2, guest, LATER);
        let (to, link) = world.up(at(guest), &ticket, b"question").unwrap();
        assert_eq!(to, host);
        assert_eq!(world.down(host, link, b"answer"), Some((at(guest), b"answer".to_vec())));
        let (_, again) = world.up(at(guest), &ticket, b"").unwrap();
        assert_eq!(again, link);
    }
    let counts = world.relay.counts();
    assert_eq!((counts.hosts, counts.links, counts.opened), (2, 20, 20));
    assert_eq!((counts.passed_to_hosts, counts.bytes_to_hosts), (40, 160));
    assert_eq!((counts.passed_to_guests, counts.bytes_to_guests), (20, 120));
}

#[test]
fn without_a_ticket_of_its_own_nobody_gets_anywhere_and_nothing_is_stored() {
    let mut world = World::new();
    let (host, ticket) = (at(1), world.grant(1));
    let good = world.key.guest(1, 7, LATER);
    assert_eq!(world.up(at(5), &good, b"early"), None);
    assert_eq!(world.count(|counts| counts.no_host), 1);
    assert!(world.register(host, &ticket));
    for byte in 0..GUEST_LEN {
        let mut forged = good;
        forged[byte] ^= 4;
        assert_eq!(world.up(at(5), &forged, b"forged"), None);
    }
    let refused = world.count(|counts| counts.forged + counts.no_host);
    assert_eq!(refused, 21, "four bytes name another host, which is not there");
    let other = RelayKey::new([6; 32]).guest(1, 7, LATER);
    assert_eq!(world.up(at(5), &other, b"of another relay"), None);
    let old = world.key.guest(1, 7, BEGIN);
    assert_eq!(world.up(at(5), &old, b"expired"), None);
    assert_eq!(world.count(|counts| counts.expired), 1);
    assert_eq!(world.give(at(5), &good[1..]), None);
    assert_eq!(world.give(at(5), &[]), None);
    assert_eq!(world.count(|counts| counts.malformed), 2);
    assert_eq!(world.count(|counts| counts.links + counts.opened), 0);
}

#[test]
fn a_host_has_to_prove_its_address_and_its_ticket() {
    let mut world = World::new();
    let ticket = world.grant(1);
    let mut register = Register { ticket: *ticket.ticket(), cookie: [0; 16], proof: [0; 16] };
    let (_, cookie) = world.give(at(1), &register.encode()).unwrap();
    register.cookie = cookie[1..].try_into().unwrap();
    let proven = Register { proof: ticket.proof(&register.cookie), ..register };
    assert_eq!(world.give(at(1), &register.encode()), None, "without proof: whoever has seen the ticket");
    assert_eq!(world.count(|counts| counts.forged), 1);
    let (to, copied) = world.give(at(2), &proven.encode()).unwrap();
    assert_eq!((to, copied[0]), (at(2), COOKIE), "a copy from elsewhere");
    for byte in 0..HOST_TICKET_LEN {
        let mut forged = proven;
        forged.ticket[byte] ^= 1;
        assert_eq!(world.give(at(1), &forged.encode()), None);
    }
    assert_eq!(world.count(|counts| counts.hosts), 0);
    assert_eq!(world.give(at(1), &proven.encode()), Some((at(1), Head::registered(at(1)).as_ref().to_vec())));
    world.millis = 61_000;
    let (_, stale) = world.give(at(1), &proven.encode()).unwrap();
    assert_eq!(stale[0], COOKIE, "a recording");
    let expired = world.key.host(HostGrant { host: 2, expires: BEGIN, guests: 1, bytes_per_second: 1 });
    assert!(!world.register(at(3), &expired));
    assert_eq!(world.count(|counts| counts.expired), 1);
}

#[test]
fn only_its_host_sends_to_a_guest_and_whoever_claims_to_be_one_is_told_to_register_in_fewer_bytes() {
    let mut world = World::new();
    let tickets = [1, 2].map(|host| world.grant(host));
    assert!(world.register(at(1), &tickets[0]) && world.register(at(2), &tickets[1]));
    let guest = world.key.guest(1, 7, LATER);
    let (_, link) = world.up(at(5), &guest, b"hello").unwrap();
    let gone = |link: u32| [&[GONE][..], &link.to_be_bytes()].concat();
    assert_eq!(world.down(at(2), link, b"of another host"), Some((at(2), gone(link))));
    assert_eq!(world.down(at(1), link + 1, b"nobody"), Some((at(1), gone(link + 1))));
    assert_eq!(world.count(|counts| counts.gone), 2);
    for len in 0..40 {
        let claimed = [Head::of_host(link).as_ref(), &vec![7; len]].concat();
        if let Some((to, out)) = world.give(at(9), &claimed) {
            assert!(to == at(9) && out[0] == COOKIE && out.len() <= claimed.len());
        }
    }
    assert_eq!(world.count(|counts| counts.passed_to_guests), 0);
    assert!(world.down(at(1), link, b"its own").is_some());
}

#[test]
fn nobody_but_a_host_is_sent_more_than_they_have_sent() {
    let mut world = World::new();
    let ticket = world.grant(1);
    assert!(world.register(at(1), &ticket));
    let mut seed = 1_u64;
    for round in 0..20_000_u32 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let [.., kind, len, content] = seed.to_le_bytes();
        let mut datagram = vec![content; usize::from(len % 100)];
        if let Some(first) = datagram.first_mut() {
            *first = [REGISTER, COOKIE, REGISTERED, RELAYED, GONE, 0xa6][usize::from(kind % 6)];
        }
        world.give(at(100 + round % 50), &datagram);
        world.millis += 7;
    }
    for (address, (from, to)) in &world.account {
        assert!(to <= from, "{to} bytes to {address}, which sent {from}");
    }
    assert_eq!(world.count(|counts| counts.links), 0);
}

#[test]
fn a_guest_that_moves_or_whose_ticket_is_copied_has_another_link_and_at_most_four() {
    let mut world = World::new();
    let ticket = world.grant(1);
    assert!(world.register(at(1), &ticket));
    let guest = world.key.guest(1, 7, BEGIN + 5);
    let (_, first) = world.up(at(5), &guest, b"hello").unwrap();
    let (_, copied) = world.up(at(66), &guest, b"a copy from elsewhere").unwrap();
    assert_ne!(first, copied, "the host decides which of them is its guest");
    assert_eq!(world.down(at(1), first, b"answer").unwrap().0, at(5));
    world.millis = 10_000;
    assert_eq!(world.up(at(5), &guest, b"it is up already").unwrap().1, first);
    assert!(world.up(at(6), &guest, b"it moves after its ticket has expired").is_some());
    for address in 100..200 {
        world.up(at(100), &guest, b"copies of its ticket");
        world.up(at(101), &guest, b"go on");
        world.up(at(address), &guest, b"from ever other addresses");
        world.millis += 1000;
        assert!(world.register(at(1), &ticket));
        assert_eq!(world.up(at(5), &guest, b"it stays").unwrap().1, first, "whoever speaks keeps its link");
        assert!(world.count(|counts| counts.links) <= 4);
    }
    assert!(world.count(|counts| counts.crowded) > 50);
    world.millis += 7000; // the copies stop
    assert!(world.up(at(7), &guest, b"it moves").is_some());
    let stranger = world.key.guest(1, 8, BEGIN + 5);
    assert_eq!(world.up(at(9), &stranger, b"late"), None);
}

#[test]
fn each_link_has_its_rate_and_each_host_its_guests() {
    let mut world = World::new();
    let ticket = world.key.host(HostGrant { host: 1, expires: LATER, guests: 3, bytes_per_second: 52_400 });
    assert!(world.register(at(1), &ticket));
    let guests = [1, 2, 3, 4].map(|guest| (at(10 + guest), world.key.guest(1, guest, LATER)));
    let links = guests.map(|(address, ticket)| world.up(address, &ticket, b"hello").map(|(_, link)| link));
    assert!(links[..3].iter().all(Option::is_some) && links[3].is_none());
    assert!(world.up(at(99), &guests[0].1, b"one that moves takes nobody's place").is_some());
    assert_eq!(world.count(|counts| counts.crowded), 1);
    for second in 1..5 {
        world.millis = second * 2000;
        for (index, (address, ticket)) in guests[..3].iter().enumerate() {
            let up = (0..100).filter(|_| world.up(*address, ticket, &[7; 1000]).is_some()).count();
            let link = links[index].unwrap();
            let down = (0..100).filter(|_| world.down(at(1), link, &[7; 1000]).is_some()).count();
            assert_eq!((up, down), (50, 50));
        }
    }
    assert_eq!(world.count(|counts| counts.too_fast), 4 * 3 * 100);
}

#[test]
fn silent_guests_and_hosts_are_forgotten_and_their_places_are_free() {
    let mut world = World::with(RelayConfig { hosts: 2, links: 50 });
    let tickets = [1, 2, 3].map(|host| world.grant(host));
    assert!(world.register(at(1), &tickets[0]) && world.register(at(2), &tickets[1]));
    assert!(!world.register(at(3), &tickets[2]), "there is room for two");
    for guest in 0..50 {
        let ticket = world.key.guest(1, guest, LATER);
        assert!(world.up(at(100 + guest), &ticket, b"hello").is_some());
    }
    let more = world.key.guest(1, 99, LATER);
    assert_eq!(world.up(at(99), &more, b"hello"), None);
    assert_eq!(world.count(|counts| counts.full), 2);
    for _ in 0..1500 {
        world.millis += 100;
        if world.millis.is_multiple_of(5000) {
            assert!(world.register(at(1), &tickets[0]));
        }
        world.give(at(9), b"time passes");
    }
    let counts = world.relay.counts();
    assert_eq!((counts.links, counts.hosts), (0, 1));
    assert!(world.up(at(99), &more, b"hello").is_some() && world.register(at(3), &tickets[2]));
}

#[test]
fn a_host_that_moves_or_comes_back_keeps_its_guests() {
    let mut world = World::new();
    let ticket = world.grant(1);
    assert!(world.register(at(1), &ticket));
    let guest = world.key.guest(1, 7, LATER);
    let (_, link) = world.up(at(5), &guest, b"hello").unwrap();
    assert!(world.register(at(2), &ticket), "another port of its NAT");
    assert_eq!(world.up(at(5), &guest, b"hello"), Some((at(2), link)));
    assert_eq!(world.down(at(2), link, b"answer").unwrap().0, at(5));
    assert_eq!(world.down(at(1), link, b"an answer that is long").unwrap().1[0], COOKIE);
    for _ in 0..90 {
        world.millis += 1000; // the host is silent
        world.up(at(5), &guest, b"hello");
    }
    assert_eq!(world.count(|counts| counts.hosts), 0);
    assert!(world.register(at(3), &ticket));
    let (to, new) = world.up(at(5), &guest, b"hello").unwrap();
    assert!(to == at(3) && new != link, "a host that was gone for so long has lost its sessions");
    assert_eq!(world.down(at(3), new, b"answer").unwrap().0, at(5));
}

#[test]
fn a_ticket_that_was_replaced_or_has_expired_takes_nothing_from_the_host_that_is_there() {
    let mut world = World::new();
    let [first, second] = [(100, 9), (200, 5)].map(|(life, guests)| {
        world.key.host(HostGrant { host: 1, expires: BEGIN + life, guests, bytes_per_second: 100_000 })
    });
    assert!(world.register(at(1), &first));
    assert!(world.register(at(2), &second), "the matchmaker has made another player the host");
    assert!(!world.register(at(1), &first));
    for _ in 0..41 {
        world.millis += 5000;
        assert!(world.register(at(2), &second), "what is up stays up");
    }
    assert!(!world.register(at(1), &first));
    let guest = world.key.guest(1, 7, LATER);
    assert_eq!(world.up(at(5), &guest, b"hello").unwrap().0, at(2));
    assert_eq!(world.count(|counts| counts.expired), 2);
}
