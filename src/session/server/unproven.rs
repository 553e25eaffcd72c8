//! Clients whose first datagram is their CONNECT: one round trip less. Nothing shows yet that they receive packets at the address that it came from, so
//! whoever sent it may have named anybody's. They need a fresh connect token, get a seat only while there are plenty, and drive nobody out. Until they are
//! heard from, they count for no address. The others get a cookie, as if they had asked for one.

use super::claims::Mark;
use super::relayed::direct;
use super::stats::{Refusal, Refused};
use super::{Server, ServerConfig, Suite};
use crate::rate::host;
use crate::session::wire::Connect;
use crate::time::Time;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The address that clients count for whose own is not proven: nobody's. Source: RFC 6666.
pub(super) const NOWHERE: SocketAddr =
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0)), 0);

impl Server {
    /// Whether a CONNECT without a proof may be answered with an ACCEPT. `known`: it is of an attempt that there is or was.
    pub(super) fn check_unproven(
        &mut self,
        now: Time,
        from: SocketAddr,
        suite: Suite,
        connect: &Connect<'_>,
        known: Option<Mark>,
    ) -> Result<(), Refused> {
        // Only what comes directly: the relay does not know either who is at an address. An application that is asked may
        // judge by the address, and the answer of a hybrid suite is longer than the question. Without moves, whoever proves an
        // address with a copy could keep the client out.
        let &ServerConfig { ask, migration, .. } = &self.config;
        if self.tokens.is_none() || ask || !migration || direct(from).is_some() || suite.is_hybrid() {
            return Err(Refusal::Unproven.into());
        }
        if let Some(mark) = known {
            let is_from_there = self.seats.claims(now, mark).is_some_and(|claims| claims.has(from));
            return if is_from_there { Ok(()) } else { Err(Refusal::Unproven.into()) };
        }
        if !self.has_plenty(now, from) {
            return Err(Refusal::Unproven.into());
        }
        self.open_token(now, suite, connect)?;
        if self.rates.unproven.spend(now) { Ok(()) } else { Err(Refusal::Unproven.into()) }
    }

    /// An attempt came with a proof. If it was let in without one, in the name of another address, it is only here from now
    /// on: whoever was named may not have asked. But the proof may be of a copy, so they have half a second to be heard
    /// from. Later they are challenged, as anybody at another address.
    pub(super) fn prove(&mut self, now: Time, from: SocketAddr, mark: Mark) -> Result<(), Refusal> {
        let Some((id, named)) = self.seats.unproven(mark) else { return Ok(()) };
        if named != from && !self.seats.is_ghost(now, id) {
            return Err(Refusal::Repeated);
        }
        if !self.rates.accepts(now, from) {
            return Err(Refusal::AcceptRate);
        }
        let &ServerConfig { sessions_per_address, half_open_per_address, .. } = &self.config;
        if self.seats.hosts.of(host(from)) >= sessions_per_address.into() {
            return Err(Refusal::PerAddress);
        }
        if self.seats.half_open.of_host(host(from)).len() >= half_open_per_address.into() {
            let goes = self.seats.oldest_of(host(from)).ok_or(Refusal::PerAddress)?;
            self.displace(now, goes);
        }
        self.seats.prove(now, id, from);
        Ok(())
    }

    /// Whether nobody needs the place that a client would take.
    fn has_plenty(&mut self, now: Time, from: SocketAddr) -> bool {
        let each = self.config.sessions_per_address;
        let most = self.seats.places_left(&self.config).div_ceil(SHARE);
        let is_short = self.rates.strain(now) > 0 || self.seats.strain(now, &self.config) > 0;
        let of_nowhere = self.seats.half_open.of_host(host(NOWHERE));
        if is_short || of_nowhere.len() >= most || !self.rates.may_accept(now, from) {
            return false;
        }
        let is_of_host =
            |id: &u32| self.seats.table.get(*id).is_some_and(|seat| host(seat.place().address) == host(from));
        let of_host = of_nowhere.filter(is_of_host).count();
        of_host < OF_HOST
            && self.seats.hosts.of(host(from)) + of_host < each.into()
            && self.find_room(now, from) == Ok(None)
    }
}

/// They get one in so many of the places that are left.
const SHARE: usize = 4;
/// Those that say to be at one address, and are not heard from yet.
const OF_HOST: usize = 2;
