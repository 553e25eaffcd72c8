//! Seats whose client was not heard from since it got its answer, or has none yet, and which of them goes when others
//! need the room.

use super::unproven::NOWHERE;
use crate::rate::{host, network};
use crate::session::seats::Hosts;
use crate::time::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Unconfirmed seats by the address that they count for.
#[derive(Debug, Default)]
pub(super) struct HalfOpen {
    /// In no order, each with the time since when.
    seats: Vec<(u32, SocketAddr, Time)>,
    /// Those that cannot have been heard from yet, over a long path, the oldest first.
    young: VecDeque<(u32, Time)>,
    /// Of each address, the oldest first.
    of_host: BTreeMap<IpAddr, VecDeque<u32>>,
    of_network: Hosts,
}

impl HalfOpen {
    pub(super) fn enter(&mut self, now: Time, id: u32, address: SocketAddr) {
        self.seats.push((id, address, now));
        if address != NOWHERE {
            self.young.push_back((id, now)); // the others go when there is no room
        }
        self.of_host.entry(host(address)).or_default().push_back(id);
        self.of_network.enter(network(address));
    }

    /// Returns whether it was there.
    pub(super) fn leave(&mut self, id: u32) -> bool {
        let Some(index) = self.seats.iter().position(|(other, ..)| *other == id) else { return false };
        let (_, address, _) = self.seats.swap_remove(index);
        self.young.retain(|(other, _)| *other != id);
        if let Some(ids) = self.of_host.get_mut(&host(address)) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.of_host.remove(&host(address));
            }
        }
        self.of_network.leave(network(address));
        if self.seats.is_empty() {
            *self = Self::default(); // a quiet server holds no memory for them
        }
        true
    }

    pub(super) fn len(&self) -> usize {
        self.seats.len()
    }

    /// How many of them cannot have been heard from yet.
    pub(super) fn young(&mut self, now: Time) -> usize {
        while let Some((_, since)) = self.young.front()
            && now.since(*since) >= ANSWER_MAX
        {
            self.young.pop_front();
        }
        self.young.len()
    }

    /// Those of one address, the oldest first. How many there are is limited, and so is how fast they come, so the
    /// oldest has had its time.
    pub(super) fn of_host(&self, host: IpAddr) -> impl ExactSizeIterator<Item = u32> {
        self.of_host.get(&host).map(VecDeque::iter).unwrap_or_default().copied()
    }

    /// Of some seats chosen at random, and of those that may go: the one whose network has most, and then whose address
    /// has most, and then the oldest. So whoever fills the table mostly displaces themselves.
    pub(super) fn crowding(&self, random: [u8; 2 * SAMPLE], may_go: impl Fn(u32) -> bool) -> Option<u32> {
        let (choices, _) = random.as_chunks::<2>();
        let chosen = choices.iter().filter_map(|choice| {
            let index = (usize::from(u16::from_le_bytes(*choice)) * self.seats.len()) >> u16::BITS;
            self.seats.get(index).filter(|(id, ..)| may_go(*id))
        });
        let crowd = |address| (self.of_network.of(network(address)), self.of_host(host(address)).len());
        chosen.max_by_key(|(_, address, since)| (crowd(*address), Reverse(*since))).map(|(id, ..)| *id)
    }
}

/// Seats that are looked at: a network with half of the table is among them but once in 65,000 times.
pub(super) const SAMPLE: usize = 16;
/// How long it takes to hear from an admitted client over most paths. Repeating requests in the name of others every
/// second does not hold a place.
pub(super) const ANSWER_MAX: Duration = Duration::from_millis(500);
