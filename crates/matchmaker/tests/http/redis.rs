//! A Redis of a test.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, process};
use tokio::time::{Instant, sleep};

/// For its start, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Dropping it ends it.
pub(crate) struct Server {
    child: Child,
    pub(crate) folder: PathBuf,
}

impl Server {
    /// `None`: there is no Redis, which is said.
    pub(crate) async fn start(name: &str) -> Option<Self> {
        let folder = env::temp_dir().join(format!("whitewater-redis-{name}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("redis-server");
        command
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(folder.join("socket"));
        let child = command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let Ok(child) = child else {
            let missing = "redis-server is missing";
            assert!(env::var_os("WHITEWATER_NO_SKIP").is_none_or(|value| value == "0"), "{missing}");
            println!("skipped: {missing}");
            return None;
        };
        let server = Self { child, folder };
        let end = Instant::now() + PATIENCE;
        while !server.folder.join("socket").exists() {
            assert!(Instant::now() < end, "Redis does not start");
            sleep(Duration::from_millis(20)).await;
        }
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.folder.join("socket").display())
    }

    /// `STOP` or `CONT`: the process does nothing until the latter, and its connections stay open.
    pub(crate) fn signal(&self, name: &str) {
        let (pid, name) = (self.child.id().to_string(), format!("-{name}"));
        assert!(Command::new("kill").args([name, pid]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        fs::remove_dir_all(&self.folder).unwrap();
    }
}
