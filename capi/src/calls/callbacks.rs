//! What the library calls back.

use super::{Program, control_blocks, u8};
use crate::ikcp::{IKCPCB, IKCPOPS, ikcp_send};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null;

/// Keeps the datagram, and sometimes calls any function, on the same block too.
pub(super) unsafe extern "C" fn output(
    buf: *const c_char,
    len: c_int,
    _: *mut IKCPCB,
    user: *mut c_void,
) -> c_int {
    let program = user.cast::<Program>();
    // SAFETY: `user` is the program, and `buf` has `len` bytes.
    unsafe {
        (*program).called_back += 1;
        let datagram = std::slice::from_raw_parts(buf.cast::<u8>(), usize::try_from(len).unwrap_or(0));
        if (*program).flying.len() < 32 {
            (*program).flying.push_back(datagram.to_vec());
        }
        if (*program).depth < 3 && u8(program).is_multiple_of(4) {
            (*program).depth += 1;
            control_blocks::call(program);
            (*program).depth -= 1;
        }
    }
    0
}

pub(super) unsafe extern "C" fn write_log(line: *const c_char, _: *mut IKCPCB, _: *mut c_void) {
    // SAFETY: it ends with a zero byte.
    assert!(!unsafe { CStr::from_ptr(line) }.is_empty());
}

/// Turns a knob. No function answers here.
unsafe fn turn(kcp: *mut IKCPCB) {
    // SAFETY: `user` of the block is the program.
    unsafe {
        let program = (*kcp).user.cast::<Program>();
        (*program).called_back += 1;
        assert_eq!(ikcp_send(kcp, null(), 1), -1);
        control_blocks::set_field(program, kcp);
        if u8(program) == 255 {
            control_blocks::release(program, kcp);
        }
    }
}

unsafe extern "C" fn begin(_: *mut IKCPCB) -> c_int {
    0
}

unsafe extern "C" fn refuse(_: *mut IKCPCB) -> c_int {
    -1
}

unsafe extern "C" fn plain(kcp: *mut IKCPCB) {
    // SAFETY: as `turn`.
    unsafe { turn(kcp) }
}

unsafe extern "C" fn one(kcp: *mut IKCPCB, _: u32) {
    // SAFETY: as `turn`.
    unsafe { turn(kcp) }
}

unsafe extern "C" fn rtt(kcp: *mut IKCPCB, _: i32) {
    // SAFETY: as `turn`.
    unsafe { turn(kcp) }
}

unsafe extern "C" fn three(kcp: *mut IKCPCB, _: u32, _: u32, _: u32) {
    // SAFETY: as `turn`.
    unsafe { turn(kcp) }
}

unsafe extern "C" fn sent(kcp: *mut IKCPCB, _: u32, _: u32, _: u32, _: u32, _: u32) {
    // SAFETY: as `turn`.
    unsafe { turn(kcp) }
}

unsafe extern "C" fn pace(kcp: *mut IKCPCB) -> u32 {
    // SAFETY: `user` of the block is the program.
    unsafe { u32::from(u8((*kcp).user.cast())) << 4 }
}

const NOTHING: IKCPOPS = IKCPOPS {
    name: null(),
    init: None,
    release: None,
    on_ack: None,
    on_fast_retransmit: None,
    on_timeout: None,
    on_tick: None,
    on_app_limited: None,
    on_rtt: None,
    on_pkt_sent: None,
    on_pkt_acked: None,
    get_info: None,
    pacing_rate: None,
};
/// Has no callbacks.
pub(super) static NONE: Ops = Ops(NOTHING);
/// Has them all.
pub(super) static FULL: Ops = Ops(IKCPOPS {
    init: Some(begin),
    release: Some(plain),
    on_ack: Some(three),
    on_fast_retransmit: Some(three),
    on_timeout: Some(one),
    on_tick: Some(plain),
    on_app_limited: Some(one),
    on_rtt: Some(rtt),
    on_pkt_sent: Some(sent),
    pacing_rate: Some(pace),
    ..NOTHING
});
/// Refuses.
pub(super) static REFUSING: Ops = Ops(IKCPOPS { init: Some(refuse), ..NOTHING });

/// May be in a static: nobody writes to it.
pub(super) struct Ops(IKCPOPS);

impl Ops {
    pub(super) const fn get(&self) -> *const IKCPOPS {
        &raw const self.0
    }
}

// SAFETY: as it says.
unsafe impl Sync for Ops {}
