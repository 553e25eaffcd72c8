//! Shared by the tests: a lossy network, our ends, the loops that other KCPs need, programs that end with their test,
//! and a table of cases.

pub mod beat;
pub mod cases;
pub mod exchange;
pub mod kcp_go;
pub mod kcptun;
pub mod messages;
pub mod ours;
pub mod program;
pub mod relay;
pub mod smux;
pub mod tcp;
pub mod theirs;

use std::time::Duration;

/// Long enough for any machine: a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Reports why a test is skipped. Fails if `WHITEWATER_NO_SKIP` is set.
///
/// # Panics
///
/// If `WHITEWATER_NO_SKIP` is set.
pub fn skip(missing: &str) {
    assert!(std::env::var_os("WHITEWATER_NO_SKIP").is_none(), "{missing}");
    println!("skipped: {missing}");
}
