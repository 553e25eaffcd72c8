//! One port, several sockets: each with its own thread and its own sessions.
//!
//! The system chooses the socket by the addresses and ports of a datagram, so a client stays with one shard while its
//! address stays the same. When it moves, its datagrams may arrive at any shard. They begin with the id of their
//! session, which names the shard that owns it, and the receiving shard hands them on. Datagrams to the client are sent
//! from the owner's socket, which has the same port.

use super::error::Error;
use super::sync::Bell;
use super::sync::mpsc::{Receiver, SyncSender, sync_channel};
use crate::machine::{Arrival, Machine};
use crate::session::SHARDS_MAX;
use crate::time::Time;
use std::fmt::Debug;
use std::io;
use std::net::{ToSocketAddrs, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use whitewater_udp::{bind, bind_shared};

pub(super) fn sockets(addr: impl ToSocketAddrs, count: usize) -> io::Result<Vec<UdpSocket>> {
    crate::config::in_range("shards", count as u64, 1..=SHARDS_MAX as u64).map_err(Error::from)?;
    if count == 1 {
        return Ok(vec![bind(addr)?]);
    }
    let nowhere = Err(io::ErrorKind::InvalidInput.into());
    addr.to_socket_addrs()?.fold(nowhere, |found, addr| found.or_else(|_| bind_shared(addr, count)))
}

/// What a shard knows of the others.
#[derive(Debug)]
pub(super) struct Neighbours<M> {
    give: Give<M>,
    /// The doors of all shards, including this one.
    doors: Arc<[Door]>,
    /// Behind a lock that nobody waits for, so that a driver can be shared by reference.
    came: Mutex<Receiver<Stray>>,
    /// Datagrams that were handed on, and those that were lost because too many wait at their shard.
    pub(super) handed_on: u64,
    pub(super) not_handed_on: u64,
}

/// Gives a datagram to the machine of one of this many shards. If it is for another one, returns which.
pub(super) type Give<M> = fn(&mut M, Time, Arrival, &mut [u8], usize) -> Option<usize>;

/// Where a shard takes what the others hand on.
#[derive(Debug)]
struct Door {
    strays: SyncSender<Stray>,
    owner: Arc<dyn Wake>,
}

/// Wakes a driver that may be asleep.
pub(super) trait Wake: Debug + Send + Sync {
    fn wake(&self);
}

#[derive(Debug)]
pub(super) struct Stray {
    pub(super) from: Arrival,
    pub(super) bytes: Box<[u8]>,
}

impl Wake for Bell {
    fn wake(&self) {
        self.ring();
    }
}

/// Connects shards with each other and with their drivers.
pub(super) fn meet<M>(
    owners: impl IntoIterator<Item = Arc<dyn Wake>>,
    give: Give<M>,
) -> impl Iterator<Item = Neighbours<M>> {
    let (mut doors, mut boxes) = (Vec::new(), Vec::new());
    for owner in owners {
        let (strays, came) = sync_channel(STRAYS_MAX);
        doors.push(Door { strays, owner });
        boxes.push(came);
    }
    let doors: Arc<[Door]> = doors.into();
    boxes.into_iter().map(move |came| {
        let doors = Arc::clone(&doors);
        Neighbours { give, doors, came: Mutex::new(came), handed_on: 0, not_handed_on: 0 }
    })
}

impl<M> Neighbours<M> {
    /// Gives a datagram to the machine, or hands it on to the shard that owns its session.
    pub(super) fn hand_in(&mut self, now: Time, machine: &mut M, from: Arrival, datagram: &mut [u8]) {
        let owner = (self.give)(machine, now, from, datagram, self.doors.len());
        let Some(door) = owner.and_then(|owner| self.doors.get(owner)) else { return };
        if door.strays.try_send(Stray { from, bytes: (&*datagram).into() }).is_ok() {
            door.owner.wake();
            self.handed_on += 1;
        } else {
            self.not_handed_on += 1;
        }
    }

    /// Takes datagrams that the others have handed on, up to a limit. Returns whether there may be more.
    pub(super) fn hand_in_strays(&mut self, now: Time, machine: &mut M) -> bool
    where
        M: Machine,
    {
        let came = self.came.get_mut().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..STRAYS_PER_PUMP {
            let Ok(mut stray) = came.try_recv() else { return false };
            machine.handle_datagram(now, stray.from, &mut stray.bytes);
        }
        true
    }
}

/// Most datagrams that wait for a shard: 1.5 MB at the usual 1500 bytes, 9 MB at the longest that a session accepts.
pub(super) const STRAYS_MAX: usize = 1024;
/// Most of them that one pump takes: fewer than it reads.
const STRAYS_PER_PUMP: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nobody;

    impl Wake for Nobody {
        fn wake(&self) {}
    }

    #[test]
    fn what_is_of_another_shard_gets_there_as_far_as_there_is_room_and_all_else_stays() {
        // The first byte selects the owner.
        let give: Give<usize> = |own, _, _, datagram, shards| {
            Some(datagram[0].into()).filter(|owner| owner != own && *owner < shards)
        };
        let mut shards: Vec<_> = meet((0..3).map(|_| Arc::new(Nobody) as Arc<dyn Wake>), give).collect();
        let from = Arrival::from(std::net::SocketAddr::from(([10, 0, 0, 1], 7)));
        let mut hand_in =
            |mut at: usize, owner| shards[at].hand_in(Time::ZERO, &mut at, from, &mut [owner, 5]);
        (0..4).for_each(|owner| hand_in(1, owner));
        (0..STRAYS_MAX + 2).for_each(|_| hand_in(0, 1));
        let stray = shards[2].came.get_mut().unwrap().try_recv().unwrap();
        assert_eq!((stray.from, &stray.bytes[..]), (from, &[2, 5][..]));
        let rest: Vec<_> =
            shards.iter_mut().map(|shard| shard.came.get_mut().unwrap().try_iter().count()).collect();
        assert_eq!(rest, [1, STRAYS_MAX, 0]);
        assert_eq!((shards[1].handed_on, shards[1].not_handed_on), (2, 0));
        assert_eq!((shards[0].handed_on, shards[0].not_handed_on), (STRAYS_MAX as u64, 2));
    }
}
