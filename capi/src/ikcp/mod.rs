//! The functions of ikcp.h 2.1.1.
//!
//! They decide as ikcp.c does, but for what docs/DEVIATIONS.md of the library says: what ikcp.c takes and we refuse, `ikcp_input` answers
//! with -4. Datagrams are put out when a function has done its work, not within; so the callback may call any of them. `ikcp_allocator`
//! changes nothing, memory is Rust's. Programs that were compiled with the header of an older ikcp.c read other places of the control block: they
//! are compiled anew with ours.
#![expect(clippy::missing_safety_doc, reason = "the crate says it for all functions; others say what else")]

mod block;
mod congestion;
mod control;
mod fields;

pub use block::{IKCPCB, IKCPOPS, IQUEUEHEAD};

use crate::guard::{Object, bytes, bytes_mut};
use congestion::{Callbacks, Event};
use control::{Control, Emitted, least_rto};
use fields::{Knobs, State};
use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr::{addr_of_mut, null_mut};
use ww::kcp::Config;
use ww::kcp::wire::{HEADER_LEN, conv_of};

/// What is behind a control block that was handed out: that comes first.
#[repr(C)]
struct Block {
    public: IKCPCB,
    /// Within a call: a callback that calls back finds it so.
    busy: bool,
    /// What the callbacks of a congestion control are to be told.
    events: Vec<Event>,
    control: Control,
}

/// Answers of functions that cannot do what they are asked.
const MISUSE: c_int = -1;
const LOG_OUTPUT: c_int = 1;
const LOG_INPUT: c_int = 2;

/// Calls `f`, between the knobs that the program has set and the datagrams that it is given.
///
/// # Safety
///
/// `kcp` is null or a control block that is not released, used by one thread at a time.
unsafe fn enter(kcp: *mut IKCPCB, f: impl FnOnce(&mut Control) -> c_int) -> c_int {
    let block = kcp.cast::<Block>();
    // SAFETY: as the caller says. No reference to the block lives while callbacks run: they get the pointer, and write through it.
    unsafe {
        if block.is_null() || (*block).busy {
            return MISUSE;
        }
        (*block).busy = true;
        let control = addr_of_mut!((*block).control);
        let has_control = !(*kcp).ccops.is_null();
        if has_control != (*control).has_control() {
            let callbacks = has_control.then(|| Callbacks::new(kcp, addr_of_mut!((*block).events)));
            (*control).set_congestion(callbacks);
        }
        let (knobs, state) = (Knobs::put_right(&mut *kcp), State::of(&*kcp));
        let (current, is_dead) = ((*kcp).current, (*kcp).state == u32::MAX);
        let answer = (*control).call(|control| {
            control.take(current, is_dead, knobs, &state);
            f(control)
        });
        let mut emitted = Emitted::default();
        (*addr_of_mut!((*block).control)).call(|control| {
            let stats = control.kcp.stats();
            control.show(&stats, &mut *addr_of_mut!((*block).public));
            emitted = std::mem::take(control.kcp.output_mut());
            0
        });
        if !(*addr_of_mut!((*block).events)).is_empty() {
            let mut events = std::mem::take(&mut *addr_of_mut!((*block).events));
            congestion::tell(kcp, &events);
            events.clear();
            *addr_of_mut!((*block).events) = events;
        }
        (*block).busy = false;
        if !emitted.ends.is_empty() {
            put_out(kcp, emitted);
        }
        answer
    }
}

/// Gives datagrams to the program, and keeps their memory for the next.
///
/// # Safety
///
/// As [`enter`]. A callback must not release the block.
unsafe fn put_out(kcp: *mut IKCPCB, mut emitted: Emitted) {
    let mut start = 0;
    for end in emitted.ends.drain(..) {
        let datagram = emitted.bytes.get(start..end).unwrap_or_default();
        start = end;
        let len = c_int::try_from(datagram.len()).unwrap_or(0);
        // SAFETY: as the caller says.
        unsafe {
            if (*kcp).logmask & LOG_OUTPUT != 0 {
                log(kcp, &format!("[RO] {len} bytes\0"));
            }
            if let Some(output) = (*kcp).output {
                output(datagram.as_ptr().cast(), len, kcp, (*kcp).user);
            }
        }
    }
    emitted.bytes.clear();
    // SAFETY: the same.
    let control = unsafe { &mut *addr_of_mut!((*kcp.cast::<Block>()).control) };
    control.call(|control| {
        if control.kcp.output().ends.is_empty() {
            *control.kcp.output_mut() = emitted;
        }
        0
    });
}

/// # Safety
///
/// As [`enter`]; `line` ends with a zero.
unsafe fn log(kcp: *mut IKCPCB, line: &str) {
    // SAFETY: as the caller says.
    unsafe {
        if let Some(write) = (*kcp).writelog {
            write(line.as_ptr().cast(), kcp, (*kcp).user);
        }
    }
}

/// A control block for the conversation `conv`; null if there is none to be had. `user` goes to the callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn ikcp_create(conv: u32, user: *mut c_void) -> *mut IKCPCB {
    let made = std::panic::catch_unwind(|| Control::new(conv, user)).ok().flatten();
    let Some((control, public)) = made else { return null_mut() };
    let kcp = Box::into_raw(Box::new(Block { public, busy: false, events: Vec::new(), control })).cast();
    // SAFETY: it was made here.
    unsafe { IKCPCB::empty_queues(kcp) };
    kcp
}

/// Ends it, sends nothing. From within a callback of a congestion control it does nothing, as no function does there; it must not be called from
/// within `output`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_release(kcp: *mut IKCPCB) {
    if kcp.is_null() {
        return;
    }
    // SAFETY: as the caller says; what was handed out begins with it.
    unsafe {
        if (*kcp.cast::<Block>()).busy {
            return;
        }
        if let Some(release) = (*kcp).ccops.as_ref().and_then(|ops| ops.release) {
            (*kcp.cast::<Block>()).busy = true;
            release(kcp);
        }
        let block = Box::from_raw(kcp.cast::<Block>());
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(block)));
    }
}

/// Sets the callback that takes datagrams. It may call any function but `ikcp_release`.
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

/// Takes the next message: its length; -1: none, -2: not all of it yet, -3: it is longer than `len`. With `len` below zero it stays, and
/// may be -`len` long. With `buffer` null it is thrown away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_recv(kcp: *mut IKCPCB, buffer: *mut c_char, len: c_int) -> c_int {
    let size = usize::try_from(len.unsigned_abs()).unwrap_or(0);
    // SAFETY: as the caller says.
    let buf = if buffer.is_null() { None } else { unsafe { bytes_mut(buffer.cast(), size) } };
    // SAFETY: the same.
    unsafe { enter(kcp, |control| control.recv(buf, len)) }
}

/// Queues a message: its length, or how much of it in stream mode; -2: it would take more fragments than a window has; -1: the queue is full.
/// With `buffer` null it is `len` bytes of 0; ikcp.c sends what the memory happens to hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_send(kcp: *mut IKCPCB, buffer: *const c_char, len: c_int) -> c_int {
    let Ok(size) = usize::try_from(len) else { return MISUSE };
    // SAFETY: as the caller says.
    let message = unsafe { bytes(buffer.cast(), size) };
    // SAFETY: the same.
    unsafe { enter(kcp, |control| control.send(message, size)) }
}

/// Flushes if an interval has passed. `current`: ms, of a clock that only goes forward.
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

/// When to call `ikcp_update` next, if nothing is sent or received until then: `current` at the earliest, the next flush at the latest.
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

/// Takes a datagram: 0; -1: too short, or of another conversation, -2: shorter than it says, -3: no command, -4: nothing that we believe. A
/// datagram that is refused has changed nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_input(kcp: *mut IKCPCB, data: *const c_char, size: c_long) -> c_int {
    let Ok(size) = usize::try_from(size) else { return MISUSE };
    // SAFETY: as the caller says.
    let Some(datagram) = (unsafe { bytes(data.cast(), size) }) else { return MISUSE };
    // SAFETY: the same.
    unsafe {
        if !kcp.is_null() && (*kcp).logmask & LOG_INPUT != 0 {
            log(kcp, &format!("[RI] {size} bytes\0"));
        }
        enter(kcp, |control| control.input(datagram))
    }
}

/// Flushes now, by the time of the last `ikcp_update`; nothing before the first.
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

/// The length of the next message; -1: none, or not all of it yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_peeksize(kcp: *const IKCPCB) -> c_int {
    let size = |control: &mut Control| control.kcp.peek_size().and_then(|size| c_int::try_from(size).ok());
    // SAFETY: as the caller says.
    unsafe { enter(kcp.cast_mut(), |control| size(control).unwrap_or(-1)) }
}

/// Sets the largest datagram, 50 to 65,507 bytes: 0; -1: out of range, or larger segments wait.
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

/// Sets the windows, segments; 0 or less: as it is. The receive window is 128 to 65,535.
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

/// Messages' segments that are not acknowledged, or not sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_waitsnd(kcp: *const IKCPCB) -> c_int {
    // SAFETY: as the caller says.
    unsafe { enter(kcp.cast_mut(), |control| c_int::try_from(control.kcp.wait_snd()).unwrap_or(c_int::MAX)) }
}

/// Sets the knobs of the same names; below zero: as it is. `interval` is 10 to 5000 ms.
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

/// Installs a congestion control, or with null the one of ikcp.c: 0; -1: its `init` said no, and there is the one of ikcp.c. `ops` lives as
/// long as it is installed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_setcc(kcp: *mut IKCPCB, ops: *const IKCPOPS) -> c_int {
    // SAFETY: as the caller says; no call is under way while `init` and `release` run.
    unsafe {
        if kcp.is_null() || (*kcp.cast::<Block>()).busy {
            return MISUSE;
        }
        if let Some(release) = (*kcp).ccops.as_ref().and_then(|ops| ops.release) {
            (*kcp.cast::<Block>()).busy = true;
            release(kcp);
            (*kcp.cast::<Block>()).busy = false;
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

/// Does nothing: memory is Rust's.
#[unsafe(no_mangle)]
pub const extern "C" fn ikcp_allocator(
    _new_malloc: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
    _new_free: Option<unsafe extern "C" fn(*mut c_void)>,
) {
}

/// The conversation that a datagram of at least 4 bytes is of; 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ikcp_getconv(ptr: *const c_void) -> u32 {
    let mut header = [0; HEADER_LEN];
    // SAFETY: as the caller says.
    if let Some(conv) = unsafe { bytes(ptr.cast(), 4) } {
        header.iter_mut().zip(conv).for_each(|(to, from)| *to = *from);
    }
    conv_of(&header).map_or(0, |conv| conv.0)
}

/// Not of ikcp.h: with 1, what is lost is found by time and not by the knobs, as whitewater does by itself; with 0 as ikcp.c does. Set
/// `kcp->current` before `ikcp_input`, and call `ikcp_flush` after `ikcp_send`, and it is as fast as it can be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_kcp_by_time(kcp: *mut IKCPCB, is_by_time: c_int) -> c_int {
    // SAFETY: as the caller says.
    unsafe { enter(kcp, |control| if control.by_time(is_by_time != 0) { 0 } else { MISUSE }) }
}
