//! The seats of a server: a client that asks, or a session. One table, one way in, one way out, one account of memory.

use super::admission::Pass;
use super::claims::{Claims, Mark};
use super::half_open::{ANSWER_MAX, HalfOpen};
use super::memory::{Loan, Memory};
use super::names::Retired;
use super::opening::Guest;
use super::stats::Refusal;
use super::table::Table;
use super::unproven::NOWHERE;
use super::{Server, ServerConfig, SessionId};
use crate::rate::{host, network, strain};
use crate::session::connection::Connection;
use crate::session::event::{CloseReason, Event, Undelivered};
use crate::session::random;
use crate::session::seats::{Agenda, Entry, Graves, Hosts};
use crate::session::token::NONCE_LEN;
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// All seats, with what finds and counts them.
#[derive(Debug)]
pub(super) struct Seats {
    pub(super) table: Table<Seat>,
    by_mark: BTreeMap<Mark, u32>,
    pub(super) hosts: Hosts,
    pub(super) networks: Hosts,
    pub(super) half_open: HalfOpen,
    pub(super) retired: Retired,
    pub(super) graves: Graves<Mark>,
    /// What rejected clients were told.
    pub(super) rejections: Graves<Mark, Answer>,
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
    pub(super) mark: Mark,
    /// The address that it counts for, if it is proven: the first one that it asked from, and the client's once it is confirmed.
    pub(super) address: SocketAddr,
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
    pub(super) loan: Option<Box<Loan>>,
    /// Bytes that it has taken since, up to a limit.
    pub(super) taken: u16,
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
    pub(super) claims: Claims,
    /// Whether the first of these addresses is proven. If not, its session counts for nobody's.
    pub(super) is_proven: bool,
    /// Of the connect token that is used up.
    pub(super) nonce: Option<[u8; NONCE_LEN]>,
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

    /// The address that it counts for.
    fn counts_for(&self) -> SocketAddr {
        if self.is_proven() { self.place().address } else { NOWHERE }
    }

    /// Whether its client is known to receive packets at its address. The application is asked about no others.
    pub(super) fn is_proven(&self) -> bool {
        let Self::Session(peer) = self else { return true };
        peer.half_open.as_ref().is_none_or(|answer| answer.is_proven)
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
        host(self.address)
    }
}

impl Seats {
    pub(super) fn new(config: &ServerConfig, key: [u64; 2]) -> Self {
        let &ServerConfig { max_sessions, half_open, half_open_per_address, .. } = config;
        let (most, graves) = (usize::from(max_sessions), GRAVES_EACH * usize::from(max_sessions));
        Self {
            table: Table::new(most, config.shard, key),
            by_mark: BTreeMap::new(),
            hosts: Hosts::default(),
            networks: Hosts::default(),
            half_open: HalfOpen::default(),
            retired: Retired::new(key, most),
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
    pub(super) fn knows(&mut self, now: Time, mark: Mark) -> bool {
        let is_over = self.graves.get(now, &mark).is_some() || self.rejections.get(now, &mark).is_some();
        is_over || self.by_mark.contains_key(&mark)
    }

    /// What was told to a client that has not been heard from since, or was rejected.
    pub(super) fn answer(&mut self, now: Time, mark: Mark) -> Option<&mut Answer> {
        match self.by_mark.get(&mark) {
            Some(&id) => self.peer_mut(id)?.half_open.as_deref_mut(),
            None => self.rejections.get(now, &mark),
        }
    }

    /// The datagram with the encapsulation key of an attempt, while its session has no keys.
    pub(super) fn kem_key(&self, mark: Mark) -> Option<&[u8]> {
        self.peer(*self.by_mark.get(&mark)?)?.connection.kem_key()
    }

    /// The addresses that an attempt without a confirmed session came from.
    pub(super) fn claims(&mut self, now: Time, mark: Mark) -> Option<&mut Claims> {
        if let Some(&id) = self.by_mark.get(&mark) {
            return match self.table.get_mut(id)? {
                Seat::Asked(guest) => Some(&mut guest.claims),
                Seat::Session(peer) => Some(&mut peer.half_open.as_mut()?.claims),
            };
        }
        Some(&mut self.rejections.get(now, &mark)?.claims)
    }

    /// The way in: takes a seat at an id from the table.
    pub(super) fn enter(&mut self, now: Time, id: u32, mut seat: Seat) {
        let counts_for = seat.counts_for();
        self.hosts.enter(host(counts_for));
        self.networks.enter(network(counts_for));
        self.half_open.enter(now, id, counts_for);
        let place = seat.place_mut();
        self.by_mark.insert(place.mark, id);
        self.agenda.put_off(id, &mut place.entry);
        if let Seat::Session(peer) = &mut seat {
            self.memory.admit(peer);
        }
        self.table.insert(id, seat);
    }

    /// The client of an unproven seat receives packets at `address`: it is there from now on, and counts there.
    pub(super) fn prove(&mut self, now: Time, id: u32, address: SocketAddr) {
        let Some(Seat::Session(peer)) = self.table.get_mut(id) else { return };
        let Some(answer) = &mut peer.half_open else { return };
        (answer.is_proven, answer.claims) = (true, Claims::new(address, now));
        peer.place.entry.due = now + TIME_WAIT;
        if std::mem::replace(&mut peer.place.address, address) != address {
            peer.connection.begin_at(address);
            peer.connection.on_stale_token(now);
        }
        self.half_open.leave(id);
        self.half_open.enter(now, id, address);
        self.hosts.leave(host(NOWHERE));
        self.hosts.enter(host(address));
        self.networks.leave(network(NOWHERE));
        self.networks.enter(network(address));
    }

    /// A client was heard from, at `address`: from now on it counts there, if it has room for another, or if it counted for
    /// nobody's address.
    pub(super) fn confirm(&mut self, id: u32, address: SocketAddr, was_proven: bool, most: usize) {
        self.half_open.leave(id);
        let Some(place) = self.table.get_mut(id).map(Seat::place_mut) else { return };
        let counted_for = if was_proven { place.address } else { NOWHERE };
        let has_room = !was_proven || self.hosts.of(host(address)) < most;
        if host(address) != host(counted_for) && has_room {
            self.hosts.leave(host(counted_for));
            self.hosts.enter(host(address));
            self.networks.leave(network(counted_for));
            self.networks.enter(network(address));
            place.address = address;
        }
    }

    /// Removes a seat from everything but its id, which another may [enter](Self::enter) at.
    pub(super) fn leave(&mut self, id: u32) -> Option<Seat> {
        let mut seat = self.table.lift(id)?;
        let counts_for = seat.counts_for();
        self.hosts.leave(host(counts_for));
        self.networks.leave(network(counts_for));
        self.half_open.leave(id);
        let place = seat.place_mut();
        self.agenda.leave(&mut place.entry);
        self.by_mark.remove(&place.mark);
        if let Seat::Session(peer) = &seat {
            self.memory.dismiss(id, peer);
        }
        Some(seat)
    }

    /// The way out.
    pub(super) fn free(&mut self, id: u32) -> Option<Seat> {
        let seat = self.leave(id)?;
        self.table.give_back(id);
        Some(seat)
    }

    /// Remembers an attempt that is over, for a while.
    pub(super) fn bury(&mut self, now: Time, place: &Place) {
        self.graves.insert(now, place.mark, place.host(), ());
    }

    /// The oldest unconfirmed seat of an address, without those that were also asked for elsewhere: whoever copies what
    /// others send cannot drive them out by attempts of their own.
    pub(super) fn oldest_of(&self, host: IpAddr) -> Option<u32> {
        let is_contested = |id: &u32| match self.table.get(*id) {
            Some(Seat::Asked(guest)) => guest.claims.is_contested(),
            Some(Seat::Session(peer)) => peer.half_open.as_ref().is_some_and(|it| it.claims.is_contested()),
            None => false,
        };
        self.half_open.of_host(host).find(|id| !is_contested(id))
    }

    /// The seat of an attempt whose address is not proven, and that address.
    pub(super) fn unproven(&self, mark: Mark) -> Option<(u32, SocketAddr)> {
        let id = *self.by_mark.get(&mark)?;
        let seat = self.table.get(id).filter(|seat| !seat.is_proven())?;
        Some((id, seat.place().address))
    }

    /// Whether an admitted client has not been heard from for longer than an answer takes. It is removed if there is no
    /// other room.
    pub(super) fn is_ghost(&self, now: Time, id: u32) -> bool {
        let until = self.peer(id).map(|peer| peer.place.entry.due);
        until.is_some_and(|until| until <= now + (TIME_WAIT - ANSWER_MAX))
    }

    /// How short places for unconfirmed seats are; see [`strain`].
    pub(super) fn strain(&mut self, now: Time, config: &ServerConfig) -> u32 {
        strain(self.half_open.young(now) as u64, self.places_left(config) as u64)
    }

    /// How many seats there may be that are not confirmed.
    pub(super) fn places_left(&self, config: &ServerConfig) -> usize {
        let confirmed = self.table.len() - self.half_open.len();
        usize::from(config.max_sessions).saturating_sub(confirmed).min(config.half_open.into())
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
    /// Gives back a seat whose time is up. Returns its session, if it has one. Its attempt is remembered for a while.
    pub(super) fn dismiss(&mut self, now: Time, id: u32) -> Option<Box<Peer>> {
        let seat = self.free(now, id)?;
        self.seats.bury(now, seat.place());
        if let Seat::Session(peer) = seat { Some(peer) } else { None }
    }

    /// Gives back an unconfirmed seat that others need. Its client may try again at once.
    pub(super) fn displace(&mut self, now: Time, id: u32) {
        self.free(now, id);
    }

    /// Frees a seat, and tells whoever has to know. The token of a client that was never heard from is good for another
    /// try: somebody may have kept it out.
    fn free(&mut self, now: Time, id: u32) -> Option<Seat> {
        if let Some(sid) = self.seats.table.name_before(id) {
            self.seats.retired.insert(now, sid, random(&mut *self.random.0));
        }
        let seat = self.seats.free(id)?;
        let (is_told, nonce) = match &seat {
            Seat::Asked(guest) => {
                self.count(now, guest.place.address, Refusal::Unanswered);
                (true, guest.nonce)
            }
            Seat::Session(peer) => {
                if let (Some(tokens), Some(pass)) = (&mut self.tokens, &peer.pass) {
                    tokens.leave(pass, id);
                }
                if let Some(proxies) = &mut self.proxies {
                    proxies.release(id);
                }
                self.stats.unconfirmed += u64::from(peer.half_open.is_some());
                peer.half_open.as_ref().map_or((false, None), |answer| (answer.is_told, answer.nonce))
            }
        };
        if let (Some(tokens), Some(nonce)) = (&self.tokens, nonce) {
            tokens.give_back(&nonce);
        }
        if is_told {
            // The application knows about a client that will not join.
            let closed =
                Event::Closed { reason: CloseReason::ConnectTimeout, undelivered: Undelivered::default() };
            self.notices.push_back((SessionId(id), closed));
        }
        Some(seat)
    }
}

/// How long a client has until it must be heard from, and how long an ended attempt is remembered: the longest life of
/// a cookie.
pub(super) const TIME_WAIT: Duration = Duration::from_secs(10);
pub(super) const ACCEPT_EACH: Duration = Duration::from_millis(50);
/// Ended attempts that are remembered, per possible session.
const GRAVES_EACH: usize = 4;
