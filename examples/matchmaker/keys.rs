//! What all programs agree on, and how they get keys: from the environment, because others can see the command line.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, io};
use whitewater::session::token::FleetKey;
use whitewater::{Channel, SessionConfig};

/// This version of this game.
pub(crate) const PROTOCOL_ID: u64 = 0x6d61_7463_0000_0001;
/// These servers do not live long enough for a second key.
pub(crate) const KEY_ID: u8 = 0;

/// What players say, and the answers.
pub(crate) const TALK: Channel<String> = Channel::ordered(0);

pub(crate) fn session_config() -> SessionConfig {
    let (keepalive, timeout) = (Duration::from_millis(250), Duration::from_secs(5));
    let channels = vec![TALK.into()];
    SessionConfig { protocol_id: PROTOCOL_ID, channels, keepalive, timeout, ..SessionConfig::default() }
}

pub(crate) fn fleet_key() -> Result<FleetKey, Box<dyn Error>> {
    Ok(FleetKey::new(from_environment("FLEET_KEY")?))
}

/// A key of 64 hex digits.
pub(crate) fn from_environment(name: &str) -> Result<[u8; 32], Box<dyn Error>> {
    let text = env::var(name).map_err(|_| format!("{name} has to be in the environment"))?;
    from_hex(&text).ok_or_else(|| format!("{name} has to be 64 hex digits").into())
}

pub(crate) fn hex(key: &[u8; 32]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<_> = text.trim().chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let bytes: Vec<_> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |high, low| high * 16 + low)).collect();
    let bytes: Vec<_> = bytes.into_iter().map(u8::try_from).collect::<Result<_, _>>().ok()?;
    bytes.try_into().ok().filter(|_| digits.len() == 64)
}

pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Seconds since 1970.
pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
