//! Packets of which the session wants to know whether they arrived: none, in a session of lanes alone,
//! which have acknowledgements of their own.

use crate::packet::{AckTracker, Acked, Acks};
use crate::seq::Seq16;
use crate::session::config::SessionConfig;
use crate::time::Time;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Tracked {
    /// How many of them are remembered.
    unacked: u16,
    /// Made for the first.
    tracker: Option<Box<AckTracker>>,
}

impl Tracked {
    pub(super) const fn new(unacked: u16) -> Self {
        Self { unacked, tracker: None }
    }

    pub(super) fn on_sent(&mut self, now: Time, sequence: Seq16, bytes: u32) {
        let unacked = self.unacked;
        let tracker =
            self.tracker.get_or_insert_with(|| Box::new(AckTracker::new(&SessionConfig::acks(unacked))));
        tracker.update(now);
        tracker.on_sent(now, sequence, bytes);
    }

    /// Takes what the peer tells; `None`: it is news of nothing.
    pub(super) fn on_acks(&mut self, now: Time, acks: Acks, delay: Duration) -> Option<Acked> {
        Some(self.tracker.as_mut()?.on_acks(now, acks, delay))
    }

    /// Bytes of a packet, if it is remembered; else 0.
    pub(super) fn bytes_sent(&self, sequence: Seq16) -> u32 {
        self.tracker.as_ref().map_or(0, |tracker| tracker.bytes_sent(sequence))
    }

    pub(super) fn remembers_sent(&self) -> bool {
        self.tracker.as_ref().is_some_and(|tracker| tracker.remembers_sent())
    }

    pub(super) fn path_changed(&mut self) {
        if let Some(tracker) = &mut self.tracker {
            tracker.path_changed();
        }
    }

    pub(super) fn forget_sent(&mut self) {
        self.tracker = None;
    }

    pub(super) fn memory(&self) -> usize {
        self.tracker.as_deref().map_or(0, |tracker| size_of::<AckTracker>() + tracker.memory())
    }
}
