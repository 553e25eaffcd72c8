//! How a matchmaker is set. Secrets come from files: others can see the command line and the environment.

use crate::access::{Bearer, SECRET_MIN};
use crate::messages::{Hex, Id, is_name};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use whitewater::session::token::FleetKey;

/// What the program prints when it is called in another way.
pub const USAGE: &str = "\
whitewater-matchmaker --listen ADDRESS:PORT --tls CERTIFICATE.pem KEY.pem --protocol-id NUMBER
    --fleet-key FILE         64 hex digits, as `openssl rand -hex 32` makes them; makes the keys of all servers
    --servers-token FILE     what servers show to register
    --backend-token FILE     what the game's backend shows to get tokens for players
    --operator-token FILE    what operators and Prometheus show
    [--redis FILE FLEET]     the file has the URL of the Redis that replicas share; without it, servers and places are in memory.
                             Fleets that share a Redis have different names: 1 to 32 of a-z, 0-9 and -
    [--joins-per-address N]  a second; 2000 unless set
    [--plain-http]           instead of --tls: whoever reads along gets the tokens. Without it only on a loopback address";

/// Whether whoever shows this bearer secret may get tokens for these clients.
pub type Check = Box<dyn Fn(&str, &[Id]) -> bool + Send + Sync>;

/// Everything that a [`Matchmaker`](crate::Matchmaker) needs.
#[expect(clippy::exhaustive_structs, reason = "settings leave nothing open")]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// `None`: plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
    /// Makes the keys of all servers.
    pub fleet_key: FleetKey,
    /// The game and its version of its protocol.
    pub protocol_id: u64,
    /// What servers show to register.
    pub servers: Bearer,
    /// Who may join. The program takes the secret of the game's backend, which knows its players.
    pub check: Check,
    /// What operators show.
    pub operator: Bearer,
    /// What replicas share. `None`: servers and places are in memory.
    pub redis: Option<Redis>,
    /// Limits of time and number.
    pub limits: Limits,
}

/// A Redis that replicas of this matchmaker share, and maybe other fleets.
#[derive(Clone)]
#[expect(clippy::exhaustive_structs, reason = "settings leave nothing open")]
pub struct Redis {
    /// Its URL, which may have a password.
    pub url: String,
    /// The name of the fleet, which all keys begin with: `whitewater:FLEET:`. Fleets with different names know nothing of each other.
    pub fleet: String,
}

/// Limits of time and number.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "settings leave nothing open")]
pub struct Limits {
    /// A server that has not reported for this long gets no players.
    pub lease: Duration,
    /// Joins of an address, a second.
    pub joins_per_address: u32,
    /// New connections of an address, a second: handshakes of TLS are what costs most.
    pub connections_per_address: u32,
    /// Connections of an address at a time.
    pub connections_of_address: usize,
    /// Connections at a time.
    pub connections: usize,
    /// How long a client may take for its handshake, for the head of a request, and for the rest with our answer.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            joins_per_address: 2000,
            connections_per_address: 50,
            connections_of_address: 512,
            connections: 4096,
            patience: Duration::from_secs(10),
        }
    }
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A word that is not expected there, or one that is missing.
    #[error("{0}")]
    Word(String),
    /// A file that cannot be read.
    #[error("{path}: {error}")]
    File {
        /// Its path.
        path: String,
        /// Why not.
        error: io::Error,
    },
    /// A file that has something else.
    #[error("{path}: {must}")]
    Content {
        /// Its path.
        path: String,
        /// What it must have.
        must: String,
    },
    /// A certificate and a key that do not fit, or of a kind that rustls does not know.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl Settings {
    /// Reads the words of the command line, and the files that they name.
    ///
    /// # Errors
    ///
    /// A word that is wrong or missing, or a file that cannot be read or has something else.
    pub fn from_words(words: &[String]) -> Result<Self, SettingsError> {
        let mut words = Words { rest: words.to_vec() };
        let is_plain = words.flag("--plain-http");
        let tls = words.take("--tls", 2)?;
        let mut limits = Limits::default();
        if let Some(joins) = words.value("--joins-per-address")? {
            limits.joins_per_address = number(&joins, "--joins-per-address")?;
        }
        let backend = secret(&words.needed("--backend-token")?)?;
        let settings = Self {
            listen: number(&words.needed("--listen")?, "--listen")?,
            tls: tls.map(|paths| server_config(&paths)).transpose()?,
            fleet_key: fleet_key(&words.needed("--fleet-key")?)?,
            protocol_id: protocol_id(&words.needed("--protocol-id")?)?,
            servers: secret(&words.needed("--servers-token")?)?,
            check: Box::new(move |shown, _| backend.is(shown)),
            operator: secret(&words.needed("--operator-token")?)?,
            redis: words.take("--redis", 2)?.map(|words| redis(&words)).transpose()?,
            limits,
        };
        if let Some(word) = words.rest.first() {
            return Err(SettingsError::Word(format!("{word}: there is no such setting")));
        }
        let is_safe = settings.tls.is_some() || is_plain || settings.listen.ip().is_loopback();
        if !is_safe || (settings.tls.is_some() && is_plain) {
            return Err(SettingsError::Word("it must be either --tls or --plain-http".into()));
        }
        Ok(settings)
    }
}

struct Words {
    rest: Vec<String>,
}

impl Words {
    fn flag(&mut self, name: &str) -> bool {
        let place = self.rest.iter().position(|word| word == name);
        place.map(|place| self.rest.remove(place)).is_some()
    }

    fn take(&mut self, name: &str, count: usize) -> Result<Option<Vec<String>>, SettingsError> {
        let Some(place) = self.rest.iter().position(|word| word == name) else { return Ok(None) };
        if self.rest.len() <= place + count {
            return Err(SettingsError::Word(format!("{name} has too few values")));
        }
        Ok(Some(self.rest.drain(place..=place + count).skip(1).collect()))
    }

    fn value(&mut self, name: &str) -> Result<Option<String>, SettingsError> {
        Ok(self.take(name, 1)?.and_then(|words| words.into_iter().next()))
    }

    fn needed(&mut self, name: &str) -> Result<String, SettingsError> {
        self.value(name)?.ok_or_else(|| SettingsError::Word(format!("{name} is missing")))
    }
}

fn number<T: std::str::FromStr>(word: &str, name: &str) -> Result<T, SettingsError> {
    word.parse().map_err(|_| SettingsError::Word(format!("{name}: {word} is not what it takes")))
}

fn protocol_id(word: &str) -> Result<u64, SettingsError> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16)
            .map_err(|_| SettingsError::Word(format!("--protocol-id: {word} is no number"))),
        None => number(word, "--protocol-id"),
    }
}

/// The text of a file without the line break at its end.
fn read(path: &str) -> Result<String, SettingsError> {
    let text = fs::read_to_string(path).map_err(|error| SettingsError::File { path: path.into(), error })?;
    Ok(text.trim().to_owned())
}

fn redis(words: &[String]) -> Result<Redis, SettingsError> {
    let [url, fleet] = words else {
        return Err(SettingsError::Word("--redis has too few values".into()));
    };
    if !is_name(fleet) {
        return Err(SettingsError::Word(format!("--redis: {fleet} must be 1 to 32 of a-z, 0-9 and -")));
    }
    Ok(Redis { url: read(url)?, fleet: fleet.clone() })
}

fn secret(path: &str) -> Result<Bearer, SettingsError> {
    let must = format!("must be {SECRET_MIN} or more characters without spaces");
    Bearer::new(&read(path)?).ok_or_else(|| SettingsError::Content { path: path.into(), must })
}

fn fleet_key(path: &str) -> Result<FleetKey, SettingsError> {
    let bytes = Hex::parse(&read(path)?).and_then(|hex| hex.0.try_into().ok());
    let must = "must be 64 hex digits".into();
    bytes.map(FleetKey::new).ok_or_else(|| SettingsError::Content { path: path.into(), must })
}

fn server_config(paths: &[String]) -> Result<Arc<ServerConfig>, SettingsError> {
    let [certificate, key] = paths else {
        return Err(SettingsError::Word("--tls has too few values".into()));
    };
    let wrong = |path: &str, error: pem::Error| SettingsError::Content {
        path: path.into(),
        must: format!("must be PEM: {error}"),
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| wrong(certificate, error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::{env, process};

    /// A folder for the files of a test. Dropping it removes it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = env::temp_dir().join(format!("whitewater-settings-{name}-{}", process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    /// The words of a valid call, whose files have these texts.
    fn words(Folder(folder): &Folder, fleet_key: &str, secret: &str) -> Vec<String> {
        let file = |file: &str, text: &str| {
            fs::write(folder.join(file), text).unwrap();
            folder.join(file).display().to_string()
        };
        let mut words = ["--listen", "127.0.0.1:0", "--protocol-id", "0xff"].map(str::to_owned).to_vec();
        words.extend(["--fleet-key".to_owned(), file("key", fleet_key)]);
        for who in ["servers", "backend", "operator"] {
            words.extend([format!("--{who}-token"), file(who, &format!("{secret}-of-{who}\n"))]);
        }
        words
    }

    fn wrong(words: &[String]) -> String {
        Settings::from_words(words).err().unwrap().to_string()
    }

    #[test]
    fn a_call_has_all_settings_or_says_which_is_missing_or_unknown() {
        let folder = Folder::new("call");
        let good = words(&folder, &"5a".repeat(32), "long-enough");
        let settings = Settings::from_words(&good).ok().unwrap();
        assert_eq!((settings.protocol_id, settings.limits.joins_per_address), (255, 2000));
        assert!(
            (settings.check)("long-enough-of-backend", &[])
                && !(settings.check)("long-enough-of-servers", &[])
        );
        for start in (0..good.len()).step_by(2) {
            let without = [&good[..start], &good[start + 2..]].concat();
            assert_eq!(wrong(&without), format!("{} is missing", good[start]));
        }
        let more = |word: &str| [&good[..], &[word.to_owned()]].concat();
        assert_eq!(wrong(&more("--page")), "--page: there is no such setting");
        assert_eq!(wrong(&more("--redis")), "--redis has too few values");
        let url = good[5].clone();
        let with_redis =
            |fleet: &str| [&good[..], &["--redis".to_owned(), url.clone(), fleet.into()]].concat();
        let redis = Settings::from_words(&with_redis("eu-1")).ok().unwrap().redis.unwrap();
        assert_eq!((redis.url, redis.fleet), ("5a".repeat(32), "eu-1".to_owned()));
        let must = "must be 1 to 32 of a-z, 0-9 and -";
        assert_eq!(wrong(&with_redis("a:b")), format!("--redis: a:b {must}"));
    }

    #[test]
    fn plain_http_is_for_this_machine_unless_told() {
        let folder = Folder::new("plain");
        let mut words = words(&folder, &"5a".repeat(32), "long-enough");
        words[1] = "0.0.0.0:0".into();
        assert_eq!(wrong(&words), "it must be either --tls or --plain-http");
        words.push("--plain-http".into());
        assert!(Settings::from_words(&words).is_ok());
    }

    #[test]
    fn a_secret_that_can_be_guessed_is_refused() {
        let folder = Folder::new("secrets");
        let end = |words: Vec<String>| wrong(&words).split(": ").last().unwrap().to_owned();
        assert_eq!(end(words(&folder, &"5a".repeat(31), "long-enough")), "must be 64 hex digits");
        assert_eq!(end(words(&folder, &"5x".repeat(32), "long-enough")), "must be 64 hex digits");
        let must = "must be 16 or more characters without spaces";
        assert_eq!(end(words(&folder, &"5a".repeat(32), "a")), must);
        assert_eq!(end(words(&folder, &"5a".repeat(32), "long enough it is")), must);
    }
}
