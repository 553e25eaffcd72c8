//! Which stored messages leave in the next packet, and which are given up because they are too old.

use super::super::ChannelStats;
use super::super::content::{Content, count_bits, id_bits, write_count, write_id};
use super::{Entry, Sender, State};
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
        self.time_out(now, resend);
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
        !self.chosen.is_empty()
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

    /// Makes messages due that were sent `resend` ago, the first of them.
    fn time_out(&mut self, now: Time, resend: Duration) {
        for _ in 0..TIMED_OUT_MAX {
            let first = self.first_under_way();
            let Some(id) = first.filter(|id| self.sent_at(*id).is_none_or(|sent| sent + resend <= now))
            else {
                return;
            };
            self.make_lost(id);
        }
    }

    /// Bits before the content: the count of messages before the first, and the id.
    pub(super) fn head_bits(&self, id: Seq16, previous: Option<Seq16>) -> usize {
        let count = if previous.is_none() { count_bits(&self.config) } else { 0 };
        count + id_bits(id, previous, &self.config)
    }
}

/// Bits of [`Content::Dropped`] at most.
const DROPPED_BITS: usize = 2;
/// Most messages that a packet passes over because they do not fit.
const MISFITS_MAX: u16 = 64;
/// Most messages that are found to be too old for a packet at once.
pub(super) const TIMED_OUT_MAX: u16 = 256;
