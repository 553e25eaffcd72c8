//! Another implementation, in Python, written from docs/WIRE.md alone: it holds the bytes in there, and talks to our server.
//!
//! It needs python3 with what tests/independent/requirements.txt names, in the interpreter that `WHITEWATER_PYTHON` names or
//! `python3`. Where that is missing these tests say so and pass, unless `WHITEWATER_NO_SKIP` is set.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has found something"
)]

use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, io, thread};
use whitewater::Time;
use whitewater::session::exchange::public_key;
use whitewater::session::token::{FleetKey, Verifier};
use whitewater::session::{Event, Random, Server, ServerConfig, SessionConfig, SessionId, Suite};

const PROTOCOL_ID: u64 = 7;
const SERVER_ID: u64 = 5;
const PSK: [u8; 32] = [7; 32];
const SERVER_KEY: [u8; 32] = [8; 32];
const FLEET_KEY: [u8; 32] = [9; 32];

#[test]
fn the_document_says_all_that_its_bytes_need() {
    let Some(python) = python() else { return };
    run(Command::new(python).arg("vectors.py"));
}

#[test]
fn a_client_made_from_the_document_is_at_home_with_our_server() {
    let Some(python) = python() else { return };
    let session = SessionConfig { protocol_id: PROTOCOL_ID, ..SessionConfig::default() };
    let open = ServerConfig {
        session,
        suites: Suite::ALL.to_vec(),
        psk: Some(PSK),
        server_key: Some(SERVER_KEY),
        accept_burst: 100,
        deny_protocol: true,
        ..ServerConfig::default()
    };
    let by_token = ServerConfig { suites: vec![Suite::TOKEN], psk: None, server_key: None, ..open.clone() };
    let verifier = Verifier::new(PROTOCOL_ID, FleetKey::new(FLEET_KEY).server_key(SERVER_ID, 0), 0);
    let ports = [Echo::start(&open, None), Echo::start(&by_token, Some(verifier))];
    let hex = |key: [u8; 32]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let keys = [PSK, public_key(&SERVER_KEY), FLEET_KEY].map(hex);
    let mut client = Command::new(python);
    client
        .args(["client.py", "127.0.0.1"])
        .args(ports.each_ref().map(|echo| echo.port.to_string()))
        .args(keys);
    run(&mut client);
}

/// An interpreter that has what is needed.
fn python() -> Option<String> {
    let python = env::var("WHITEWATER_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_all = Command::new(&python).args(["-c", "import noise, cryptography"]).output();
    if has_all.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let missing = format!("{python} with tests/independent/requirements.txt is missing");
    assert!(env::var_os("WHITEWATER_NO_SKIP").is_none(), "{missing}");
    println!("skipped: {missing}");
    None
}

/// Runs a program of tests/independent, and shows what it says.
fn run(command: &mut Command) {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/independent");
    let output = command.current_dir(directory).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    println!("{stdout}");
    assert!(output.status.success(), "{stdout}{stderr}");
}

/// A server in a thread of its own that sends back what it is sent, until it is dropped.
struct Echo {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Echo {
    fn start(config: &ServerConfig, verifier: Option<Verifier>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let port = socket.local_addr().unwrap().port();
        let mut server: Server = Server::new(config, random()).unwrap();
        if let Some(verifier) = verifier {
            let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            server.require_tokens(Time::ZERO, unix.as_secs(), verifier);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || serve(&socket, &mut server, &stopped));
        Self { port, stop, thread: Some(thread) }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(thread::JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "the server");
    }
}

fn serve(socket: &UdpSocket, server: &mut Server, stopped: &AtomicBool) {
    let (start, mut buf) = (Instant::now(), vec![0; 2048]);
    while !stopped.load(Ordering::Relaxed) {
        let received = socket.recv_from(&mut buf);
        let now = Time::from_micros(u64::try_from(start.elapsed().as_micros()).unwrap());
        match received {
            Ok((len, from)) => server.handle_datagram(now, from, &buf[..len]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => panic!("{error}"),
        }
        server.handle_timeout(now);
        while let Some((id, event)) = server.poll_event() {
            if event == Event::Readable {
                answer(server, now, id);
            }
        }
        while let Some(to) = server.poll_transmit(now, &mut buf) {
            socket.send_to(&buf, to).unwrap();
        }
        buf.resize(2048, 0);
    }
}

fn answer(server: &mut Server, now: Time, id: SessionId) {
    let mut buf = vec![0; 1 << 16];
    let pass = server.pass(id).map(|pass| [format!("{} ", pass.client_id).as_bytes(), &pass.user].concat());
    while let Some(connection) = server.session_mut(id)
        && let Ok(len) = connection.recv_datagram(&mut buf)
    {
        match (&buf[..len], &pass) {
            (b"close", _) => server.close(now, id, 7),
            (b"who", Some(pass)) => drop(connection.send_datagram(pass).unwrap()),
            (other, _) => drop(connection.send_datagram(other).unwrap()),
        }
    }
    while let Some(connection) = server.session_mut(id)
        && let Ok(len) = connection.recv(0, &mut buf)
    {
        connection.send(0, &buf[..len]).unwrap();
    }
}

/// Not random at all: the addresses and secrets here are of a test.
fn random() -> Random {
    let mut rng = whitewater::sim::Rng::new(1, 1);
    Random::new(move |bytes| bytes.fill_with(|| rng.next_u64().to_le_bytes()[0]))
}
