//! The matchmaker in this process, with TLS, with the words that the manifest starts it with; and the game's backend and operator.

use crate::process::{PATIENCE, folder};
use crate::protocol::PROTOCOL_ID;
use std::fs;
use std::future::pending;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use whitewater_matchmaker::client::{Client, ClientError, Method, StatusCode};
use whitewater_matchmaker::messages::{Allocation, Hex, Id, Join, Listed};
use whitewater_matchmaker::settings::Settings;
use whitewater_matchmaker::{Bearer, Matchmaker};

/// Between questions: it takes 50 connections a second from an address.
const EACH: Duration = Duration::from_millis(50);
/// How long its tasks may take to end.
const END: Duration = Duration::from_secs(10);

/// A matchmaker that can be started and killed.
pub(crate) struct Running {
    folder: PathBuf,
    lease: Duration,
    at: SocketAddr,
    serves: Option<Runtime>,
    asks: Runtime,
}

impl Running {
    /// One that is started, with leases as ever.
    pub(crate) fn start(test: &str) -> Self {
        let mut matchmaker = Self::new(test, Duration::from_secs(15));
        matchmaker.revive();
        matchmaker
    }

    /// One that is not started yet. `test` names a folder for its secrets.
    pub(crate) fn new(test: &str, lease: Duration) -> Self {
        let folder = folder(&format!("{test}-matchmaker"));
        write_secrets(&folder);
        let at = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let asks = Builder::new_current_thread().enable_all().build().unwrap();
        Self { folder, lease, at, serves: None, asks }
    }

    /// Listens from now on.
    pub(crate) fn revive(&mut self) {
        let mut words = words(&self.folder);
        words.drain(words.iter().position(|word| word == "--redis").unwrap()..).take(3).for_each(drop);
        let listen = words.iter().position(|word| word == "--listen").unwrap();
        words[listen + 1] = self.at.to_string();
        let mut settings = Settings::from_words(&words).unwrap();
        settings.limits.lease = self.lease;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let matchmaker = runtime.block_on(Matchmaker::bind(settings)).unwrap();
        runtime.spawn(matchmaker.serve(pending()));
        self.serves = Some(runtime);
    }

    /// Ends it without a goodbye. It forgets all servers.
    pub(crate) fn kill(&mut self) {
        self.serves.take().unwrap().shutdown_timeout(END);
    }

    /// What a game server needs to know of it.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        let path = |file| self.folder.join(file).display().to_string();
        [
            ("MATCHMAKER", self.at.to_string()),
            ("MATCHMAKER_ROOT_FILE", path("tls.crt")),
            ("SERVERS_TOKEN_FILE", path("servers.token")),
        ]
    }

    /// Places for these players, as the backend asks for them.
    pub(crate) fn join(&self, players: &[u64]) -> Result<Vec<Vec<u8>>, StatusCode> {
        let clients = players.iter().copied().map(Id).collect();
        let join = Join { clients, regions: vec!["eu".to_owned()], match_id: Hex(vec![7; 16]) };
        let asked = self.ask(|client| {
            self.asks.block_on(client.ask::<Allocation>(
                (Method::POST, "/join"),
                &self.bearer("backend"),
                &join,
            ))
        });
        Ok(asked?.tokens.into_iter().map(|token| token.0).collect())
    }

    /// A place for a player.
    pub(crate) fn token(&self, player: u64) -> Vec<u8> {
        self.join(&[player]).unwrap().remove(0)
    }

    /// All servers with a lease.
    pub(crate) fn servers(&self) -> Vec<Listed> {
        let operator = self.bearer("operator");
        self.ask(|client| self.asks.block_on(client.ask((Method::GET, "/servers"), &operator, &()))).unwrap()
    }

    /// Waits until the list is like that.
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&[Listed]) -> bool) -> Vec<Listed> {
        let until = Instant::now() + PATIENCE;
        loop {
            let now = self.servers();
            if is_so(&now) {
                return now;
            }
            assert!(Instant::now() < until, "not {what}: {now:?}");
            thread::sleep(EACH);
        }
    }

    /// Waits until that many players are on a server with this name, which is the only one or among others.
    pub(crate) fn wait_for(&self, name: &str, players: u32) -> Listed {
        let is_it = |listed: &Listed| listed.report.name == name && listed.report.players == players;
        let now = self.wait(&format!("{players} players on {name}"), |servers| servers.iter().any(is_it));
        now.into_iter().find(is_it).unwrap()
    }

    /// The operators want that server to end.
    pub(crate) fn drain(&self, server: Id) {
        let path = format!("/servers/{}/drain", server.0);
        let operator = self.bearer("operator");
        self.ask(|client| self.asks.block_on(client.ask::<()>((Method::POST, &path), &operator, &())))
            .unwrap();
    }

    fn ask<T>(&self, ask: impl FnOnce(&mut Client) -> Result<T, ClientError>) -> Result<T, StatusCode> {
        let root = fs::read(self.folder.join("tls.crt")).unwrap();
        match ask(&mut Client::tls(self.at, "127.0.0.1", &root).unwrap()) {
            Ok(answer) => Ok(answer),
            Err(ClientError::Refused(status, _)) => Err(status),
            Err(error) => panic!("{error}"),
        }
    }

    fn bearer(&self, whose: &str) -> Bearer {
        Bearer::new(&fs::read_to_string(self.folder.join(format!("{whose}.token"))).unwrap()).unwrap()
    }
}

/// All files that the manifest mounts.
fn write_secrets(folder: &Path) {
    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    for (file, text) in [
        ("tls.crt", certificate.cert.pem()),
        ("tls.key", certificate.signing_key.serialize_pem()),
        ("fleet.key", "42".repeat(32)),
        ("servers.token", "a-secret-of-the-servers".to_owned()),
        ("backend.token", "a-secret-of-the-backend".to_owned()),
        ("operator.token", "a-secret-of-the-operators".to_owned()),
        ("redis.url", "redis://redis:6379".to_owned()),
    ] {
        fs::write(folder.join(file), text).unwrap();
    }
}

/// The words of the manifest, with files of this folder.
fn words(folder: &Path) -> Vec<String> {
    let manifest = include_str!("../../manifests/matchmaker.yaml");
    let (_, args) = manifest.split_once("args:").unwrap();
    let (args, _) = args.trim_start().strip_prefix('[').unwrap().split_once(']').unwrap();
    let local = |word: &str| match Path::new(word.trim().trim_matches('"')) {
        path if path.is_absolute() => folder.join(path.file_name().unwrap()).display().to_string(),
        word => word.display().to_string(),
    };
    args.trim().trim_end_matches(',').split(',').map(local).collect()
}

#[test]
fn the_manifest_starts_the_matchmaker_of_this_repository_for_this_game() {
    let folder = folder("words");
    write_secrets(&folder);
    let settings = Settings::from_words(&words(&folder)).unwrap();
    assert_eq!(settings.protocol_id, PROTOCOL_ID);
    assert!(settings.tls.is_some());
    assert_eq!(settings.redis.unwrap().fleet, "arena");
}

#[test]
fn the_manifests_set_what_the_server_reads() {
    let manifest = include_str!("../../manifests/fleet.yaml");
    let names = manifest
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("- { name: ")?.split_once(", value:"));
    let names: Vec<_> = names.map(|(name, _)| name).collect();
    assert!(names.contains(&"MATCHMAKER") && names.contains(&"IDLE_SECONDS"), "{names:?}");
    for name in names {
        assert!(include_str!("../../src/main.rs").contains(&format!("(\"{name}\")")), "{name}");
    }
}
