//! A redis-server on loopback, run by the user that runs the tests.

use redis::Connection;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

/// Runs until it is dropped, and remembers nothing on disk.
pub(crate) struct RedisServer {
    port: u16,
    child: Child,
}

impl RedisServer {
    /// Starts one on a free port. `None`: redis-server is not installed.
    pub(crate) fn start() -> Option<Self> {
        let is_there = command().arg("--version").status().is_ok_and(|status| status.success());
        let missing = "redis-server is missing";
        assert!(is_there || env::var_os("WHITEWATER_NO_SKIP").is_none(), "{missing}");
        if !is_there {
            println!("skipped: {missing}");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Some(Self { port, child: run(port) })
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Kills it by SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, without its memory.
    pub(crate) fn restart(&mut self) {
        self.child = run(self.port);
    }

    /// Stops it by SIGSTOP: connections stay up, and nothing answers.
    pub(crate) fn hang(&self) {
        self.signal("-STOP");
    }

    /// Continues it.
    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// How many SET commands it has executed.
    pub(crate) fn sets(&self) -> u64 {
        let info: String =
            redis::cmd("INFO").arg("commandstats").query(&mut connect(self.port).unwrap()).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_set:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    }

    /// In how many seconds it forgets each of its keys.
    pub(crate) fn lives(&self) -> Vec<u64> {
        let mut connection = connect(self.port).unwrap();
        let keys: Vec<String> = redis::cmd("KEYS").arg("whitewater:used:*").query(&mut connection).unwrap();
        let life = |key: &String| redis::cmd("TTL").arg(key).query(&mut connection).unwrap();
        keys.iter().map(life).collect()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill(); // also one that hangs
    }
}

fn run(port: u16) -> Child {
    let child = command()
        .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"])
        .arg(port.to_string())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while connect(port).is_none() {
        assert!(Instant::now() < end, "redis-server does not answer");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn connect(port: u16) -> Option<Connection> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/")).unwrap();
    let mut connection = client.get_connection_with_timeout(Duration::from_secs(5)).ok()?;
    redis::cmd("PING").query::<String>(&mut connection).ok().map(|_| connection)
}

fn command() -> Command {
    let mut command = Command::new("redis-server");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
