//! Counts allocations of Rust and of ikcp.c alike: the requested bytes, without the allocator's overhead.

use crate::ikcp;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Starts counting, for a process with one thread: an atomic addition would cost those who allocate a lot. No control block may be alive, since memory that was allocated before and is freed later
/// would count as negative.
pub(crate) fn start() {
    ikcp::set_allocator(malloc, free);
    COUNTING.store(true, Relaxed);
}

/// Bytes that are freed when `value` is dropped.
pub(crate) fn of<T>(value: T) -> usize {
    let before = LIVE.load(Relaxed);
    drop(value);
    before - LIVE.load(Relaxed)
}

/// Bytes allocated since [`start`] and not freed.
pub(crate) fn live() -> usize {
    LIVE.load(Relaxed)
}

/// Allocations and reallocations since [`start`].
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.load(Relaxed)
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator; while nothing is counted, it costs one more load and branch.
struct Counting;

fn allocated(size: usize) {
    if COUNTING.load(Relaxed) {
        LIVE.store(LIVE.load(Relaxed).wrapping_add(size), Relaxed);
        ALLOCATIONS.store(ALLOCATIONS.load(Relaxed) + 1, Relaxed);
    }
}

fn freed(size: usize) {
    if COUNTING.load(Relaxed) {
        LIVE.store(LIVE.load(Relaxed).wrapping_sub(size), Relaxed);
    }
}

// SAFETY: everything is passed on to `System`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        freed(layout.size());
        allocated(new_size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Bytes before a block allocated by C. They hold its size, which `free` is not told.
const PREFIX: usize = 16;

fn block(size: usize) -> Layout {
    Layout::from_size_align(size + PREFIX, PREFIX).expect("the sizes of ikcp.c are small")
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: the layout is not empty, and the block has room for the prefix.
    unsafe {
        let base = System.alloc(block(size));
        if base.is_null() {
            return ptr::null_mut();
        }
        allocated(size);
        base.cast::<usize>().write(size);
        base.add(PREFIX).cast()
    }
}

unsafe extern "C" fn free(data: *mut c_void) {
    // SAFETY: ikcp.c frees only what it got from `malloc`.
    unsafe {
        let base = data.cast::<u8>().sub(PREFIX);
        let size = base.cast::<usize>().read();
        freed(size);
        System.dealloc(base, block(size));
    }
}
