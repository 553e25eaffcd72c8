//! Configs by the names that tests and tables have for them, with the windows and the queue of `Config::classic`.

#![allow(dead_code, reason = "each test binary uses its part")]

use whitewater::Repairs;
use whitewater::kcp::{Config, Modern, Recovery};

/// ikcp.c's (0, 40, 0, 0), the delays of TCP.
pub(crate) fn classic_normal() -> Config {
    Config::classic().nodelay(0, 40, 0, false)
}

/// ikcp.c's (1, 20, 2, 1).
pub(crate) fn classic_fast() -> Config {
    Config::classic().nodelay(1, 20, 2, true)
}

/// ikcp.c's (1, 10, 2, 1).
pub(crate) fn classic_turbo() -> Config {
    Config::classic().nodelay(1, 10, 2, true)
}

/// By time, with KCP's congestion window.
pub(crate) fn with_cwnd() -> Config {
    by_time(Config::classic())
}

/// By time, where a beat is 20 ms.
pub(crate) fn fast() -> Config {
    by_time(classic_fast())
}

/// By time: `Config::default()` with smaller windows, and without repairs.
pub(crate) fn turbo() -> Config {
    by_time(classic_turbo())
}

/// The same with automatic repairs, as by default.
pub(crate) fn auto() -> Config {
    Config { recovery: Recovery::default(), ..turbo() }
}

/// The same config with the decisions of ikcp.c.
pub(crate) fn classic(config: Config) -> Config {
    Config { recovery: Recovery::Classic, ..config }
}

/// Without repairs, so that what is seen is the detection of losses.
fn by_time(config: Config) -> Config {
    let recovery = Recovery::Modern(Modern { repairs: Repairs::Off, ..Modern::default() });
    Config { recovery, ..config }
}
