//! A client that has several addresses of a server, or of several, tries four at a time.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::machine::Whole as _;

use common::sessions::{SUITE, client_address, client_config, kind_of, random, server_config};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::inside::session::wire::{Challenge, Deny, kind};
use whitewater::machine::Machine as _;
use whitewater::session::{Client, ClientState, DenyReason, Server, Suite};
use whitewater::{ClientConfig, CloseReason, Event, SessionConfig, Time};

/// A client and the hosts at its addresses, in steps of 1 ms.
struct Race {
    now: Time,
    client: Client,
    hosts: Vec<Host>,
    /// Datagrams on their way: when they arrive, at the host or from it.
    way: Vec<(Time, usize, bool, Vec<u8>)>,
    /// Whether the last of those that arrive together comes first.
    reverses: bool,
    sent: Vec<Sent>,
    closed: Option<CloseReason>,
}

/// When in ms, to which address, what.
type Sent = (u64, SocketAddr, Vec<u8>);

/// A server, or nobody, and how far away it is, ms one way.
struct Host {
    address: SocketAddr,
    server: Option<Server>,
    delay: u64,
    /// A kind of datagrams that never arrive there, nor from there.
    loses: Option<u8>,
}

fn at(number: u8) -> SocketAddr {
    ([10, 9, 9, number], 4000).into()
}

fn v6(number: u16) -> SocketAddr {
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, number], 4000).into()
}

/// A host with a server.
fn serving(number: u8, delay: u64) -> Host {
    serving_with(SUITE, number, delay)
}

fn serving_with(suite: Suite, number: u8, delay: u64) -> Host {
    let config = server_config(&SessionConfig::default(), suite);
    let server = Some(Server::new(&config, random(1, 1000 + u64::from(number))).unwrap());
    Host { address: at(number), server, delay, loses: None }
}

/// An address where nobody is.
fn dead(number: u8) -> Host {
    Host { server: None, ..serving(number, 1) }
}

impl Race {
    fn new(hosts: impl Into<Vec<Host>>) -> Self {
        Self::with(&client_config(SUITE), hosts)
    }

    fn with(config: &ClientConfig, hosts: impl Into<Vec<Host>>) -> Self {
        let hosts = hosts.into();
        let addresses: Vec<_> = hosts.iter().map(|host| host.address).collect();
        let mut client = Client::new(config, random(1, 1)).unwrap();
        client.connect(Time::ZERO, &addresses).unwrap();
        let (way, sent) = (Vec::new(), Vec::new());
        let mut race = Self { now: Time::ZERO, client, hosts, way, reverses: false, sent, closed: None };
        race.poll();
        race
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now + Duration::from_millis(1);
            self.client.handle_timeout(self.now);
            for server in self.hosts.iter_mut().filter_map(|host| host.server.as_mut()) {
                server.handle_timeout(self.now);
            }
            self.poll();
        }
    }

    fn poll(&mut self) {
        let now = self.now;
        let mut arrived: Vec<_> = self.way.extract_if(.., |it| it.0 <= now).collect();
        if self.reverses {
            arrived.reverse();
        }
        for (_, host, to_host, datagram) in arrived {
            let Host { address, server, loses, .. } = &mut self.hosts[host];
            match server {
                _ if *loses == Some(kind_of(&datagram)) => {}
                _ if !to_host => self.client.give(now, *address, &datagram),
                Some(server) => server.give(now, client_address(1, 1), &datagram),
                None => {}
            }
        }
        while let Some((datagram, to)) = self.client.emit(self.now) {
            self.sent.push((self.now.as_millis(), to, datagram.clone()));
            let host = self.hosts.iter().position(|host| host.address == to).unwrap();
            self.way.push((self.arrival(host), host, true, datagram));
        }
        for host in 0..self.hosts.len() {
            while let Some(server) = &mut self.hosts[host].server
                && let Some((datagram, _)) = server.emit(self.now)
            {
                self.way.push((self.arrival(host), host, false, datagram));
            }
        }
        while let Some(event) = self.client.poll_event() {
            if let Event::Closed { reason, .. } = event {
                self.closed = Some(reason);
            }
        }
    }

    fn arrival(&self, host: usize) -> Time {
        self.now + Duration::from_millis(self.hosts[host].delay)
    }

    fn is_up(&self) -> bool {
        self.client.state() == ClientState::Up
    }

    /// When the client is up, ms.
    fn up_at(&mut self) -> u64 {
        while !self.is_up() {
            assert!(self.closed.is_none() && self.now.as_millis() < 10_000, "{:?}", self.closed);
            self.run(1);
        }
        self.now.as_millis()
    }

    /// Where the datagrams of a kind went, and when, ms.
    fn of(&self, kind: u8) -> Vec<(u64, SocketAddr)> {
        self.sent.iter().filter(|it| kind_of(&it.2) == kind).map(|(at, to, _)| (*at, *to)).collect()
    }

    /// How many CONNECTs went to a host.
    fn connects(&self, host: usize) -> usize {
        self.of(kind::CONNECT).iter().filter(|(_, to)| *to == self.hosts[host].address).count()
    }

    /// The number of the latest attempt.
    fn cid(&self) -> u64 {
        let hello = self.sent.iter().rfind(|it| kind_of(&it.2) == kind::HELLO).unwrap();
        u64::from_le_bytes(hello.2[12..20].try_into().unwrap())
    }

    /// A host refuses, or somebody on the way.
    fn deny(&mut self, host: usize, reason: DenyReason) {
        let (mut deny, cid) = (Vec::new(), self.cid());
        Deny { lowest: 1, highest: 1, reason, cid, retry_after_ms: 0 }.encode(&mut deny).unwrap();
        self.client.give(self.now, self.hosts[host].address, &deny);
        self.poll();
    }

    /// Somebody sends a cookie of their own from there.
    fn forge(&mut self, from: SocketAddr, cookie: u8) {
        let (mut challenge, suite, cid) = (Vec::new(), SUITE.code(), self.cid());
        Challenge { suite, cid, client_stamp: 0, epoch: 1, cookie: [cookie; 16] }
            .encode(&mut challenge)
            .unwrap();
        self.client.give(self.now, from, &challenge);
        self.poll();
    }
}

#[test]
fn a_dead_first_address_costs_no_time() {
    let mut race = Race::new([dead(1), dead(2), serving(3, 30)]);
    assert_eq!((race.up_at(), race.client.peer_addr()), (120, Some(at(3))), "as if it were the only one");
}

#[test]
fn the_nearest_of_two_servers_wins_and_the_other_never_sees_a_connect() {
    for delays in [[40, 20], [20, 40], [300, 20]] {
        let mut race = Race::new([serving(1, delays[0]), serving(2, delays[1])]);
        let near = usize::from(delays[1] < delays[0]);
        assert_eq!(race.up_at(), 80);
        race.run(1_000);
        let server = |race: &Race, host: usize| race.hosts[host].server.as_ref().unwrap().len();
        assert_eq!(race.client.peer_addr(), Some(race.hosts[near].address));
        assert_eq!((server(&race, near), server(&race, 1 - near)), (1, 0));
        assert_eq!((race.connects(near), race.connects(1 - near)), (1, 0));
    }
}

#[test]
fn a_winner_that_falls_silent_after_its_challenge_is_given_up_for_the_others() {
    let silent = |number, delay| Host { loses: Some(kind::CONNECT), ..serving(number, delay) };
    let mut race = Race::new([serving(1, 40), silent(2, 5), silent(3, 10)]);
    let up = race.up_at();
    assert_eq!(race.client.peer_addr(), Some(at(1)));
    let first = race.of(kind::CONNECT).into_iter().find(|(_, to)| *to == at(1)).unwrap().0;
    let before: Vec<_> = race.of(kind::CONNECT).into_iter().take(8).map(|(_, to)| to).collect();
    assert_eq!(before, [[at(2); 4], [at(3); 4]].concat(), "in the order of their answers");
    assert!((720..=900).contains(&first) && up == first + 80, "{first}, {up}");
}

#[test]
fn servers_that_fall_silent_take_turns_of_four_connects() {
    let silent = |number, delay| Host { loses: Some(kind::CONNECT), ..serving(number, delay) };
    let mut race = Race::new([silent(1, 10), silent(2, 5)]);
    race.run(5_000);
    let connects: Vec<_> = race.of(kind::CONNECT).into_iter().map(|(_, to)| to).collect();
    assert!(connects.len() > 20);
    for (index, to) in connects.iter().enumerate() {
        assert_eq!(*to, if index / 4 % 2 == 0 { at(2) } else { at(1) }, "number {index}");
    }
    let hellos = |to: SocketAddr| race.of(kind::HELLO).iter().filter(|(_, at)| *at == to).count();
    assert!(hellos(at(1)) > connects.len() / 4 && hellos(at(1)) == hellos(at(2)), "each HELLO goes to all");
}

#[test]
#[cfg(feature = "pq")]
fn a_server_whose_kem_key_never_comes_is_given_up_as_well() {
    let suite = Suite::HYBRID_TOKEN;
    for reverses in [false, true] {
        let silent = Host { loses: Some(kind::KEM_KEY), ..serving_with(suite, 1, 5) };
        let mut race = Race::with(&client_config(suite), [silent, serving_with(suite, 2, 10)]);
        race.reverses = reverses; // the key comes before the ACCEPT, while that of the first one is there
        let up = race.up_at();
        assert_eq!((race.client.peer_addr(), race.connects(0), race.connects(1)), (Some(at(2)), 4, 1));
        assert!((380..=480).contains(&up), "{up}");
        race.run(300);
        assert_eq!(race.hosts[1].server.as_ref().unwrap().stats().confirmed, 1, "both have the same keys");
    }
}

#[test]
fn an_accept_of_a_server_that_was_given_up_still_counts() {
    let mut race = Race::new([serving(1, 5), Host { loses: Some(kind::CONNECT), ..serving(2, 10) }]);
    race.run(12);
    race.hosts[0].delay = 500;
    assert_eq!(race.connects(0), 1, "it is on its way");
    let up = race.up_at();
    assert!(race.connects(1) > 0, "the other one was asked as well");
    assert_eq!((up, race.client.peer_addr()), (515, Some(at(1))));
}

#[test]
fn an_accept_counts_only_from_where_a_connect_was_sent() {
    let mut race = Race::new([serving(1, 10), serving(2, 20)]);
    race.run(39);
    let (.., accept) = race.way.iter().find(|(.., bytes)| kind_of(bytes) == kind::ACCEPT).unwrap().clone();
    for elsewhere in [at(2), at(9)] {
        let strangers = race.client.rejected().stranger;
        race.client.give(race.now, elsewhere, &accept);
        assert_eq!((race.is_up(), race.client.rejected().stranger), (false, strangers + 1), "{elsewhere}");
    }
    race.client.give(race.now, at(1), &accept);
    assert!(race.is_up());
}

#[test]
fn a_denial_at_one_address_does_not_stop_the_others() {
    let mut race = Race::new([serving(1, 10), dead(2)]);
    race.deny(1, DenyReason::Busy);
    assert_eq!(race.up_at(), 40);
    let mut race = Race::new([dead(1), dead(2)]);
    race.deny(0, DenyReason::Busy);
    race.run(9_990);
    assert_eq!((race.closed, race.client.state()), (None, ClientState::Hello));
    race.run(20);
    assert_eq!(race.closed, Some(CloseReason::Denied(DenyReason::Busy)));
}

#[test]
fn a_server_that_denies_the_connect_is_left_for_the_next_one_at_once() {
    let mut race = Race::new([Host { loses: Some(kind::CONNECT), ..serving(1, 5) }, serving(2, 10)]);
    race.run(25);
    assert_eq!(race.connects(0), 1);
    race.deny(0, DenyReason::Token);
    let up = race.up_at();
    assert_eq!((race.client.peer_addr(), race.connects(0)), (Some(at(2)), 1));
    assert!(up <= 10 + 111 + 20, "with the next round: {up}");
}

#[test]
fn an_attempt_ends_two_seconds_after_all_have_denied_with_the_first_reason() {
    let mut race = Race::new([dead(1), dead(2)]);
    race.deny(1, DenyReason::Busy);
    race.deny(1, DenyReason::Version);
    race.run(1_000);
    race.deny(0, DenyReason::Suite);
    race.run(1_990);
    assert_eq!(race.closed, None);
    race.run(20);
    assert_eq!(race.closed, Some(CloseReason::Denied(DenyReason::Busy)));
}

#[test]
fn a_denial_of_the_token_counts_only_from_where_a_connect_was_sent() {
    let mut race = Race::new([serving(1, 5), dead(2)]);
    race.run(11);
    assert_eq!(race.connects(0), 1);
    let strangers = race.client.rejected().stranger;
    race.deny(1, DenyReason::Token);
    assert_eq!(race.client.rejected().stranger, strangers + 1);
    race.deny(0, DenyReason::Token);
    assert_eq!(race.client.rejected().stranger, strangers + 1);
}

#[test]
fn four_addresses_of_one_family_are_tried_at_a_time_and_then_the_next_ones() {
    let mut hosts: Vec<_> = (1..=6).map(dead).collect();
    hosts.insert(1, Host { address: v6(1), ..dead(1) });
    hosts.insert(2, Host { address: v6(2), ..dead(1) });
    hosts.insert(3, dead(1)); // once more
    hosts.push(dead(6));
    let mut race = Race::new(hosts);
    race.run(30_100);
    assert_eq!(race.closed, Some(CloseReason::ConnectTimeout));
    let groups: [&[_]; 3] = [&[at(1), at(2), at(3), at(4)], &[v6(1), v6(2)], &[at(5), at(6)]];
    let mut attempts = BTreeSet::new();
    for (group, start) in groups.iter().zip([0, 10_000, 20_000]) {
        let sent: Vec<_> = race.sent.iter().filter(|(at, ..)| (start..start + 10_000).contains(at)).collect();
        let rounds = sent.chunks(group.len());
        assert!((45..60).contains(&rounds.len()), "{} rounds: 20, then 4 per second", rounds.len());
        for round in rounds {
            let to: Vec<_> = round.iter().map(|(_, to, _)| *to).collect();
            assert_eq!(to, *group, "one HELLO each");
            assert!(round.iter().all(|(at, ..)| *at == round[0].0), "all at once");
        }
        assert!(sent.iter().all(|(.., bytes)| bytes[12..20] == sent[0].2[12..20]), "one attempt");
        attempts.insert(sent[0].2[12..20].to_vec());
    }
    assert_eq!((attempts.len(), race.of(kind::HELLO).len()), (3, race.sent.len()));
}

#[test]
fn a_challenge_from_an_address_that_is_not_tried_now_counts_as_a_stranger() {
    let mut race = Race::new((1..=5).map(dead).collect::<Vec<_>>());
    for (elsewhere, strangers) in [(at(5), 1), (at(9), 2), (SocketAddr::from(([10, 9, 9, 1], 4001)), 3)] {
        race.forge(elsewhere, 1);
        assert_eq!((race.client.state(), race.client.rejected().stranger), (ClientState::Hello, strangers));
    }
    race.run(10_000);
    for number in 1..=4 {
        race.forge(at(number), 1);
    }
    assert_eq!((race.client.state(), race.client.rejected().stranger), (ClientState::Hello, 7));
    race.forge(at(5), 1);
    assert_eq!(race.client.state(), ClientState::Connect);
}

#[test]
fn forged_cookies_of_one_address_push_out_none_of_another() {
    let forge = |race: &mut Race| (0..=255).for_each(|cookie| race.forge(at(1), cookie));
    // The server was first: whatever comes from elsewhere changes nothing.
    let mut race = Race::new([dead(1), serving(2, 20)]);
    race.run(41);
    forge(&mut race);
    assert_eq!((race.up_at(), race.connects(0)), (80, 0));
    // The forger was first: four CONNECTs are lost.
    let mut race = Race::new([dead(1), serving(2, 20)]);
    for _ in 0..10 {
        forge(&mut race);
        race.run(10);
    }
    let up = race.up_at();
    assert_eq!((race.client.peer_addr(), race.connects(0)), (Some(at(2)), 4));
    assert!(up <= 500, "{up}");
}

#[test]
fn a_ticket_goes_to_the_first_address_only_and_a_dead_one_costs_four_connects() {
    let mut race = Race::new([serving(1, 5)]);
    race.up_at();
    let ticket = race.client.connection().unwrap().ticket().to_vec();
    assert_eq!(ticket.len(), 20);
    let config = ClientConfig { ticket, ..client_config(SUITE) };
    let mut race = Race::with(&config, [dead(1), serving(2, 5), dead(3)]);
    let up = race.up_at();
    assert_eq!((race.client.peer_addr(), race.connects(0), race.connects(2)), (Some(at(2)), 4, 0));
    assert!((360..=460).contains(&up), "{up}");
    let hellos = race.of(kind::HELLO);
    let first: Vec<_> = hellos.iter().take(3).map(|(_, to)| *to).collect();
    assert_eq!(first, [at(1), at(2), at(3)]);
    assert!((90..=110).contains(&hellos[0].0), "with the second round");
}

/// A driver may stop in the middle: then more is due at once.
#[test]
fn a_round_of_hellos_that_was_begun_is_due_until_it_is_over() {
    let mut client = Client::new(&client_config(SUITE), random(1, 1)).unwrap();
    let addresses: Vec<_> = (1..=4).map(at).collect();
    client.connect(Time::ZERO, &addresses).unwrap();
    for address in addresses {
        assert!(client.poll_timeout().unwrap() <= Time::ZERO);
        assert_eq!(client.emit(Time::ZERO).unwrap().1, address);
    }
    assert!(client.poll_timeout().unwrap() >= Time::from_millis(90) && client.emit(Time::ZERO).is_none());
}
