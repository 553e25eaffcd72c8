//! The memory of all sessions together, counted whenever one may have changed, and which session goes when it is used
//! up.

use super::ServerConfig;
use super::names::NAMES_MEMORY;
use super::seat::Peer;
use crate::time::Time;
use std::collections::BTreeSet;
use std::time::Duration;

/// Bytes that sessions hold, and their limit. A quarter is divided evenly among the most sessions there may be: that
/// is the share of each, which no other can take, even before it has joined. The rest is lent to whoever needs more.
/// When little of that is left, the session goes whose loan has not moved for longest.
///
/// Long messages that arrive for many sessions at once could use up all of it, each waiting for its own rest. So room
/// for the longest is a reserve that one session at a time may use.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    /// Bytes of the limit that only the holder may take.
    reserve: u64,
    /// The session that may use the reserve, and since when.
    holder: Option<(u32, Time)>,
    pub(super) used: u64,
    /// Bytes that only one session may take, and those of all.
    share: u64,
    shares: u64,
    /// Bytes that sessions hold beyond their shares.
    lent: u64,
    /// The part of them that will be free once those that have to go are gone.
    leaving: u64,
    /// Sessions with a loan, and when it has moved.
    loans: BTreeSet<(Time, u32)>,
    /// How often in a row a loan is excused that waits for the application.
    patience: u16,
}

/// What a session holds beyond its share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loan {
    /// When it has moved, and how much the session had moved by then.
    moved_at: Time,
    moved: u32,
    /// Bytes of it that will be free when the session is gone, which has to go; 0: it has not.
    leaving: u64,
    /// How often it has stood still and was excused.
    excused: u16,
    /// When the session was last seen to wait for memory.
    starved_at: Time,
}

impl Memory {
    pub(super) fn new(config: &ServerConfig) -> Self {
        let share = config.share();
        Self {
            limit: config.memory,
            reserve: config.session.longest_message().into(),
            holder: None,
            used: 0,
            share,
            shares: share * u64::from(config.max_sessions),
            lent: 0,
            leaving: 0,
            loans: BTreeSet::new(),
            patience: u16::try_from(config.session.slow_peer.as_secs()).unwrap_or(u16::MAX),
        }
    }

    /// Bytes that can be lent.
    const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.shares + self.reserve + self.lent)
    }

    const fn is_short(&self) -> bool {
        self.left() <= self.limit / 8
    }

    pub(super) fn admit(&mut self, peer: &mut Peer) {
        self.count(peer);
    }

    pub(super) fn dismiss(&mut self, id: u32, peer: &Peer) {
        self.replace(peer.counted, 0);
        if let Some(loan) = &peer.loan {
            self.close(id, **loan);
        }
        self.holder.take_if(|(holder, _)| *holder == id);
    }

    /// Returns how much a session may take before it is [counted](Self::spend).
    pub(super) fn grant(&self, peer: &mut Peer) -> u64 {
        let reserve = if peer.connection.holds_reserve() { 0 } else { self.reserve };
        let left = self.limit.saturating_sub(self.shares + self.lent + reserve)
            + self.share.saturating_sub(peer.counted);
        peer.connection.set_memory_left(left);
        left
    }

    pub(super) fn spend(&mut self, peer: &mut Peer, granted: u64) {
        let taken = granted.saturating_sub(peer.connection.memory_left());
        if taken == 0 {
            return;
        }
        let before = peer.counted;
        peer.counted += taken;
        let all = u64::from(peer.taken).saturating_add(taken);
        peer.taken = u16::try_from(all.min(RECOUNT.into())).unwrap_or(RECOUNT);
        peer.took = true;
        self.replace(before, peer.counted);
    }

    /// Counts a session anew. Looks at its channels, not at their contents. If memory is short, empty buffers are
    /// freed, and a session may have to give up the reserve or its long messages: returns which.
    pub(super) fn recount(&mut self, now: Time, id: u32, peer: &mut Peer) -> Option<u32> {
        let is_short = self.is_short();
        if is_short {
            peer.connection.trim();
        } else if std::mem::take(&mut peer.took) && peer.taken < RECOUNT && !peer.connection.clear_grown() {
            return None; // it remains, and counts as what it holds in the meantime
        }
        self.count(peer);
        self.note_loan(now, id, peer);
        if !peer.connection.holds_reserve() {
            self.holder.take_if(|(holder, _)| *holder == id);
        }
        if is_short {
            return self.reserve_for(now, id, peer);
        }
        if self.holder.take_if(|(holder, _)| *holder == id).is_some() {
            peer.connection.return_reserve(); // there is room for all again
        }
        None
    }

    /// If this session receives something that there is no memory for, it gets the reserve, unless another session holds
    /// it. Returns the session that has held it, or waited for it, for too long.
    fn reserve_for(&mut self, now: Time, id: u32, peer: &mut Peer) -> Option<u32> {
        let starved = peer.connection.starved()?;
        match self.holder {
            Some((holder, since)) if holder != id => {
                if now.since(since) >= HELD {
                    return Some(holder);
                }
            }
            Some(_) => {}
            None => {
                self.holder = Some((id, now));
                peer.connection.take_reserve(now);
                return None;
            }
        }
        (now.since(starved) >= STARVED).then_some(id)
    }

    /// Notes whether a session has a loan, and whether that has moved.
    fn note_loan(&mut self, now: Time, id: u32, peer: &mut Peer) {
        if peer.connection.starved().is_some()
            && let Some(loan) = &mut peer.loan
        {
            loan.starved_at = now;
        }
        let Peer { counted, loan, .. } = &*peer;
        let has_moved = |loan: &Loan| {
            let moved = peer.connection.moved().wrapping_sub(loan.moved);
            loan.leaving == 0 && u64::from(moved) >= counted / MOVES
        };
        if *counted <= self.share {
            if let Some(loan) = peer.loan.take() {
                self.close(id, *loan);
            }
        } else if loan.as_deref().is_none_or(has_moved) {
            self.renew(now, id, peer, 0);
        }
    }

    /// Whether the session of a [debtor](Self::debtor) has to go. It is excused, as if its loan had moved, for a while:
    /// if the application could read half of the loan, as long as clients wait for that, or if the session waits for
    /// memory. What peers send for an application that never reads must not hold loans for ever.
    pub(super) fn has_to_go(&mut self, now: Time, id: u32, peer: &mut Peer) -> bool {
        self.note_loan(now, id, peer); // it may have moved since it was polled
        let Some(loan) = peer.loan.as_deref().filter(|loan| now.since(loan.moved_at) >= STILL) else {
            return false;
        };
        let (lent, excused) = (peer.counted.saturating_sub(self.share), loan.excused);
        let starved = now.since(loan.starved_at) < STILL; // it has just begun to move
        let most = if 2 * peer.connection.unread() as u64 >= lent {
            self.patience
        } else if peer.connection.starved().map_or(starved, |since| now.since(since) < STARVED) {
            EXCUSES
        } else {
            0
        };
        if excused < most {
            self.renew(now, id, peer, excused + 1);
        }
        excused >= most
    }

    fn renew(&mut self, now: Time, id: u32, peer: &mut Peer, excused: u16) {
        let starved_at = peer.loan.as_ref().map_or(Time::ZERO, |loan| loan.starved_at);
        let loan = Loan { moved_at: now, moved: peer.connection.moved(), leaving: 0, excused, starved_at };
        match &mut peer.loan {
            Some(old) => self.close(id, std::mem::replace(old, loan)),
            none => *none = Some(Box::new(loan)),
        }
        self.loans.insert((now, id));
    }

    fn close(&mut self, id: u32, loan: Loan) {
        self.loans.remove(&(loan.moved_at, id));
        self.leaving -= loan.leaving;
    }

    /// If little is left, the session whose loan has not moved for longest. It may [have to go](Self::has_to_go).
    pub(super) fn debtor(&self, now: Time) -> Option<u32> {
        if self.left() + self.leaving > self.limit / 8 {
            return None;
        }
        let (moved_at, id) = self.loans.first()?;
        (now.since(*moved_at) >= STILL).then_some(*id)
    }

    /// Notes that a session with a loan has to go.
    pub(super) fn evict(&mut self, id: u32, peer: &mut Peer) {
        let Peer { counted, loan, .. } = peer;
        if let Some(loan) = loan {
            self.loans.remove(&(loan.moved_at, id));
            loan.leaving = counted.saturating_sub(self.share);
            self.leaving += loan.leaving;
        }
    }

    fn count(&mut self, peer: &mut Peer) {
        let held = (size_of::<Peer>() + peer.connection.memory()) as u64 + NAMES_MEMORY;
        peer.taken = 0;
        let before = std::mem::replace(&mut peer.counted, held);
        self.replace(before, held);
    }

    /// A session holds more or less than before.
    const fn replace(&mut self, before: u64, after: u64) {
        self.used = self.used.saturating_sub(before).saturating_add(after);
        let lent = self.lent.saturating_sub(before.saturating_sub(self.share));
        self.lent = lent.saturating_add(after.saturating_sub(self.share));
    }
}

/// A session is counted anew after it has taken this many bytes, and when it is polled without having taken any.
const RECOUNT: u16 = 1024;
/// A loan has moved once data of this part of what the session holds was acknowledged or read.
const MOVES: u64 = 8;
/// How long a loan may stand still when little is left.
const STILL: Duration = Duration::from_secs(1);
/// How often in a row it is excused while the session waits for memory: 8 s if the server is polled all the time, and
/// otherwise longer.
const EXCUSES: u16 = 8;
/// How long a session may hold the reserve while others wait for it.
const HELD: Duration = Duration::from_secs(5);
/// How long received data may find no room. The peer, which sends it again and again, would soon give up.
pub(super) const STARVED: Duration = Duration::from_secs(8);
