//! The program of this crate as a process.

use crate::redis::Server;
use crate::setup::PATIENCE;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::{env, fs, process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How many there were: each has its folder.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The program with TLS, on Linux. Nobody reads what it says after its start. Dropping it ends it.
pub(crate) struct Program {
    child: Child,
    at: SocketAddr,
    tls: TlsConnector,
    folder: PathBuf,
}

impl Program {
    /// With these words more.
    pub(crate) fn start(more: &[&str]) -> Self {
        let folder = env::temp_dir().join(format!(
            "whitewater-program-{}-{}",
            process::id(),
            NUMBER.fetch_add(1, Relaxed)
        ));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            fs::write(folder.join(name), text).unwrap();
            folder.join(name)
        };
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_whitewater-matchmaker"));
        command.args(["--listen", "127.0.0.1:0", "--protocol-id", "7", "--tls"]);
        command.arg(file("cert", &made.cert.pem())).arg(file("key", &made.signing_key.serialize_pem()));
        command.arg("--fleet-key").arg(file("fleet", &"5a".repeat(32)));
        for who in ["servers", "backend", "operator"] {
            command.arg(format!("--{who}-token")).arg(file(who, &format!("a-secret-of-{who}")));
        }
        let mut child = command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        drop(child.stderr.take());
        let at = line.trim().strip_prefix("listening on https://").unwrap().parse().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { child, at, tls: Arc::new(config).into(), folder }
    }

    /// A connection from this address of loopback.
    pub(crate) async fn connect(&self, address: u8) -> TlsStream<TcpStream> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::new(127, 0, 0, address), 0).into()).unwrap();
        let stream = socket.connect(self.at).await.unwrap();
        self.tls.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
    }

    /// The most memory that it has had, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

#[tokio::test]
async fn a_program_that_nobody_listens_to_still_answers_when_redis_is_gone() {
    let Some(redis) = Server::start("unheard").await else { return };
    let file = redis.folder.join("url");
    fs::write(&file, redis.url()).unwrap();
    let program = Program::start(&["--redis", file.to_str().unwrap(), "one"]);
    drop(redis);
    for _ in 0..2 {
        let mut stream = program.connect(1).await;
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }
}
