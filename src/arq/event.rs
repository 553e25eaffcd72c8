//! What a control block can tell of itself, event by event.

use crate::events::{Lost, VERSION};
use crate::seq::{Conv, Sn};
use std::fmt;

/// Something that a control block did, from [`Kcp::poll_log`](super::Kcp::poll_log). Displayed, it is the fields of its line: docs/EVENTS.md
/// has them with their meaning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum KcpEvent {
    /// The log begins here.
    #[non_exhaustive]
    Start {
        /// The conversation.
        conv: Conv,
        /// The oldest number not acknowledged.
        snd_una: Sn,
        /// The number that the next new segment gets.
        snd_nxt: Sn,
        /// The number expected next from the peer.
        rcv_nxt: Sn,
        /// Largest payload of a segment, bytes.
        mss: u16,
    },
    /// Segments were sent for the first time: `n` from `sn` on, `bytes` of payload in all.
    #[non_exhaustive]
    Send {
        /// The first.
        sn: Sn,
        /// How many.
        n: u32,
        /// Their payload.
        bytes: u64,
    },
    /// A segment was sent again.
    #[non_exhaustive]
    Resend {
        /// Which.
        sn: Sn,
        /// Its payload.
        bytes: u16,
        /// How often it has been sent now.
        xmit: u16,
        /// Why.
        cause: Cause,
    },
    /// Repairs were sent, or copies to a peer that does not rebuild.
    #[non_exhaustive]
    Repair {
        /// How many.
        n: u32,
    },
    /// A flush acknowledges segments.
    #[non_exhaustive]
    Acks {
        /// ACKs that leave.
        n: u32,
        /// All before this have come.
        una: Sn,
        /// The window that the peer is told, segments.
        wnd: u16,
    },
    /// A flush asks for the peer's window, or tells ours.
    #[non_exhaustive]
    Probe {
        /// It asks.
        ask: bool,
        /// It tells.
        tell: bool,
    },
    /// A flush handed out datagrams.
    #[non_exhaustive]
    Out {
        /// Segments in them, of every command.
        segments: u64,
        /// Their length in all.
        bytes: u64,
    },
    /// A good datagram came.
    #[non_exhaustive]
    In {
        /// Segments in it, of every command.
        segments: u64,
        /// Its length.
        bytes: u64,
    },
    /// What came goes on from what is there.
    #[non_exhaustive]
    Recv {
        /// The number expected next now.
        rcv_nxt: Sn,
        /// Segments more in order.
        n: u32,
    },
    /// Segments came that had come before.
    #[non_exhaustive]
    Duplicate {
        /// How many.
        n: u32,
    },
    /// Segments were rebuilt from repairs.
    #[non_exhaustive]
    Rebuilt {
        /// How many.
        n: u32,
    },
    /// A datagram or a segment was refused or ignored.
    #[non_exhaustive]
    Reject {
        /// The field of [`Rejected`](super::Rejected) that counts it.
        reason: &'static str,
        /// How many.
        n: u64,
    },
    /// Segments were acknowledged.
    #[non_exhaustive]
    Ack {
        /// The oldest number not acknowledged now.
        una: Sn,
        /// Segments that are no more in flight.
        n: u32,
        /// Their payload.
        bytes: u32,
    },
    /// A round trip was measured. All in µs.
    #[non_exhaustive]
    Rtt {
        /// This one.
        rtt: u32,
        /// Smoothed.
        srtt: u32,
        /// Mean deviation.
        rttvar: u32,
        /// The timeout that follows.
        rto: u32,
    },
    /// A window is another one. All in segments.
    #[non_exhaustive]
    Window {
        /// Congestion window.
        cwnd: u32,
        /// Window above which that grows slowly, if the controller has one.
        ssthresh: Option<u32>,
        /// The peer's, as last heard.
        rmt_wnd: u16,
    },
    /// A queue is longer or shorter than before. All in segments.
    #[non_exhaustive]
    Queue {
        /// Waiting to be sent.
        snd_queue: u32,
        /// Sent and not acknowledged.
        in_flight: u32,
        /// In order and not read.
        rcv_queue: u32,
        /// Waiting for earlier ones.
        rcv_buf: u32,
    },
    /// What was measured of the path was forgotten, for it is another one.
    Path,
    /// The peer acknowledges nothing: see [`Kcp::is_dead`](super::Kcp::is_dead).
    Dead,
    /// The log was full, and older events were forgotten.
    #[non_exhaustive]
    Lost {
        /// How many.
        n: u64,
    },
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

impl Cause {
    const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Silence => "silence",
            Self::FastAck => "fastack",
            Self::Overtaken => "overtaken",
        }
    }
}

impl From<Lost> for KcpEvent {
    fn from(Lost(n): Lost) -> Self {
        Self::Lost { n }
    }
}

impl fmt::Display for KcpEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Start { conv: Conv(conv), snd_una: Sn(snd_una), snd_nxt: Sn(snd_nxt), rcv_nxt, mss } => {
                write!(f, r#""e":"start","version":{VERSION},"conv":{conv},"snd_una":{snd_una},"#)?;
                write!(f, r#""snd_nxt":{snd_nxt},"rcv_nxt":{},"mss":{mss}"#, rcv_nxt.0)
            }
            Self::Send { sn: Sn(sn), n, bytes } => {
                write!(f, r#""e":"send","sn":{sn},"n":{n},"bytes":{bytes}"#)
            }
            Self::Resend { sn: Sn(sn), bytes, xmit, cause } => {
                let cause = cause.name();
                write!(f, r#""e":"resend","sn":{sn},"bytes":{bytes},"xmit":{xmit},"cause":"{cause}""#)
            }
            Self::Repair { n } => write!(f, r#""e":"repair","n":{n}"#),
            Self::Acks { n, una: Sn(una), wnd } => {
                write!(f, r#""e":"acks","n":{n},"una":{una},"wnd":{wnd}"#)
            }
            Self::Probe { ask, tell } => write!(f, r#""e":"probe","ask":{ask},"tell":{tell}"#),
            Self::Out { segments, bytes } => write!(f, r#""e":"out","segments":{segments},"bytes":{bytes}"#),
            Self::In { segments, bytes } => write!(f, r#""e":"in","segments":{segments},"bytes":{bytes}"#),
            Self::Recv { rcv_nxt: Sn(rcv_nxt), n } => write!(f, r#""e":"recv","rcv_nxt":{rcv_nxt},"n":{n}"#),
            Self::Duplicate { n } => write!(f, r#""e":"duplicate","n":{n}"#),
            Self::Rebuilt { n } => write!(f, r#""e":"rebuilt","n":{n}"#),
            Self::Reject { reason, n } => write!(f, r#""e":"reject","reason":"{reason}","n":{n}"#),
            Self::Ack { una: Sn(una), n, bytes } => {
                write!(f, r#""e":"ack","una":{una},"n":{n},"bytes":{bytes}"#)
            }
            Self::Rtt { rtt, srtt, rttvar, rto } => {
                write!(f, r#""e":"rtt","rtt":{rtt},"srtt":{srtt},"rttvar":{rttvar},"rto":{rto}"#)
            }
            Self::Window { cwnd, ssthresh, rmt_wnd } => {
                write!(f, r#""e":"window","cwnd":{cwnd},"rmt_wnd":{rmt_wnd}"#)?;
                ssthresh.map_or(Ok(()), |ssthresh| write!(f, r#","ssthresh":{ssthresh}"#))
            }
            Self::Queue { snd_queue, in_flight, rcv_queue, rcv_buf } => {
                write!(f, r#""e":"queue","snd_queue":{snd_queue},"in_flight":{in_flight},"#)?;
                write!(f, r#""rcv_queue":{rcv_queue},"rcv_buf":{rcv_buf}"#)
            }
            Self::Path => write!(f, r#""e":"path""#),
            Self::Dead => write!(f, r#""e":"dead""#),
            Self::Lost { n } => write!(f, r#""e":"lost","n":{n}"#),
        }
    }
}
