//! How many packets get lost.

/// The share of packets that get lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    share: f64,
    lost: u64,
    judged: u64,
    /// Of them, those of paths before this one.
    before: u64,
}

impl Loss {
    /// Takes one packet, of which it is now decided.
    pub fn sample(&mut self, lost: bool) {
        self.judged += 1;
        self.lost += u64::from(lost);
        let weight = 1.0 / (self.judged - self.before).min(MEMORY) as f64;
        self.share += weight * (f64::from(u8::from(lost)) - self.share);
    }

    /// Packets take another path from now on: the share begins anew, and what was counted stays.
    pub(crate) const fn path_changed(&mut self) {
        (self.share, self.before) = (0.0, self.judged);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_path_has_a_share_of_its_own_and_counts_go_on() {
        let mut loss = Loss::default();
        (0..100).for_each(|_| loss.sample(true));
        loss.path_changed();
        assert_eq!((loss.share(), loss.lost(), loss.judged()), (0.0, 100, 100));
        [true, false].into_iter().for_each(|lost| loss.sample(lost));
        assert_eq!((loss.share(), loss.lost(), loss.judged()), (0.5, 101, 102));
    }
}
