//! nginx as a UDP load balancer.

#![allow(dead_code, reason = "each test binary uses its part")]

use super::daemon::{Directory, found};
use std::env;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// Whether it is installed, with its stream module.
pub(crate) fn is_there() -> bool {
    found(is_valid("events {}\nstream {}\n"), "nginx with its stream module is missing")
}

pub(crate) fn is_valid(config: &str) -> bool {
    let directory = Directory::new();
    let mut command = command(&directory, config);
    command.arg("-t").stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// It runs as one process and writes only to this directory.
pub(crate) fn command(directory: &Directory, config: &str) -> Command {
    let head = format!(
        "include /etc/nginx/modules-enabled/*stream.conf; # where Debian loads the module
daemon off;
master_process off;
pid {};
error_log stderr;
",
        directory.path("pid").display()
    );
    let config = directory.write("nginx.conf", &(head + config));
    // Debian installs it where only root's PATH looks.
    let path = env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
    let file = env::split_paths(&path).map(|place| place.join("nginx")).find(|file| file.exists());
    let mut command = Command::new(file.unwrap_or_else(|| "nginx".into()));
    command.arg("-c").arg(config).args(["-e", "stderr"]);
    command
}

/// `forget` is its `proxy_timeout`, in seconds.
pub(crate) fn balancer(address: SocketAddr, servers: &[SocketAddr], forget: u8) -> String {
    let server = |server: &SocketAddr| format!("        server {server} max_fails=1 fail_timeout=10s;\n");
    let servers: String = servers.iter().map(server).collect();
    format!(
        "events {{ worker_connections 20000; }}
stream {{
    upstream servers {{
        hash $remote_addr consistent;
{servers}    }}
    server {{
        listen {address} udp;
        proxy_pass servers;
        proxy_timeout {forget}s;
    }}
}}
"
    )
}
