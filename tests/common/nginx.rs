//! nginx as a UDP load balancer on loopback, as the user that runs the tests.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, process};

/// Runs until it is dropped.
pub(crate) struct Nginx {
    pub(crate) address: SocketAddr,
    forget: &'static str,
    directory: PathBuf,
    child: Child,
}

impl Nginx {
    /// Whether it takes a configuration that names no files. `None`: there is no nginx.
    pub(crate) fn takes(config: &str) -> Option<bool> {
        let nginx = Self::start(&["127.0.0.1:1".parse().unwrap()], "1s")?;
        let head = |(name, file)| format!("{name} {};\n", nginx.directory.join(file).display());
        let head: String = [("pid", "other.pid"), ("error_log", "error.log")].map(head).concat();
        fs::write(nginx.directory.join("nginx.conf"), format!("{MODULES}{head}{config}")).unwrap();
        Some(is_valid(&nginx.directory))
    }

    /// Before these servers. `forget`: when it forgets a client that says nothing, its `proxy_timeout`. `None`: there is no nginx.
    pub(crate) fn start(servers: &[SocketAddr], forget: &'static str) -> Option<Self> {
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let name = format!("whitewater-nginx-{}-{}", process::id(), address.port());
        let directory = env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        configure(&directory, address, servers, forget);
        if !is_there(&directory) {
            fs::remove_dir_all(&directory).unwrap();
            return None;
        }
        let child = nginx(&directory).spawn().unwrap();
        Some(Self { address, forget, directory, child })
    }

    /// As after a crash: all that it knew is forgotten. From now on it is before these servers.
    pub(crate) fn restart(&mut self, servers: &[SocketAddr]) {
        self.stop();
        configure(&self.directory, self.address, servers, self.forget);
        self.child = nginx(&self.directory).spawn().unwrap();
    }

    fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
        fs::remove_dir_all(&self.directory).unwrap();
    }
}

fn configure(directory: &Path, address: SocketAddr, servers: &[SocketAddr], forget: &str) {
    let server = |server: &SocketAddr| format!("        server {server} max_fails=1 fail_timeout=10s;\n");
    let (log, pid) = (directory.join("error.log"), directory.join("pid"));
    let config = format!(
        "{MODULES}daemon off;
master_process off;
pid {pid};
error_log {log};
events {{}}
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
",
        pid = pid.display(),
        log = log.display(),
        servers = servers.iter().map(server).collect::<String>(),
    );
    fs::write(directory.join("nginx.conf"), config).unwrap();
}

/// With the configuration in this directory. Debian puts it where only root looks.
fn nginx(directory: &Path) -> Command {
    let path = env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
    let found = env::split_paths(&path).map(|directory| directory.join("nginx")).find(|file| file.exists());
    let mut command = Command::new(found.unwrap_or_else(|| "nginx".into()));
    command.arg("-c").arg(directory.join("nginx.conf")).arg("-e").arg(directory.join("error.log"));
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn is_valid(directory: &Path) -> bool {
    nginx(directory).arg("-t").status().is_ok_and(|status| status.success())
}

/// Where Debian loads the stream module, if it is a module.
const MODULES: &str = "include /etc/nginx/modules-enabled/*stream.conf;\n";

/// Whether it takes a configuration of ours.
fn is_there(directory: &Path) -> bool {
    let is_there = is_valid(directory);
    let missing = "nginx with its stream module is missing";
    assert!(is_there || env::var_os("WHITEWATER_NO_SKIP").is_none(), "{missing}");
    if !is_there {
        println!("skipped: {missing}");
    }
    is_there
}
