//! What a connection has counted and measured.

use super::{Connection, Repairs};
use crate::arq::Stats;
use crate::message::Message;
use crate::pace::Rtt;
use crate::session::repair::RepairStats;
use crate::session::stats::ConnectionStats;
use std::time::Duration;

impl<M: Message> Connection<M> {
    /// What was counted and measured.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        let (rtt, loss, undelivered) = (self.best_rtt(), self.sent.loss(), self.undelivered());
        let (probes, counted, rare) = (self.mtu.counts(), &self.stats, self.stats.rare());
        ConnectionStats {
            rtt: rtt.smoothed(),
            rttvar: rtt.jitter(),
            rtt_min: rtt.min(),
            loss: loss.share(),
            packets_judged: loss.judged(),
            packets_lost: loss.lost(),
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
            congestion_marks: self.marks.as_ref().map_or(0, |marks| marks.told()),
            mode: self.pacing.as_ref().map(|pacing| pacing.mode()),
            repairs: self.repairs.as_deref().map_or_else(RepairStats::default, Repairs::stats),
            sent: counted.sent,
            bytes_sent: counted.bytes_sent,
            received: counted.received,
            bytes_received: counted.bytes_received,
            pings: counted.pings,
            moves: rare.moves,
            datagrams_refused: rare.datagrams_refused,
            messages_refused: rare.messages_refused,
            redirects: rare.redirects,
            redirects_refused: rare.redirects_refused,
            rejected: rare.rejected,
        }
    }

    /// What a lane has counted and measured.
    #[must_use]
    pub fn lane_stats(&self, lane: usize) -> Option<Stats> {
        self.lanes.stats(lane)
    }

    /// Smoothed round trip; zero before the first.
    pub(super) fn rtt(&self) -> Duration {
        self.best_rtt().smoothed()
    }

    /// Of packets that were acknowledged, or else of pings.
    pub(super) fn best_rtt(&self) -> &Rtt {
        self.sent.rtt().unwrap_or(&self.rtt)
    }
}
