//! The servers of a fleet in memory: their leases, and the places that are reserved for players on their way. Time comes in, ms.

use crate::messages::{Id, Listed, Report};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Most servers that are known at a time.
pub(crate) const SERVERS_MAX: usize = 10_000;
/// How long a token is valid, s. From an answer over HTTPS to the first datagram takes seconds.
pub(crate) const TOKEN_LIFE: u64 = 45;
/// What a reservation outlasts its token by, ms: the clocks of servers may differ by 5 s.
const SKEW: u64 = 5000;

/// Which places are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// A place for each of them, on one server.
    pub(crate) clients: &'a [Id],
    /// The best first. Empty: any.
    pub(crate) regions: &'a [String],
    /// They are on this server, which asks for them: not there, and only if it has a lease.
    pub(crate) from: Option<Id>,
}

/// Why there are no places.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NoPlace {
    NoLease,
    NoRoom,
}

/// How long what a server said is good for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// From one report to the next, ms.
    pub(crate) lease: u64,
    /// How long a place is reserved, ms.
    pub(crate) reserved: u64,
}

impl Terms {
    /// When a token has expired, its server has one lease to count a player who came at the last moment.
    pub(crate) fn new(lease: Duration) -> Self {
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX / 2);
        Self { lease, reserved: TOKEN_LIFE * 1000 + SKEW + lease }
    }
}

#[derive(Debug)]
pub(crate) struct Fleet {
    terms: Terms,
    servers: BTreeMap<Id, Server>,
}

#[derive(Debug)]
struct Server {
    report: Report,
    /// When its lease lapses. It is kept until no token for it is valid: it may come back with players whom nobody has counted yet.
    lapses: u64,
    drain: bool,
    /// When the reservation of a client ends, and the same in order of time.
    reserved: HashMap<Id, u64>,
    ends: BTreeSet<(u64, Id)>,
}

impl Fleet {
    pub(crate) fn new(terms: Terms) -> Self {
        Self { terms, servers: BTreeMap::new() }
    }

    /// Renews the lease of a server, and returns whether it should drain. `None`: there is no room for another server.
    pub(crate) fn report(&mut self, now: u64, id: Id, mut report: Report) -> Option<bool> {
        self.forget(now);
        if self.servers.len() >= SERVERS_MAX && !self.servers.contains_key(&id) {
            return None;
        }
        let arrived = std::mem::take(&mut report.arrived);
        let lapses = now + self.terms.lease;
        let server = self.servers.entry(id).or_insert_with(|| Server::new(report.clone()));
        (server.report, server.lapses) = (report, lapses);
        for client in arrived {
            server.free(client);
        }
        Some(server.drain)
    }

    /// A server that has ended.
    pub(crate) fn remove(&mut self, id: Id) {
        self.servers.remove(&id);
    }

    /// Tells a server to move its players away with its next report. `false`: there is no such server.
    pub(crate) fn drain(&mut self, now: u64, id: Id) -> bool {
        let found = self.servers.get_mut(&id).filter(|server| server.lapses > now);
        found.map(|server| server.drain = true).is_some()
    }

    /// Reserves places. Clients who all hold places on one server get them again, for as long again: whoever did not hear the answer may ask again,
    /// also when nothing else is free. Others get them on the fullest server of the best region that has as many: a fleet can then shrink by those
    /// that are empty.
    pub(crate) fn join(&mut self, now: u64, wanted: &Wanted<'_>) -> Result<(Id, Report), NoPlace> {
        let has_lease = |from| self.servers.get(&from).is_some_and(|server| server.lapses > now);
        if wanted.from.is_some_and(|from| !has_lease(from)) {
            return Err(NoPlace::NoLease);
        }
        let places = u32::try_from(wanted.clients.len()).unwrap_or(u32::MAX);
        let open =
            self.servers.iter_mut().filter(|(id, server)| server.is_open(now) && Some(**id) != wanted.from);
        let ranked = open.filter_map(|(id, server)| {
            let rank = match wanted.regions {
                [] => 0,
                regions => regions.iter().position(|region| *region == server.report.region)?,
            };
            let places_left = server.places(now).filter(|left| *left >= places);
            let is_held = wanted.clients.iter().all(|client| server.reserved.contains_key(client));
            (is_held || places_left.is_some()).then_some(((!is_held, rank, places_left, *id), server))
        });
        let ((.., id), server) = ranked.min_by_key(|(order, _)| *order).ok_or(NoPlace::NoRoom)?;
        let until = now + self.terms.reserved;
        for client in wanted.clients {
            server.reserve(*client, until);
        }
        Ok((id, server.report.clone()))
    }

    pub(crate) fn list(&mut self, now: u64) -> Vec<Listed> {
        self.forget(now);
        let known = self.servers.iter_mut().filter(|(_, server)| server.lapses > now);
        let list = known.map(|(id, server)| Listed {
            server: *id,
            report: server.report.clone(),
            reserved: server.reserved(now),
            drain: server.drain,
            lease_ms: server.lapses - now,
        });
        list.collect()
    }

    fn forget(&mut self, now: u64) {
        let kept = self.terms.reserved;
        self.servers.retain(|_, server| server.lapses + kept > now);
    }
}

impl Server {
    fn new(report: Report) -> Self {
        Self { report, lapses: 0, drain: false, reserved: HashMap::new(), ends: BTreeSet::new() }
    }

    fn is_open(&self, now: u64) -> bool {
        self.lapses > now && !self.drain && !self.report.draining
    }

    /// How many more players may get a token, if any.
    fn places(&mut self, now: u64) -> Option<u32> {
        let reserved = self.reserved(now);
        self.report.capacity.checked_sub(self.report.players)?.checked_sub(reserved)
    }

    fn reserved(&mut self, now: u64) -> u32 {
        while let Some(&(_, client)) = self.ends.first().filter(|(end, _)| *end <= now) {
            self.free(client);
        }
        u32::try_from(self.reserved.len()).unwrap_or(u32::MAX)
    }

    fn reserve(&mut self, client: Id, until: u64) {
        self.free(client);
        self.reserved.insert(client, until);
        self.ends.insert((until, client));
    }

    fn free(&mut self, client: Id) {
        if let Some(end) = self.reserved.remove(&client) {
            self.ends.remove(&(end, client));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: u64 = 15_000;
    const RESERVED: u64 = 65_000;

    fn fleet() -> Fleet {
        let terms = Terms::new(Duration::from_millis(LEASE));
        assert_eq!((terms.lease, terms.reserved), (LEASE, RESERVED));
        Fleet::new(terms)
    }

    fn report(capacity: u32, players: u32) -> Report {
        crate::store::tests::report("eu", capacity, players)
    }

    fn join(fleet: &mut Fleet, now: u64, client: u64) -> Option<Id> {
        let wanted = Wanted { clients: &[Id(client)], regions: &[], from: None };
        fleet.join(now, &wanted).ok().map(|(id, _)| id)
    }

    #[test]
    fn a_server_whose_lease_has_lapsed_gets_no_players_until_it_reports_again() {
        let mut fleet = fleet();
        fleet.report(0, Id(1), report(2, 0));
        assert_eq!(join(&mut fleet, LEASE - 1, 7), Some(Id(1)));
        assert_eq!(join(&mut fleet, LEASE, 8), None);
        assert_eq!(fleet.list(LEASE), []);
        assert!(!fleet.drain(LEASE, Id(1)));
        fleet.report(LEASE + 1, Id(1), report(2, 0));
        assert_eq!(join(&mut fleet, LEASE + 1, 8), Some(Id(1)));
        assert_eq!(join(&mut fleet, LEASE + 1, 9), None, "the first place is still reserved");
    }

    #[test]
    fn a_reservation_lasts_until_the_player_arrives_or_can_no_longer() {
        let mut fleet = fleet();
        let beat = |fleet: &mut Fleet, now, players, arrived: &[u64]| {
            let arrived = arrived.iter().map(|client| Id(*client)).collect();
            fleet.report(now, Id(1), Report { arrived, ..report(2, players) });
        };
        beat(&mut fleet, 0, 0, &[]);
        assert!(join(&mut fleet, 0, 7).is_some() && join(&mut fleet, 0, 8).is_some());
        assert_eq!(join(&mut fleet, 0, 9), None);
        beat(&mut fleet, 10_000, 1, &[7]);
        assert_eq!(join(&mut fleet, 10_000, 9), None, "one has arrived, one is on the way");
        for now in (20_000..RESERVED).step_by(10_000) {
            beat(&mut fleet, now, 1, &[]);
        }
        assert_eq!(join(&mut fleet, RESERVED - 1, 9), None);
        assert_eq!(join(&mut fleet, RESERVED, 9), Some(Id(1)), "8 never came");
    }

    #[test]
    fn servers_that_are_gone_are_forgotten_and_only_so_many_are_known() {
        let mut fleet = fleet();
        let most = u64::try_from(SERVERS_MAX).unwrap();
        assert!((0..most).all(|id| fleet.report(0, Id(id), report(1, 0)).is_some()));
        assert_eq!(fleet.report(0, Id(most), report(1, 0)), None);
        assert!(fleet.report(LEASE, Id(0), report(1, 0)).is_some(), "who is known");
        assert!(fleet.report(LEASE + RESERVED, Id(most), report(1, 0)).is_some());
        assert_eq!(fleet.servers.len(), 2);
    }

    #[test]
    fn who_joins_twice_has_one_reservation() {
        let mut fleet = fleet();
        fleet.report(0, Id(1), report(100, 0));
        for now in 0..50 {
            assert!(join(&mut fleet, now, 7).is_some());
        }
        let server = &fleet.servers[&Id(1)];
        assert_eq!((server.reserved.len(), server.ends.len()), (1, 1));
    }

    #[test]
    fn who_joins_again_on_the_last_place_holds_it_as_long_as_the_last_token() {
        let mut fleet = fleet();
        let beat = |fleet: &mut Fleet, now| fleet.report(now, Id(1), report(1, 0));
        for now in [0, 10_000, 20_000, 30_000] {
            beat(&mut fleet, now);
            assert_eq!(join(&mut fleet, now, 7), Some(Id(1)), "at {now} ms");
            assert_eq!(join(&mut fleet, now, 8), None, "at {now} ms");
        }
        for now in (40_000..30_000 + RESERVED).step_by(5000) {
            beat(&mut fleet, now);
            assert_eq!(join(&mut fleet, now, 8), None, "at {now} ms");
        }
        beat(&mut fleet, 30_000 + RESERVED);
        assert_eq!(join(&mut fleet, 30_000 + RESERVED, 8), Some(Id(1)));
        assert_eq!(join(&mut fleet, 30_000 + RESERVED, 7), None, "no longer held");
    }
}
