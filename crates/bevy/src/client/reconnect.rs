//! When to connect again.

use bevy::platform::time::Instant;
use std::time::Duration;
use whitewater::CloseReason;
use whitewater::session::{DenyReason, code};

/// When a client whose session was lost connects again: after `first`, then after twice as long each time.
///
/// A session that somebody has ended is not lost: one that either end closed or kicked, or that was replaced. Neither is one that the server refuses
/// for a reason that stays, such as another version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain fields, made with `..Reconnect::default()`")]
pub struct Reconnect {
    /// How long to wait before the first attempt.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// How many attempts in a row may fail. `None`: any number.
    pub attempts: Option<u32>,
    /// Codes with which a server closes sessions when it will be back: yours for a restart, and 0 for a server that is dropped, or whose
    /// resource is removed, without closing them. None by default.
    pub codes: &'static [u16],
}

impl Default for Reconnect {
    /// After 250 ms, at most 8 s, without end.
    fn default() -> Self {
        Self {
            first: Duration::from_millis(250),
            longest: Duration::from_secs(8),
            attempts: None,
            codes: &[],
        }
    }
}

impl Reconnect {
    /// How long to wait after this many failed attempts. `None`: no more.
    pub(super) fn after(self, failed: u32) -> Option<Duration> {
        let is_over = self.attempts.is_some_and(|attempts| failed >= attempts);
        (!is_over).then(|| self.first.saturating_mul(1 << failed.min(16)).min(self.longest))
    }

    /// Whether a session that ended like this was lost.
    pub(super) fn is_for(self, reason: CloseReason) -> bool {
        match reason {
            CloseReason::ConnectTimeout
            | CloseReason::Timeout
            | CloseReason::ServerForgot
            | CloseReason::DeadLink
            | CloseReason::SlowPeer
            | CloseReason::Exhausted
            | CloseReason::NoMemory
            | CloseReason::Denied(DenyReason::Busy) => true,
            CloseReason::Peer(code) | CloseReason::Rejected(code) => {
                let is_lost =
                    matches!(code, code::DEAD_LINK | code::SLOW_PEER | code::EXHAUSTED | code::NO_MEMORY);
                is_lost || self.codes.contains(&code)
            }
            _ => false,
        }
    }
}

/// The next attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    at: Instant,
    /// Whether the app was asked for a token.
    pub(super) has_asked: bool,
}

impl Retry {
    pub(super) const fn at(at: Instant) -> Self {
        Self { at, has_asked: false }
    }

    pub(super) fn is_due(self, now: Instant) -> bool {
        self.at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_end_after_the_last_attempt() {
        let policy = Reconnect {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(5),
            attempts: Some(4),
            codes: &[],
        };
        let waits: Vec<_> = (0..6).map(|failed| policy.after(failed).map(|wait| wait.as_secs())).collect();
        assert_eq!(waits, [Some(1), Some(2), Some(4), Some(5), None, None]);
        assert_eq!(Reconnect::default().after(u32::MAX), Some(Duration::from_secs(8)), "no overflow");
    }

    #[test]
    fn only_a_session_that_nobody_ended_is_lost() {
        let policy = Reconnect::default();
        for reason in [CloseReason::Timeout, CloseReason::ServerForgot, CloseReason::Peer(code::NO_MEMORY)] {
            assert!(policy.is_for(reason), "{reason}");
        }
        let ended =
            [CloseReason::Local(0), CloseReason::Peer(7), CloseReason::Rejected(1), CloseReason::Replaced];
        for reason in ended
            .into_iter()
            .chain([CloseReason::Denied(DenyReason::Version), CloseReason::Peer(code::SHAPE)])
        {
            assert!(!policy.is_for(reason), "{reason}");
        }
        let policy = Reconnect { codes: &[7], ..policy };
        assert!(policy.is_for(CloseReason::Peer(7)) && !policy.is_for(CloseReason::Peer(8)));
    }
}
