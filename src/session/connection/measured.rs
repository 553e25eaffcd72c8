//! What a connection has counted and measured, and knows to have arrived.

use super::Connection;
use super::acks::Arrived;
use super::loss::PathLoss;
use crate::arq::{Kcp, Stats};
use crate::message::Message;
use crate::pace::Rtt;
use crate::seq::{Seq16, Sn};
use crate::session::event::DatagramId;
use crate::session::repair::RepairStats;
use crate::session::stats::ConnectionStats;
use crate::time::Time;
use std::time::Duration;

/// Round trips and losses.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// By the handshake's end, by pings and by packets that are acknowledged.
    pub(super) rtt: Rtt,
    pub(super) in_use: Option<Box<InUse>>,
}

/// What a session at rest need not know. Made when there is something of it.
#[derive(Debug, Default)]
pub(super) struct InUse {
    /// What gets lost of what is sent.
    pub(super) loss: PathLoss,
    pub(super) arrived: Arrived,
    /// What left before then was held by a standstill, ours or of the path: what it took is no round trip.
    pub(super) held: Time,
}

impl Measured {
    pub(super) fn in_use(&mut self) -> &mut InUse {
        self.in_use.get_or_insert_default()
    }

    /// How long an acknowledgement may take, if the peer lets it wait as long as we do, `ack_delay`.
    pub(super) fn patience(&self, ack_delay: Duration) -> Duration {
        let rtt = self.rtt.smoothed_micros();
        Duration::from_micros(rtt.saturating_add(rtt / 2)) + ack_delay + SLACK
    }

    /// Takes the round trip of what left at a time, unless a standstill held it.
    pub(super) fn on_round_trip(&mut self, left: Time, rtt: Duration) {
        if self.in_use.as_ref().is_none_or(|in_use| left >= in_use.held) {
            self.rtt.sample(left, rtt);
        }
    }
}

impl<M: Message> Connection<M> {
    /// What was counted and measured.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        let Measured { rtt, in_use } = &self.measured;
        let (loss, undelivered) = (in_use.as_ref().map(|in_use| &in_use.loss), self.undelivered());
        let probes = self.mtu.counts();
        let mut stats = ConnectionStats {
            rtt: rtt.smoothed(),
            rttvar: rtt.jitter(),
            rtt_min: rtt.min(),
            loss: loss.and_then(|loss| loss.share(self.keepalive.now, u64::MAX)),
            packets_judged: loss.map_or(0, |loss| loss.judged),
            packets_lost: loss.map_or(0, |loss| loss.lost),
            lanes: self.lanes.totals(),
            datagrams_waiting: undelivered.datagrams,
            messages_unacked: undelivered.messages,
            memory: self.memory(),
            key_updates: self.seal.updates().0,
            mtu: self.mtu.current(),
            mtu_probes: probes.sent,
            mtu_probes_lost: probes.lost,
            black_holes: probes.black_holes,
            ecn: self.marks.as_ref().is_some_and(|marks| marks.is_valid()),
            congestion_marks: self.marks.as_ref().map_or(0, |marks| marks.total),
            mode: self.turns.mode(),
            repairs: self.repairs.as_ref().map_or_else(RepairStats::default, |repairs| repairs.stats()),
            ..ConnectionStats::default()
        };
        self.stats.show(&mut stats);
        self.stats.rare().show(&mut stats);
        stats
    }

    /// What a lane has counted and measured.
    #[must_use]
    pub fn lane_stats(&self, lane: usize) -> Option<Stats> {
        self.lanes.look(lane, Kcp::stats)
    }

    /// Takes the number of an unreliable datagram that is known to have arrived. Those never given may have arrived all the same.
    /// Of those that nobody asks for the newest 1024 are kept.
    pub fn pop_delivered(&mut self) -> Option<DatagramId> {
        self.datagrams.pop_delivered()
    }

    /// The number after the last segment of what was sent on a lane: what was sent so far has arrived when
    /// [`acked_up_to`](Self::acked_up_to) is not [before](Sn::is_before) it any more.
    #[must_use]
    pub fn sent_up_to(&self, lane: usize) -> Option<Sn> {
        self.lanes.look(lane, Kcp::snd_end)
    }

    /// The number before which all segments of a lane are known to have arrived.
    #[must_use]
    pub fn acked_up_to(&self, lane: usize) -> Option<Sn> {
        self.lanes.look(lane, Kcp::snd_una)
    }

    /// Takes the number of a message of a channel with `receipts` that is known to have arrived, as
    /// [`Channels::pop_delivered`](crate::message::channel::Channels::pop_delivered).
    pub fn pop_delivered_message(&mut self, channel: usize) -> Option<Seq16> {
        self.channels.as_mut()?.pop_delivered(channel)
    }

    /// Takes the number of a message of a channel that was given up, as
    /// [`Channels::pop_expired`](crate::message::channel::Channels::pop_expired).
    pub fn pop_expired_message(&mut self, channel: usize) -> Option<Seq16> {
        self.channels.as_mut()?.pop_expired(channel)
    }
}

/// What a round trip may take longer than the last ones, and half of it.
const SLACK: Duration = Duration::from_millis(20);
