//! The memory in a Redis: a key for each used token, whose value names the server that used it. Redis removes it by itself.

use crate::store::{Store, StoreError};
use redis::{Client, Connection, IntoConnectionInfo, RedisError, RedisResult};
use std::fmt::Write;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use whitewater::session::token::{LIFE_MAX, SKEW, TokenId};

/// A [`Store`] in Redis 7, or what speaks its protocol, such as Valkey. Each server has its own.
pub struct Redis {
    client: Client,
    connection: Option<Connection>,
    /// The name of this server in the values.
    owner: [u8; 16],
}

impl Redis {
    /// The Redis at a URL such as `redis://user:password@10.0.0.5:6379/0`, or at what else the crate `redis` takes for an address. Does not
    /// connect yet. TLS is not built in: keep Redis in a network of your own.
    ///
    /// # Errors
    ///
    /// The URL is wrong, or the system has no random bytes.
    pub fn open(address: impl IntoConnectionInfo) -> Result<Self, RedisError> {
        let mut owner = [0; 16];
        getrandom::fill(&mut owner).map_err(io::Error::from)?;
        Ok(Self { client: Client::open(address)?, connection: None, owner })
    }

    /// The connection, whose calls fail after `limit`.
    fn within(&mut self, limit: Duration) -> Result<&mut Connection, StoreError> {
        let connection = self.connection.as_mut().ok_or("not connected")?;
        connection.set_read_timeout(Some(limit))?;
        connection.set_write_timeout(Some(limit))?;
        Ok(connection)
    }
}

impl Store for Redis {
    fn connect(&mut self) -> Result<(), StoreError> {
        self.connection = None;
        self.connection = Some(self.client.get_connection_with_timeout(CONNECT)?);
        self.ping(CONNECT)
    }

    fn claim(&mut self, tokens: &[TokenId], limit: Duration) -> Result<Vec<bool>, StoreError> {
        let owner = self.owner;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let mut commands = redis::pipe();
        for token in tokens {
            // Sets the key only if there is none, and returns what was there.
            let command = commands.cmd("SET").arg(key(token)).arg(&owner);
            command.arg("NX").arg("GET").arg("EX").arg(remaining(token, now));
        }
        let earlier: RedisResult<Vec<Option<Vec<u8>>>> = commands.query(self.within(limit)?);
        Ok(earlier?.iter().map(|earlier| earlier.as_ref().is_none_or(|known| *known == owner)).collect())
    }

    fn ping(&mut self, limit: Duration) -> Result<(), StoreError> {
        Ok(redis::cmd("PING").query(self.within(limit)?)?)
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").finish_non_exhaustive() // the client has a password
    }
}

fn key(token: &TokenId) -> String {
    let mut key = format!("{PREFIX}{:016x}:", token.server_id);
    for byte in token.nonce {
        let _ = write!(key, "{byte:02x}"); // cannot fail
    }
    key
}

/// For how many seconds a token has to be remembered. The clock here may be ahead by `SKEW`, that of another server behind by as much, and that
/// server accepts the token for `SKEW` after it has expired.
fn remaining(token: &TokenId, now: u64) -> u64 {
    token.expires.saturating_sub(now).min(LIFE_MAX + SKEW) + 3 * SKEW
}

const PREFIX: &str = "whitewater:used:";
/// How long it may take to connect. No question waits for that.
const CONNECT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_names_no_password_in_the_log() {
        let redis = Redis::open("redis://:hunter2@127.0.0.1/").unwrap();
        assert!(!format!("{redis:?}").contains("hunter2"));
    }
}
