//! Configs by the names that tests and tables have for them, with the windows and the queue of `Config::classic`.

#![allow(dead_code, reason = "each test binary uses its part")]

use whitewater::kcp::{Config, Recovery};

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

/// By time: `Config::default()` with smaller windows.
pub(crate) fn turbo() -> Config {
    by_time(classic_turbo())
}

/// The same config with the decisions of ikcp.c.
pub(crate) fn classic(config: Config) -> Config {
    Config { recovery: Recovery::Classic, ..config }
}

fn by_time(config: Config) -> Config {
    Config { recovery: Recovery::default(), ..config }
}
