//! Random bytes of the operating system.

use getrandom::SysRng;
use rand_core::{TryRng, UnwrapErr};
use std::io;

/// What sessions take their keys and numbers from. It panics where the system gave bytes before and then does not: keys that can be
/// guessed are worse than no program.
///
/// # Errors
///
/// The system has none to give.
pub(super) fn random() -> io::Result<UnwrapErr<SysRng>> {
    SysRng.try_next_u64()?;
    Ok(UnwrapErr(SysRng))
}
