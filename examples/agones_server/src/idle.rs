//! How long a server that was allocated waits for its first player.

use std::time::{Duration, Instant};

pub(crate) struct Idle {
    patience: Duration,
    since: Option<Instant>,
}

impl Idle {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, since: None }
    }

    /// Whether it has waited for so long without a break. If so, it begins to wait anew.
    pub(crate) fn is_over(&mut self, now: Instant, waits: bool) -> bool {
        self.since = self.since.filter(|_| waits).or(waits.then_some(now));
        let is_over = self.since.is_some_and(|since| now.saturating_duration_since(since) >= self.patience);
        self.since.take_if(|_| is_over).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_waits_for_so_long_from_each_time_that_it_was_allocated() {
        let (start, mut idle) = (Instant::now(), Idle::new(Duration::from_secs(60)));
        let mut is_over = |seconds, waits| idle.is_over(start + Duration::from_secs(seconds), waits);
        assert!(!is_over(0, true) && !is_over(59, true));
        assert!(!is_over(60, false), "somebody came");
        assert!(!is_over(100, true) && !is_over(159, true) && is_over(160, true));
        assert!(!is_over(161, true) && !is_over(220, true) && is_over(221, true), "again");
    }
}
