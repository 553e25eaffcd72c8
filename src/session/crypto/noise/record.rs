//! Records each use of a key, for tests: no nonce may be used twice with the same key.

use std::cell::RefCell;
use std::collections::HashSet;

type Used = HashSet<([u8; 32], u64)>;

thread_local! {
    static USED: RefCell<Option<Used>> = const { RefCell::new(None) };
}

/// From now on, sealing twice with the same key and nonce panics in this thread.
pub(in crate::session) fn start() {
    USED.set(Some(Used::new()));
}

/// Stops recording. Returns how many pairs of key and nonce were used, and how many keys.
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
