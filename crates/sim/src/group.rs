//! Several peers on one path.

use super::pair::Peer;
use whitewater::Time;
use whitewater::kcp::Conv;

/// Several peers that share the path of a [`Pair`](super::Pair), with its bottleneck and its losses. The
/// first four bytes of a datagram, the conversation of a segment or the protocol id of a packet, select its
/// receiver. Datagrams for unknown receivers are dropped.
#[derive(Debug)]
pub struct Group<P> {
    members: Vec<(Conv, P)>,
}

impl<P: Peer> Group<P> {
    /// Peers by their numbers, which must differ. At equal times, they are polled in order.
    #[must_use]
    pub const fn new(members: Vec<(Conv, P)>) -> Self {
        Self { members }
    }

    /// The peer at `index`, in the order of creation.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&P> {
        self.members.get(index).map(|(_, peer)| peer)
    }

    /// The peer at `index`, mutable.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut P> {
        self.members.get_mut(index).map(|(_, peer)| peer)
    }

    fn peers(&mut self) -> impl Iterator<Item = &mut P> {
        self.members.iter_mut().map(|(_, peer)| peer)
    }
}

impl<P: Peer> Peer for Group<P> {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        let conv = datagram.first_chunk().map(|bytes| Conv(u32::from_le_bytes(*bytes)));
        if let Some((_, peer)) = self.members.iter_mut().find(|(own, _)| Some(*own) == conv) {
            peer.input(now, datagram);
        }
    }

    fn poll(&mut self, now: Time) {
        for peer in self.peers().filter(|peer| peer.next_wake(now).is_some_and(|at| at <= now)) {
            peer.poll(now);
        }
    }

    fn next_wake(&self, now: Time) -> Option<Time> {
        self.members.iter().filter_map(|(_, peer)| peer.next_wake(now)).min()
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        self.peers().any(|peer| peer.pop_datagram(datagram))
    }
}
