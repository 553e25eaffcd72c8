//! Calls the functions in any order and with any numbers, as bytes say, within what the header allows. The fuzz target
//! `capi` searches for bytes that break something, under AddressSanitizer; a test below runs some under Miri.

mod callbacks;
mod control_blocks;
mod sessions;

use crate::ikcp::{IKCPCB, ikcp_release};
use crate::session::client::{ww_client, ww_client_free};
use crate::session::server::{ww_server, ww_server_free};
use std::collections::VecDeque;
use std::ptr::null_mut;

/// A program in C: what it was given, and what it does next. Callbacks find it behind `user`, so it is always used through a pointer.
struct Program {
    /// Its actions as bytes. When none is left, all are zero.
    script: VecDeque<u8>,
    kcps: [*mut IKCPCB; 2],
    servers: [*mut ww_server; 2],
    clients: [*mut ww_client; 3],
    /// Datagrams that control blocks sent and nobody has received yet.
    flying: VecDeque<Vec<u8>>,
    /// Sessions of events.
    sessions: VecDeque<u32>,
    /// How many callbacks are running.
    depth: u8,
    called_back: u64,
}

/// Runs a program; then it frees everything. Returns how often it was called back.
///
/// # Panics
///
/// If a function answers what it must not.
pub(crate) fn calls(script: &[u8], with_sockets: bool) -> u64 {
    let program = Box::into_raw(Box::new(Program {
        script: script.iter().copied().collect(),
        kcps: [null_mut(); 2],
        servers: [null_mut(); 2],
        clients: [null_mut(); 3],
        flying: VecDeque::new(),
        sessions: VecDeque::new(),
        depth: 0,
        called_back: 0,
    }));
    // SAFETY: the program is used through this pointer only, and everything is freed once.
    unsafe {
        (0..2).for_each(|which| control_blocks::renew(program, which));
        while !(*program).script.is_empty() {
            if with_sockets && !u8(program).is_multiple_of(3) {
                sessions::call(program);
            } else {
                control_blocks::call(program);
            }
        }
        (*program).kcps.iter().for_each(|kcp| ikcp_release(*kcp));
        (*program).clients.iter().for_each(|client| ww_client_free(*client));
        (*program).servers.iter().for_each(|server| ww_server_free(*server));
        Box::from_raw(program).called_back
    }
}

/// # Safety
///
/// As all below: the program lives, and nobody else uses it now.
unsafe fn u8(program: *mut Program) -> u8 {
    // SAFETY: as the caller says.
    unsafe { (*program).script.pop_front().unwrap_or(0) }
}

/// Any number: mostly small, or at an end of its range.
unsafe fn number(program: *mut Program) -> u32 {
    // SAFETY: as the caller says.
    let next = || u32::from(unsafe { u8(program) });
    match next() {
        kind @ 0..128 => kind,
        kind @ 128..224 => kind << 8 | next(),
        224..232 => u32::MAX - next(),
        232..240 => (1 << 31) - 128 + next(),
        _ => u32::from_be_bytes([0; 4].map(|_: u8| u8::try_from(next()).unwrap_or(0))),
    }
}

unsafe fn int(program: *mut Program) -> i32 {
    // SAFETY: as the caller says.
    unsafe { number(program).cast_signed() }
}

/// Memory of exactly the size that is passed beside it, so that a byte too many is found.
unsafe fn memory(program: *mut Program) -> Vec<u8> {
    // SAFETY: as the caller says.
    let (len, fill) = unsafe { (number(program) % 70_000, u8(program)) };
    vec![fill; usize::try_from(len).unwrap_or(0)]
}

/// A length that a null pointer has beside it.
unsafe fn any_size(program: *mut Program) -> usize {
    // SAFETY: as the caller says.
    match unsafe { number(program) } {
        at @ 0x8000_0000.. => usize::MAX - usize::try_from(!at).unwrap_or(0),
        len => usize::try_from(len).unwrap_or(0),
    }
}

/// One of several objects, or null.
unsafe fn one_of<T, const N: usize>(program: *mut Program, objects: [*mut T; N]) -> *mut T {
    // SAFETY: as the caller says.
    let which = usize::from(unsafe { u8(program) });
    objects.get(which % 8 % (N + 1)).copied().unwrap_or(null_mut())
}

/// Some scripts.
#[cfg(test)]
fn seeds() -> Vec<Vec<u8>> {
    let random = |seed: u32| {
        let mut state = seed.wrapping_mul(2_654_435_761) | 1;
        let step = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        (0..400).map(step).collect()
    };
    [sessions::up()].into_iter().chain((1..32).map(random)).collect()
}

#[cfg(test)]
mod tests {
    /// Under Miri this finds what is undefined, in callbacks that call back among others.
    #[test]
    fn control_blocks_take_any_calls_in_any_order() {
        let most = if cfg!(miri) { 6 } else { 100 };
        let called_back: u64 =
            super::seeds().iter().take(most).map(|script| super::calls(script, false)).sum();
        assert!(called_back > most as u64, "{called_back}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no sockets")]
    fn sessions_take_any_calls_in_any_order() {
        super::seeds().iter().for_each(|script| _ = super::calls(script, true));
    }
}
