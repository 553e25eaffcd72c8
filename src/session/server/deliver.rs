//! What happens to sessions: their incoming and outgoing datagrams, their timers, their end.

use super::seat::{Peer, Seat, Seats};
use super::stats::Refusal;
use super::{Server, SessionId};
use crate::machine::{Arrival, Transmit};
use crate::session::connection::{Next, To};
use crate::session::event::{CloseReason, Event};
use crate::session::random;
use crate::session::wire::{Data, NewId};
use crate::time::Time;
use std::collections::VecDeque;
use std::net::SocketAddr;
use zeroize::Zeroizing;

impl Server {
    pub(super) fn deliver(&mut self, now: Time, from: Arrival, header: Data, datagram: &mut [u8]) {
        if datagram.len() > self.config.session.datagram_taken().into() {
            return self.count(now, from.address, Refusal::Malformed);
        }
        self.seats.end_loan();
        let (sid, Seats { table, memory, agenda, eventful, .. }) = (header.sid, &mut self.seats);
        let id = table.id_of(sid).unwrap_or_default();
        let Some(Seat::Session(peer)) = table.get_mut(id) else {
            self.count(now, from.address, Refusal::Unknown);
            return self.reset(now, from.address, sid, datagram.len());
        };
        let granted = memory.grant(peer);
        // The first authentic packet says which of the addresses that asked is the client's.
        let asked = peer.half_open.as_ref().filter(|answer| answer.claims.has(from.address));
        let home = asked.map(|_| peer.connection.begin_at(from.address));
        let is_good = peer.connection.handle_data(now, from, (header, datagram), &mut self.scratch);
        memory.spend(peer, granted);
        if !is_good {
            if let Some(home) = home {
                peer.connection.begin_at(home);
            }
            self.stats.dropped += 1;
            return;
        }
        if let Some(proxies) = &mut self.proxies
            && from.address == peer.connection.peer_addr()
        {
            proxies.heard(id);
        }
        agenda.list(id, &mut peer.place.entry);
        let heeds_ids = sid != id || peer.connection.wants_ids(now);
        if let Some(answer) = peer.half_open.take() {
            let is_other = |address: &SocketAddr| *address != peer.connection.peer_addr();
            // Copies that are faster than what they copy also ask first, so the last who asked is most likely the client.
            if let Some(other) = answer.claims.addresses().filter(is_other).last() {
                peer.connection.contest(now, other);
            }
            if peer.place.address != peer.connection.peer_addr() {
                peer.connection.on_stale_token(now);
            }
            let (address, most) = (peer.connection.peer_addr(), self.config.sessions_per_address.into());
            if !answer.is_proven {
                self.rates.accepts(now, address); // it was not charged for what may have been a forgery
            }
            self.seats.confirm(id, address, answer.is_proven, most);
            self.stats.confirmed += 1;
            self.replace(now, id);
            let Seats { table, eventful, .. } = &mut self.seats;
            if let Some(Seat::Session(peer)) = table.get_mut(id) {
                note_events(eventful, id, peer);
            }
        } else {
            note_events(eventful, id, peer);
        }
        if heeds_ids {
            self.heed_ids(now, id, sid);
        }
    }

    /// A client has used this number: supplies others, and tells it what is out of date.
    #[cold]
    fn heed_ids(&mut self, now: Time, id: u32, sid: u32) {
        let Self { seats: Seats { table, retired, .. }, random: rng, .. } = self;
        let outdated = table.use_name(id, sid);
        let Some(Seat::Session(peer)) = table.get_mut(id) else { return };
        if let Some(outdated) = outdated {
            outdated.for_each(|sid| retired.insert(now, sid, random(&mut *rng.0)));
            peer.connection.on_id_used(now);
        }
        if !peer.connection.wants_ids(now) {
            return;
        }
        let (is_stale, address) = (peer.connection.take_ids_wanted(), peer.connection.peer_addr());
        let has_second = peer.connection.has_second();
        let mut tells = table.add_names(id, || u32::from_le_bytes(random(&mut *rng.0)));
        tells.extend(table.name_in_use(id).filter(|_| is_stale));
        tells.extend(table.name_before(id).filter(|_| is_stale && has_second));
        let key = self.reset_key();
        let Some(peer) = self.seats.peer_mut(id) else { return };
        for sid in tells {
            let reset_token = key.token(sid, address);
            peer.connection.tell_id(now, NewId { sid, reset_token });
        }
    }

    /// A client with a token has joined: its older session ends.
    fn replace(&mut self, now: Time, id: u32) {
        let Seats { table, agenda, .. } = &mut self.seats;
        let Some(Seat::Session(peer)) = table.get_mut(id) else { return };
        let (Some(tokens), Some(pass)) = (&mut self.tokens, &peer.pass) else { return };
        if tokens.is_outdated(pass.client_id, pass.created) {
            return peer.connection.fail(now, CloseReason::Replaced); // it waited while a newer one joined
        }
        if let Some(left) = tokens.enter(pass, id)
            && let Some(Seat::Session(peer)) = table.get_mut(left)
        {
            peer.connection.fail(now, CloseReason::Replaced);
            agenda.list(left, &mut peer.place.entry);
        }
    }

    pub(super) fn transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let start = out.len();
        let Seats { table, memory, agenda, eventful, .. } = &mut self.seats;
        while let Some(id) = agenda.first() {
            let Some(Seat::Session(peer)) = table.get_mut(id) else {
                agenda.end_turn(None);
                continue;
            };
            if peer.connection.wants_random() && self.rates.renewals.spend(now) {
                peer.connection.draw(now, &Zeroizing::new(random(&mut *self.random.0)));
            }
            let due = match peer.connection.append_transmit(now, out) {
                Next::Datagram(To { address: to, .. }) => {
                    agenda.sent(out.len() - start);
                    let way = match &self.proxies {
                        Some(proxies) if peer.half_open.is_none() && to == peer.connection.peer_addr() => {
                            proxies.way_of(id, to)
                        }
                        Some(proxies) => proxies.way(to),
                        None => Some(to),
                    };
                    let Some(address) = way else {
                        self.stats.rejected.way += 1;
                        out.truncate(start);
                        continue;
                    };
                    return Some(Transmit { ecn: peer.connection.transmit_ecn(), ..address.into() });
                }
                Next::Timeout(due) => due,
            };
            peer.place.entry.due = due.unwrap_or(Time::NEVER);
            agenda.end_turn(Some(&mut peer.place.entry));
            agenda.put_off(id, &mut peer.place.entry);
            if peer.connection.is_closed() {
                peer.connection.shrink();
            }
            note_events(eventful, id, peer);
            if let Some(other) = memory.recount(now, id, peer)
                && let Some(Seat::Session(peer)) = table.get_mut(other)
            {
                peer.connection.release_reserve(now);
                agenda.list(other, &mut peer.place.entry);
            }
            if let Some(debtor) = memory.debtor(now)
                && let Some(Seat::Session(peer)) = table.get_mut(debtor)
                && memory.has_to_go(now, debtor, peer)
            {
                memory.evict(debtor, peer);
                peer.connection.evict(now);
                agenda.list(debtor, &mut peer.place.entry);
            }
        }
        None
    }

    pub(super) fn wake(&mut self, now: Time, id: u32) {
        let Seats { table, agenda, .. } = &mut self.seats;
        let Some(seat) = table.get_mut(id) else { return };
        if !agenda.fired(now, id, &mut seat.place_mut().entry) {
            return;
        }
        match seat {
            Seat::Session(peer) if peer.half_open.is_none() => {
                peer.connection.handle_timeout(now);
                agenda.list(id, &mut peer.place.entry);
            }
            _ => drop(self.dismiss(now, id)),
        }
    }

    /// The next event of a session. A session that is over gives up its place when that is reported, after its last
    /// datagrams were sent.
    pub(super) fn next_event(&mut self) -> Option<(SessionId, Event)> {
        while let Some(&id) = self.seats.eventful.front() {
            let Seats { table, eventful, .. } = &mut self.seats;
            let Some(Seat::Session(peer)) = table.get_mut(id) else {
                eventful.pop_front();
                continue;
            };
            let event = if peer.tells() { peer.connection.poll_event() } else { None };
            peer.is_eventful = event.is_some() && peer.connection.has_events();
            if !peer.is_eventful {
                eventful.pop_front();
            }
            let Some(event) = event else { continue };
            if let Event::Closed { .. } = event {
                self.ended = self.dismiss(self.now, id).map(|peer| (SessionId(id), peer));
            }
            return Some((SessionId(id), event));
        }
        None
    }
}

fn note_events(eventful: &mut VecDeque<u32>, id: u32, peer: &mut Peer) {
    if !peer.is_eventful && peer.connection.has_events() {
        peer.is_eventful = true;
        eventful.push_back(id);
    }
}
