//! Datagrams that came to another shard than the one that owns their session.

use crate::machine::Arrival;
use crate::net::os::Bell;
use crate::session::shard_of;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// What a shard knows of the others.
#[derive(Debug)]
pub(in crate::net) struct Neighbours {
    own: usize,
    /// All of them, this one as well.
    doors: Arc<[Door]>,
    came: Receiver<Stray>,
}

/// Where a shard takes what the others hand on.
#[derive(Debug)]
struct Door {
    strays: SyncSender<Stray>,
    bell: Arc<Bell>,
}

/// A datagram, and where it came from.
#[derive(Debug)]
pub(in crate::net) struct Stray {
    pub(in crate::net) from: Arrival,
    pub(in crate::net) bytes: Box<[u8]>,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::net) enum Handed {
    /// It is for whoever got it.
    Mine,
    On,
    /// Too many wait where it belongs.
    Lost,
}

/// So many shards that know each other.
pub(in crate::net) fn meet(count: usize) -> io::Result<Vec<Neighbours>> {
    let (mut doors, mut boxes) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (strays, came) = sync_channel(STRAYS_MAX);
        doors.push(Door { strays, bell: Arc::new(Bell::new()?) });
        boxes.push(came);
    }
    let doors: Arc<[Door]> = doors.into();
    let shard = |(own, came)| Neighbours { own, doors: Arc::clone(&doors), came };
    Ok(boxes.into_iter().enumerate().map(shard).collect())
}

impl Neighbours {
    /// Hands a datagram on if it is of a session that another shard owns.
    pub(in crate::net) fn hand_on(&self, from: Arrival, datagram: &[u8]) -> Handed {
        let owner = shard_of(datagram).map(usize::from).filter(|owner| *owner != self.own);
        let Some(door) = owner.and_then(|owner| self.doors.get(owner)) else { return Handed::Mine };
        match door.strays.try_send(Stray { from, bytes: datagram.into() }) {
            Ok(()) => {
                door.bell.ring();
                Handed::On
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Handed::Lost,
        }
    }

    /// The oldest datagram that another shard has handed on.
    pub(in crate::net) fn pop(&self) -> Option<Stray> {
        self.came.try_recv().ok()
    }

    /// What wakes this shard.
    pub(in crate::net) fn bell(&self) -> Option<&Arc<Bell>> {
        self.doors.get(self.own).map(|door| &door.bell)
    }
}

/// Datagrams that wait for a shard at most: 1.5 MB of the usual 1500 bytes, 9 MB of the longest that a session takes.
const STRAYS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// DATA of the session with that id.
    fn data(sid: u32) -> Vec<u8> {
        let header = crate::session::wire::Data { phase: false, sid, pn: 7 }.encode();
        [&header[..], &[0; 30]].concat()
    }

    #[test]
    fn what_is_of_another_shard_gets_there_and_all_else_stays() {
        let shards = meet(3).unwrap();
        let from = Arrival::from(SocketAddr::from(([10, 0, 0, 1], 7)));
        for (owner, handed) in [(0, Handed::On), (1, Handed::Mine), (2, Handed::On), (3, Handed::Mine)] {
            assert_eq!(shards[1].hand_on(from, &data(owner << 26 | 5)), handed, "{owner}");
        }
        assert_eq!(shards[1].hand_on(from, b"no packet"), Handed::Mine);
        let stray = shards[2].pop().unwrap();
        assert_eq!((stray.from, &stray.bytes[..]), (from, &data(2 << 26 | 5)[..]));
        assert!(shards[2].pop().is_none() && shards[1].pop().is_none() && shards[0].pop().is_some());
    }

    #[test]
    fn a_shard_that_takes_nothing_loses_what_is_beyond_its_room() {
        let shards = meet(2).unwrap();
        let from = Arrival::from(SocketAddr::from(([10, 0, 0, 1], 7)));
        let handed = (0..STRAYS_MAX + 3).map(|_| shards[0].hand_on(from, &data(1 << 26)));
        assert_eq!(handed.filter(|handed| *handed == Handed::Lost).count(), 3);
    }
}
