//! How many packets get lost.

/// The share of packets that get lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    share: f64,
    lost: u64,
    judged: u64,
}

impl Loss {
    /// Takes one packet, of which it is now decided.
    pub fn sample(&mut self, lost: bool) {
        self.judged += 1;
        self.lost += u64::from(lost);
        let weight = 1.0 / self.judged.min(MEMORY) as f64;
        self.share += weight * (f64::from(u8::from(lost)) - self.share);
    }

    /// The share that gets lost, 0 to 1: the mean of the first 64 packets, then each counts 1/64.
    #[must_use]
    pub const fn share(&self) -> f64 {
        self.share
    }

    /// Packets that got lost.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Packets of which it is decided.
    #[must_use]
    pub const fn judged(&self) -> u64 {
        self.judged
    }
}

/// One by the weight of a packet.
const MEMORY: u64 = 64;
