//! One port, several sockets: each with its own thread and its own sessions.
//!
//! The system chooses the socket by the addresses and ports of a datagram, so a client stays with one shard while it stays where it is. When
//! it moves, its datagrams arrive at any: the id of its session, which they begin with, names the shard that owns it, and who got them hands
//! them on. What is sent leaves from the owner's socket, which has the same port.

use super::error::Error;
use super::os::shared;
use crate::machine::Arrival;
use crate::session::{SHARDS_MAX, shard_of};
use std::fmt::Debug;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// So many sockets on one port.
pub(super) fn sockets(addr: impl ToSocketAddrs, count: usize) -> io::Result<Vec<UdpSocket>> {
    crate::config::in_range("shards", count as u64, 1..=SHARDS_MAX as u64).map_err(Error::from)?;
    if count == 1 {
        return Ok(vec![UdpSocket::bind(addr)?]);
    }
    let mut failed = io::Error::from(io::ErrorKind::InvalidInput);
    for addr in addr.to_socket_addrs()? {
        match all_on(addr, count) {
            Ok(sockets) => return Ok(sockets),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Of port 0, on whichever the first one got.
fn all_on(mut addr: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = shared(addr)?;
        addr = socket.local_addr()?;
        sockets.push(socket);
    }
    Ok(sockets)
}

/// What a shard knows of the others.
#[derive(Debug)]
pub(super) struct Neighbours {
    own: usize,
    /// All of them, this one as well.
    doors: Arc<[Door]>,
    came: Receiver<Stray>,
}

/// Where a shard takes what the others hand on.
#[derive(Debug)]
struct Door {
    strays: SyncSender<Stray>,
    owner: Arc<dyn Wake>,
}

/// A driver that may sleep.
pub(super) trait Wake: Debug + Send + Sync {
    /// Has it look at what is there.
    fn wake(&self);
}

/// A datagram, and where it came from.
#[derive(Debug)]
pub(super) struct Stray {
    pub(super) from: Arrival,
    pub(super) bytes: Box<[u8]>,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Handed {
    /// It is for whoever got it.
    Mine,
    On,
    /// Too many wait where it belongs.
    Lost,
}

/// Shards that know each other, by their drivers.
pub(super) fn meet(owners: impl IntoIterator<Item = Arc<dyn Wake>>) -> Vec<Neighbours> {
    let (mut doors, mut boxes) = (Vec::new(), Vec::new());
    for owner in owners {
        let (strays, came) = sync_channel(STRAYS_MAX);
        doors.push(Door { strays, owner });
        boxes.push(came);
    }
    let doors: Arc<[Door]> = doors.into();
    let shard = |(own, came)| Neighbours { own, doors: Arc::clone(&doors), came };
    boxes.into_iter().enumerate().map(shard).collect()
}

impl Neighbours {
    /// Hands a datagram on if it is of a session that another shard owns.
    pub(super) fn hand_on(&self, from: Arrival, datagram: &[u8]) -> Handed {
        let owner = shard_of(datagram).map(usize::from).filter(|owner| *owner != self.own);
        let Some(door) = owner.and_then(|owner| self.doors.get(owner)) else { return Handed::Mine };
        match door.strays.try_send(Stray { from, bytes: datagram.into() }) {
            Ok(()) => {
                door.owner.wake();
                Handed::On
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Handed::Lost,
        }
    }

    /// The oldest datagram that another shard has handed on.
    pub(super) fn pop(&self) -> Option<Stray> {
        self.came.try_recv().ok()
    }
}

/// Datagrams that wait for a shard at most: 1.5 MB of the usual 1500 bytes, 9 MB of the longest that a session takes.
const STRAYS_MAX: usize = 1024;

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
        let shards = meet((0..3).map(|_| Arc::new(Nobody) as Arc<dyn Wake>));
        let from = Arrival::from(SocketAddr::from(([10, 0, 0, 1], 7)));
        let data =
            |sid| [&crate::session::wire::Data { phase: false, sid, pn: 7 }.encode()[..], &[0; 30]].concat();
        for (owner, handed) in [(0, Handed::On), (1, Handed::Mine), (2, Handed::On), (3, Handed::Mine)] {
            assert_eq!(shards[1].hand_on(from, &data(owner << 26 | 5)), handed, "{owner}");
        }
        assert_eq!(shards[1].hand_on(from, b"no packet"), Handed::Mine);
        let stray = shards[2].pop().unwrap();
        assert_eq!((stray.from, &stray.bytes[..]), (from, &data(2 << 26 | 5)[..]));
        assert!(shards[2].pop().is_none() && shards[1].pop().is_none() && shards[0].pop().is_some());
        let handed = (0..STRAYS_MAX + 3).map(|_| shards[0].hand_on(from, &data(1 << 26)));
        assert_eq!(handed.filter(|handed| *handed == Handed::Lost).count(), 3);
    }
}
