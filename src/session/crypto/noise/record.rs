//! Notes each use of a key, for tests: no nonce may be used twice with it.

use std::cell::RefCell;
use std::collections::HashSet;

type Used = HashSet<([u8; 32], u64)>;

thread_local! {
    static USED: RefCell<Option<Used>> = const { RefCell::new(None) };
}

/// From now on, in this thread, sealing twice with the same key and nonce panics.
pub(in crate::session) fn start() {
    USED.set(Some(Used::new()));
}

/// Ends that. Returns how many pairs of key and nonce there were, and of how many keys.
pub(in crate::session) fn finish() -> (usize, usize) {
    let used = USED.take().unwrap_or_default();
    let keys: HashSet<_> = used.iter().map(|(key, _)| key).collect();
    (used.len(), keys.len())
}

pub(super) fn used(key: &[u8; 32], nonce: u64) {
    USED.with_borrow_mut(|used| {
        if let Some(used) = used {
            assert!(used.insert((*key, nonce)), "key {key:02x?} was used with nonce {nonce:#x} before");
        }
    });
}
