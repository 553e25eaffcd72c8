//! Attempts that must not come back to life: a late copy of a CONNECT whose cookie is still good would open a session that nobody is in.

use crate::time::Time;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// A client's attempt: where it came from, and its number.
pub(super) type Attempt = (SocketAddr, u64);

/// Attempts whose sessions are over, each for a while. It keeps the newest.
#[derive(Debug)]
pub(super) struct Graves {
    attempts: BTreeSet<Attempt>,
    /// When each of them may go, soonest first.
    until: VecDeque<(Time, Attempt)>,
    limit: usize,
}

impl Graves {
    pub(super) const fn new(limit: usize) -> Self {
        Self { attempts: BTreeSet::new(), until: VecDeque::new(), limit }
    }

    pub(super) fn insert(&mut self, now: Time, attempt: Attempt) {
        self.update(now);
        if self.until.len() >= self.limit
            && let Some((_, oldest)) = self.until.pop_front()
        {
            self.attempts.remove(&oldest);
        }
        if self.attempts.insert(attempt) {
            self.until.push_back((now + TIME_WAIT, attempt));
        }
    }

    pub(super) fn holds(&mut self, now: Time, attempt: Attempt) -> bool {
        self.update(now);
        self.attempts.contains(&attempt)
    }

    fn update(&mut self, now: Time) {
        while let Some((until, attempt)) = self.until.front()
            && *until <= now
        {
            self.attempts.remove(attempt);
            self.until.pop_front();
        }
    }
}

/// As long as a cookie lives at most.
pub(super) const TIME_WAIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_stays_for_ten_seconds_and_the_list_has_a_limit() {
        let mut graves = Graves::new(2);
        let attempt = |cid| (SocketAddr::from(([10, 0, 0, 1], 1)), cid);
        for cid in 1..=3 {
            graves.insert(Time::ZERO, attempt(cid));
        }
        let mut held = |ms| [1, 2, 3].map(|cid| graves.holds(Time::from_millis(ms), attempt(cid)));
        assert_eq!(held(9_999), [false, true, true]);
        assert_eq!(held(10_000), [false; 3]);
    }
}
