//! Bytes a second, smoothed.

use crate::time::Time;
use std::time::Duration;

/// Bytes a second: the mean of the first ten [`SLOT`]s, then each moves it by 10 % of the difference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    per_second: f64,
    /// Bytes of the slot that is running.
    bytes: u64,
    /// When it began; `None`: nothing was counted yet.
    began: Option<Time>,
    /// Slots before it.
    slots: u64,
}

impl Rate {
    pub(super) fn add(&mut self, now: Time, bytes: u64) {
        self.update(now);
        self.began.get_or_insert(now);
        self.bytes += bytes;
    }

    /// Ends the slots that are over.
    pub(super) fn update(&mut self, now: Time) {
        let Some(mut began) = self.began else {
            return;
        };
        if now.since(began) >= FORGOTTEN {
            *self = Self::default();
            return;
        }
        while now.since(began) >= SLOT {
            self.slots += 1;
            let weight = 1.0 / self.slots.min(MEMORY) as f64;
            self.per_second += weight * (self.bytes as f64 / SLOT.as_secs_f64() - self.per_second);
            self.bytes = 0;
            began = began + SLOT;
        }
        self.began = Some(began);
    }

    pub(super) const fn per_second(&self) -> f64 {
        self.per_second
    }
}

const SLOT: Duration = Duration::from_millis(100);
/// One by the weight of a slot.
const MEMORY: u64 = 10;
/// After this much silence nothing is left of the rate: 0.9^600.
const FORGOTTEN: Duration = Duration::from_secs(60);
