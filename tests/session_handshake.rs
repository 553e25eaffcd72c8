//! An attacker in the middle of the handshake can prevent a session, but cannot make one that only one end
//! believes in.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that panics has found something"
)]

use crate::common;
use crate::common::machine::Whole as _;

use common::sessions::{client_address, random, server_address};
use std::time::Duration;
use whitewater::Time;
use whitewater::inside::session::wire::kind;
use whitewater::machine::Machine as _;
#[cfg(feature = "crypto")]
use whitewater::session::public_key;
use whitewater::session::{Cipher, Client, ClientState, Server, Suite};
use whitewater::{ClientConfig, Event, ServerConfig, SessionConfig, SessionId};

const PSK: [u8; 32] = [7; 32];
const PRIVATE: [u8; 32] = [8; 32];

/// What the attacker changes: this byte of packets of this kind, by this mask, the first time or every time.
#[derive(Clone, Copy, Debug)]
struct Change {
    kind: u8,
    at: usize,
    mask: u8,
    each_time: bool,
}

/// Both ends, with only the attacker in between.
struct Path {
    now: Time,
    server: Server,
    client: Client,
    session: Option<SessionId>,
    change: Option<Change>,
    /// Length of the last packet of the kind to be changed.
    seen: usize,
}

impl Path {
    fn new(suite: Suite, change: Change) -> Self {
        let psk = suite.needs_psk().then(|| PSK.into());
        let private = suite.needs_server_key().then_some(PRIVATE);
        #[cfg(feature = "crypto")]
        let public = private.as_ref().map(public_key);
        #[cfg(not(feature = "crypto"))]
        let public = private;
        let session = SessionConfig::default();
        let server = ServerConfig {
            suites: vec![suite],
            psk: psk.clone(),
            server_key: private.map(Into::into),
            ..ServerConfig::insecure(session.clone())
        };
        let deadline = Duration::from_millis(1500);
        let known = ClientConfig { suite, psk, server_key: public, ..ClientConfig::insecure(session) };
        let mut client = Client::new(&ClientConfig { hello: 512, deadline, ..known }, random(1, 1)).unwrap();
        client.connect(Time::ZERO, &[server_address()]).unwrap();
        let server = Server::new(&server, random(1, 2)).unwrap();
        Self { now: Time::ZERO, server, client, session: None, change: Some(change), seen: 0 }
    }

    /// Lets this many ms pass.
    fn step(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
        let (now, mut buf) = (self.now, Vec::new());
        self.client.handle_timeout(now);
        self.server.handle_timeout(now);
        loop {
            if self.client.emit_to(now, &mut buf).is_some() {
                self.tamper(&mut buf);
                self.server.give(now, client_address(1, 1), &buf);
            } else if self.server.emit_to(now, &mut buf).is_some() {
                self.tamper(&mut buf);
                self.client.give(now, server_address(), &buf);
            } else {
                break;
            }
        }
        while let Some((id, event)) = self.server.poll_event() {
            if event == Event::Connected {
                self.session = Some(id);
            }
        }
    }

    fn tamper(&mut self, datagram: &mut [u8]) {
        let change = self.change.filter(|change| change.kind == datagram[0]);
        let Some(Change { at, mask, each_time, .. }) = change else { return };
        self.seen = datagram.len();
        if let Some(byte) = datagram.get_mut(at) {
            *byte ^= mask;
        }
        self.change = self.change.filter(|_| each_time);
    }

    /// Whether there is a session. If so, checks that both ends have it: what each sends arrives at the
    /// other.
    fn has_session(&mut self) -> bool {
        for _ in 0..320 {
            self.step(5);
            if self.client.state() == ClientState::Closed || self.client.state() == ClientState::Up {
                break;
            }
        }
        if self.client.state() == ClientState::Closed {
            (0..21).for_each(|_| self.step(500));
            assert!(self.session.is_none() && self.server.is_empty(), "the server has a session");
            return false;
        }
        (0..40).for_each(|_| self.step(5));
        let id = self.session.expect("the client is up and the server is not");
        self.client.connection_mut().unwrap().send_datagram(b"there").unwrap();
        self.server.connection_mut(id).unwrap().send_datagram(b"back").unwrap();
        (0..4).for_each(|_| self.step(5));
        let mut room = [0; 100];
        let there = self.server.connection_mut(id).unwrap().recv_datagram_into(&mut room);
        assert_eq!(there.map(|len| &room[..len]), Ok(&b"there"[..]), "the server is deaf");
        let back = self.client.connection_mut().unwrap().recv_datagram_into(&mut room);
        assert_eq!(back.map(|len| &room[..len]), Ok(&b"back"[..]), "the client is deaf");
        true
    }
}

/// Each pattern with one cipher, since the cipher makes no difference here.
fn suites() -> impl Iterator<Item = Suite> {
    let is_built_in = |suite: &Suite| match suite {
        Suite::Noise(_, cipher) | Suite::Hybrid(_, cipher) => {
            suite.is_built_in() && *cipher == Cipher::ChaChaPoly
        }
        _ => true,
    };
    [Suite::Checked].into_iter().chain(Suite::ALL).filter(is_built_in)
}

/// Changes each byte of each packet of the handshake; `check` gets the change, and whether there was a
/// session.
fn each_change(each_time: bool, masks: &[u8], mut check: impl FnMut(Suite, Change, bool, Time)) {
    for suite in suites() {
        let kinds = [kind::HELLO, kind::CHALLENGE, kind::CONNECT, kind::ACCEPT];
        // Like DATA, a ciphertext leaves when the client is up.
        let of_kem = [kind::KEM_KEY, kind::KEM_CIPHERTEXT].into_iter().filter(|_| suite.is_hybrid());
        let of_kem = of_kem.filter(|kind| !each_time || *kind == kind::KEM_KEY);
        for kind in kinds.into_iter().chain(of_kem) {
            let mut len = 1;
            let mut at = 0;
            while at < len {
                // All bytes of padding are equivalent, and so are most of a key.
                let is_alike = kind == kind::HELLO && at >= 24 || kind >= kind::KEM_KEY && at >= 14;
                let step = if is_alike { 61 } else { 1 };
                for &mask in masks {
                    let change = Change { kind, at, mask, each_time };
                    let mut path = Path::new(suite, change);
                    let outcome = std::panic::AssertUnwindSafe(|| path.has_session());
                    let has_session = std::panic::catch_unwind(outcome).unwrap_or_else(|error| {
                        eprintln!("{suite:?}, {change:?}");
                        std::panic::resume_unwind(error)
                    });
                    check(suite, change, has_session, path.now);
                    len = path.seen.max(1);
                }
                at += step;
            }
        }
    }
}

/// A byte changed once costs one repetition, at most 500 ms. Only if the first message has no key can the
/// server miss the change: it then keeps a session without a client for 10 s, and the client's attempt fails.
#[test]
fn a_byte_changed_once_only_delays_the_session() {
    let mut count = 0;
    each_change(false, &[0x01, 0x80], |suite, change, has_session, now| {
        let is_plain = suite.code() & 0x7f00 == 0x0100;
        let may_fail = is_plain && change.kind == kind::CONNECT && change.at >= 40;
        assert!(has_session || may_fail, "{suite:?}, {change:?}");
        assert!(!has_session || now <= Time::from_millis(800), "{suite:?}, {change:?}: at {now}");
        count += 1;
    });
    assert!(count > 300 * suites().count(), "{count} changes");
}

/// An attacker who changes every packet can keep the ends apart, and no more.
#[test]
fn a_byte_changed_every_time_gives_a_session_at_both_ends_or_at_none() {
    let (mut with, mut without) = (0, 0);
    each_change(true, &[0x04], |suite, change, has_session, _| {
        let is_stamp = change.kind == kind::HELLO && (20..24).contains(&change.at)
            || change.kind == kind::CHALLENGE && (12..16).contains(&change.at);
        assert_eq!(has_session, is_stamp, "{suite:?}, {change:?}: only the stamp concerns the client alone");
        if has_session {
            with += 1;
        } else {
            without += 1;
        }
    });
    assert_eq!(with, 8 * suites().count());
    assert!(without > 150 * suites().count(), "{without} changes without a session");
}
