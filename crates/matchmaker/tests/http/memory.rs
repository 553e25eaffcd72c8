//! What a connection costs the program, whatever its client does.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, process};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Each opens as many connections as an address may at once.
const ADDRESSES: u8 = 8;
const EACH: usize = 50;
/// Most bytes for a connection, with its socket's buffers in the program but not in the system.
const MOST: u64 = 128 * 1024;
/// For how long a client goes on sending what is not read.
const PRESSES: Duration = Duration::from_secs(3);

/// Prints the figures:
///
/// ```sh
/// cargo test --release -p whitewater-matchmaker --test http -- --nocapture a_connection_costs
/// ```
#[tokio::test]
async fn a_connection_costs_128_kb_at_most_whatever_its_client_does() {
    let head = "POST /join HTTP/1.1\r\nhost: x\r\n";
    for (client, sent) in [
        ("is idle", "GET /health HTTP/1.1\r\nhost: x\r\n\r\n".to_owned()),
        ("sends 15 kB of a head", format!("{head}x: {}", "x".repeat(15_000))),
        ("sends 400 kB of a head", format!("{head}x: {}", "x".repeat(400_000))),
        ("sends many headers", format!("{head}{}", "x: x\r\n".repeat(2_500))),
        ("sends most of a body", format!("{head}content-length: 32000\r\n\r\n{}", "[".repeat(31_999))),
        (
            "sends a body of small chunks",
            format!("{head}transfer-encoding: chunked\r\n\r\n{}", "1\r\nx\r\n".repeat(32_000)),
        ),
        ("reads no answers", "GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(10_000)),
    ] {
        let program = Program::start();
        let before = program.peak();
        let mut sending = Vec::new();
        for address in (1..=ADDRESSES).flat_map(|address| [address; EACH]) {
            let mut stream = program.connect(address).await;
            let sent = sent.clone();
            sending.push(tokio::spawn(async move {
                let _ = timeout(PRESSES, stream.write_all(sent.as_bytes())).await; // it may be cut off
                stream
            }));
        }
        let mut open = Vec::new();
        for sent in sending {
            open.push(sent.await.unwrap());
        }
        let cost = (program.peak() - before) / u64::try_from(open.len()).unwrap();
        println!("a client that {client} costs {cost} bytes");
        assert!(cost <= MOST, "a client that {client} costs {cost} bytes");
    }
}

/// The program with TLS. Dropping it ends it.
struct Program {
    child: Child,
    at: SocketAddr,
    tls: TlsConnector,
    folder: PathBuf,
}

impl Program {
    fn start() -> Self {
        let folder = env::temp_dir().join(format!("whitewater-memory-{}", process::id()));
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
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
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
    async fn connect(&self, address: u8) -> TlsStream<TcpStream> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::new(127, 0, 0, address), 0).into()).unwrap();
        let stream = socket.connect(self.at).await.unwrap();
        self.tls.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
    }

    /// The most memory that it has had, in bytes.
    fn peak(&self) -> u64 {
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
