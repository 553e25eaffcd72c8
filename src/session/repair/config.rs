//! The knobs of repairs.

use crate::config::{ConfigError, in_range};

/// How much repairs may cost; see [`SessionConfig::repairs`](crate::session::SessionConfig::repairs).
///
/// ```
/// use whitewater::session::{RepairConfig, SessionConfig};
///
/// let repairs = Some(RepairConfig { percent: 50, ..RepairConfig::default() });
/// assert!(SessionConfig { repairs, ..SessionConfig::default() }.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `RepairConfig { .., ..RepairConfig::default() }`")]
pub struct RepairConfig {
    /// Most bytes of repairs, in percent of those of the packets that they protect, both with the headers of IP and UDP: 0 to 100. How
    /// many it is follows the loss. 0: none are sent, and those of the peer are used.
    pub percent: u8,
    /// The loss from which on the peer is asked for repairs, in units of 0.1 %: 1 to 500. They end when it is half of that.
    pub min_loss: u16,
    /// Most bytes of packets remembered in each direction while there are repairs: 16 KiB to 1 MiB. At most 128 packets received and 64
    /// sent are.
    pub memory: u32,
}

impl Default for RepairConfig {
    /// At most 30 %, from 1 % of loss on, 128 KiB.
    fn default() -> Self {
        Self { percent: 30, min_loss: 10, memory: 128 << 10 }
    }
}

impl RepairConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { percent, min_loss, memory } = *self; // a new field fails to compile until it is handled
        in_range("percent of `repairs`", percent, 0..=100)?;
        in_range("min_loss of `repairs`", min_loss, 1..=500)?;
        in_range("memory of `repairs`", memory, 16 << 10..=1 << 20)
    }
}
