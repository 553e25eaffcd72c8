//! A limit on how often a peer may do something: a burst, and a rate.

/// Tokens that refill over time.
#[derive(Debug)]
pub(super) struct Budget {
    /// Tenths of ticks saved, up to the burst.
    saved: u32,
    last: u32,
    most: u32,
    each: u32,
}

impl Budget {
    /// `burst` at once, then one per `tenths` tenths of a tick.
    pub(super) const fn new(burst: u32, tenths: u32) -> Self {
        Self { saved: burst * tenths, last: 0, most: burst * tenths, each: tenths }
    }

    /// Takes a token, if there is one.
    pub(super) fn spend(&mut self, now: u32) -> bool {
        let passed = now.saturating_sub(self.last).min(self.most);
        self.last = now;
        self.saved = (self.saved + passed * 10).min(self.most);
        let is_there = self.saved >= self.each;
        if is_there {
            self.saved -= self.each;
        }
        is_there
    }
}
