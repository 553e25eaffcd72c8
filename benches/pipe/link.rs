//! One direction of the path: a queue of datagrams with a delay and a loss.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::MTU;

/// Delays each datagram alike, loses some by a seeded generator, and takes its buffers back: in a
/// steady state it copies and does not allocate.
pub(crate) struct Link {
    clock: u32,
    delay: u32,
    /// Datagrams whose number is below this get lost.
    lost_below: u64,
    random: u64,
    bytes: u64,
    under_way: VecDeque<(u32, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl Link {
    /// A link that loses `loss` of a hundred datagrams and has room for `room` of them.
    pub(crate) fn port(delay: u32, loss: u32, seed: u64, room: usize) -> Port {
        Port(Rc::new(RefCell::new(Self {
            clock: 0,
            delay,
            lost_below: u64::from(loss) * (NUMBERS / 100),
            random: seed,
            bytes: 0,
            under_way: VecDeque::with_capacity(room),
            spare: (0..room).map(|_| Vec::with_capacity(MTU)).collect(),
        })))
    }

    /// A link where nothing arrives.
    pub(crate) fn nowhere() -> Port {
        Self::port(0, 100, 0, 0)
    }

    fn carry(&mut self, datagram: &[u8]) {
        self.bytes += datagram.len() as u64;
        if self.lost_below > 0 && self.next_number() < self.lost_below {
            return;
        }
        let mut buf = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(MTU));
        buf.clear();
        buf.extend_from_slice(datagram);
        self.under_way.push_back((self.clock + self.delay, buf));
    }

    fn arrive(&mut self, now: u32) -> Option<(u32, Vec<u8>)> {
        let (at, _) = self.under_way.front()?;
        if *at <= now { self.under_way.pop_front() } else { None }
    }

    /// 32 random bits. Source: `SplitMix64`, <https://prng.di.unimi.it/splitmix64.c>.
    fn next_number(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) >> 32
    }
}

/// What [`Link::next_number`] chooses from.
const NUMBERS: u64 = 1 << 32;

/// A handle on a link. The implementations keep their output to themselves, so the harness needs
/// a second way to it.
#[derive(Clone)]
pub(crate) struct Port(Rc<RefCell<Link>>);

impl Port {
    pub(crate) fn carry(&self, datagram: &[u8]) {
        self.0.borrow_mut().carry(datagram);
    }

    /// The oldest datagram that is there at `now`, and when it came.
    pub(crate) fn arrive(&self, now: u32) -> Option<(u32, Vec<u8>)> {
        self.0.borrow_mut().arrive(now)
    }

    pub(crate) fn recycle(&self, buf: Vec<u8>) {
        self.0.borrow_mut().spare.push(buf);
    }

    pub(crate) fn set_clock(&self, now: u32) {
        self.0.borrow_mut().clock = now;
    }

    /// Bytes given to the link so far, the lost ones too.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.borrow().bytes
    }
}
