//! Which stored messages leave in the next packet, and which are given up because they are too old.

use super::super::ChannelStats;
use super::super::content::{Content, count_bits, id_bits, write_count, write_id};
use super::{Entry, Sender, State};
use crate::channel::Resend;
use crate::channel::config::RESEND_AFTER;
use crate::message::BitsError;
use crate::message::pack::BitWriter;
use crate::ring::push_newest;
use crate::seq::Seq16;
use crate::time::Time;
use std::time::Duration;

impl Sender {
    /// Chooses what is due and fits into so many bits and messages, the oldest first; `false`: nothing.
    pub(in crate::channel::packed) fn choose(
        &mut self,
        now: Time,
        resend: Duration,
        (room, most): (usize, u16),
    ) -> bool {
        self.chosen.clear();
        self.time_out(now, if resend.is_zero() { RESEND_AFTER } else { resend });
        let room = room.min(self.config.bits_per_packet as usize);
        let most = usize::from(most.min(self.config.messages_per_packet));
        let (mut bits, mut ahead, mut misfits) = (0, 0, 0);
        while let Some(id) = self.first_due(ahead) {
            if self.chosen.len() == most || misfits == MISFITS_MAX {
                break;
            }
            ahead = id.0.wrapping_sub(self.oldest.0) + 1;
            let Some(entry) = self.store.get(id) else { continue };
            let need = entry.bits + self.head_bits(id, self.chosen.last().copied());
            if bits + need <= room {
                bits += need;
                self.chosen.push(id);
            } else if !self.config.channel.kind.is_reliable() {
                break; // or the next one would overtake it
            } else {
                misfits += 1;
            }
        }
        if resend.is_zero() {
            self.choose_again(room - bits, most);
        }
        !self.chosen.is_empty()
    }

    /// Adds messages under way, as far as there is room for them, the one sent first first.
    fn choose_again(&mut self, mut room: usize, most: usize) {
        let mut next = self.order.as_ref().and_then(|order| order.under_way).map(|(first, _)| first);
        while let Some(id) = next.filter(|_| self.chosen.len() < most)
            && let Some(entry) = self.store.get(id)
        {
            next = entry.neighbours[1];
            let need = entry.bits + self.head_bits(id, self.chosen.last().copied());
            let Some(left) = room.checked_sub(need) else { return };
            room = left;
            self.chosen.push(id);
        }
    }

    pub(in crate::channel::packed) fn write(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        write_count(to, self.chosen.len(), &self.config)?;
        let mut previous = None;
        for &id in &self.chosen {
            write_id(to, id, previous, &self.config)?;
            if let Some(entry) = self.store.get(id) {
                entry.content.write(to, self.config.channel)?;
            }
            previous = Some(id);
        }
        Ok(())
    }

    /// Notes that the chosen messages have left. `carried` gets the ids that wait for an acknowledgement.
    pub(in crate::channel::packed) fn commit(
        &mut self,
        now: Time,
        packet: Seq16,
        stats: &mut ChannelStats,
        mut carried: impl FnMut(Seq16),
    ) {
        let mut chosen = std::mem::take(&mut self.chosen);
        for id in chosen.drain(..) {
            if self.config.resend == Resend::After(Duration::ZERO) {
                self.unlink(id); // it may still be under way
            }
            let Some(entry) = self.store.get_mut(id) else { continue };
            match entry.state {
                State::New => stats.sent += 1,
                State::UnderWay { .. } | State::Lost => stats.resends += 1,
            }
            entry.state = State::UnderWay { sent: now, packet };
            self.drop_due(id);
            self.link(id);
            if self.config.is_tracked() {
                carried(id);
            }
            if !self.config.channel.kind.is_reliable() {
                self.remove(id);
            }
        }
        self.chosen = chosen;
    }

    pub(in crate::channel::packed) fn expire(&mut self, now: Time, stats: &mut ChannelStats) {
        while let Some(id) = self.expiry.as_mut().and_then(|expiry| expiry.pop(now)) {
            self.unlink(id);
            self.make_due(id);
            let Some(entry) = self.store.get_mut(id) else { continue };
            self.bytes -= entry.content.held();
            let given_up = Entry::new(Content::Dropped, DROPPED_BITS, State::New, None);
            let given_up = std::mem::replace(entry, given_up);
            self.keep(given_up.content);
            stats.expired += 1;
            let told = &mut self.told.get_or_insert_default().expired;
            push_newest(told, id, self.config.send_buffer.into());
            self.tidy_expiry();
        }
    }

    /// Whatever expires first is still stored afterwards.
    pub(super) fn tidy_expiry(&mut self) {
        let Self { expiry, store, .. } = self;
        if let Some(expiry) = expiry {
            expiry.tidy(|at, id| store.get(id).is_some_and(|entry| entry.expires == Some(at)));
        }
    }

    /// The first message that is due and that the peer has room for, searched from this many after the oldest
    /// on, whatever the peer has received of those before.
    pub(super) fn first_due(&self, ahead: u16) -> Option<Seq16> {
        let window =
            if self.config.channel.kind.is_reliable() { self.config.receive_buffer } else { u16::MAX };
        let id = self.order.as_ref()?.due.first_from(self.oldest.add(ahead))?;
        let found = id.0.wrapping_sub(self.oldest.0);
        (found >= ahead && found < self.waiting().min(window)).then_some(id)
    }

    /// When messages under way are due again: `resend` after they were sent. While the peer is silent, that is only the
    /// oldest, which it certainly takes if the path carries anything, and more and more rarely.
    pub(super) fn times_out_at(&self, now: Time, resend: Duration) -> Option<Time> {
        let (first, last) = self.order.as_ref()?.under_way?;
        let silence = self.silence(now);
        if silence < patience(resend) {
            return self.sent_at(first).map(|sent| sent + resend);
        }
        self.sent_at(last).map(|sent| sent + resend.max(silence / PROBES))
    }

    /// Makes those messages due, the first of them.
    fn time_out(&mut self, now: Time, resend: Duration) {
        if let Some(order) = self.order.as_mut().filter(|order| order.under_way.is_some()) {
            order.progress.get_or_insert(now);
        }
        let is_silent = self.silence(now) >= patience(resend);
        for _ in 0..if is_silent { 1 } else { TIMED_OUT_MAX } {
            if self.times_out_at(now, resend).is_none_or(|at| at > now) {
                return;
            }
            let first = self.order.as_ref().and_then(|order| order.under_way);
            let Some((first, _)) = first else { return };
            self.make_lost(if is_silent { self.oldest } else { first });
        }
    }

    /// Whether the peer has been silent for `slow_peer` and longer than a few resends take.
    pub(in crate::channel::packed) fn is_stuck(
        &self,
        now: Time,
        resend: Duration,
        slow_peer: Duration,
    ) -> bool {
        self.silence(now) >= slow_peer.max(patience(resend))
    }

    /// Bits before the content: the count of messages before the first, and the id.
    pub(super) fn head_bits(&self, id: Seq16, previous: Option<Seq16>) -> usize {
        let count = if previous.is_none() { count_bits(&self.config) } else { 0 };
        count + id_bits(id, previous, &self.config)
    }
}

/// After how long without an acknowledgement a peer is silent: RESENDS resends at least.
fn patience(resend: Duration) -> Duration {
    PATIENCE.saturating_add(resend.max(RESEND_AFTER).saturating_mul(RESENDS))
}

const PATIENCE: Duration = Duration::from_secs(1);
const RESENDS: u32 = 4;
/// While a peer is silent, two resends are at least this part of the silence apart, as with KCP by time.
const PROBES: u32 = 32;
/// Bits of [`Content::Dropped`] at most.
const DROPPED_BITS: usize = 2;
/// Most messages that a packet passes over because they do not fit.
const MISFITS_MAX: u16 = 64;
/// Most messages that are found to be too old for a packet at once.
pub(super) const TIMED_OUT_MAX: u16 = 256;
