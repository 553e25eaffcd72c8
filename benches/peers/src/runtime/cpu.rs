//! The CPU time of the process.

/// A point in time, in seconds of CPU time.
pub(crate) struct Cpu(f64);

impl Cpu {
    pub(crate) fn now() -> Self {
        let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it writes the time to `used` and nothing else.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut used) };
        assert_eq!(failed, 0, "the process has a clock");
        Self(used.tv_sec as f64 + used.tv_nsec as f64 * 1e-9)
    }

    pub(crate) fn elapsed(&self) -> f64 {
        Self::now().0 - self.0
    }
}
