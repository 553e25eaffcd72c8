//! One direction of the path: a queue of datagrams with a delay and a loss.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::MTU;

/// Delays all datagrams equally, loses some by a seeded generator, and reuses its buffers: in a steady state
/// it copies but does not allocate.
pub(crate) struct Link {
    clock: u32,
    delay: u32,
    /// A datagram gets lost if its random number is below this.
    lost_below: u64,
    random: u64,
    bytes: u64,
    datagrams: u64,
    under_way: VecDeque<UnderWay>,
    buffers: Vec<[u8; MTU]>,
    /// Buffers not in use.
    spare: Vec<usize>,
}

struct UnderWay {
    at: u32,
    buffer: usize,
    len: usize,
}

impl Link {
    /// A link that loses `loss` % of the datagrams and has room for `room` of them.
    pub(crate) fn port(delay: u32, loss: u32, seed: u64, room: usize) -> Port {
        Port(Rc::new(RefCell::new(Self {
            clock: 0,
            delay,
            lost_below: u64::from(loss) * (NUMBERS / 100),
            random: seed,
            bytes: 0,
            datagrams: 0,
            under_way: VecDeque::with_capacity(room),
            buffers: vec![[0; MTU]; room],
            spare: (0..room).collect(),
        })))
    }

    /// A link where nothing arrives.
    pub(crate) fn nowhere() -> Port {
        Self::port(0, 100, 0, 0)
    }

    fn carry(&mut self, datagram: &[u8]) {
        self.bytes += datagram.len() as u64;
        self.datagrams += 1;
        if self.lost_below > 0 && self.next_number() < self.lost_below {
            return;
        }
        let buffer = self.spare.pop().expect("there is room for all that is under way");
        let room = self.buffers.get_mut(buffer).and_then(|buffer| buffer.get_mut(..datagram.len()));
        room.expect("a datagram is as long as the mtu").copy_from_slice(datagram);
        self.under_way.push_back(UnderWay { at: self.clock + self.delay, buffer, len: datagram.len() });
    }

    fn deliver(&mut self, now: u32, mut take: impl FnMut(u32, &mut [u8])) {
        while let Some(&UnderWay { at, buffer, len }) = self.under_way.front().filter(|next| next.at <= now) {
            self.under_way.pop_front();
            take(
                at,
                self.buffers.get_mut(buffer).and_then(|buffer| buffer.get_mut(..len)).unwrap_or_default(),
            );
            self.spare.push(buffer);
        }
    }

    /// 32 random bits. Source: `SplitMix64`, <https://prng.di.unimi.it/splitmix64.c>.
    fn next_number(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) >> 32
    }
}

/// The range of [`Link::next_number`].
const NUMBERS: u64 = 1 << 32;

/// A shared handle on a link. The implementations own their output, so the harness needs another way to reach
/// it.
#[derive(Clone)]
pub(crate) struct Port(Rc<RefCell<Link>>);

impl Port {
    pub(crate) fn carry(&self, datagram: &[u8]) {
        self.0.borrow_mut().carry(datagram);
    }

    /// Passes each datagram that has arrived by `now` to `take`, with the time when it arrived.
    pub(crate) fn deliver(&self, now: u32, take: impl FnMut(u32, &mut [u8])) {
        self.0.borrow_mut().deliver(now, take);
    }

    pub(crate) fn set_clock(&self, now: u32) {
        self.0.borrow_mut().clock = now;
    }

    /// Bytes sent over the link so far, including lost ones.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.borrow().bytes
    }

    /// Datagrams sent over the link so far, including lost ones.
    #[allow(dead_code, reason = "each binary that shares this module uses its part")]
    pub(crate) fn datagrams(&self) -> u64 {
        self.0.borrow().datagrams
    }
}
