//! The seats of a server: a client that asks, or a session. One table, one way in, one way out, one account of memory.

use super::admission::Pass;
use super::memory::Memory;
use super::opening::Guest;
use super::stats::Refusal;
use super::table::Table;
use super::{Server, ServerConfig, SessionId};
use crate::rate::host;
use crate::session::connection::Connection;
use crate::session::event::{CloseReason, Event, Undelivered};
use crate::session::seats::{Agenda, Entry, Graves, Hosts, Name};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// All seats, with what finds and counts them.
#[derive(Debug)]
pub(super) struct Seats {
    pub(super) table: Table<Seat>,
    by_attempt: BTreeMap<Name, u32>,
    pub(super) hosts: Hosts,
    /// Unconfirmed seats, with the time when each is given up, the oldest first.
    pub(super) half_open: BTreeSet<(Time, u32)>,
    pub(super) graves: Graves,
    /// What rejected clients were told.
    pub(super) rejections: Graves<Answer>,
    pub(super) memory: Memory,
    /// The session that the application accessed last, and how much it may take.
    lent: Option<(u32, u64)>,
    pub(super) agenda: Agenda<u32>,
    pub(super) eventful: VecDeque<u32>,
}

/// The progress of a client.
#[derive(Debug)]
pub(super) enum Seat {
    /// The application is being asked about it.
    Asked(Box<Guest>),
    /// It has a session.
    Session(Box<Peer>),
}

/// What every seat has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) attempt: Name,
    /// Until it is confirmed, it is due when it is given up.
    pub(super) entry: Entry,
}

/// A session, with what its server knows about it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) place: Place,
    pub(super) connection: Connection,
    /// `Some` until the client is heard from: its ACCEPT may have been lost.
    pub(super) half_open: Option<Box<Answer>>,
    /// Bytes that it held when it was last counted, including what it has taken since.
    pub(super) counted: u64,
    pub(super) taken: u64,
    /// It has taken some since it was last polled.
    pub(super) took: bool,
    pub(super) is_eventful: bool,
    pub(super) pass: Option<Box<Pass>>,
}

/// What a client was told in the handshake. It may get lost, so whoever repeats the same message is told the same
/// again, byte by byte.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) accept: Box<[u8]>,
    pub(super) msg1_hash: u128,
    pub(super) again_from: Time,
    /// Whether the application has admitted it, and wants to know what becomes of it.
    pub(super) is_told: bool,
}

impl Seat {
    pub(super) const fn place(&self) -> &Place {
        match self {
            Self::Asked(guest) => &guest.place,
            Self::Session(peer) => &peer.place,
        }
    }

    pub(super) const fn place_mut(&mut self) -> &mut Place {
        match self {
            Self::Asked(guest) => &mut guest.place,
            Self::Session(peer) => &mut peer.place,
        }
    }
}

impl Peer {
    /// Whether its events may be reported: a session that is over sends its last datagrams first.
    pub(super) fn tells(&self) -> bool {
        !(self.connection.is_closed() && self.place.entry.is_listed())
    }
}

impl Place {
    fn host(&self) -> IpAddr {
        host(self.attempt.0)
    }
}

impl Seats {
    pub(super) fn new(config: &ServerConfig, key: [u64; 2]) -> Self {
        let &ServerConfig { max_sessions, half_open, half_open_per_address, .. } = config;
        let (most, graves) = (usize::from(max_sessions), GRAVES_EACH * usize::from(max_sessions));
        Self {
            table: Table::new(most, config.shard, key),
            by_attempt: BTreeMap::new(),
            hosts: Hosts::default(),
            half_open: BTreeSet::new(),
            graves: Graves::new(TIME_WAIT, graves, graves),
            rejections: Graves::new(TIME_WAIT, half_open.into(), half_open_per_address.into()),
            memory: Memory::new(config),
            lent: None,
            agenda: Agenda::default(),
            eventful: VecDeque::new(),
        }
    }

    pub(super) fn peer(&self, id: u32) -> Option<&Peer> {
        let Seat::Session(peer) = self.table.get(id)? else { return None };
        Some(peer)
    }

    pub(super) fn peer_mut(&mut self, id: u32) -> Option<&mut Peer> {
        let Seat::Session(peer) = self.table.get_mut(id)? else { return None };
        Some(peer)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        let is_up = |seat: &Seat| matches!(seat, Seat::Session(peer) if peer.half_open.is_none());
        self.table.iter().filter(move |(_, seat)| is_up(seat)).map(|(id, _)| id)
    }

    pub(super) fn asked(&self, id: u32) -> Option<&Guest> {
        let Seat::Asked(guest) = self.table.get(id)? else { return None };
        Some(guest)
    }

    /// Whether an attempt has a seat, or had one recently.
    pub(super) fn knows(&mut self, now: Time, attempt: &Name) -> bool {
        let is_over = self.graves.get(now, attempt).is_some() || self.rejections.get(now, attempt).is_some();
        is_over || self.by_attempt.contains_key(attempt)
    }

    /// What was told to a client that has not been heard from since, or was rejected.
    pub(super) fn answer(&mut self, now: Time, attempt: &Name) -> Option<&mut Answer> {
        match self.by_attempt.get(attempt) {
            Some(&id) => self.peer_mut(id)?.half_open.as_deref_mut(),
            None => self.rejections.get(now, attempt),
        }
    }

    /// The way in: takes a seat at an id from the table.
    pub(super) fn enter(&mut self, id: u32, mut seat: Seat) {
        let place = seat.place_mut();
        self.by_attempt.insert(place.attempt, id);
        self.hosts.enter(place.host(), true);
        self.half_open.insert((place.entry.due, id));
        self.agenda.put_off(id, &mut place.entry);
        if let Seat::Session(peer) = &mut seat {
            self.memory.admit(peer);
        }
        self.table.insert(id, seat);
    }

    pub(super) fn confirm(&mut self, id: u32, place: &Place) {
        if self.half_open.remove(&(place.entry.due, id)) {
            self.hosts.confirm(place.host());
        }
    }

    /// Removes a seat from everything but its id, which another may [enter](Self::enter) at.
    pub(super) fn leave(&mut self, id: u32) -> Option<Seat> {
        let mut seat = self.table.lift(id)?;
        let place = seat.place_mut();
        self.agenda.leave(id, &mut place.entry);
        let place = *place;
        self.confirm(id, &place);
        self.hosts.leave(place.host());
        self.by_attempt.remove(&place.attempt);
        if let Seat::Session(peer) = &seat {
            self.memory.dismiss(id, peer);
        }
        Some(seat)
    }

    /// Returns an id. Its attempt is remembered for a while.
    pub(super) fn give_back(&mut self, now: Time, id: u32, attempt: Name) {
        self.table.give_back(id);
        self.graves.insert(now, attempt, ());
    }

    /// The way out.
    pub(super) fn free(&mut self, now: Time, id: u32) -> Option<Seat> {
        let seat = self.leave(id)?;
        self.give_back(now, id, seat.place().attempt);
        Some(seat)
    }

    /// The oldest unconfirmed seat, of one address or of all.
    pub(super) fn oldest(&self, host: Option<IpAddr>) -> Option<u32> {
        let is_of = |id: &u32| {
            host.is_none_or(|host| self.table.get(*id).is_some_and(|seat| seat.place().host() == host))
        };
        self.half_open.iter().map(|(_, id)| *id).find(is_of)
    }

    /// Whether an admitted client has not been heard from for longer than an answer takes. It is removed if there is no
    /// other room.
    pub(super) fn has_ghost(&self, now: Time) -> bool {
        let given_up_first = self.half_open.first().filter(|(_, id)| self.peer(*id).is_some());
        given_up_first.is_some_and(|(until, _)| *until <= now + (TIME_WAIT - ANSWER_MAX))
    }

    /// Gives the application a session that is up, to send and read. The session counts down what it takes. What it
    /// frees is noticed when it is counted anew, after it was polled.
    pub(super) fn lend(&mut self, id: u32) -> Option<&mut Connection> {
        if self.lent.is_none_or(|(lent, _)| lent != id) {
            self.end_loan();
        }
        let Self { table, memory, agenda, lent, .. } = self;
        let Seat::Session(peer) = table.get_mut(id)? else { return None };
        if peer.half_open.is_some() {
            return None;
        }
        if lent.is_none() {
            *lent = Some((id, memory.grant(peer)));
        }
        agenda.list(id, &mut peer.place.entry);
        Some(&mut peer.connection)
    }

    pub(super) fn end_loan(&mut self) {
        if let Some((id, granted)) = self.lent.take()
            && let Some(Seat::Session(peer)) = self.table.get_mut(id)
        {
            self.memory.spend(peer, granted);
        }
    }
}

impl Server {
    /// Gives back a seat whose time is up or which others need. Returns its session, if it has one.
    pub(super) fn dismiss(&mut self, now: Time, id: u32) -> Option<Box<Peer>> {
        let (peer, is_told) = match self.seats.free(now, id)? {
            Seat::Asked(guest) => {
                self.count(now, guest.place.attempt.0, Refusal::Unanswered);
                (None, true)
            }
            Seat::Session(peer) => {
                if let (Some(tokens), Some(pass)) = (&mut self.tokens, &peer.pass) {
                    tokens.leave(pass, id);
                }
                self.stats.unconfirmed += u64::from(peer.half_open.is_some());
                let is_told = peer.half_open.as_ref().is_some_and(|answer| answer.is_told);
                (Some(peer), is_told)
            }
        };
        if is_told {
            // The application knows about a client that will not join.
            let closed =
                Event::Closed { reason: CloseReason::ConnectTimeout, undelivered: Undelivered::default() };
            self.notices.push_back((SessionId(id), closed));
        }
        peer
    }
}

/// How long a client has until it must be heard from, and how long an ended attempt is remembered: the longest life of
/// a cookie.
pub(super) const TIME_WAIT: Duration = Duration::from_secs(10);
pub(super) const ACCEPT_EACH: Duration = Duration::from_millis(50);
/// How long it takes to hear from an admitted client over most paths. Repeating requests in the name of others every
/// second does not hold a place.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// Ended attempts that are remembered, per possible session.
const GRAVES_EACH: usize = 4;
