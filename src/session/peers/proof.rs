//! Whether a stranger receives what is sent to their address. Until that is known, they have no control block.
//!
//! A good first datagram is answered with a question: a segment without data whose number lies far before the first one.
//! Every KCP takes it for a segment that it has received already, delivers nothing, and acknowledges it with the same
//! number and time. These are a keyed hash of the address, the conversation and the time, so the acknowledgement
//! proves the address and the listener need not remember whom it has asked.
//!
//! It remembers what some of them sent first, so that those need not send it again. A table of fixed size is enough for
//! that when nobody attacks. In a flood the newest take the places of others, who are as well off as without it.
//!
//! Sources: RFC 4987 section 3.6 (SYN cookies); ikcp.c `ikcp_input`, which owes the acknowledgement of a segment before
//! it finds that the segment is old.

use crate::hash::Keyed;
use crate::kcp::{Envelope, LONG_AGO};
use crate::seq::{Conv, Sn};
use crate::session::hash_key;
use crate::session::seats::Name;
use crate::time::{Millis, Time};
use crate::wire::{self, Command, DatagramQueue, Header, Output};
use rand_core::CryptoRng;
use siphasher::sip::SipHasher24;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::Duration;

/// Asks strangers to prove their addresses, and recognizes the answers.
pub(super) struct Proofs {
    key: [u64; 2],
    /// Questions that are ready to be sent, and where each goes.
    questions: DatagramQueue,
    to: VecDeque<SocketAddr>,
    /// First datagrams, each at the place that its name is hashed to. Allocated for the first stranger.
    kept: Vec<Option<Kept>>,
}

/// The first datagram of a stranger, without its envelope.
struct Kept {
    name: Name,
    since: Time,
    datagram: Vec<u8>,
}

printed_without_secrets! { Proofs { to } }

impl Proofs {
    pub(super) fn new(rng: &mut impl CryptoRng) -> Self {
        Self { key: hash_key(rng), questions: DatagramQueue::new(), to: VecDeque::new(), kept: Vec::new() }
    }

    /// Asks the sender of a good first datagram, in at most as many bytes as it has sent. `wnd`: the window that it is
    /// told. Returns `false` if too many questions wait.
    pub(super) fn ask(
        &mut self,
        now: Time,
        name: &Name,
        conv: Conv,
        wnd: u16,
        envelope: Option<&mut dyn Envelope>,
    ) -> bool {
        if self.to.len() >= QUESTIONS_MAX {
            return false;
        }
        let (sn, ts) = self.token(period(now), name);
        let header = Header { conv, cmd: Command::Push, frg: 0, wnd, ts, sn, una: Sn(0) };
        let (question, before) = (header.to_bytes(0), self.questions.len());
        match envelope {
            Some(envelope) => envelope.wrap(now, STRANGER, false, &question, &mut self.questions),
            None => self.questions.output(&question),
        }
        self.to.extend((before..self.questions.len()).map(|_| name.0));
        true
    }

    /// Whether this datagram of a stranger answers a question of this or the previous period. Only the first
    /// acknowledgement counts, so each datagram is one guess.
    pub(super) fn is_answered(&self, now: Time, name: &Name, datagram: &[u8]) -> bool {
        let heads = wire::segments(datagram).map_while(Result::ok).map(|segment| segment.header);
        let this = period(now);
        heads.into_iter().find(|head| head.cmd == Command::Ack).is_some_and(|head| {
            let told = (head.sn, head.ts);
            self.token(this, name) == told || self.token(this.wrapping_sub(1), name) == told
        })
    }

    /// Keeps a good first datagram for a while, if it is that with the first segment: in the place of whichever was
    /// there.
    pub(super) fn keep(&mut self, now: Time, name: &Name, datagram: &[u8]) {
        if !wire::segments(datagram).any(|segment| segment.is_ok_and(|segment| segment.header.sn == Sn(0))) {
            return;
        }
        let place = self.place(name);
        if self.kept.is_empty() {
            self.kept.resize_with(KEPT_MAX, || None);
        }
        if let Some(place) = self.kept.get_mut(place) {
            let mut buffer = place.take().map_or_else(Vec::new, |kept| kept.datagram);
            buffer.clear();
            buffer.extend_from_slice(datagram);
            *place = Some(Kept { name: *name, since: now, datagram: buffer });
        }
    }

    /// The first datagram of a stranger who has proven their address, if it is still there.
    pub(super) fn take(&mut self, now: Time, name: &Name) -> Option<Vec<u8>> {
        let place = self.place(name);
        let kept = self.kept.get_mut(place)?.take_if(|kept| kept.name == *name)?;
        (now.since(kept.since) < KEEP).then_some(kept.datagram)
    }

    fn place(&self, name: &Name) -> usize {
        usize::try_from(Keyed(self.key).hash_one(name) % KEPT_MAX as u64).unwrap_or(0)
    }

    pub(super) fn has_questions(&self) -> bool {
        !self.to.is_empty()
    }

    /// The next question that is ready to be sent.
    pub(super) fn pop(&mut self) -> Option<(&[u8], SocketAddr)> {
        let to = self.to.pop_front()?;
        Some((self.questions.pop()?, to))
    }

    /// Number and time of the question, 61 bits that nobody can guess. The number lies so far before the first one that a
    /// late answer is never taken for the acknowledgement of a segment.
    fn token(&self, period: u64, name: &Name) -> (Sn, Millis) {
        let [first, second] = self.key;
        let mut hasher = SipHasher24::new_with_keys(first, second);
        (period, name).hash(&mut hasher);
        let [a, b, c, d, e, f, g, h] = hasher.finish().to_le_bytes();
        let before = LONG_AGO.cast_unsigned() | u32::from_le_bytes([a, b, c, d]) >> 3;
        (Sn(0).sub(before), Millis(u32::from_le_bytes([e, f, g, h])))
    }
}

const fn period(now: Time) -> u64 {
    now.as_micros() / PERIOD
}

/// How long a question can be answered, at least, µs: a long round trip, and the longest interval of ikcp.c.
const PERIOD: u64 = 8_000_000;
/// Most first datagrams kept; 190 KB, if each is as long as it may be by default.
const KEPT_MAX: usize = 128;
/// How long one is kept at most: a client that starts over may use the same port and conversation.
const KEEP: Duration = Duration::from_secs(2);
/// Most questions that wait. A driver reads no more datagrams than that before it sends.
const QUESTIONS_MAX: usize = 512;
/// The number of no peer, for the envelope of a question.
const STRANGER: u64 = u64::MAX;
