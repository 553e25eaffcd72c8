//! How a function enters a control block, and what it does with what comes out: datagrams, events, the end of the block.

use super::block::IKCPCB;
use super::congestion::{self, Callbacks, Event};
use super::control::{Control, Emitted};
use super::fields::{Knobs, State};
use crate::guard::Object as _;
use std::ffi::c_int;
use std::ptr::addr_of_mut;

/// What is behind a control block that C holds. The block itself comes first.
#[repr(C)]
pub(super) struct Block {
    public: IKCPCB,
    /// Set during a call, so that calls from callbacks are detected.
    pub(super) busy: bool,
    /// Functions that are running and call back: until the last returns, the block is not freed.
    pub(super) running: u32,
    /// Whether the program has released it.
    pub(super) is_released: bool,
    /// Set while its congestion control is told to end.
    drops_control: bool,
    /// Events to report to the callbacks of a congestion control.
    events: Vec<Event>,
    control: Control,
}

impl Block {
    pub(super) const fn new(control: Control, public: IKCPCB) -> Self {
        Self {
            public,
            busy: false,
            running: 0,
            is_released: false,
            drops_control: false,
            events: Vec::new(),
            control,
        }
    }
}

/// Returned by functions that cannot do what they are asked.
pub(super) const MISUSE: c_int = -1;
const LOG_OUTPUT: c_int = 1;
pub(super) const LOG_INPUT: c_int = 2;

/// Calls `f`, after taking the settings of the program and before giving it the datagrams.
///
/// # Safety
///
/// `kcp` is null or a control block that was not released, used by one thread at a time.
pub(super) unsafe fn enter(kcp: *mut IKCPCB, f: impl FnOnce(&mut Control) -> c_int) -> c_int {
    // SAFETY: as the caller says.
    unsafe { hold(kcp, |kcp| run(kcp, f)) }
}

/// Calls `f` with a block that is not busy, and frees it afterwards if the program has released it meanwhile.
///
/// # Safety
///
/// As [`enter`].
pub(super) unsafe fn hold(kcp: *mut IKCPCB, f: impl FnOnce(*mut IKCPCB) -> c_int) -> c_int {
    let block = kcp.cast::<Block>();
    // SAFETY: as the caller says.
    unsafe {
        if block.is_null() || (*block).busy || (*block).is_released {
            return MISUSE;
        }
        (*block).running += 1;
        let answer = f(kcp);
        (*block).running -= 1;
        if (*block).is_released && (*block).running == 0 {
            free(kcp);
        }
        answer
    }
}

/// # Safety
///
/// As [`enter`], from [`hold`].
unsafe fn run(kcp: *mut IKCPCB, f: impl FnOnce(&mut Control) -> c_int) -> c_int {
    let block = kcp.cast::<Block>();
    // SAFETY: as the caller says. No reference to the block lives while callbacks run: they write to it through the
    // pointer.
    unsafe {
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

/// Gives datagrams to the program until it releases the block, and keeps their memory for later ones.
///
/// # Safety
///
/// As [`run`].
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
/// As [`enter`]; `line` ends with a zero byte.
pub(super) unsafe fn log(kcp: *mut IKCPCB, line: &str) {
    // SAFETY: as the caller says.
    unsafe {
        if let Some(write) = (*kcp).writelog {
            write(line.as_ptr().cast(), kcp, (*kcp).user);
        }
    }
}

/// Ends the program's congestion control.
///
/// # Safety
///
/// As [`enter`].
pub(super) unsafe fn drop_control(kcp: *mut IKCPCB) {
    // SAFETY: as the caller says.
    unsafe {
        let block = kcp.cast::<Block>();
        if std::mem::replace(&mut (*block).drops_control, true) {
            return; // it releases the block
        }
        if let Some(release) = (*kcp).ccops.as_ref().and_then(|ops| ops.release) {
            release(kcp);
        }
        (*kcp).ccops = std::ptr::null();
        (*block).drops_control = false;
    }
}

/// # Safety
///
/// The block was released, and no function is running.
pub(super) unsafe fn free(kcp: *mut IKCPCB) {
    // SAFETY: as the caller says.
    let block = unsafe { Box::from_raw(kcp.cast::<Block>()) };
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(block)));
}
