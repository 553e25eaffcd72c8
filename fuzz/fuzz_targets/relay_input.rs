//! A relay with two hosts and their guests, and strangers that send anything: what is passed on arrives as it was sent, from whoever has a ticket to
//! whom it names, and whoever is no host is sent no more than they have sent.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::session::HostTicket;
use whitewater_fuzz::script::Script;
use whitewater_relay::{GUEST_LEN, HostGrant, Now, Relay, RelayConfig, RelayKey};

/// The operations of a script, in the low half of a byte; the high half is where from.
mod op {
    /// Time passes: ms, two bytes.
    pub(super) const WAIT: u8 = 0;
    /// A host registers: which, a byte.
    pub(super) const REGISTER: u8 = 1;
    /// A guest sends: of which host and which guest, and how much, a byte each.
    pub(super) const GUEST: u8 = 2;
    /// A host answers the last that it was sent: how much, a byte.
    pub(super) const ANSWER: u8 = 3;
    /// An earlier datagram again with one byte changed: which one, where, and by what, a byte each.
    pub(super) const AGAIN: u8 = 4;
    /// Raw bytes: their number, a byte, and the bytes.
    pub(super) const RAW: u8 = 5;
}

const UNIX: u64 = 1_900_000_000;
const REGISTER: u8 = 0xb0;
const REGISTERED: u8 = 0xb2;
const RELAYED: u8 = 0xb3;
const HEAD: usize = 23;

struct World {
    relay: Relay,
    key: RelayKey,
    millis: u64,
    given: Vec<Vec<u8>>,
    /// The last link that was used at each host's address.
    links: BTreeMap<SocketAddr, [u8; 4]>,
    /// Where hosts have registered.
    hosts: BTreeSet<SocketAddr>,
}

impl World {
    fn give(&mut self, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        if self.given.len() < 64 {
            self.given.push(datagram.to_vec());
        }
        let since_start = Duration::from_millis(self.millis);
        let now = Now { since_start, unix: UNIX + since_start.as_secs() };
        let (passed, mut out) = (self.relay.handle(now, from, datagram)?, Vec::new());
        passed.append(&mut out);
        let to = passed.to;
        match datagram.first() {
            Some(&RELAYED) if to != from => {
                assert_eq!(datagram.get(5..), Some(&out[..]), "a guest gets what its host has sent")
            }
            Some(&(REGISTER | RELAYED)) => {
                assert!(out.len() <= datagram.len(), "{out:x?} for {datagram:x?}");
                if out.first() == Some(&REGISTERED) {
                    self.hosts.insert(to);
                }
            }
            _ => {
                let (sent, ticket) = datagram.split_last_chunk::<GUEST_LEN>().expect("a ticket");
                assert_eq!(out.get(HEAD..), Some(sent), "a host gets what its guest has sent");
                let number = |at: usize| u32::from_be_bytes(std::array::from_fn(|byte| ticket[at + byte]));
                assert_eq!(*ticket, self.key.guest(number(0), number(4), number(8)), "by a ticket");
                assert!(self.hosts.contains(&to), "{to} has proven that it is there");
                self.links.insert(to, std::array::from_fn(|byte| out[1 + byte]));
            }
        }
        Some(out)
    }

    fn register(&mut self, from: SocketAddr, ticket: &HostTicket) {
        let said = &ticket.ticket()[..];
        let Some(cookie) = self.give(from, &[&[0xb0], said, &[0; 32]].concat()) else { return };
        let Some(cookie) = cookie.get(1..).and_then(|cookie| cookie.first_chunk::<16>()).copied() else {
            return;
        };
        self.give(from, &[&[0xb0], said, &cookie, &ticket.proof(&cookie)].concat());
    }
}

fn at(number: u8) -> SocketAddr {
    ([10, 0, 0, number], 4000).into()
}

fuzz_target!(|script: &[u8]| {
    let (mut script, key) = (Script::new(script), RelayKey::new([5; 32]));
    let config = RelayConfig { hosts: 2, links: 6 };
    let relay = Relay::new(key.clone(), config, [9; 32]);
    let (given, links, hosts) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
    let mut world = World { relay, key, millis: 0, given, links, hosts };
    let expires = u32::try_from(UNIX + 30).expect("it is not 2106");
    let host =
        |key: &RelayKey, host| key.host(HostGrant { host, expires, guests: 4, bytes_per_second: 5000 });
    while !script.is_done() {
        let byte = script.u8();
        let from = at(byte >> 4);
        match byte & 0xf {
            op::WAIT => world.millis += u64::from(script.u16()),
            op::REGISTER => {
                let ticket = host(&world.key, u32::from(script.u8() % 3));
                world.register(from, &ticket);
            }
            op::GUEST => {
                let ticket = world.key.guest(u32::from(script.u8() % 3), script.u8().into(), expires);
                let datagram = [&vec![0xa6; script.u8().into()][..], &ticket].concat();
                world.give(from, &datagram);
            }
            op::ANSWER => {
                let link = world.links.get(&from).copied().unwrap_or_default();
                let datagram = [&[RELAYED][..], &link, &vec![0xa7; script.u8().into()]].concat();
                world.give(from, &datagram);
            }
            op::AGAIN => {
                let (which, place, mask) = (script.u8(), script.u8(), script.u8());
                let len = world.given.len().max(1);
                let mut datagram = world.given.get(usize::from(which) % len).cloned().unwrap_or_default();
                let len = datagram.len().max(1);
                if let Some(byte) = datagram.get_mut(usize::from(place) % len) {
                    *byte ^= mask;
                }
                world.give(from, &datagram);
            }
            op::RAW => {
                let len = script.u8();
                let datagram = script.bytes(len.into()).to_vec();
                world.give(from, &datagram);
            }
            _ => {}
        }
        let counts = world.relay.counts();
        assert!(counts.hosts <= 2 && counts.links <= 6, "{counts}");
    }
});
