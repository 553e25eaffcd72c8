//! The example as a process, beside a stand-in for its sidecar.

use crate::matchmaker::Running;
use agones_stand_in::{Counter, GameServer, Health, StandIn};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// A test that waits for longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Two servers of a fleet.
pub(crate) const ARENA: &str = "arena-x2c4v";
pub(crate) const OTHER: &str = "arena-8kq5t";

/// A folder for the files of a test, which has the name.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Has time for machines that are busy.
pub(crate) fn patient() -> Health {
    Health::new(PATIENCE, Duration::from_secs(5), 12)
}

/// A stand-in that is not started, and a port of the node for its server.
pub(crate) fn sidecar(name: &str, capacity: i64, health: Health) -> StandIn {
    let players = Some(Counter { count: 0, capacity });
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let uid = "7a1c9f04-5b0e-4d6f-8a52-3f1f6c0d9e21";
    StandIn::new(0, GameServer::scheduled(name, uid, port, players, health)).unwrap()
}

pub(crate) fn started(name: &str, capacity: i64) -> StandIn {
    let mut sidecar = sidecar(name, capacity, patient());
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
}

impl Process {
    /// Starts a server.
    pub(crate) fn start(sidecar: &StandIn, matchmaker: &Running, settings: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agones-server"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).envs(matchmaker.environment());
        command.env("AGONES_SDK_GRPC_PORT", sidecar.port().to_string()).env("REGION", "eu");
        command.env("BIND", format!("127.0.0.1:{}", sidecar.game_server().port));
        let mut child = command.envs(settings.iter().copied()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (tell, lines) = sync_channel(0);
        thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| tell.send(line).is_ok()) {}
        });
        Self { child, lines }
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
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}
