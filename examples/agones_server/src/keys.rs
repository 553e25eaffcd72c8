//! Keys in files, because others can see the command line and the environment of a pod.

use crate::Done;
use crate::protocol::KEY_ID;
use std::error::Error;
use std::io::Write;
use std::{env, fs};
use whitewater::session::token::FleetKey;

/// The key in the file that this variable names.
pub(crate) fn read(variable: &str) -> Result<[u8; 32], Box<dyn Error>> {
    let path = path(variable)?;
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    from_hex(text.trim()).ok_or_else(|| format!("{path}: not 64 hex digits").into())
}

/// Writes the key of a server of this fleet.
pub(crate) fn write_for(server_id: u64, fleet_key: [u8; 32]) -> Done {
    let key = FleetKey::new(fleet_key).server_key(server_id, KEY_ID);
    let digits: String = key.secret().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = private().open(path("SERVER_KEY_FILE")?)?;
    Ok(file.write_all(digits.as_bytes())?)
}

/// Only its owner may read the file.
fn private() -> fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
}

fn path(variable: &str) -> Result<String, Box<dyn Error>> {
    env::var(variable).map_err(|_| format!("{variable} has to be in the environment").into())
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<_> = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let pairs = digits.chunks(2).map(|pair| pair.iter().fold(0, |high, low| high * 16 + low));
    let bytes: Vec<_> = pairs.map(u8::try_from).collect::<Result<_, _>>().ok()?;
    bytes.try_into().ok().filter(|_| digits.len() == 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_64_hex_digits() {
        assert_eq!(from_hex(&"5a".repeat(32)), Some([0x5a; 32]));
        for wrong in ["", "5a", &"5".repeat(63), &"5a".repeat(33), &"xx".repeat(32)] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
    }
}
