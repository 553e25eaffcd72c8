//! Quilkin, a proxy for game servers that finds them by routing tokens: what `QUILKIN` names, or `quilkin` in the path.

use super::router::Token;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

/// Runs until it is dropped.
pub(crate) struct Quilkin {
    directory: PathBuf,
    child: Child,
}

/// The program, if it is installed.
pub(crate) fn program() -> Option<PathBuf> {
    let program = env::var_os("QUILKIN").map_or_else(|| "quilkin".into(), PathBuf::from);
    let is_there =
        Command::new(&program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    is_there.then_some(program)
}

impl Quilkin {
    /// At this port of all addresses, before these servers.
    pub(crate) fn start(program: &Path, port: u16, servers: &[(Token, SocketAddr)]) -> Self {
        let directory = env::temp_dir().join(format!("whitewater-quilkin-{}", process::id()));
        fs::create_dir_all(&directory).unwrap();
        let config = directory.join("quilkin.yaml");
        fs::write(&config, settings(servers)).unwrap();
        let admin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let mut command = Command::new(program);
        command.args(["--service.udp", "--service.udp.port", &port.to_string()]);
        // With several, answers of a server overtake each other.
        command.args(["--service.udp.workers", "1", "--admin.address", &admin.to_string()]);
        command
            .arg("--provider.fs")
            .arg("--provider.fs.path")
            .arg(&config)
            .args(["--termination-timeout", "0s"]);
        let log = fs::File::create(directory.join("log")).unwrap();
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let quilkin = Self { directory, child };
        let start = Instant::now();
        while std::net::TcpStream::connect(admin).is_err() {
            assert!(start.elapsed() < Duration::from_secs(20), "{}", quilkin.log());
            thread::sleep(Duration::from_millis(20));
        }
        quilkin
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }
}

impl Drop for Quilkin {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        if thread::panicking() {
            println!("{}", self.log());
        }
        fs::remove_dir_all(&self.directory).unwrap();
    }
}

/// It takes eight bytes off each datagram of a client.
fn settings(servers: &[(Token, SocketAddr)]) -> String {
    let endpoint = |(token, address): &(Token, SocketAddr)| {
        format!(
            "    - address: {address}\n      metadata: {{ quilkin.dev: {{ tokens: [{}] }} }}\n",
            base64(token)
        )
    };
    let endpoints: String = servers.iter().map(endpoint).collect();
    format!(
        "version: v1alpha1
id: whitewater
filters:
  - name: quilkin.filters.capture.v1alpha1.Capture
    config:
      suffix: {{ size: 8, remove: true }}
  - name: quilkin.filters.token_router.v1alpha1.TokenRouter
clusters:
  - endpoints:
{endpoints}"
    )
}

fn base64(bytes: &[u8]) -> String {
    let digit = |bits: u32| {
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[bits as usize & 63])
    };
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits =
            (0..3).fold(0, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or_default()));
        text.extend((0..4).map(|at| if at <= group.len() { digit(bits >> (18 - 6 * at)) } else { '=' }));
    }
    text
}
