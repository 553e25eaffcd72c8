//! The secret that server and players share: from a file, or from a passphrase.

use blake2::Blake2sMac;
use blake2::digest::Mac;
use blake2::digest::consts::U16;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use thiserror::Error;

/// 32 bytes that both ends know.
#[derive(Clone, Eq, PartialEq)]
pub struct Key([u8; 32]);

impl Key {
    /// The bytes, for the handshake of a session.
    #[must_use]
    pub const fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// The key of reset tokens: the same after a restart of the server, so that clients are told that it has forgotten
    /// them. Whoever plays can derive it, too, and could end the session of a player whose packets they see.
    #[must_use]
    pub fn reset(&self) -> [u8; 16] {
        let mac = Blake2sMac::<U16>::new(&self.0.into()).chain_update(RESET);
        mac.finalize().into_bytes().into()
    }

    /// Derives a key from a passphrase with Argon2id, 3 passes over 64 MiB in 4 lanes, the second choice of RFC 9106,
    /// section 4. That takes a moment, and does so for every guess of somebody who has recorded a handshake.
    ///
    /// The salt is a constant, because both ends need the same before they communicate. So use a passphrase that nobody
    /// else uses: four random words, not a name. A key from a file does not have this weakness.
    ///
    /// # Errors
    ///
    /// It has fewer than [`PASS_MIN`] bytes.
    pub fn of_pass(phrase: &str) -> Result<Self, KeyError> {
        if phrase.len() < PASS_MIN {
            return Err(KeyError::Short);
        }
        let params = argon2::Params::new(64 << 10, 3, 4, Some(32)).map_err(KeyError::Argon2)?;
        let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        let mut key = [0; 32];
        argon2.hash_password_into(phrase.as_bytes(), SALT, &mut key).map_err(KeyError::Argon2)?;
        Ok(Self(key))
    }

    /// Reads the key from a file: 64 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or contains no key.
    pub fn of_file(path: &Path) -> Result<Self, KeyError> {
        let text = fs::read_to_string(path)?;
        let digits = text.trim().as_bytes();
        let mut key = [0; 32];
        let (pairs, rest) = digits.as_chunks();
        if pairs.len() != key.len() || !rest.is_empty() {
            return Err(KeyError::NoKey);
        }
        for (byte, pair) in key.iter_mut().zip(pairs) {
            let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
            let number = high.zip(low).map(|(high, low)| high << 4 | low);
            *byte = number.and_then(|number| u8::try_from(number).ok()).ok_or(KeyError::NoKey)?;
        }
        Ok(Self(key))
    }

    /// Makes a random key and writes it to a new file, which only its owner can read on systems with permissions.
    ///
    /// # Errors
    ///
    /// The file exists or cannot be written, or the system has no random bytes.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        io::Write::write_all(&mut secret_file(path)?, format!("{digits}\n").as_bytes())?;
        Ok(Self(key))
    }
}

/// Creates a file that only its owner can read, on systems with permissions.
pub(super) fn secret_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl fmt::Debug for Key {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Why there is no key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The phrase is too short.
    #[error("a pass phrase has at least {PASS_MIN} bytes: some words that nobody would put together")]
    Short,
    /// The file contains no key.
    #[error("the file has no key: 64 hexadecimal digits (`token FILE` makes one)")]
    NoKey,
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
    /// Argon2 refused it.
    #[error("argon2: {0}")]
    Argon2(argon2::Error),
}

/// Fewest bytes of a passphrase.
pub const PASS_MIN: usize = 12;
/// What makes the key of reset tokens differ from any other that is derived from the same secret.
const RESET: &[u8] = b"whitewater tower-defence, reset tokens, version 1";
const SALT: &[u8] = b"whitewater tower-defence, version 1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_gives_the_same_key_at_both_ends_and_another_gives_another() {
        let key = |phrase| Key::of_pass(phrase).unwrap();
        assert_eq!(key("four words by chance"), key("four words by chance"));
        assert_ne!(key("four words by chance"), key("four words by chancE"));
        assert!(matches!(Key::of_pass("short"), Err(KeyError::Short)));
    }

    #[test]
    fn the_key_of_resets_follows_from_the_secret_and_does_not_show_it() {
        let [one, other] = [Key([1; 32]), Key([2; 32])];
        assert_eq!(one.reset(), Key([1; 32]).reset());
        assert_ne!(one.reset(), other.reset());
        assert!(!one.bytes().starts_with(&one.reset()));
    }

    #[test]
    fn a_key_comes_back_from_its_file_and_is_not_overwritten() {
        let path = std::env::temp_dir().join(format!("tower-defence-key-{}", std::process::id()));
        let key = Key::create(&path).unwrap();
        assert_eq!(Key::of_file(&path).unwrap(), key);
        assert!(matches!(Key::create(&path), Err(KeyError::File(_))));
        fs::write(&path, "deadbeef").unwrap();
        assert!(matches!(Key::of_file(&path), Err(KeyError::NoKey)));
        fs::remove_file(&path).unwrap();
    }
}
