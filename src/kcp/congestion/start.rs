//! How a delay-aware controller starts: it finds the rate of the path.

use super::Ack;
use super::window::{Window, micros};
use crate::time::Time;

/// The start of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    /// The first window is in flight. The speed at which it arrives shows how much the path carries.
    First(Train),
    /// The window doubles each round trip. Above `carries`, the bytes that the path seems to carry in a round trip, it
    /// grows by a quarter instead.
    Slow { carries: u64 },
}

/// Packets that left together, while they arrive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    /// When the first one arrived.
    began: Time,
    /// Payload bytes that have arrived.
    arrived: u64,
}

impl Start {
    pub(super) const NEW: Self = Self::First(Train { began: Time::ZERO, arrived: 0 });

    /// Raises the window while the queue is empty.
    pub(super) fn grow(&self, window: &mut Window, ack: &Ack) {
        let acked = u64::from(ack.bytes);
        let growth = match *self {
            Self::Slow { carries } if window.bytes > carries => acked / 4,
            _ => acked,
        };
        window.set(window.bytes + growth, ack.mss);
    }

    /// Raises the window to half of what the path carries, once the first window shows that.
    pub(super) fn leap(&mut self, window: &mut Window, ack: &Ack, base: u64) {
        if let Self::First(train) = self
            && let Some(carries) = train.on_ack(ack, base)
        {
            *self = Self::Slow { carries };
            let most = LEAP * u64::from(ack.mss);
            window.set(window.bytes.max((carries / 2).min(most)), ack.mss);
        }
    }

    /// Bytes that the path carries in a round trip at least. The start ends when the first burst fills the queue, so
    /// what is delivered then is less.
    pub(super) const fn carries(&self) -> u64 {
        match *self {
            Self::First(_) => 0,
            Self::Slow { carries } => carries / 4 * 3,
        }
    }
}

impl Train {
    /// The bytes that the path carries in a round trip of `base` µs, once enough have arrived together.
    fn on_ack(&mut self, ack: &Ack, base: u64) -> Option<u64> {
        if micros(ack.now.since(self.began)) > base / 2 {
            *self = Self { began: ack.now, arrived: 0 }; // too few left together, or too many got lost
        }
        self.arrived += u64::from(ack.bytes);
        // Acknowledgements may come together even if the packets did not.
        let lasted = micros(ack.now.since(self.began)).max(base * TRAIN / (2 * LEAP));
        let is_enough = self.arrived >= TRAIN * u64::from(ack.mss);
        is_enough.then(|| self.arrived.saturating_mul(base) / lasted)
    }
}

/// Segments of the first window that are enough to show how fast the path is: two of the ten may get lost.
const TRAIN: u64 = 8;
/// The most segments to leap to. As many leave at once by the default `snd_wnd` without congestion control.
const LEAP: u64 = 128;
