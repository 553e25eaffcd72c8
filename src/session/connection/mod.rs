//! What both ends share once a session is up: packet numbers, frames, keepalives, the close.
//!
//! `receive` opens a datagram and passes each frame to its part. `transmit` writes datagrams: it asks each
//! part, the most urgent first, as often as `max_rate` allows. `clock` has the timers. The parts: `lanes` and
//! `datagrams` hold data, `acks` acknowledges packets and answers pings, `path` knows the peer's address,
//! `copies` sends to where it may be as well, `second` to where it is as well, `ids` the numbers of the session, `mtu` how long datagrams may
//! be, `parts` cuts frames that are too long, `life` closes, `redirect` moves the client to another server,
//! `repairs` rebuilds lost packets. `memory` counts what all of it uses; `loss` and `observe` measure it.

mod acks;
mod clock;
mod copies;
mod datagrams;
mod ecn;
mod handled;
mod ids;
mod lane;
mod lanes;
mod large;
mod life;
mod loss;
mod memory;
mod messages;
mod mtu;
mod observe;
mod parts;
mod path;
mod question;
mod rate;
mod receive;
mod redirect;
mod renewal;
mod repairs;
mod second;
mod send;
mod shares;
mod transmit;
#[cfg(test)]
mod wraps;

pub(in crate::session) use ids::SPARE;
pub(crate) use life::check_close;
#[cfg(feature = "net")]
pub(crate) use life::code_of_close;
pub use observe::ConnectionState;
pub(in crate::session) use second::To;
pub(in crate::session) use transmit::Next;

use super::config::{DATAGRAM_MIN, SessionConfig, micros};
use super::event::{CloseReason, Event, Undelivered};
use super::local_key::LocalKey;
use super::repair::{self, PacketRepairs};
use super::seal::Seal;
use super::stats::Counters;
use super::wire::{FEATURE_MASKS, TICKET_LEN};
use crate::channel::Channels;
use crate::config::{ConfigError, in_range};
use crate::packet::AckTracker;
use crate::time::Time;
use clock::Keepalive;
use datagrams::Datagrams;
use ecn::Marks;
use ids::Ids;
use lanes::Lanes;
use life::Life;
use memory::Budget;
use mtu::PathMtu;
use observe::{Measured, Observer};
use parts::FrameParts;
use path::{Path, Route};
use rate::Turns;
use redirect::Redirects;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

/// One end of a session that is up: it sends and receives data. Its owner, a [`Client`](super::Client) or a
/// [`Server`](super::Server), does the rest. After a call here, drain the owner's polls.
#[derive(Debug)]
pub struct Connection {
    life: Life,
    /// The text of our CLOSE or of the peer's, for people and logs.
    close_text: Box<str>,
    seal: Seal,
    peer: Peer,
    /// Makes what only this end may predict.
    key: LocalKey,
    path: Path,
    /// Absent at a server that has no other numbers to tell.
    ids: Option<Box<Ids>>,
    keepalive: Keepalive,
    lanes: Lanes,
    packed: Option<Box<Channels>>,
    datagrams: Datagrams,
    turns: Turns,
    received: acks::Received,
    /// Packets whose arrival the session tracks. There are none if KCP carries all channels, since it has
    /// acknowledgements of its own. Created for the first.
    sent: Option<Box<AckTracker>>,
    measured: Measured,
    /// The stamp of the peer's last ping until it is answered, and whether the answer says what had arrived.
    answer: Option<(u64, bool)>,
    redirects: Redirects,
    mtu: PathMtu,
    parts: FrameParts,
    /// Present if both ends heed ECN marks.
    marks: Option<Box<Marks>>,
    /// Created on first use, if both ends use repairs.
    repairs: Option<Box<PacketRepairs>>,
    budget: Budget,
    /// A buffer to pack messages in before they are sent.
    #[expect(clippy::box_collection, reason = "16 bytes less for each idle session")]
    scratch: Option<Box<Vec<u8>>>,
    events: Pending,
    stats: Counters,
    /// Present while events are logged.
    observer: Option<Box<Observer>>,
}

/// The other end.
struct Peer {
    /// The number of the session in packets to the peer by which the handshake called it.
    sid: u32,
    is_server: bool,
    /// Whether both ends use repairs.
    repairs: bool,
    /// What its application said in the handshake.
    user: Box<[u8]>,
    /// What it gave for the next session.
    ticket: Option<Box<[u8; TICKET_LEN]>>,
}

printed_without_secrets! { Peer { sid, is_server, repairs, user } }

/// Events that were not polled yet, at most one of each kind.
#[derive(Debug, Default)]
struct Pending {
    connected: bool,
    readable: bool,
    writable: bool,
    redirected: bool,
    moved: Option<Box<(SocketAddr, SocketAddr)>>,
    closed: Option<Box<(CloseReason, Undelivered)>>,
}

/// What the handshake leaves to the connection.
pub(in crate::session) struct Parts {
    pub(in crate::session) seal: Seal,
    /// The numbers for the session: in packets to the peer, and from it.
    pub(in crate::session) peer_sid: u32,
    pub(in crate::session) own_sid: u32,
    /// The client's: with this, the server may reset the session.
    pub(in crate::session) reset_token: [u8; 16],
    pub(in crate::session) peer: SocketAddr,
    /// The number that the server gave the session.
    pub(in crate::session) conv: u32,
    /// Largest datagram that the peer accepts.
    pub(in crate::session) max_datagram: u16,
    /// The features that the peer offers.
    pub(in crate::session) features: u32,
    /// Whether the peer's address may change.
    pub(in crate::session) moves: bool,
    /// Whether this end is the client, which pings until it hears the server.
    pub(in crate::session) is_client: bool,
    /// Bytes that follow each datagram to the peer.
    pub(in crate::session) tail: u16,
    pub(in crate::session) seed: [u64; 2],
    /// What the peer's application said in the handshake.
    pub(in crate::session) user: Box<[u8]>,
    /// What the server gave for the next session.
    pub(in crate::session) ticket: Option<[u8; TICKET_LEN]>,
}

impl Connection {
    pub(in crate::session) fn new(
        now: Time,
        config: &Arc<SessionConfig>,
        parts: Parts,
    ) -> Result<Self, ConfigError> {
        let Parts {
            mut seal,
            peer_sid,
            own_sid,
            reset_token,
            peer,
            conv,
            max_datagram,
            features,
            moves,
            is_client,
            tail,
            seed,
            user,
            ticket,
        } = parts;
        in_range("max_datagram", max_datagram, DATAGRAM_MIN..=u16::MAX)?;
        let base = max_datagram.min(config.max_datagram);
        let most = max_datagram.min(config.datagram_taken() - tail).max(base);
        let mtu = PathMtu::new(base, most, tail);
        let features = config.features() & features;
        seal.set_update_after(config.key_update.into());
        if features & FEATURE_MASKS != 0 {
            seal.mask();
        }
        let ids = if is_client {
            Some(Ids::of_client(own_sid, peer_sid, reset_token))
        } else {
            seal.is_masked().then(|| Ids::of_server(now))
        };
        let key = LocalKey::new(seed);
        seal.skip_numbers(key, SKIP);
        seal.rest(); // until there is data: many sessions start, and some never send
        let packed = config.channels(mtu.current);
        Ok(Self {
            life: Life::Up,
            close_text: Box::default(),
            seal,
            peer: Peer {
                sid: peer_sid,
                is_server: is_client,
                repairs: repair::are_used(features),
                user,
                ticket: ticket.map(Box::new),
            },
            key,
            path: Path::new(Route { address: peer, sid: peer_sid }, moves),
            ids,
            keepalive: Keepalive::new(now, config.keepalive, config.timeout, (!is_client).then_some(own_sid)),
            lanes: Lanes::new(conv, Arc::clone(config), mtu.current)?,
            packed: packed.map(|packed| Channels::new(&packed).map(Box::new)).transpose()?,
            datagrams: Datagrams::new(SessionConfig::datagram_max(mtu.current)),
            turns: Turns::new(config.max_rate.as_ref())?,
            received: acks::Received::default(),
            sent: None,
            measured: Measured::default(),
            answer: None,
            redirects: Redirects::default(),
            mtu,
            parts: FrameParts::default(),
            marks: Marks::new(features),
            repairs: None,
            budget: Budget::NONE_SET,
            scratch: None,
            events: Pending { connected: true, ..Pending::default() },
            stats: Counters::default(),
            observer: None,
        })
    }

    /// The address of the peer.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.path.route.address
    }

    /// Puts the peer, before anything was sent to it, at another address that is proven. Returns where it was.
    pub(in crate::session) const fn begin_at(&mut self, address: SocketAddr) -> SocketAddr {
        std::mem::replace(&mut self.path.route.address, address)
    }

    /// Somebody at another proven address asked for this session as well, and may copy its packets.
    pub(in crate::session) fn contest(&mut self, now: Time, other: SocketAddr) {
        self.path.contest(now, other);
    }

    /// What the peer's application said in the handshake.
    #[must_use]
    pub const fn user(&self) -> &[u8] {
        &self.peer.user
    }

    /// At a client: what [`ClientConfig::ticket`](crate::ClientConfig::ticket) takes for the next session with this
    /// server. Keep it as you keep a password: whoever has it can use up the ticket. Empty: the server gave none.
    #[must_use]
    pub fn ticket(&self) -> &[u8] {
        self.peer.ticket.as_ref().map_or(&[], |ticket| &**ticket)
    }

    pub(in crate::session) fn poll_event(&mut self) -> Option<Event> {
        let Pending { connected, readable, writable, redirected, moved, closed } = &mut self.events;
        if std::mem::take(connected) {
            return Some(Event::Connected);
        }
        if let Some((from, to)) = moved.take().map(|moved| *moved) {
            return Some(Event::Moved { from, to });
        }
        if std::mem::take(readable) {
            return Some(Event::Readable);
        }
        if std::mem::take(writable) {
            return Some(Event::Writable);
        }
        if std::mem::take(redirected) {
            return Some(Event::Redirected);
        }
        closed.take().map(|closed| Event::Closed { reason: closed.0, undelivered: closed.1 })
    }

    pub(in crate::session) const fn has_events(&self) -> bool {
        let Pending { connected, readable, writable, redirected, moved, closed } = &self.events;
        *connected || *readable || *writable || *redirected || moved.is_some() || closed.is_some()
    }

    fn ack_delay(&self) -> u64 {
        micros(self.lanes.config.ack_delay).into()
    }
}

/// One of 2^6 packet numbers is skipped: a peer that acknowledges what has not arrived is found out within
/// two blocks. With repairs, the peer relies on it.
const SKIP: NonZeroU32 = NonZeroU32::new(6).unwrap();
