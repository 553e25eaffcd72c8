//! The lobby: it names who hosts, who is to follow, and lets everybody in where the match is.

use super::{POSTS, REPORTS};
use crate::carry;
use crate::wire::{Hello, Post, Report};
use rand::{CryptoRng, Rng as _};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::session::token::{Order, ServerKey};
use whitewater::session::{self, Suite};
use whitewater::{Event, SessionId, Time};
use whitewater_relay::{HostGrant, RelayKey};

/// A lobby for one match, with the sessions of its players.
pub struct Lobby {
    key: RelayKey,
    relay: SocketAddr,
    random: Box<dyn CryptoRng>,
    /// The number of each player, by name and secret: it stays when they come again.
    accounts: BTreeMap<(String, u64), u64>,
    present: BTreeMap<u64, SessionId>,
    term: Term,
    /// Who has declined to host since somebody last did.
    declined: BTreeSet<u64>,
    /// Hosts that were replaced and have not been heard of since.
    silent: BTreeSet<u64>,
    /// Until when the last host's ticket is good, s since 1970. The relay takes a newer one only if it is good for longer.
    ticket_expires: u32,
    unix: u64,
}

/// The time in which one player hosts.
struct Term {
    number: u32,
    host: Option<u64>,
    heirs: Vec<u64>,
    key: ServerKey,
    /// When it began.
    since: Time,
    /// Where the host is, once it says so.
    addresses: Vec<SocketAddr>,
    /// Who does not hear it, and whether they need another token because their session is over.
    lost: BTreeMap<u64, bool>,
    /// When it was asked whether it is there.
    asked: Option<Time>,
}

impl Term {
    fn new(number: u32, since: Time, key: [u8; 32]) -> Self {
        Self {
            number,
            host: None,
            heirs: Vec::new(),
            key: ServerKey::new(number.into(), 0, key),
            since,
            addresses: Vec::new(),
            lost: BTreeMap::new(),
            asked: None,
        }
    }
}

impl Lobby {
    /// A lobby without players, for a relay with this key and address. `random` must be unpredictable.
    #[must_use]
    pub fn new(key: RelayKey, relay: SocketAddr, random: impl CryptoRng + 'static) -> Self {
        Self {
            key,
            relay,
            random: Box::new(random),
            accounts: BTreeMap::new(),
            present: BTreeMap::new(),
            term: Term::new(0, Time::ZERO, [0; 32]),
            declined: BTreeSet::new(),
            silent: BTreeSet::new(),
            ticket_expires: 0,
            unix: 0,
        }
    }

    /// How many hosts there were, and who hosts now.
    #[must_use]
    pub const fn term(&self) -> (u32, Option<u64>) {
        (self.term.number, self.term.host)
    }

    /// The players that are here.
    #[must_use]
    pub fn present(&self) -> usize {
        self.present.len()
    }

    /// Takes an event of a session, and reads what there is to read.
    pub fn on_event(&mut self, sessions: &mut session::Server, now: Time, id: SessionId, event: Event) {
        match event {
            Event::Connected => self.welcome(sessions, now, id),
            Event::Readable => {
                while let Some(report) = sessions.connection_mut(id).and_then(|peer| peer.recv(REPORTS)) {
                    self.take(sessions, now, id, report);
                }
            }
            Event::Closed { .. } => {
                let Some(player) = self.player(id) else { return };
                self.present.remove(&player);
                self.silent.remove(&player);
                self.term.lost.remove(&player);
                if self.term.host == Some(player) {
                    self.appoint(sessions, now);
                } else {
                    self.name_heirs(sessions);
                }
            }
            _ => {}
        }
    }

    /// Does what is due. `unix`: s since 1970. Call it ten times a second at least.
    pub fn tick(&mut self, sessions: &mut session::Server, now: Time, unix: u64) {
        self.unix = unix;
        let Term { host, since, asked, addresses, .. } = &self.term;
        let is_silent = asked.is_some_and(|asked| now.since(asked) > ANSWER);
        let is_late = host.is_some() && addresses.is_empty() && now.since(*since) > BEGIN;
        let is_wanted = host.is_none() && !self.present.is_empty();
        if is_silent || is_late || is_wanted {
            self.appoint(sessions, now);
        }
    }

    fn welcome(&mut self, sessions: &mut session::Server, now: Time, id: SessionId) {
        let hello = sessions.connection(id).map(|connection| Hello::decode(connection.user()));
        let Some(Ok(Hello { name, ticket, .. })) = hello else {
            let _ = sessions.close_with(now, id, REFUSED, "not a player of this game");
            return;
        };
        let next = self.accounts.len() as u64 + 1;
        let player = match self.accounts.get(&(name.clone(), ticket)) {
            Some(player) => *player,
            None if next <= ACCOUNTS_MAX => *self.accounts.entry((name, ticket)).or_insert(next),
            None => {
                let _ = sessions.close_with(now, id, REFUSED, "too many players were here");
                return;
            }
        };
        if let Some(old) = self.present.insert(player, id) {
            let _ = sessions.close_with(now, old, REFUSED, "the same player has come in again");
        }
        if self.term.host == Some(player) {
            self.term.host = None;
            self.appoint(sessions, now); // it has started again, and what it hosted is gone
            return;
        }
        self.silent.remove(&player);
        self.name_heirs(sessions);
        self.admit(sessions, player);
    }

    fn take(&mut self, sessions: &mut session::Server, now: Time, id: SessionId, report: Report) {
        let Some(player) = self.player(id) else { return };
        let (Report::At { term, .. }
        | Report::Decline { term }
        | Report::Lost { term, .. }
        | Report::Here { term }) = report;
        let is_host = self.term.host == Some(player);
        if self.silent.remove(&player) {
            self.name_heirs(sessions);
        }
        if term != self.term.number {
            return; // it crossed with a newer term
        }
        match report {
            Report::At { addresses, .. } if is_host => {
                let is_first = self.term.addresses.is_empty();
                let others = addresses.into_iter().filter(|at| *at != self.relay && at.port() != 0);
                // By the relay first: it is there for all, and a direct way opens by itself where there is one.
                self.term.addresses = std::iter::once(self.relay).chain(others).collect();
                if is_first {
                    self.declined.clear();
                    self.name_heirs(sessions);
                    let present: Vec<u64> = self.present.keys().copied().collect();
                    present.into_iter().for_each(|player| self.admit(sessions, player));
                }
            }
            Report::Decline { .. } if is_host => {
                self.declined.insert(player);
                self.term.host = None;
                self.appoint(sessions, now);
            }
            Report::Here { .. } if is_host => {
                self.term.asked = None;
                let lost = std::mem::take(&mut self.term.lost);
                lost.into_iter().filter(|(_, is_over)| *is_over).for_each(|(player, _)| {
                    self.admit(sessions, player);
                });
            }
            Report::Lost { is_over, .. } if !self.term.addresses.is_empty() => {
                self.lose(sessions, now, player, is_over)
            }
            _ => {}
        }
    }

    /// Somebody does not hear the host. If most do not, another takes its place. Otherwise it is asked, because one player
    /// alone may be wrong, or lie.
    fn lose(&mut self, sessions: &mut session::Server, now: Time, player: u64, is_over: bool) {
        *self.term.lost.entry(player).or_default() |= is_over;
        let others = self.present.keys().filter(|other| self.term.host != Some(**other)).count();
        let lost = self.term.lost.keys().filter(|lost| self.term.host != Some(**lost)).count();
        if lost >= 2 && 2 * lost > others {
            self.appoint(sessions, now);
        } else if self.term.asked.is_none() {
            self.term.asked = Some(now);
            if let Some(host) = self.term.host {
                self.send(sessions, host, &Post::Ask { term: self.term.number });
            }
        }
    }

    /// A new term: the first heir who is here hosts, or else somebody.
    fn appoint(&mut self, sessions: &mut session::Server, now: Time) {
        self.silent.extend(self.term.host.filter(|host| self.present.contains_key(host)));
        let mut key = [0; 32];
        self.random.fill_bytes(&mut key);
        let next = Term::new(self.term.number.wrapping_add(1), now, key);
        let old = std::mem::replace(&mut self.term, next);
        let is_able = |player: &u64| {
            let is_here = self.present.contains_key(player) && !self.silent.contains(player);
            is_here && !self.declined.contains(player)
        };
        let able = old.heirs.iter().chain(self.present.keys()).copied().find(is_able);
        // If nobody is left who might have a will, anybody may begin a new match.
        let may_begin = able.is_none() || old.number == 0;
        self.term.heirs = old.heirs;
        let Some(host) = able.or_else(|| self.present.keys().next().copied()) else { return };
        if may_begin {
            self.declined.clear();
        }
        self.term.host = Some(host);
        let soon = u32::try_from(self.unix + TICKET_LIFE).unwrap_or(u32::MAX);
        self.ticket_expires = soon.max(self.ticket_expires.saturating_add(1));
        let ticket = self.key.host(HostGrant {
            host: HOST,
            expires: self.ticket_expires,
            guests: GUESTS,
            bytes_per_second: GUEST_RATE,
        });
        let post = Post::Host {
            term: self.term.number,
            you: host,
            may_begin,
            relay: self.relay,
            ticket: ticket.encode().to_vec(),
            key: key.to_vec(),
        };
        self.send(sessions, host, &post);
    }

    /// The players who have been here for longest, but the host. As long as nobody hosts, the heirs stay who they were.
    fn name_heirs(&mut self, sessions: &mut session::Server) {
        let Some(host) = self.term.host.filter(|_| !self.term.addresses.is_empty()) else { return };
        let is_heir = |player: &u64| *player != host && !self.silent.contains(player);
        let heirs = self.present.keys().copied().filter(is_heir);
        self.term.heirs = heirs.take(HEIRS).collect();
        self.send(sessions, host, &Post::Heirs { heirs: self.term.heirs.clone() });
    }

    /// Gives a player a connect token for the host, if there is one.
    fn admit(&mut self, sessions: &mut session::Server, player: u64) {
        if self.term.addresses.is_empty() {
            return;
        }
        let (mut psk, mut nonce) = ([0; 32], [0; 24]);
        self.random.fill_bytes(&mut psk);
        self.random.fill_bytes(&mut nonce);
        let until = u32::try_from(self.unix + TICKET_LIFE).unwrap_or(u32::MAX);
        let guest = u32::try_from(player).unwrap_or(u32::MAX);
        let order = Order {
            protocol_id: carry::session().protocol_id,
            suite: Suite::TOKEN,
            client_id: player,
            match_id: [0; 16],
            created: self.unix,
            expires: self.unix + 45,
            addresses: &self.term.addresses,
            server_key: None,
            routing_token: &self.key.guest(HOST, guest, until),
            user: b"",
        };
        if let Ok(token) = self.term.key.mint(&order, psk, nonce) {
            let post = Post::Join { term: self.term.number, token: token.encode().to_vec() };
            self.send(sessions, player, &post);
        }
    }

    fn send(&self, sessions: &mut session::Server, player: u64, post: &Post) {
        let Some(id) = self.present.get(&player) else { return };
        // Whoever lets the channel fill up has stopped reading, and the session will end.
        let _ = sessions.connection_mut(*id).map(|connection| connection.send(POSTS, post));
    }

    fn player(&self, id: SessionId) -> Option<u64> {
        self.present.iter().find(|(_, session)| **session == id).map(|(player, _)| *player)
    }
}

/// How long a host has to answer when somebody does not hear it.
const ANSWER: Duration = Duration::from_millis(600);
/// How long a host has to say where it is.
const BEGIN: Duration = Duration::from_millis(1500);
/// How many get wills: if the host and one heir go at once, there is another.
const HEIRS: usize = 2;
/// The host's number at the relay, the same for all who host this match: so the next one takes the place of the last.
const HOST: u32 = 1;
/// How long tickets for the relay are good, s.
const TICKET_LIFE: u64 = 3600;
/// Most guests of a host, and bytes a second for each, at the relay.
const GUESTS: u16 = 64;
/// See [`GUESTS`].
const GUEST_RATE: u32 = 50_000;
/// Most players that a lobby remembers.
const ACCOUNTS_MAX: u64 = 256;
/// The code for closing.
const REFUSED: u16 = 1;
