//! The structures of ikcp.h 2.1.1, field by field: what programs read and set without a function.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::addr_of_mut;

/// A list of ikcp.c. It is always empty and never read.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IQUEUEHEAD {
    /// Itself.
    pub next: *mut Self,
    /// Itself.
    pub prev: *mut Self,
}

/// A control block with the layout of ikcp.h 2.1.1. Its fields are updated after each call. The fields that are
/// settings in ikcp.c are settings here too and take effect with the next call: `mtu` or `mss`, each of which moves the
/// other, `rx_minrto`, `snd_wnd`, `rcv_wnd`, `current`, `interval`, `nodelay`, `dead_link`, `fastresend`, `fastlimit`,
/// `nocwnd`, `stream`, `user`, `ccops`, `congest`, `logmask`, `output` and `writelog`. So do these state fields if the
/// program changes them: `conv`, `state`, `ssthresh`, `rx_rttval`, `rx_srtt`, `rx_rto`, `rmt_wnd`, `cwnd`, `xmit` and
/// `incr`.
#[repr(C)]
#[expect(missing_docs, reason = "the names of ikcp.h")]
pub struct IKCPCB {
    pub conv: u32,
    pub mtu: u32,
    pub mss: u32,
    /// All ones: the link is dead.
    pub state: u32,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub rcv_nxt: u32,
    /// Not supported: always 0, here and wherever it says so.
    pub ts_recent: u32,
    /// Not supported.
    pub ts_lastack: u32,
    pub ssthresh: u32,
    pub rx_rttval: i32,
    pub rx_srtt: i32,
    pub rx_rto: i32,
    pub rx_minrto: i32,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    pub rmt_wnd: u32,
    pub cwnd: u32,
    /// Not supported.
    pub probe: u32,
    pub current: u32,
    pub interval: u32,
    pub ts_flush: u32,
    pub xmit: u32,
    pub nrcv_buf: u32,
    pub nsnd_buf: u32,
    pub nrcv_que: u32,
    pub nsnd_que: u32,
    pub nodelay: u32,
    pub updated: u32,
    /// Not supported.
    pub ts_probe: u32,
    /// Not supported.
    pub probe_wait: u32,
    pub dead_link: u32,
    pub incr: u32,
    /// Always empty, like the other three queues. `nsnd_que`, `nrcv_que`, `nsnd_buf` and `nrcv_buf` have their lengths.
    pub snd_queue: IQUEUEHEAD,
    pub rcv_queue: IQUEUEHEAD,
    pub snd_buf: IQUEUEHEAD,
    pub rcv_buf: IQUEUEHEAD,
    /// Null.
    pub acklist: *mut u32,
    /// Not supported.
    pub ackcount: u32,
    /// Not supported.
    pub ackblock: u32,
    /// Not supported.
    pub ackedlen: u32,
    pub user: *mut c_void,
    /// Null.
    pub buffer: *mut c_char,
    pub fastresend: c_int,
    pub fastlimit: c_int,
    pub nocwnd: c_int,
    pub stream: c_int,
    pub ccops: *const IKCPOPS,
    pub congest: *mut c_void,
    pub logmask: c_int,
    /// Takes a datagram.
    pub output: Option<
        unsafe extern "C" fn(buf: *const c_char, len: c_int, kcp: *mut Self, user: *mut c_void) -> c_int,
    >,
    /// Takes a line of the log.
    pub writelog: Option<unsafe extern "C" fn(log: *const c_char, kcp: *mut Self, user: *mut c_void)>,
}

impl IKCPCB {
    pub(super) const fn new(conv: u32, user: *mut c_void) -> Self {
        // SAFETY: numbers, pointers and functions that there need not be.
        Self { conv, user, ..unsafe { std::mem::zeroed() } }
    }

    /// # Safety
    ///
    /// `kcp` points to a block that is not moved.
    pub(super) unsafe fn empty_queues(kcp: *mut Self) {
        // SAFETY: as the caller says.
        let queues = unsafe {
            [
                addr_of_mut!((*kcp).snd_queue),
                addr_of_mut!((*kcp).rcv_queue),
                addr_of_mut!((*kcp).snd_buf),
                addr_of_mut!((*kcp).rcv_buf),
            ]
        };
        for queue in queues {
            // SAFETY: they are parts of the block.
            unsafe { *queue = IQUEUEHEAD { next: queue, prev: queue } }
        }
    }
}

/// A congestion control of the program. `window` and `ssthresh` are the fields `cwnd` and `ssthresh` of the control
/// block, which the callbacks set. If a callback is null, what ikcp.c does there happens. Callbacks must not call
/// functions on the control block.
#[repr(C)]
#[expect(missing_docs, reason = "the names of ikcp.h")]
pub struct IKCPOPS {
    pub name: *const c_char,
    /// Returns 0 if it can begin.
    pub init: Option<unsafe extern "C" fn(kcp: *mut IKCPCB) -> c_int>,
    pub release: Option<unsafe extern "C" fn(kcp: *mut IKCPCB)>,
    pub on_ack: Option<
        unsafe extern "C" fn(kcp: *mut IKCPCB, acked_segs: u32, acked_bytes: u32, prior_in_flight: u32),
    >,
    pub on_fast_retransmit:
        Option<unsafe extern "C" fn(kcp: *mut IKCPCB, fast_retrans: u32, inflight: u32, prior_cwnd: u32)>,
    pub on_timeout: Option<unsafe extern "C" fn(kcp: *mut IKCPCB, prior_cwnd: u32)>,
    pub on_tick: Option<unsafe extern "C" fn(kcp: *mut IKCPCB)>,
    pub on_app_limited: Option<unsafe extern "C" fn(kcp: *mut IKCPCB, inflight: u32)>,
    pub on_rtt: Option<unsafe extern "C" fn(kcp: *mut IKCPCB, rtt: i32)>,
    pub on_pkt_sent:
        Option<unsafe extern "C" fn(kcp: *mut IKCPCB, sn: u32, ts: u32, len: u32, inflight: u32, xmit: u32)>,
    /// Never called: acknowledgements are reported per datagram here; see `on_ack`.
    pub on_pkt_acked:
        Option<unsafe extern "C" fn(kcp: *mut IKCPCB, sn: u32, ts: u32, len: u32, rtt: i32, xmit: u32)>,
    /// Never called: nothing asks for it.
    pub get_info: Option<unsafe extern "C" fn(kcp: *mut IKCPCB, buf: *mut c_void, bufsize: u32) -> u32>,
    /// Payload bytes that one flush may send, every `interval`. Above 2^31: unlimited.
    pub pacing_rate: Option<unsafe extern "C" fn(kcp: *mut IKCPCB) -> u32>,
}
