//! The functions of ikcp.h 2.1.1.
//!
//! They decide as ikcp.c does, except for what docs/DEVIATIONS.md of the library lists. If we refuse a datagram that
//! ikcp.c accepts, `ikcp_input` returns -4. Datagrams are passed to the output callback after a function has done its
//! work, not during it, so the callback may call any function. `ikcp_allocator` has no effect: memory is Rust's.
//! Programs compiled with the header of an older ikcp.c use another layout of the control block: recompile them with
//! ours.
#![expect(clippy::missing_safety_doc, reason = "the crate says it for all functions; others say what else")]

mod block;
mod congestion;
mod control;
mod enter;
mod fields;

pub use block::{IKCPCB, IKCPOPS, IQUEUEHEAD};

use crate::guard::{bytes, bytes_mut};
use control::{Control, least_rto};
use enter::{Block, LOG_INPUT, MISUSE, drop_control, enter, free, hold, log};
use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr::null_mut;
use ww::kcp::Config;
use ww::kcp::wire::{HEADER_LEN, conv_of};

/// Creates a control block for the conversation `conv`, or returns null if that fails. `user` is passed to the
/// callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn ikcp_create(conv: u32, user: *mut c_void) -> *mut IKCPCB {
    let made = std::panic::catch_unwind(|| Control::new(conv, user)).ok().flatten();
    let Some((control, public)) = made else { return null_mut() };
    let kcp = Box::into_raw(Box::new(Block::new(control, public))).cast();
    // SAFETY: it was made here.
    unsafe { IKCPCB::empty_queues(kcp) };
    kcp
}

/// Frees a control block and sends nothing. In a callback it takes effect when the function that called back returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_release(kcp: *mut IKCPCB) {
    let block = kcp.cast::<Block>();
    // SAFETY: as the caller says; a block that C holds begins with it.
    unsafe {
        if block.is_null() || (*block).is_released {
            return;
        }
        (*block).is_released = true;
        drop_control(kcp); // in which no function answers
        ((*kcp).output, (*kcp).writelog) = (None, None); // what they use may be freed next
        if (*block).running == 0 {
            free(kcp);
        }
    }
}

/// Sets the callback that receives datagrams. It may call any function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_setoutput(
    kcp: *mut IKCPCB,
    output: Option<
        unsafe extern "C" fn(buf: *const c_char, len: c_int, kcp: *mut IKCPCB, user: *mut c_void) -> c_int,
    >,
) {
    // SAFETY: as the caller says.
    if let Some(block) = unsafe { kcp.as_mut() } {
        block.output = output;
    }
}

/// Reads the next message. Returns its length; -1: there is none, -2: it has not arrived in full, -3: it is longer than
/// `len`. If `len` is negative, the message stays queued and may have up to -`len` bytes. If `buffer` is null, the
/// message is dropped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_recv(kcp: *mut IKCPCB, buffer: *mut c_char, len: c_int) -> c_int {
    let size = usize::try_from(len.unsigned_abs()).unwrap_or(0);
    // SAFETY: as the caller says.
    let buf = if buffer.is_null() { None } else { unsafe { bytes_mut(buffer.cast(), size) } };
    // SAFETY: the same.
    unsafe { enter(kcp, |control| control.recv(buf, len)) }
}

/// Queues a message. Returns its length, or in stream mode the bytes taken; -2: it needs more fragments than a window
/// has, -1: the queue is full. If `buffer` is null, sends `len` zero bytes (ikcp.c sends uninitialised memory).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_send(kcp: *mut IKCPCB, buffer: *const c_char, len: c_int) -> c_int {
    let Ok(size) = usize::try_from(len) else { return MISUSE };
    // SAFETY: as the caller says.
    let message = unsafe { bytes(buffer.cast(), size) };
    // SAFETY: the same.
    unsafe { enter(kcp, |control| control.send(message, size)) }
}

/// Flushes if an interval has passed. `current`: ms, of a monotonic clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_update(kcp: *mut IKCPCB, current: u32) {
    // SAFETY: as the caller says.
    unsafe {
        enter(kcp, |control| {
            control.update(current);
            0
        })
    };
}

/// When to call `ikcp_update` next, if nothing is sent or received before: not before `current`, and not after the next
/// flush.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_check(kcp: *const IKCPCB, current: u32) -> u32 {
    let mut due = current;
    // SAFETY: as the caller says.
    unsafe {
        let ts_flush = kcp.as_ref().map_or(0, |block| block.ts_flush);
        enter(kcp.cast_mut(), |control| {
            due = control.check(current, ts_flush);
            0
        })
    };
    due
}

/// Takes a datagram. Returns 0; -1: too short, or of another conversation, -2: shorter than it says, -3: unknown
/// command, -4: implausible. A refused datagram has changed nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_input(kcp: *mut IKCPCB, data: *const c_char, size: c_long) -> c_int {
    let Ok(size) = usize::try_from(size) else { return MISUSE };
    // SAFETY: as the caller says.
    let Some(datagram) = (unsafe { bytes(data.cast(), size) }) else { return MISUSE };
    // SAFETY: the same.
    unsafe {
        hold(kcp, |kcp| {
            if (*kcp).logmask & LOG_INPUT != 0 {
                log(kcp, &format!("[RI] {size} bytes\0"));
            }
            enter(kcp, |control| control.input(datagram))
        })
    }
}

/// Flushes now, with the time of the last `ikcp_update`. Does nothing before the first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_flush(kcp: *mut IKCPCB) {
    // SAFETY: as the caller says.
    unsafe {
        enter(kcp, |control| {
            control.flush();
            0
        })
    };
}

/// The length of the next message; -1: there is none, or it has not arrived in full.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_peeksize(kcp: *const IKCPCB) -> c_int {
    let size = |control: &mut Control| control.kcp.peek_size().and_then(|size| c_int::try_from(size).ok());
    // SAFETY: as the caller says.
    unsafe { enter(kcp.cast_mut(), |control| size(control).unwrap_or(-1)) }
}

/// Sets the size of the largest datagram, 50 to 65,507 bytes. Returns 0; -1: out of range, or larger segments are
/// waiting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_setmtu(kcp: *mut IKCPCB, mtu: c_int) -> c_int {
    let set = |control: &mut Control| {
        let mtu = u16::try_from(mtu).ok()?;
        let config = Config { mtu, ..*control.config() };
        control.configure(&config).then_some(0)
    };
    // SAFETY: as the caller says.
    unsafe { enter(kcp, |control| set(control).unwrap_or(-1)) }
}

/// Sets the windows, segments; 0 or less: unchanged. The receive window is 128 to 65,535.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_wndsize(kcp: *mut IKCPCB, sndwnd: c_int, rcvwnd: c_int) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        if let (Some(block), Ok(wnd @ 1..)) = (kcp.as_mut(), u32::try_from(sndwnd)) {
            block.snd_wnd = wnd;
        }
        if let (Some(block), Ok(wnd @ 1..)) = (kcp.as_mut(), u32::try_from(rcvwnd)) {
            block.rcv_wnd = wnd;
        }
        enter(kcp, |_| 0)
    }
}

/// Number of segments that are unacknowledged or unsent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_waitsnd(kcp: *const IKCPCB) -> c_int {
    // SAFETY: as the caller says.
    unsafe { enter(kcp.cast_mut(), |control| c_int::try_from(control.kcp.wait_snd()).unwrap_or(c_int::MAX)) }
}

/// Sets the settings with these names; negative: unchanged. `interval` is 10 to 5000 ms.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_nodelay(
    kcp: *mut IKCPCB,
    nodelay: c_int,
    interval: c_int,
    resend: c_int,
    nc: c_int,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        if let Some(block) = kcp.as_mut() {
            if let Ok(nodelay) = u32::try_from(nodelay) {
                block.nodelay = nodelay;
                block.rx_minrto = least_rto(nodelay).into();
            }
            if interval >= 0 {
                block.interval = u32::try_from(interval.clamp(10, 5000)).unwrap_or(5000);
            }
            if resend >= 0 {
                block.fastresend = resend;
            }
            if nc >= 0 {
                block.nocwnd = nc;
            }
        }
        enter(kcp, |_| 0)
    }
}

/// Installs a congestion control; null: that of ikcp.c. Returns 0; -1: its `init` refused, and that of ikcp.c is
/// installed. `ops` must live as long as it is installed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_setcc(kcp: *mut IKCPCB, ops: *const IKCPOPS) -> c_int {
    // SAFETY: as the caller says; no call is under way while `init` and `release` run.
    unsafe { hold(kcp, |kcp| set_control(kcp, ops)) }
}

/// # Safety
///
/// As [`ikcp_setcc`], from [`hold`].
unsafe fn set_control(kcp: *mut IKCPCB, ops: *const IKCPOPS) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        (*kcp.cast::<Block>()).busy = true;
        drop_control(kcp);
        (*kcp.cast::<Block>()).busy = false;
        if (*kcp.cast::<Block>()).is_released {
            return MISUSE;
        }
        (*kcp).congest = null_mut();
        (*kcp).ccops = ops;
        let said_no = ops.as_ref().and_then(|ops| ops.init).is_some_and(|init| init(kcp) < 0);
        if said_no {
            (*kcp).ccops = std::ptr::null();
            (*kcp).congest = null_mut();
        }
        if (*kcp).ccops.is_null() {
            congestion::set(&mut *kcp, (*kcp).cwnd.max(1));
        }
        enter(kcp, |_| if said_no { -1 } else { 0 })
    }
}

/// Has no effect: memory is Rust's.
#[unsafe(no_mangle)]
pub const extern "C" fn ikcp_allocator(
    _new_malloc: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
    _new_free: Option<unsafe extern "C" fn(*mut c_void)>,
) {
}

/// The conversation of a datagram of at least 4 bytes; 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_getconv(ptr: *const c_void) -> u32 {
    let mut header = [0; HEADER_LEN];
    // SAFETY: as the caller says.
    if let Some(conv) = unsafe { bytes(ptr.cast(), 4) } {
        header.iter_mut().zip(conv).for_each(|(to, from)| *to = *from);
    }
    conv_of(&header).map_or(0, |conv| conv.0)
}

/// Not in ikcp.h. 1: detect loss by timing instead of by the settings, as whitewater does by default; 0: as ikcp.c
/// does. For the lowest latency, also set `kcp->current` before `ikcp_input`, and call `ikcp_flush` after `ikcp_send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_kcp_by_time(kcp: *mut IKCPCB, is_by_time: c_int) -> c_int {
    // SAFETY: as the caller says.
    unsafe { enter(kcp, |control| if control.by_time(is_by_time != 0) { 0 } else { MISUSE }) }
}
