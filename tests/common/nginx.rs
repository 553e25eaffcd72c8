//! nginx as a UDP load balancer on loopback, run by the user that runs the tests.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// Runs until it is dropped.
pub(crate) struct Nginx {
    pub(crate) address: SocketAddr,
    forget: &'static str,
    setup: Setup,
    child: Child,
}

impl Nginx {
    /// Puts it before these servers. `forget` is its `proxy_timeout`, after which it drops a silent client.
    /// `None`: nginx is not installed.
    pub(crate) fn start(servers: &[SocketAddr], forget: &'static str) -> Option<Self> {
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let setup = Setup::new(&balancer(address, servers, forget));
        let child = setup.is_there().then(|| setup.command().spawn().unwrap())?;
        Some(Self { address, forget, setup, child })
    }

    /// Restarts it as after a crash, without any of its state, before these servers.
    pub(crate) fn restart(&mut self, servers: &[SocketAddr]) {
        self.stop();
        self.setup.write(&balancer(self.address, servers, self.forget));
        self.child = self.setup.command().spawn().unwrap();
    }

    fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether it accepts a configuration. `None`: nginx is not installed.
pub(crate) fn takes(config: &str) -> Option<bool> {
    let setup = Setup::new("events {}\nstream {}\n");
    setup.is_there().then(|| {
        setup.write(config);
        setup.is_valid()
    })
}

fn balancer(address: SocketAddr, servers: &[SocketAddr], forget: &str) -> String {
    let server = |server: &SocketAddr| format!("        server {server} max_fails=1 fail_timeout=10s;\n");
    let servers: String = servers.iter().map(server).collect();
    format!(
        "events {{}}
stream {{
    upstream servers {{
        hash $remote_addr consistent;
{servers}    }}
    server {{
        listen {address} udp;
        proxy_pass servers;
        proxy_timeout {forget};
    }}
}}
"
    )
}

/// A directory with a configuration, removed on drop.
struct Setup {
    directory: PathBuf,
}

impl Setup {
    fn new(config: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = env::temp_dir().join(format!("whitewater-nginx-{}-{count}", process::id()));
        fs::create_dir(&directory).unwrap();
        let setup = Self { directory };
        setup.write(config);
        setup
    }

    /// It runs as one child process of this one and writes only to its directory.
    fn write(&self, config: &str) {
        let directory = self.directory.display();
        let head = format!(
            "include /etc/nginx/modules-enabled/*stream.conf; # where Debian loads the module
daemon off;
master_process off;
pid {directory}/pid;
error_log {directory}/error.log;
"
        );
        fs::write(self.directory.join("nginx.conf"), head + config).unwrap();
    }

    /// Debian installs it where only root's PATH looks.
    fn command(&self) -> Command {
        let path = env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
        let found = env::split_paths(&path).map(|place| place.join("nginx")).find(|file| file.exists());
        let mut command = Command::new(found.unwrap_or_else(|| "nginx".into()));
        command.arg("-c").arg(self.directory.join("nginx.conf"));
        command.arg("-e").arg(self.directory.join("error.log"));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn is_valid(&self) -> bool {
        self.command().arg("-t").status().is_ok_and(|status| status.success())
    }

    /// Like [`is_valid`](Self::is_valid), for a configuration known to be valid: if it fails, nginx or its
    /// module is missing.
    fn is_there(&self) -> bool {
        let is_there = self.is_valid();
        let missing = "nginx with its stream module is missing";
        assert!(is_there || env::var_os("WHITEWATER_NO_SKIP").is_none(), "{missing}");
        if !is_there {
            println!("skipped: {missing}");
        }
        is_there
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).unwrap();
    }
}
