//! The example as a process, beside a stand-in for its sidecar.

use agones_stand_in::{Counter, GameServer, Health, StandIn};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// A test that waits for longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const FLEET_KEY: [u8; 32] = [0x42; 32];

/// Two servers of a fleet: name, UID, `server_id`.
pub(crate) const ARENA: (&str, &str, u64) =
    ("arena-x2c4v", "7a1c9f04-5b0e-4d6f-8a52-3f1f6c0d9e21", 0x7a1c_9f04_5b0e_4d6f);
pub(crate) const OTHER: (&str, &str, u64) =
    ("arena-8kq5t", "00112233-4455-4677-8899-aabbccddeeff", 0x0011_2233_4455_4677);

/// Has time for machines that are busy.
pub(crate) fn patient() -> Health {
    Health::new(PATIENCE, Duration::from_secs(5), 12)
}

/// A stand-in that is not started.
pub(crate) fn sidecar((name, uid, _): (&str, &str, u64), capacity: i64, health: Health) -> StandIn {
    let players = Some(Counter { count: 0, capacity });
    StandIn::new(0, GameServer::scheduled(name, uid, players, health)).unwrap()
}

pub(crate) fn started((name, uid, id): (&str, &str, u64), capacity: i64) -> StandIn {
    let mut sidecar = sidecar((name, uid, id), capacity, patient());
    sidecar.start().unwrap();
    sidecar
}

/// Waits until the `GameServer` is like that.
pub(crate) fn wait(sidecar: &StandIn, what: &str, is_so: impl Fn(&GameServer) -> bool) -> GameServer {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = sidecar.game_server();
        if is_so(&now) {
            return now;
        }
        assert!(Instant::now() < until, "not {what}: {now:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A running example. Dropping it kills it.
pub(crate) struct Process {
    child: Child,
    /// Nothing of its log is read that nobody waits for: a pipe has room for 64 KiB.
    lines: Receiver<String>,
    folder: PathBuf,
}

impl Process {
    /// Starts a server that gets its key as in a pod. `test` names a folder for the keys.
    pub(crate) fn start(sidecar: &StandIn, test: &str, settings: &[(&str, &str)]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        fs::create_dir_all(&folder).unwrap();
        let digits: String = FLEET_KEY.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(folder.join("fleet"), digits).unwrap();
        let mut program = format!("'{0}' key && exec '{0}'", env!("CARGO_BIN_EXE_agones-server"));
        if settings.iter().any(|(name, _)| *name == "SERVER_KEY_FILE") {
            program = format!("exec '{}'", env!("CARGO_BIN_EXE_agones-server"));
        }
        let mut command = Command::new("sh");
        command.args(["-c", &program]).stdin(Stdio::null()).stdout(Stdio::piped());
        command.env("AGONES_SDK_GRPC_PORT", sidecar.port().to_string()).env("BIND", "127.0.0.1:0");
        command.env("FLEET_KEY_FILE", folder.join("fleet")).env("SERVER_KEY_FILE", folder.join("server"));
        let mut child = command.envs(settings.iter().copied()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (tell, lines) = sync_channel(0);
        thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| tell.send(line).is_ok()) {}
        });
        Self { child, lines, folder }
    }

    /// Reads its log up to a line that starts like this, and returns the rest of that line.
    pub(crate) fn wait(&self, start: &str) -> String {
        let until = Instant::now() + PATIENCE;
        let mut lines = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("it does not say '{start}', but {lines:?}"));
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
            lines.push(line);
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.wait("listening on ").parse().unwrap()
    }

    /// As the kubelet does when the pod is deleted.
    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it has ended, and says whether it did so in order.
    pub(crate) fn ended(&mut self) -> bool {
        while self.lines.recv_timeout(PATIENCE).is_ok() {}
        self.child.wait().unwrap().success()
    }

    /// The file with its key.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.folder.join("server")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}
