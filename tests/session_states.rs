//! The states of both ends, row by row: what is sent when, and what ends a state. Only what a test loses is
//! lost between the ends.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::machine::Whole as _;

use common::sessions::{
    SUITE, client_address, client_config, kind_of, on, random, server_address, server_config,
};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::inside::session::wire::{Challenge, Connect, Deny, DenyReason, kind};
use whitewater::machine::Machine as _;
use whitewater::session::{Client, ClientState, Server};
use whitewater::{CloseReason, Event, ServerConfig, SessionConfig, SessionId, Time};

/// A datagram that was sent: when, in ms; whether by the client; its bytes.
type Sent = (u64, bool, Vec<u8>);
/// Whether the n-th datagram of a kind gets lost.
type Loses = fn(u8, usize) -> bool;

/// Both ends, in steps of 1 ms.
struct Duo {
    now: Time,
    client: Client,
    server: Server,
    /// The address that the client sends from.
    address: SocketAddr,
    session: Option<SessionId>,
    ends: [Option<CloseReason>; 2],
    sent: Vec<Sent>,
    loses: Loses,
}

fn server(seed: u64, reset_key: Option<[u8; 16]>) -> Server {
    let config = ServerConfig { reset_key, ..server_config(&SessionConfig::default(), SUITE) };
    Server::new(&config, random(1, seed)).unwrap()
}

impl Duo {
    /// A client that starts to connect.
    fn new(loses: Loses) -> Self {
        Self::starting_at(Time::ZERO, loses)
    }

    fn starting_at(now: Time, loses: Loses) -> Self {
        let mut client = Client::new(&client_config(SUITE), random(1, 1)).unwrap();
        client.connect(now, &[server_address()]).unwrap();
        let (server, address) = (server(2, None), client_address(1, 1));
        Self { now, client, server, address, session: None, ends: [None; 2], sent: Vec::new(), loses }
    }

    /// A session that has been up for a second.
    fn up(loses: Loses) -> Self {
        let mut duo = Self::new(|_, _| false);
        duo.run(1000);
        assert_eq!(duo.client.state(), ClientState::Up);
        duo.sent.clear();
        duo.loses = loses;
        duo
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.poll();
            self.now = self.now + Duration::from_millis(1);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
        self.poll();
    }

    fn poll(&mut self) {
        let mut buf = Vec::new();
        loop {
            if self.client.emit_to(self.now, &mut buf).is_some() {
                if !self.is_lost(true, &buf) {
                    self.server.give(self.now, self.address, &buf);
                }
            } else if let Some(to) = self.server.emit_to(self.now, &mut buf) {
                if !self.is_lost(false, &buf) && to == self.address {
                    self.client.give(self.now, server_address(), &buf);
                }
            } else {
                break;
            }
        }
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Connected => assert!(self.session.replace(id).is_none(), "a ghost"),
                Event::Closed { reason, .. } => self.ends[1] = Some(reason),
                _ => {}
            }
        }
        while let Some(event) = self.client.poll_event() {
            if let Event::Closed { reason, .. } = event {
                self.ends[0] = Some(reason);
            }
        }
    }

    fn is_lost(&mut self, by_client: bool, datagram: &[u8]) -> bool {
        let kind = kind_of(datagram);
        let number = self.of(kind, by_client).len();
        self.sent.push((self.now.as_millis(), by_client, datagram.to_vec()));
        (self.loses)(kind, number)
    }

    /// The datagrams of a kind that an end has sent.
    fn of(&self, kind: u8, by_client: bool) -> Vec<(u64, Vec<u8>)> {
        let is = |(_, by, bytes): &&Sent| *by == by_client && kind_of(bytes) == kind;
        self.sent.iter().filter(is).map(|(at, _, bytes)| (*at, bytes.clone())).collect()
    }

    fn times(&self, kind: u8, by_client: bool) -> Vec<u64> {
        self.of(kind, by_client).into_iter().map(|(at, _)| at).collect()
    }

    fn close_client(&mut self) {
        self.client.close(self.now, 7);
        self.client.handle_timeout(self.now);
    }

    fn close_server(&mut self) {
        self.server.close(self.now, self.session.unwrap(), 8);
        self.server.handle_timeout(self.now);
    }
}

/// The shortest and the longest pause between neighbouring times.
fn pauses(times: &[u64]) -> (u64, u64) {
    let pauses = times.windows(2).map(|pair| pair[1] - pair[0]);
    (pauses.clone().min().unwrap(), pauses.max().unwrap())
}

#[test]
fn an_idle_client_sends_nothing_and_connects_once() {
    let mut client: Client = Client::new(&client_config(SUITE), random(1, 1)).unwrap();
    let mut buf = Vec::new();
    assert_eq!((client.state(), client.poll_timeout()), (ClientState::Idle, None));
    assert_eq!(client.emit_to(Time::ZERO, &mut buf), None);
    client.connect(Time::ZERO, &[server_address()]).unwrap();
    assert_eq!(client.emit_to(Time::ZERO, &mut buf), Some(server_address()));
    assert_eq!((client.state(), buf[0]), (ClientState::Hello, kind::HELLO));
    assert!(client.connect(Time::ZERO, &[server_address()]).is_err());
}

#[test]
fn hello_is_sent_every_100_ms_for_2_s_and_then_every_250_ms() {
    let mut duo = Duo::new(|kind, _| kind == kind::HELLO);
    duo.run(9_000);
    let times = duo.times(kind::HELLO, true);
    assert_eq!(times[0], 0);
    let (fast, slow): (Vec<_>, Vec<_>) = times.iter().copied().partition(|at| *at < 2000);
    let (fast, slow) = (pauses(&fast), pauses(&slow));
    assert!(fast.0 >= 90 && fast.1 <= 111, "{fast:?}");
    assert!(slow.0 >= 225 && slow.1 <= 276, "{slow:?}");
    assert!(fast.0 < fast.1, "clients do not stay in lockstep");
    assert!(duo.server.is_empty(), "a server keeps nothing of it");
}

#[test]
fn only_a_challenge_of_its_own_attempt_makes_a_client_connect() {
    let mut duo = Duo::new(|kind, _| kind == kind::CHALLENGE);
    duo.run(10);
    let (_, challenge) = duo.of(kind::CHALLENGE, false).remove(0);
    let mut other = challenge.clone();
    other[4] ^= 1; // the attempt
    duo.client.give(duo.now, server_address(), &other);
    duo.client.give(duo.now, client_address(9, 9), &challenge);
    assert_eq!((duo.client.state(), duo.client.rejected().stranger), (ClientState::Hello, 2));
    duo.client.give(duo.now, server_address(), &challenge);
    assert_eq!(duo.client.state(), ClientState::Connect);
}

#[test]
fn a_denial_is_a_hint_that_ends_an_attempt_after_two_seconds_and_an_accept_wins() {
    for serves in [false, true] {
        let mut duo = Duo::new(if serves { |_, _| false } else { |kind, _| kind == kind::CHALLENGE });
        let mut buf = Vec::new();
        duo.client.emit_to(duo.now, &mut buf).unwrap();
        let cid = u64::from_le_bytes(buf[12..20].try_into().unwrap());
        let mut deny = Vec::new();
        let reason = DenyReason::Busy;
        Deny { lowest: 1, highest: 1, reason, cid, retry_after_ms: 0 }.encode(&mut deny).unwrap();
        duo.client.give(duo.now, server_address(), &deny);
        duo.run(1_990);
        assert_eq!(duo.client.state(), if serves { ClientState::Up } else { ClientState::Hello });
        duo.run(20);
        assert_eq!(duo.ends[0], (!serves).then_some(CloseReason::Denied(reason)));
    }
}

#[test]
fn the_first_message_never_changes_and_every_fourth_time_a_new_cookie_is_requested() {
    let mut duo = Duo::new(|kind, _| kind == kind::ACCEPT);
    duo.run(5_000);
    let connects = duo.of(kind::CONNECT, true);
    let decoded: Vec<_> = connects.iter().map(|(_, bytes)| Connect::decode(bytes).unwrap()).collect();
    assert!(decoded.windows(2).all(|pair| pair[0].msg1 == pair[1].msg1 && pair[0].cid == pair[1].cid));
    let hellos = duo.times(kind::HELLO, true).len() - 1;
    assert!((hellos * 3).abs_diff(connects.len()) <= 3, "{hellos} beside {}", connects.len());
    let first: Vec<_> = duo.times(kind::CONNECT, true).into_iter().take_while(|at| *at < 2000).collect();
    let (least, most) = pauses(&first);
    assert!(least >= 90 && most <= 111, "a HELLO delays no CONNECT: {least} to {most}");
    let epochs: Vec<_> = decoded.iter().map(|connect| (connect.epoch, connect.cookie)).collect();
    duo.run(1_500);
    let last = duo.of(kind::CONNECT, true).pop().unwrap().1;
    let last = Connect::decode(&last).unwrap();
    assert_ne!((last.epoch, last.cookie), epochs[0], "5 s later the cookie is different");
    assert_eq!(last.msg1, decoded[0].msg1);
}

#[test]
fn an_old_or_duplicated_challenge_only_changes_the_cookie() {
    let mut duo = Duo::new(|kind, _| kind == kind::ACCEPT);
    duo.run(5);
    let (_, challenge) = duo.of(kind::CHALLENGE, false).remove(0);
    let mut other = Challenge::decode(&challenge).unwrap();
    other.cookie = [7; 16];
    let mut bytes = Vec::new();
    other.encode(&mut bytes).unwrap();
    duo.client.give(duo.now, server_address(), &bytes);
    duo.run(150);
    let connects = duo.of(kind::CONNECT, true);
    let [first, .., last] = &connects[..] else { panic!() };
    let (first, last) = (Connect::decode(&first.1).unwrap(), Connect::decode(&last.1).unwrap());
    assert_eq!((last.cookie, last.msg1), ([7; 16], first.msg1));
    duo.loses = |_, _| false;
    duo.run(600);
    assert_eq!(duo.client.state(), ClientState::Up, "the next HELLO got a valid one");
}

#[test]
fn a_forged_accept_does_not_change_the_state_of_a_client() {
    let mut duo = Duo::new(|kind, number| kind == kind::ACCEPT && number == 0);
    duo.run(5);
    let (_, accept) = duo.of(kind::ACCEPT, false).remove(0);
    for at in 14..accept.len() {
        let mut forged = accept.clone();
        forged[at] ^= 1;
        duo.client.give(duo.now, server_address(), &forged);
        assert_eq!(duo.client.state(), ClientState::Connect, "byte {at}");
    }
    duo.client.give(duo.now, server_address(), &accept);
    assert_eq!(duo.client.state(), ClientState::Up);
}

#[test]
fn a_connected_client_pings_every_100_ms_until_answered_and_then_after_500_ms_of_silence() {
    let mut duo = Duo::new(|kind, number| kind == kind::DATA && number < 6);
    duo.run(3_000);
    let data = duo.times(kind::DATA, true);
    assert_eq!(data[..7], [0, 100, 200, 300, 400, 500, 600], "the first six are lost");
    let (least, most) = pauses(&data[8..]);
    assert!(least >= 10 && most <= 500, "{least} to {most}");
    assert!(data.len() <= 20, "{} datagrams of an idle client", data.len());
    assert!(duo.server.stats().confirmed == 1 && duo.client.state() == ClientState::Up);
}

#[test]
fn close_is_sent_at_0_50_150_and_350_ms_and_as_an_answer_for_one_second() {
    let mut duo = Duo::up(|kind, _| kind == kind::DATA);
    let start = duo.now.as_millis();
    duo.close_client();
    duo.run(990);
    assert_eq!(duo.client.state(), ClientState::Closing);
    let times: Vec<_> = duo.times(kind::DATA, true).iter().map(|at| at - start).collect();
    assert_eq!(times, [0, 50, 150, 350]);
    duo.run(20);
    assert_eq!((duo.client.state(), duo.ends[0]), (ClientState::Closed, Some(CloseReason::Local(7))));
    assert_eq!(duo.ends[1], None, "the server has not heard of it");
    duo.run(20_000);
    assert_eq!(duo.ends[1], Some(CloseReason::Timeout), "all four are lost, and no RESET");
}

/// The caller supplies the time.
#[test]
fn a_closing_session_ends_even_at_the_maximum_time() {
    let mut duo = Duo::up(|_, _| true);
    duo.close_client();
    duo.poll();
    duo.now = Time::from_micros(u64::MAX);
    duo.poll();
    duo.client.handle_timeout(duo.now);
    assert_eq!((duo.client.state(), duo.client.poll_timeout()), (ClientState::Closed, None));
    assert!(duo.times(kind::DATA, true).len() <= 2, "not once for each time that has passed");
}

#[test]
fn a_close_that_arrives_ends_both_ends_at_once() {
    for by_client in [true, false] {
        let mut duo = Duo::up(|_, _| false);
        if by_client {
            duo.close_client()
        } else {
            duo.close_server()
        }
        duo.run(5);
        let (code, ours, theirs) = if by_client { (7, 0, 1) } else { (8, 1, 0) };
        assert_eq!(duo.ends[ours], Some(CloseReason::Local(code)));
        assert_eq!(duo.ends[theirs], Some(CloseReason::Peer(code)));
    }
}

#[test]
fn a_client_whose_session_is_gone_gets_a_reset() {
    let mut duo = Duo::new(|_, _| false);
    duo.server = server(2, Some([3; 16]));
    duo.run(1_000);
    duo.loses = |_, _| true;
    duo.close_server();
    duo.run(6_500);
    assert!(duo.server.is_empty() && duo.client.state() == ClientState::Up, "all CLOSEs are lost");
    duo.loses = |_, _| false;
    duo.run(600);
    assert_eq!(duo.ends[0], Some(CloseReason::ServerForgot), "with its next ping");
}

#[test]
fn an_unconfirmed_session_lives_for_10_s() {
    let mut duo = Duo::new(|kind, _| kind == kind::DATA);
    duo.run(9_990);
    assert_eq!((duo.server.len(), duo.server.stats().confirmed), (1, 0));
    duo.run(20);
    assert_eq!((duo.server.len(), duo.server.stats().unconfirmed, duo.session), (0, 1, None));
}

#[test]
fn the_first_data_confirms_the_session_and_frees_the_stored_accept() {
    let mut duo = Duo::up(|_, _| false);
    let mut again = Duo::new(|_, _| false);
    again.run(0);
    let (_, connect) = again.of(kind::CONNECT, true).remove(0);
    // Both use the same random numbers, so the cookie is the same.
    duo.server.give(duo.now, duo.address, &connect);
    duo.run(5);
    assert_eq!((duo.server.stats().rejected.repeated, duo.of(kind::ACCEPT, false).len()), (1, 0));
}

/// Source: a duplicated CONNECT whose cookie was still valid opened a session without a client.
#[test]
fn a_late_connect_is_ignored_for_10_s_after_the_end() {
    let mut duo = Duo::new(|_, _| false);
    duo.run(100);
    let (_, connect) = duo.of(kind::CONNECT, true).remove(0);
    duo.close_client();
    duo.run(1_500);
    assert!(duo.server.is_empty());
    for _ in 0..40 {
        duo.run(300);
        duo.server.give(duo.now, duo.address, &connect);
        duo.poll();
    }
    let rejected = duo.server.stats().rejected;
    assert!(duo.server.is_empty() && duo.server.stats().accepted == 1);
    assert!(rejected.repeated > 20 && rejected.cookie > 5, "until the cookie is too old: {rejected:?}");
}

#[test]
fn lost_packets_of_a_handshake_are_resent() {
    let cases: [(_, Loses, _); 5] = [
        ("HELLO", |kind, number| kind == kind::HELLO && number == 0, 111),
        ("CHALLENGE", |kind, number| kind == kind::CHALLENGE && number == 0, 111),
        ("CONNECT", |kind, number| kind == kind::CONNECT && number == 0, 111),
        ("ACCEPT", |kind, number| kind == kind::ACCEPT && number == 0, 111),
        ("first DATA", |kind, number| kind == kind::DATA && number == 0, 101),
    ];
    for (what, loses, price) in cases {
        let mut duo = Duo::new(loses);
        duo.run(price);
        assert!(duo.session.is_some() && duo.client.state() == ClientState::Up, "{what}");
        duo.run(20_000);
        assert_eq!((duo.server.len(), duo.server.stats().accepted, duo.ends), (1, 1, [None; 2]), "{what}");
    }
}

#[test]
fn an_expired_cookie_is_replaced() {
    type Spoils = fn(&mut Duo);
    let cases: [(_, Spoils); 4] = [
        ("too old: 5 s at least, 10 s at most", |duo| duo.run(5_100)),
        ("another port", |duo| duo.address = client_address(1, 2)),
        ("another server", |duo| duo.server = server(3, None)),
        ("damaged", |duo| {
            let (_, mut challenge) = duo.of(kind::CHALLENGE, false).remove(0);
            challenge[30] ^= 1;
            duo.client.give(duo.now, server_address(), &challenge);
        }),
    ];
    for (what, spoil) in cases {
        let loses = |kind, number| kind == kind::CONNECT || kind == kind::HELLO && number > 0;
        let mut duo = Duo::starting_at(Time::from_millis(4_990), loses);
        duo.run(5);
        assert_eq!(duo.client.state(), ClientState::Connect);
        spoil(&mut duo);
        duo.loses = |_, _| false;
        duo.run(1_100); // four pauses of at most 275 ms
        assert_eq!(duo.client.state(), ClientState::Up, "{what}");
        assert!(duo.session.is_some() && duo.server.stats().accepted == 1, "{what}");
        assert!(duo.server.stats().rejected.cookie > 0, "{what}");
    }
}

#[test]
fn data_before_the_accept_waits_and_arrives_after_it() {
    let mut duo = Duo::up(|kind, number| kind == kind::DATA && number < 3);
    let id = duo.session.unwrap();
    duo.server.connection_mut(id).unwrap().send(on(0), b"early").unwrap();
    duo.run(1_000);
    let mut room = [0; 10];
    assert_eq!(duo.client.connection_mut().unwrap().recv_into(on(0), &mut room), Ok(5));
    // To a client that has no session yet DATA is nothing.
    let (_, data) = duo.of(kind::DATA, false).remove(0);
    let mut young = Duo::new(|kind, _| kind == kind::ACCEPT);
    young.run(5);
    young.client.give(young.now, server_address(), &data);
    assert_eq!((young.client.state(), young.client.rejected().stranger), (ClientState::Connect, 1));
}

/// No round trip is measured while an end was frozen, so a vanished candidate is dropped soon.
#[test]
#[cfg(feature = "crypto")] // only authentic packets may move a session
fn a_client_that_moves_twice_is_found_within_four_seconds() {
    let mut duo = Duo::up(|_, _| false);
    let mut buf = Vec::new();
    let id = duo.session.unwrap();
    duo.server.connection_mut(id).unwrap().send_datagram(b"is read late").unwrap();
    duo.server.emit_to(duo.now, &mut buf).unwrap();
    duo.now = duo.now + Duration::from_secs(4);
    duo.client.give(duo.now, server_address(), &buf);
    duo.run(600);
    assert!(duo.server.connection(id).unwrap().stats().rtt < Duration::from_secs(1));
    // One packet comes from an address that is gone afterwards.
    duo.address = client_address(1, 2);
    duo.loses = |_, _| true;
    duo.client.connection_mut().unwrap().send_datagram(b"here").unwrap();
    duo.client.emit_to(duo.now, &mut buf).unwrap();
    duo.server.give(duo.now, duo.address, &buf);
    duo.poll();
    duo.loses = |_, _| false;
    duo.address = client_address(1, 3);
    duo.run(4_000);
    assert_eq!(duo.server.connection(id).unwrap().peer_addr(), client_address(1, 3));
}
