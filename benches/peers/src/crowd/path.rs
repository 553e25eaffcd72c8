//! One direction of all paths: a delay and a loss.

use std::collections::VecDeque;

pub(super) struct Path {
    delay: u32,
    /// How many of 2^32 datagrams get lost.
    lost_below: u64,
    random: u64,
    /// When each datagram arrives, its owner, and its bytes.
    under_way: VecDeque<(u32, usize, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    pub(super) datagrams: u64,
    pub(super) bytes: u64,
}

impl Path {
    pub(super) fn new(delay: u32, loss: u32, seed: u64) -> Self {
        let lost_below = u64::from(loss) * ((1 << 32) / 100);
        let (under_way, spare) = (VecDeque::new(), Vec::new());
        Self { delay, lost_below, random: seed, under_way, spare, datagrams: 0, bytes: 0 }
    }

    pub(super) fn carry(&mut self, now: u32, index: usize, datagram: &[u8]) {
        self.datagrams += 1;
        self.bytes += datagram.len() as u64;
        if self.lost_below > 0 && self.next_number() < self.lost_below {
            return;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(datagram);
        self.under_way.push_back((now + self.delay, index, buffer));
    }

    pub(super) fn arrive(&mut self, now: u32, mut take: impl FnMut(usize, &[u8])) {
        while self.under_way.front().is_some_and(|(at, ..)| *at <= now)
            && let Some((_, index, buffer)) = self.under_way.pop_front()
        {
            take(index, &buffer);
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
