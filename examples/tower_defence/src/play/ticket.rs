//! The number with which a player gets their place back: random for each server, and kept in a file that only they can
//! read. Knowing the secret of the game and the name of another player is not enough.

use super::key::secret_file;
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The number for a server: from a file in `dir`, or a new one, which is stored there if possible.
///
/// # Errors
///
/// The system has no random bytes.
pub fn ticket(server: SocketAddr, dir: Option<&Path>) -> io::Result<u64> {
    let Some(dir) = dir else { return drawn() };
    let path = dir.join(format!("ticket-{server}").replace([':', '[', ']', '%'], "-"));
    let kept = fs::read_to_string(&path).ok().and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let ticket = drawn()?;
    let _ = keep(&path, ticket); // without a file, the player gets another place after a restart
    Ok(ticket)
}

/// Where programs store such data for a user. `None`: the system does not say.
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    let of = |name| std::env::var_os(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let home = || of("HOME").map(|home| home.join(".local").join("state"));
    let dir = of("XDG_STATE_HOME").or_else(|| of("LOCALAPPDATA")).or_else(home)?;
    Some(dir.join("tower-defence"))
}

/// An unpredictable number.
pub(super) fn drawn() -> io::Result<u64> {
    getrandom::u64().map_err(io::Error::other)
}

fn keep(path: &Path, ticket: u64) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    if path.exists() {
        fs::remove_file(path)?; // it contained no number
    }
    writeln!(secret_file(path)?, "{ticket:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_kept_for_each_server_and_cannot_be_guessed_from_another() {
        let dir = std::env::temp_dir().join(format!("tower-defence-tickets-{}", std::process::id()));
        let [one, other] = ["192.0.2.1:4000", "[2001:db8::1]:4000"].map(|at| at.parse().unwrap());
        let first = ticket(one, Some(&dir)).unwrap();
        assert_eq!(ticket(one, Some(&dir)).unwrap(), first);
        assert_ne!(ticket(other, Some(&dir)).unwrap(), first);
        assert_ne!(ticket(one, None).unwrap(), first);
        for file in fs::read_dir(&dir).unwrap() {
            fs::write(file.unwrap().path(), "no number").unwrap();
        }
        let again = ticket(one, Some(&dir)).unwrap();
        assert_ne!(again, first);
        assert_eq!(ticket(one, Some(&dir)).unwrap(), again);
        fs::remove_dir_all(dir).unwrap();
    }
}
