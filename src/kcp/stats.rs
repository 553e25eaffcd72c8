//! The statistics of a control block.

use super::modern::Rebuild;
use super::{InputError, Kcp, Observer, Work};
use crate::seq::Sn;
use crate::wire::Output;
use std::time::Duration;

stats! {
    /// What a control block has counted since it was made, and its current state. From
    /// [`Kcp::stats`](super::Kcp::stats).
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct Stats {
        /// The oldest unacknowledged number.
        pub snd_una: Sn,
        /// The number of the next new segment.
        pub snd_nxt: Sn,
        /// The number expected next from the peer.
        pub rcv_nxt: Sn,
        /// Smoothed round trip; zero before the first.
        pub srtt: Duration => "whitewater_kcp_srtt_seconds",
        /// Mean deviation of the round trip.
        pub rttvar: Duration => "whitewater_kcp_rttvar_seconds",
        /// Shortest round trip measured.
        pub min_rtt: Option<Duration> => "whitewater_kcp_min_rtt_seconds",
        /// Retransmission timeout of the next segment.
        pub rto: Duration => "whitewater_kcp_rto_seconds",
        /// Congestion window, segments; with `Congestion::None` it is updated but does not apply.
        pub cwnd: u32 => "whitewater_kcp_cwnd_segments",
        /// Window above which `cwnd` grows slowly, segments; `None`: the controller has none.
        pub ssthresh: Option<u32>,
        /// The peer's window as last heard, segments.
        pub rmt_wnd: u16 => "whitewater_kcp_rmt_wnd_segments",
        /// Segments sent and not acknowledged.
        pub in_flight: u32 => "whitewater_kcp_in_flight_segments",
        /// Segments that wait to be sent.
        pub snd_queue: u32 => "whitewater_kcp_snd_queue_segments",
        /// Segments received in order and not read.
        pub rcv_queue: u32 => "whitewater_kcp_rcv_queue_segments",
        /// Segments received that wait for earlier ones.
        pub rcv_buf: u32 => "whitewater_kcp_rcv_buf_segments",
        /// ACKs and `una` that come sooner than a round trip takes. They acknowledge nothing, or not yet.
        pub early_acks: u32 => "whitewater_kcp_early_acks_total",
    }
    counted by #[derive(Copy)] Counters {
        /// Segments sent, of every command, resends included.
        pub segments_sent: u64 => "whitewater_kcp_segments_sent_total",
        /// Segments received in good datagrams, of every command.
        pub segments_received: u64 => "whitewater_kcp_segments_received_total",
        /// Bytes of datagrams sent.
        pub bytes_sent: u64 => "whitewater_kcp_bytes_sent_total",
        /// Bytes of good datagrams received.
        pub bytes_received: u64 => "whitewater_kcp_bytes_received_total",
        /// Segments sent again because their timeout expired.
        pub resends_timeout: u32 => "whitewater_kcp_resends_total" [cause: "timeout", "Segments sent again"],
        /// Segments sent again because later ones were acknowledged.
        pub resends_fast: u32 => "whitewater_kcp_resends_total" [cause: "fast", "Segments sent again"],
        /// Repairs sent, copies to a peer that does not rebuild, and resends that were sent twice at once. None of
        /// these is a resend.
        pub repairs_sent: u32 => "whitewater_kcp_repairs_sent_total",
        /// Segments rebuilt from repairs.
        pub rebuilt: u32 => "whitewater_kcp_rebuilt_total",
        /// PUSH segments received more than once.
        pub duplicates: u32 => "whitewater_kcp_duplicates_total",
        /// What was refused or ignored, by reason.
        pub rejected: Rejected => "whitewater_kcp_rejected_total",
    }
}

reasons! {
    /// Datagrams and segments that were refused or ignored, by reason. The first eight count datagrams for which
    /// [`Kcp::input`](super::Kcp::input) returned an error.
    pub struct Rejected: u32, by InputError {
        too_short: TooShort,
        too_long: TooLong,
        conv: Conv,
        length: Length,
        command: Command,
        una: Una,
        ack_unsent: AckUnsent,
        fragment: Fragment,
        ;
        /// PUSH segments beyond the receive window; not acknowledged.
        window,
        /// PUSH segments whose `frg` does not continue that of their neighbour; not acknowledged.
        fragment_chain,
        /// ACKs whose echoed time is too old for a round trip; they still acknowledge.
        ts_age,
        /// Repairs that are malformed or useless.
        repair,
        /// PUSH segments received but not acknowledged, because too many acknowledgements wait already.
        ack_overflow,
    }
}

impl<O: Output> Kcp<O> {
    /// The counters and the current state.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let tick = if self.config.is_by_time() { Duration::from_micros(1) } else { Duration::from_millis(1) };
        let control = self.congestion.control();
        let mut stats = Stats {
            snd_una: self.sender.una(),
            snd_nxt: self.sender.nxt,
            rcv_nxt: self.receiver.nxt,
            srtt: tick * self.rtt.srtt,
            rttvar: tick * self.rtt.rttvar,
            min_rtt: self.rtt.min().map(|min| tick * min),
            rto: tick * self.rtt.rto,
            cwnd: control.window(),
            ssthresh: control.ssthresh(),
            rmt_wnd: self.sender.rmt_wnd,
            in_flight: self.sender.in_flight,
            snd_queue: self.sender.waiting(),
            rcv_queue: self.receiver.queued(),
            rcv_buf: self.receiver.parked,
            early_acks: self.early_acks(),
            ..Stats::default()
        };
        self.counters.show(&mut stats);
        stats
    }

    // Single figures for frequent use: gathering all of them takes longer.

    pub(crate) fn snd_una(&self) -> Sn {
        self.sender.una()
    }

    /// The number after the last segment, sent or waiting.
    pub(crate) fn snd_end(&self) -> Sn {
        self.sender.ring.end()
    }

    pub(crate) const fn rmt_wnd(&self) -> u16 {
        self.sender.rmt_wnd
    }

    pub(crate) fn waiting(&self) -> u32 {
        self.sender.waiting()
    }

    pub(crate) const fn broken_chains(&self) -> u32 {
        self.counters.rejected.fragment_chain
    }

    /// Bytes of heap that the control block owns, used or not, accurate to a few hundred. Does not walk over segments.
    /// Does not count the output and buffers shared with their owner.
    #[must_use]
    pub fn memory(&self) -> usize {
        let work = self.work.as_deref().map_or(0, Work::memory);
        self.sender.memory() + self.receiver.memory() + work
    }

    /// The part of those bytes that may grow by a datagram, and the room reserved for what is missing. Looks at nothing that a
    /// datagram does not touch.
    pub(crate) fn receive_memory(&self) -> usize {
        let work = |work: &Work| size_of::<Work>() + work.acks.memory() + work.memory_of_rebuild();
        let received = self.receiver.memory() + self.receiver.promised() as usize;
        received + self.work.as_deref().map_or(0, work)
    }

    /// Bytes of segments, headers included, that are held until they are read, and the room reserved for missing
    /// segments without which those cannot be read.
    pub(crate) fn receive_reserved(&self) -> u32 {
        self.receiver.reserved()
    }

    /// The reserved part of those bytes.
    pub(crate) fn receive_promised(&self) -> u32 {
        self.receiver.promised()
    }

    /// Bytes of segments that are held until they are read, headers included.
    #[inline]
    pub(crate) const fn receive_held(&self) -> u32 {
        self.receiver.held()
    }

    /// The part of those bytes that is in order. Walks over the segments.
    pub(crate) fn receive_in_order(&self) -> u32 {
        self.receiver.in_order()
    }

    /// Whether segments are held behind one that is missing.
    #[inline]
    pub(crate) const fn has_gaps(&self) -> bool {
        self.receiver.parked > 0
    }

    /// The number of the segment that is expected next, and how many were refused because they lay beyond the window.
    #[inline]
    pub(crate) const fn received_up_to(&self) -> (Sn, u32) {
        (self.receiver.nxt, self.counters.rejected.window)
    }

    /// Limits those bytes from now on. Segments beyond the limit are neither stored nor acknowledged, and the window
    /// closes before that.
    pub(crate) fn set_receive_room(&mut self, limit: u32) {
        let segment_max = self.config.rcv_mtu;
        if !self.receiver.has_limit(limit, segment_max) {
            self.make_room(|receiver| receiver.set_room(limit, segment_max));
        }
    }

    /// Bytes that messages take until they are acknowledged: payload and bookkeeping of their segments.
    pub(crate) fn send_held(&self) -> usize {
        self.sender.held()
    }

    /// Bytes that were acknowledged or read, headers of segments included. It wraps.
    pub(crate) const fn moved(&self) -> u32 {
        self.sender.acked().wrapping_add(self.receiver.bytes_read())
    }
}

impl Work {
    fn memory(&self) -> usize {
        size_of::<Self>()
            + self.acks.memory()
            + self.by_time.memory()
            + self.spare.capacity()
            + self.memory_of_rebuild()
            + self.observer.as_deref().map_or(0, Observer::memory)
    }

    fn memory_of_rebuild(&self) -> usize {
        self.rebuild.as_deref().map_or(0, Rebuild::memory)
    }
}

/// Adds one, without wrapping: strangers may increase a counter for years.
#[inline]
pub(super) fn count(counter: &mut u32) {
    *counter = counter.saturating_add(1);
}
