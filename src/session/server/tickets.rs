//! Clients that were here before, and bring a ticket in place of a cookie: one round trip less. A ticket proves that its
//! owner received packets at that IP address within a day. Like a cookie it serves one attempt from one port.

use super::Server;
use super::claims::Mark;
use super::stats::Refusal;
use crate::session::cookie::Claim;
use crate::session::wire::{Connect, TICKET_LEN, is_ticket};
use crate::time::Time;
use siphasher::sip::SipHasher24;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::net::SocketAddr;

/// What is known of a ticket of ours.
#[derive(Clone, Copy)]
pub(super) struct Ticket {
    epoch: u32,
    number: [u8; 8],
}

/// The tickets that were used, by the periods that they are from, and by whom.
#[derive(Debug, Default)]
pub(super) struct Tickets(BTreeMap<u32, BTreeMap<[u8; 8], (u16, Mark)>>);

impl Tickets {
    /// Uses a ticket for an attempt from a port. Returns whether that may go on: nobody else has used it, nor has the
    /// attempt, unless it is `known`.
    fn use_up(&mut self, Ticket { epoch, number }: Ticket, user: (u16, Mark), known: bool) -> bool {
        if let Some(earlier) = self.0.get(&epoch).and_then(|used| used.get(&number)) {
            return known && *earlier == user;
        }
        if self.0.len() >= PERIODS && !self.0.contains_key(&epoch) {
            self.0.pop_first(); // the oldest: nobody gets in with these any more
        }
        let used = self.0.entry(epoch).or_default();
        let has_room = used.len() < USED_MAX;
        if has_room {
            used.insert(number, user);
        }
        has_room
    }
}

impl Server {
    /// Whether the sender of a CONNECT receives packets at its address, by a cookie or by a ticket, which is returned. One
    /// that brings neither is [checked elsewhere](super::unproven).
    pub(super) fn check_address(
        &self,
        now: Time,
        from: SocketAddr,
        connect: &Connect<'_>,
    ) -> Result<Option<Ticket>, Refusal> {
        let &Connect { suite, protocol_id, cid, epoch, ref cookie, .. } = connect;
        if !connect.has_proof() {
            return Ok(None);
        }
        if !is_ticket(epoch) {
            let claim = Claim { address: from, suite, protocol_id, cid };
            let is_good = self.cookies.verify(now, epoch, cookie, &claim);
            return if is_good { Ok(None) } else { Err(Refusal::Cookie) };
        }
        let number = self.cookies.open_ticket(now, epoch, cookie, from.ip(), protocol_id);
        number.map(|number| Some(Ticket { epoch, number })).ok_or(Refusal::Ticket)
    }

    /// Uses a good ticket for an attempt. `known`: there is that attempt already.
    pub(super) fn use_ticket(
        &mut self,
        ticket: Ticket,
        from: SocketAddr,
        mark: Mark,
        known: bool,
    ) -> Result<(), Refusal> {
        if !self.tickets.use_up(ticket, (from.port(), mark), known) {
            return Err(Refusal::Ticket);
        }
        self.stats.tickets += u64::from(!known);
        Ok(())
    }

    /// The ticket for a client that is let in by this attempt.
    pub(super) fn ticket(&self, now: Time, address: SocketAddr, mark: Mark) -> [u8; TICKET_LEN] {
        let mut hasher = SipHasher24::new_with_key(&self.hash_key);
        hasher.write(b"ww/1 ticket");
        hasher.write_u64(mark);
        let number = hasher.finish().to_le_bytes();
        self.cookies.ticket(now, address.ip(), self.config.session.protocol_id, number)
    }
}

/// The current period and the one before.
const PERIODS: usize = 2;
/// Tickets that are remembered of each period, which take less than 1 MiB. Beyond that, clients ask for cookies.
const USED_MAX: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_remembers_16384_tickets_and_two_periods_are_remembered() {
        let mut tickets = Tickets::default();
        let ticket = |epoch, number: usize| Ticket { epoch, number: (number as u64).to_le_bytes() };
        let new = |tickets: &mut Tickets, ticket| tickets.use_up(ticket, (1, 1), false);
        assert!((0..USED_MAX).all(|number| new(&mut tickets, ticket(1, number))));
        assert!(!new(&mut tickets, ticket(1, USED_MAX)), "there is no room");
        assert!(new(&mut tickets, ticket(2, 0)), "the next period has room of its own");
        assert!(!new(&mut tickets, ticket(2, 0)) && tickets.use_up(ticket(2, 0), (1, 1), true));
        assert!(!tickets.use_up(ticket(2, 0), (2, 1), true) && !tickets.use_up(ticket(2, 0), (1, 2), true));
        assert!(new(&mut tickets, ticket(3, 0)));
        assert_eq!(tickets.0.keys().copied().collect::<Vec<_>>(), [2, 3]);
    }
}
