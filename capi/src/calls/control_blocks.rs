//! Calls of the functions of ikcp.h.

use super::callbacks::{FULL, NONE, REFUSING, output, write_log};
use super::{Program, any_size, int, memory, number, one_of, u8};
use crate::ikcp::{
    IKCPCB, ikcp_allocator, ikcp_check, ikcp_create, ikcp_flush, ikcp_getconv, ikcp_input, ikcp_nodelay,
    ikcp_peeksize, ikcp_recv, ikcp_release, ikcp_send, ikcp_setcc, ikcp_setmtu, ikcp_setoutput, ikcp_update,
    ikcp_waitsnd, ikcp_wndsize, ww_kcp_by_time,
};
use std::ffi::{c_int, c_long};
use std::ptr::{addr_of_mut, null, null_mut};

/// One call. From callbacks none that makes a block.
///
/// # Safety
///
/// The program lives, and nobody else uses it now.
pub(super) unsafe fn call(program: *mut Program) {
    // SAFETY: as the caller says.
    unsafe {
        let kcp = one_of(program, (*program).kcps);
        match u8(program) % 32 {
            0 if (*program).depth == 0 => renew(program, usize::from(u8(program) % 2)),
            1 => assert!((-3..=70_000).contains(&receive(program, kcp))),
            2..5 => send(program, kcp),
            5 => ikcp_update(kcp, number(program)),
            6..9 if !kcp.is_null() => ikcp_update(kcp, (*kcp).current.wrapping_add(number(program) % 512)),
            9 => _ = ikcp_check(kcp, number(program)),
            10..15 => deliver(program, kcp),
            15 => raw(program, kcp),
            16 => ikcp_flush(kcp),
            17 => assert!(ikcp_peeksize(kcp) >= -1 && ikcp_waitsnd(kcp) >= -1),
            18 => assert!((-1..=0).contains(&ikcp_setmtu(kcp, int(program)))),
            19 => _ = ikcp_wndsize(kcp, int(program), int(program)),
            20 => _ = ikcp_nodelay(kcp, int(program), int(program), int(program), int(program)),
            21 if (*program).depth == 0 => {
                let which = usize::from(u8(program));
                let ops = [null(), FULL.get(), NONE.get(), REFUSING.get()];
                assert!((-1..=0).contains(&ikcp_setcc(kcp, ops.get(which % 4).copied().unwrap_or(null()))));
            }
            22 => ikcp_allocator(None, None),
            23 => {
                let memory = memory(program);
                let is_long = memory.len() >= 4;
                _ = ikcp_getconv(if is_long { memory.as_ptr().cast() } else { null() });
            }
            24 => _ = ww_kcp_by_time(kcp, int(program)),
            25 => ikcp_setoutput(kcp, (!u8(program).is_multiple_of(4)).then_some(output)),
            26 if (*program).depth > 0 => release(program, kcp),
            26.. if !kcp.is_null() => set_field(program, kcp),
            _ => {}
        }
    }
}

/// Frees a block and makes another in its place.
///
/// # Safety
///
/// As [`call`]; `which` is below 2.
pub(super) unsafe fn renew(program: *mut Program, which: usize) {
    // SAFETY: as the caller says.
    unsafe {
        let conv = u32::from(u8(program) % 2);
        let Some(place) = (*program).kcps.get_mut(which) else { return };
        let old = std::mem::replace(place, null_mut());
        ikcp_release(old); // which may call back, so the place is empty now
        let kcp = ikcp_create(conv, program.cast());
        assert!(!kcp.is_null());
        ikcp_setoutput(kcp, Some(output));
        (*kcp).writelog = Some(write_log);
        let place = addr_of_mut!((*program).kcps).cast::<*mut IKCPCB>();
        *place.add(which) = kcp;
    }
}

/// Frees a block, in a callback perhaps, and leaves its place empty.
///
/// # Safety
///
/// As [`call`].
pub(super) unsafe fn release(program: *mut Program, kcp: *mut IKCPCB) {
    // SAFETY: as the caller says.
    unsafe {
        let place = addr_of_mut!((*program).kcps).cast::<*mut IKCPCB>();
        (0..2).filter(|which| *place.add(*which) == kcp).for_each(|which| *place.add(which) = null_mut());
        ikcp_release(kcp);
    }
}

unsafe fn receive(program: *mut Program, kcp: *mut IKCPCB) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        if u8(program).is_multiple_of(8) {
            return ikcp_recv(kcp, null_mut(), int(program));
        }
        let mut memory = memory(program);
        let len = c_int::try_from(memory.len()).unwrap_or(0);
        let sign = if u8(program).is_multiple_of(4) { -1 } else { 1 };
        ikcp_recv(kcp, memory.as_mut_ptr().cast(), sign * len)
    }
}

unsafe fn send(program: *mut Program, kcp: *mut IKCPCB) {
    // SAFETY: as the caller says.
    unsafe {
        if u8(program).is_multiple_of(8) {
            ikcp_send(kcp, null(), int(program).min(70_000));
        } else {
            let memory = memory(program);
            ikcp_send(kcp, memory.as_ptr().cast(), c_int::try_from(memory.len()).unwrap_or(0));
        }
    }
}

/// A datagram that was sent, sometimes with one byte changed.
unsafe fn deliver(program: *mut Program, kcp: *mut IKCPCB) {
    // SAFETY: as the caller says.
    unsafe {
        let Some(mut datagram) = (*program).flying.pop_front() else { return };
        if u8(program).is_multiple_of(8) {
            let at = usize::try_from(number(program)).unwrap_or(0) % datagram.len().max(1);
            let change = u8(program);
            datagram.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= change);
        }
        let len = c_long::try_from(datagram.len()).unwrap_or(0);
        assert!((-4..=0).contains(&ikcp_input(kcp, datagram.as_ptr().cast(), len)));
    }
}

unsafe fn raw(program: *mut Program, kcp: *mut IKCPCB) {
    // SAFETY: as the caller says.
    unsafe {
        if u8(program).is_multiple_of(8) {
            let size = c_long::try_from(any_size(program)).unwrap_or(c_long::MIN);
            assert!(ikcp_input(kcp, null(), size) < 0);
            return;
        }
        let len = usize::from(u8(program));
        let datagram: Vec<u8> = (0..len).map(|_| u8(program)).collect();
        let len = c_long::try_from(datagram.len()).unwrap_or(0);
        assert!((-4..=0).contains(&ikcp_input(kcp, datagram.as_ptr().cast(), len)));
    }
}

/// Writes to a field, as programs do to turn a knob.
///
/// # Safety
///
/// As [`call`], and the block lives.
pub(super) unsafe fn set_field(program: *mut Program, kcp: *mut IKCPCB) {
    // SAFETY: as the caller says.
    unsafe {
        let (which, number) = (u8(program) % 28, number(program));
        let int = number.cast_signed();
        match which {
            0 => (*kcp).conv = number % 2,
            1 => (*kcp).mtu = number,
            2 => (*kcp).mss = number,
            3 => (*kcp).state = number,
            4 => (*kcp).ssthresh = number,
            5 => (*kcp).rx_rttval = int,
            6 => (*kcp).rx_srtt = int,
            7 => (*kcp).rx_rto = int,
            8 => (*kcp).rx_minrto = int,
            9 => (*kcp).snd_wnd = number,
            10 => (*kcp).rcv_wnd = number,
            11 => (*kcp).rmt_wnd = number,
            12 => (*kcp).cwnd = number,
            13 => (*kcp).current = number,
            14 => (*kcp).interval = number,
            15 => (*kcp).nodelay = number,
            16 => (*kcp).dead_link = number,
            17 => (*kcp).xmit = number,
            18 => (*kcp).incr = number,
            19 => (*kcp).fastresend = int,
            20 => (*kcp).fastlimit = int,
            21 => (*kcp).nocwnd = int,
            22 => (*kcp).stream = int,
            23 => (*kcp).logmask = int,
            // Only shown, so these are overwritten.
            24 => (*kcp).snd_nxt = number,
            25 => (*kcp).nsnd_que = number,
            26 => (*kcp).ts_flush = number,
            _ => (*kcp).writelog = (number > 0).then_some(write_log),
        }
    }
}
