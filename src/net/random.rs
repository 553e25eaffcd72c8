//! Random bytes of the operating system.

use crate::session::Random;
use std::io;

/// What sessions take their keys and numbers from.
///
/// # Errors
///
/// The system has none to give.
pub(super) fn random() -> io::Result<Random> {
    getrandom::fill(&mut [0; 16])?;
    Ok(Random::new(|bytes| {
        #[expect(clippy::expect_used, reason = "keys that can be guessed are worse than no program")]
        getrandom::fill(bytes).expect("the system gave random bytes before, and now it does not");
    }))
}
