//! What a script sets, as the settings of a session.

use crate::lane::{BYTES_MAX, CHANNELS_MAX, Lane};
use std::time::Duration;
use whitewater::session::token::{PublicToken, ServerKey};
use whitewater::session::{Cipher, Pattern, Secret, Suite};
use whitewater::{ClientConfig, ServerConfig, SessionConfig};

/// What both ends have set. Keys are empty where they are not set.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) protocol_id: u64,
    pub(crate) channel_count: i32,
    /// Seconds.
    pub(crate) timeout: f64,
    pub(crate) is_insecure: bool,
    pub(crate) psk: Vec<u8>,
    pub(crate) server_key: Vec<u8>,
    pub(crate) token: Vec<u8>,
    pub(crate) token_key: Vec<u8>,
    pub(crate) server_id: u64,
    pub(crate) key_id: u8,
    pub(crate) user: Vec<u8>,
}

impl Settings {
    /// # Errors
    ///
    /// What is missing or wrong, for people to read.
    pub(crate) fn server(self, max_clients: u16) -> Result<ServerConfig, String> {
        let session = self.session()?;
        let config = match self.protection([
            ("psk", &self.psk),
            ("server_key", &self.server_key),
            ("token_key", &self.token_key),
        ])? {
            "psk" => ServerConfig::secret(session, key("psk", &self.psk)?),
            "server_key" => ServerConfig {
                suites: vec![KEY],
                server_key: Some(key("server_key", &self.server_key)?.into()),
                ..ServerConfig::insecure(session)
            },
            "token_key" => {
                let key = key("token_key", &self.token_key)?;
                ServerConfig::tokens(session, ServerKey::new(self.server_id, self.key_id, key))
            }
            _ => ServerConfig::insecure(session),
        };
        let memory = config.memory.max(u64::from(max_clients) * (256 << 10));
        Ok(ServerConfig { ask: true, max_sessions: max_clients, memory, ..config })
    }

    /// # Errors
    ///
    /// What is missing or wrong, for people to read.
    pub(crate) fn client(self) -> Result<ClientConfig, String> {
        let session = self.session()?;
        let config = match self.protection([
            ("psk", &self.psk),
            ("server_key", &self.server_key),
            ("token", &self.token),
        ])? {
            "psk" => ClientConfig::secret(session, key("psk", &self.psk)?),
            "server_key" => ClientConfig {
                suite: KEY,
                server_key: Some(key("server_key", &self.server_key)?),
                ..ClientConfig::insecure(session)
            },
            "token" => {
                let token = PublicToken::decode(&self.token).map_err(|error| format!("token: {error}"))?;
                ClientConfig::token(session, &token)
            }
            _ => ClientConfig::insecure(session),
        };
        // Whoever waits that long for a silent server does so while connecting as well.
        let deadline = config.deadline.min(config.session.timeout);
        Ok(ClientConfig { user: self.user, deadline, ..config })
    }

    /// Which one of the ways to protect a session is set: exactly one has to be.
    fn protection(&self, keys: [(&'static str, &[u8]); 3]) -> Result<&'static str, String> {
        let is_set = keys.iter().filter(|(_, key)| !key.is_empty()).map(|(name, _)| *name);
        let set: Vec<_> = is_set.chain(self.is_insecure.then_some("insecure")).collect();
        match *set {
            [name] => Ok(name),
            [] => {
                let [(a, _), (b, _), (c, _)] = keys;
                Err(format!(
                    "nothing protects the session: set `{a}`, `{b}` or `{c}`, or `insecure` for local networks and tests"
                ))
            }
            _ => Err(format!("only one of these can be set: {}", set.join(", "))),
        }
    }

    fn session(&self) -> Result<SessionConfig, String> {
        let channels =
            u8::try_from(self.channel_count).ok().filter(|channels| (1..=CHANNELS_MAX).contains(channels));
        let channels = channels.ok_or_else(|| {
            format!("channel_count is {}, has to be 1 to {CHANNELS_MAX}", self.channel_count)
        })?;
        let channels: Vec<_> = Lane::all(channels).map(Lane::config).collect();
        let timeout =
            Duration::try_from_secs_f64(self.timeout).map_err(|error| format!("timeout: {error}"))?;
        let keepalive = SessionConfig::default().keepalive.min(timeout / 4);
        Ok(SessionConfig {
            timeout,
            keepalive,
            send_memory: 2 * BYTES_MAX,
            ..SessionConfig::new(self.protocol_id, channels)
        })
    }
}

/// Encrypted, and the client verifies the server.
const KEY: Suite = Suite::Noise(Pattern::Nk, Cipher::ChaChaPoly);

/// The public half of a server's key.
///
/// # Errors
///
/// It is not a key, for people to read.
pub(crate) fn public_key(private: &[u8]) -> Result<[u8; 32], String> {
    Ok(whitewater::session::public_key(&Secret::from(key("the private key", private)?)))
}

fn key(name: &str, bytes: &[u8]) -> Result<[u8; 32], String> {
    let key = <[u8; 32]>::try_from(bytes)
        .map_err(|_| format!("{name} has {} bytes, has to have 32", bytes.len()))?;
    if key == [0; 32] { Err(format!("{name} has only zeros")) } else { Ok(key) }
}
