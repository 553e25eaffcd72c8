//! What a control block can tell of itself, event by event.

use crate::events::{Field, Line, events};
use crate::seq::{Conv, Sn};
use std::fmt;

events! {
    /// Something that a control block did, from [`Kcp::poll_log`](super::Kcp::poll_log). Displayed, it is the fields of its line: docs/EVENTS.md
    /// has them with their meaning.
    KcpEvent {
        /// The log begins here.
        "start" Start {
            conv: Conv = "The conversation.",
            snd_una: Sn = "The oldest number not acknowledged.",
            snd_nxt: Sn = "The number that the next new segment gets.",
            rcv_nxt: Sn = "The number expected next from the peer.",
            mss: u16 = "Largest payload of a segment, bytes.",
        },
        /// Segments were sent for the first time: `n` from `sn` on, `bytes` of payload in all.
        "send" Send { sn: Sn = "The first.", n: u32 = "How many.", bytes: u64 = "Their payload.", },
        /// A segment was sent again.
        "resend" Resend {
            sn: Sn = "Which.",
            bytes: u16 = "Its payload.",
            xmit: u16 = "How often it has been sent now.",
            cause: Cause = "Why.",
        },
        /// Repairs were sent, or copies to a peer that does not rebuild.
        "repair" Repair { n: u32 = "How many.", },
        /// A flush acknowledges segments.
        "acks" Acks {
            n: u32 = "ACKs that leave.",
            una: Sn = "All before this have come.",
            wnd: u16 = "The window that the peer is told, segments.",
        },
        /// A flush asks for the peer's window, or tells ours.
        "probe" Probe { ask: bool = "It asks.", tell: bool = "It tells.", },
        /// A flush handed out datagrams.
        "out" Out { segments: u64 = "Segments in them, of every command.", bytes: u64 = "Their length in all.", },
        /// A good datagram came.
        "in" In { segments: u64 = "Segments in it, of every command.", bytes: u64 = "Its length.", },
        /// What came goes on from what is there.
        "recv" Recv { rcv_nxt: Sn = "The number expected next now.", n: u32 = "Segments more in order.", },
        /// Segments came that had come before.
        "duplicate" Duplicate { n: u32 = "How many.", },
        /// Segments were rebuilt from repairs.
        "rebuilt" Rebuilt { n: u32 = "How many.", },
        /// A datagram or a segment was refused or ignored.
        "reject" Reject {
            reason: &'static str = "The field of [`Rejected`](super::Rejected) that counts it.",
            n: u64 = "How many.",
        },
        /// Segments were acknowledged.
        "ack" Ack {
            una: Sn = "The oldest number not acknowledged now.",
            n: u32 = "Segments that are no more in flight.",
            bytes: u32 = "Their payload.",
        },
        /// A round trip was measured. All in µs.
        "rtt" Rtt {
            rtt: u32 = "This one.",
            srtt: u32 = "Smoothed.",
            rttvar: u32 = "Mean deviation.",
            rto: u32 = "The timeout that follows.",
        },
        /// A window is another one. All in segments.
        "window" Window {
            cwnd: u32 = "Congestion window.",
            rmt_wnd: u16 = "The peer's, as last heard.",
            ssthresh: Option<u32> = "Window above which `cwnd` grows slowly, if the controller has one.",
        },
        /// A queue is longer or shorter than before. All in segments.
        "queue" Queue {
            snd_queue: u32 = "Waiting to be sent.",
            in_flight: u32 = "Sent and not acknowledged.",
            rcv_queue: u32 = "In order and not read.",
            rcv_buf: u32 = "Waiting for earlier ones.",
        },
        /// What was measured of the path was forgotten, for it is another one.
        "path" Path,
        /// The peer acknowledges nothing: see [`Kcp::is_dead`](super::Kcp::is_dead).
        "dead" Dead,
    }
}

impl Field for KcpEvent {
    fn write(&self, _name: &str, line: &mut Line<'_, '_>) -> fmt::Result {
        line.fields(self)
    }
}

/// Why a segment was sent again. The first two are counted in [`Stats::resends_timeout`](super::Stats::resends_timeout), the others in
/// [`Stats::resends_fast`](super::Stats::resends_fast).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// Its time was out.
    Timeout,
    /// Nothing has been acknowledged for long: the oldest, to see whether the path is up.
    Silence,
    /// Enough datagrams acknowledged later segments.
    FastAck,
    /// A transmission that left later has arrived.
    Overtaken,
}

impl Field for Cause {
    fn write(&self, name: &str, line: &mut Line<'_, '_>) -> fmt::Result {
        let cause = match self {
            Self::Timeout => "timeout",
            Self::Silence => "silence",
            Self::FastAck => "fastack",
            Self::Overtaken => "overtaken",
        };
        line.quoted(name, cause)
    }
}
