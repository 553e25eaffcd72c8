//! A process that is out of file descriptors: anything that needs another socket returns an error that says
//! so, and whatever has one continues.
//!
//! Each test runs itself again in a child process, under a limit set by the shell.

#![cfg(all(feature = "net", unix))]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[path = "common/configs.rs"]
mod configs;

use std::env;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};
use whitewater::kcp::{self, Conv};
use whitewater::thread::{self, ThreadConfig};
use whitewater::{Channel, Client, ClientConfig, Event, Server, ServerConfig, SessionConfig};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const CHAT: Channel = Channel::ordered(0);
const ANY: &str = "127.0.0.1:0";
/// Descriptors of the process: more than a test needs before it uses up the rest.
const DESCRIPTORS: u32 = 48;
/// EMFILE. Source: the errno tables of Linux and of the BSDs with macOS.
const TOO_MANY_OPEN: i32 = 24;

/// Runs the test in a process that may open few files.
fn with_few_descriptors(test: &str, body: impl FnOnce()) {
    const INSIDE: &str = "WHITEWATER_FEW_DESCRIPTORS";
    if env::var_os(INSIDE).is_some() {
        return body();
    }
    let script = format!("ulimit -n {DESCRIPTORS} && exec \"$0\" --exact {test} --nocapture");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg(env::current_exe().unwrap()).env(INSIDE, "1");
    let output = shell.output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
}

/// Uses up all remaining descriptors.
fn take_all() -> Vec<UdpSocket> {
    let mut taken = Vec::new();
    loop {
        match UdpSocket::bind(ANY) {
            Ok(socket) => taken.push(socket),
            Err(error) => {
                assert!(is_too_many(&error), "{error}");
                return taken;
            }
        }
    }
}

fn is_too_many(error: &io::Error) -> bool {
    error.raw_os_error() == Some(TOO_MANY_OPEN)
}

fn insecure(at: SocketAddr) -> io::Result<Client> {
    Client::connect(at, &ClientConfig::insecure(SessionConfig::default()))
}

/// A message and its echo, with drivers that are pumped.
fn echo(server: &mut Server, client: &mut Client, message: &[u8]) {
    let (start, mut buf, mut is_sent) = (Instant::now(), [0; 100], false);
    loop {
        assert!(start.elapsed() < PATIENCE, "{:?} {:?}", server.stats(), client.state());
        server.poll(Some(Duration::from_millis(1))).unwrap();
        while let Some((id, _)) = server.poll_event() {
            while let Ok(len) = server.recv_into(id, CHAT, &mut buf) {
                server.send(id, CHAT, &buf[..len]).unwrap();
            }
        }
        is_sent = is_sent || client.send(CHAT, message).is_ok(); // not before it is up
        client.pump().unwrap();
        if let Ok(len) = client.recv_into(CHAT, &mut buf) {
            return assert_eq!(buf[..len], *message);
        }
    }
}

#[test]
fn new_drivers_fail_and_existing_ones_continue() {
    with_few_descriptors("new_drivers_fail_and_existing_ones_continue", || {
        let mut server = Server::bind(ANY, &ServerConfig::insecure(SessionConfig::default())).unwrap();
        let at = server.local_addr().unwrap();
        let mut client = insecure(at).unwrap();
        echo(&mut server, &mut client, b"before");
        let taken = take_all();
        let errors = [
            insecure(at).map(drop).unwrap_err(),
            Server::bind(ANY, &ServerConfig::insecure(SessionConfig::default())).map(drop).unwrap_err(),
            kcp::Listener::bind(ANY, &kcp::PeersConfig::default()).map(drop).unwrap_err(),
            kcp::Socket::connect(at, Conv(1), &configs::turbo()).map(drop).unwrap_err(),
        ];
        assert!(errors.iter().all(is_too_many), "{errors:?}");
        echo(&mut server, &mut client, b"meanwhile");
        drop(taken);
        let mut another = insecure(at).unwrap();
        echo(&mut server, &mut another, b"after");
        assert_eq!(server.socket_stats(), whitewater::net::SocketStats::default());
    });
}

#[test]
fn a_thread_that_cannot_have_what_wakes_it_is_an_error_and_one_that_runs_goes_on() {
    with_few_descriptors(
        "a_thread_that_cannot_have_what_wakes_it_is_an_error_and_one_that_runs_goes_on",
        || {
            let threads = ThreadConfig::default();
            let server = Server::bind(ANY, &ServerConfig::insecure(SessionConfig::default())).unwrap();
            let mut server = thread::Server::spawn(vec![server], &threads).unwrap();
            let mut client = thread::Client::spawn(insecure(server.local_addr()).unwrap(), &threads).unwrap();
            assert!(client.poll(Some(PATIENCE)) && server.poll(Some(PATIENCE)));
            assert_eq!(client.poll_event(), Some(Event::Connected));
            let (id, _) = server.poll_event().unwrap();
            let late = insecure(server.local_addr()).unwrap();
            let taken = take_all();
            assert!(is_too_many(&thread::Client::spawn(late, &threads).map(drop).unwrap_err()));
            client.send(CHAT, b"meanwhile").unwrap();
            assert!(server.poll(Some(PATIENCE)));
            assert_eq!(server.poll_event(), Some((id, Event::Readable)));
            assert_eq!(server.recv(id, CHAT).as_deref(), Some(&b"meanwhile"[..]));
            drop(taken);
            let mut another =
                thread::Client::spawn(insecure(server.local_addr()).unwrap(), &threads).unwrap();
            assert!(another.poll(Some(PATIENCE)));
            assert_eq!(another.poll_event(), Some(Event::Connected));
            assert!(!server.is_finished() && !client.is_finished());
        },
    );
}

#[cfg(feature = "tokio")]
#[test]
fn under_tokio_new_sockets_fail_and_existing_ones_continue() {
    use tokio::time::timeout;
    use whitewater::tokio::{Client, KcpListener, KcpStream, Server};
    async fn scene() {
        let [any, nobody]: [SocketAddr; 2] = [ANY.parse().unwrap(), "127.0.0.1:1".parse().unwrap()];
        let server = Server::bind(any, &ServerConfig::insecure(SessionConfig::default())).unwrap();
        let listener = KcpListener::bind(any, &kcp::PeersConfig::default()).unwrap();
        let (target, config) = (server.local_addr(), ClientConfig::insecure(SessionConfig::default()));
        let connecting = Client::connect(target, &config);
        let (client, session) = tokio::join!(connecting, server.accept());
        let (client, session) = (client.unwrap(), session.unwrap());
        let bare = KcpStream::connect(listener.local_addr(), Conv(7), &configs::turbo()).unwrap();
        bare.send(b"hello").await.unwrap();
        let (peer, _) = listener.accept().await.unwrap();
        let taken = take_all();
        let errors = [
            Server::bind(any, &ServerConfig::insecure(SessionConfig::default())).map(drop).unwrap_err(),
            KcpListener::bind(any, &kcp::PeersConfig::default()).map(drop).unwrap_err(),
            KcpStream::connect(nobody, Conv(1), &configs::turbo()).map(drop).unwrap_err(),
            Client::connect(target, &config).await.map(drop).unwrap_err(),
        ];
        assert!(errors.iter().all(is_too_many), "{errors:?}");
        let mut buf = [0; 100];
        client.send(CHAT, b"meanwhile").await.unwrap();
        assert_eq!(session.recv_into(CHAT, &mut buf).await.unwrap(), 9);
        assert_eq!(peer.recv(&mut buf).await.unwrap(), 5);
        peer.send(b"meanwhile").await.unwrap();
        assert_eq!(bare.recv(&mut buf).await.unwrap(), 9);
        drop(taken);
        let another = Client::connect(target, &config);
        let (another, accepted) = tokio::join!(another, server.accept());
        assert!(another.is_ok() && accepted.is_ok());
    }
    with_few_descriptors("under_tokio_new_sockets_fail_and_existing_ones_continue", || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { timeout(PATIENCE, scene()).await }).unwrap();
    });
}
