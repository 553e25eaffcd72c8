//! An allocator for tests that finds secrets in memory that is freed: whoever reads a heap later, from a core dump, by a bug or in
//! swap, must not find keys that are long gone.
//!
//! ```
//! use whitewater_freed::{Freed, Watch};
//!
//! #[global_allocator]
//! static ALLOCATOR: Freed = Freed;
//!
//! let secret: [u8; 32] = std::array::from_fn(|at| 100 + at as u8);
//! let watch = Watch::new(&secret);
//! drop(secret.to_vec());
//! assert_eq!(watch.found(), [32]);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system's allocator, which looks into each block before it is freed. A block that grows into another place is freed as well.
#[derive(Debug)]
pub struct Freed;

/// Looks for a secret until it is dropped.
#[derive(Debug)]
pub struct Watch(usize);

#[derive(Clone, Copy)]
struct Slot {
    /// Two parts of the secret. The first and the last byte are not among them, because X25519 changes some of their bits.
    parts: [[u8; PART]; 2],
    /// The sizes of the first blocks that contained a part, and how many there were.
    sizes: [usize; SIZES],
    found: usize,
    is_used: bool,
}

impl Watch {
    /// Looks for `secret` in all memory that is freed from now on. The caller's own copies count, unless they are on the stack.
    ///
    /// # Panics
    ///
    /// It is watched too much.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        let mut slots = slots();
        let free = slots.iter().position(|slot| !slot.is_used).expect("room for another secret");
        let part = |start: usize| std::array::from_fn(|at| secret[start + at]);
        slots[free] = Slot { parts: [part(1), part(31 - PART)], is_used: true, ..UNUSED };
        WATCHED.fetch_add(1, Relaxed);
        Self(free)
    }

    /// The sizes of the first blocks that were freed with the secret in them.
    #[must_use]
    pub fn found(&self) -> Vec<usize> {
        let slot = slots()[self.0];
        slot.sizes[..slot.found.min(SIZES)].to_vec()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        slots()[self.0] = UNUSED;
        WATCHED.fetch_sub(1, Relaxed);
    }
}

// SAFETY: all memory is the system allocator's, which gets each call unchanged.
unsafe impl GlobalAlloc for Freed {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the same. Zeros, so that all bytes of a block may be read later.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if WATCHED.load(Relaxed) > 0 {
            // SAFETY: the block has so many bytes, which `alloc` has initialised, and nobody else uses it any more.
            look(unsafe { std::slice::from_raw_parts(block, layout.size()) });
        }
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Allocates nothing.
fn look(block: &[u8]) {
    let mut slots = slots();
    for slot in slots.iter_mut().filter(|slot| slot.is_used) {
        if slot.parts.iter().any(|part| block.windows(PART).any(|window| window == part)) {
            if let Some(size) = slot.sizes.get_mut(slot.found) {
                *size = block.len();
            }
            slot.found += 1;
        }
    }
}

fn slots() -> MutexGuard<'static, [Slot; SLOTS]> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

const UNUSED: Slot = Slot { parts: [[0; PART]; 2], sizes: [0; SIZES], found: 0, is_used: false };
static TABLE: Mutex<[Slot; SLOTS]> = Mutex::new([UNUSED; SLOTS]);
/// How many slots are used.
static WATCHED: AtomicUsize = AtomicUsize::new(0);
/// Bytes of each part of a secret.
const PART: usize = 12;
/// Most secrets that are watched at a time.
const SLOTS: usize = 256;
/// Most sizes that are noted of each.
const SIZES: usize = 8;
