//! The ends that send, in the client's namespace.

use super::spaces::SERVER;
use super::{CHANNEL, PORT, Peer, Setup, kcptun, quic};
use std::io;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use whitewater::kcp::{self, Conv};
use whitewater::{Client, ClientConfig, Event};

pub(super) trait Near {
    /// Returns whether the message was taken.
    fn send(&mut self, message: &[u8]) -> bool;

    /// Does until then what has to be done.
    fn wait(&mut self, until: Instant);
}

/// A connected end.
pub(super) fn new(peer: Peer, setup: &Setup) -> Box<dyn Near> {
    match peer {
        Peer::Udp => {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
            socket.connect((SERVER, PORT)).expect("a way");
            Box::new(socket)
        }
        Peer::Bare(..) => {
            let socket = kcp::Socket::connect((SERVER, PORT), Conv(7), &setup.kcp);
            Box::new(socket.expect("a socket"))
        }
        Peer::Session(..) => {
            let config = ClientConfig::secret(setup.session.clone(), Setup::secret());
            let mut client = Client::connect((SERVER, PORT), &config).expect("a socket");
            while !client.is_connected() {
                client.poll(None).expect("a socket");
                while let Some(event) = client.poll_event() {
                    assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
                }
            }
            Box::new(client)
        }
        Peer::TokioKcp => {
            let runtime = runtime();
            let to = (SERVER, PORT).into();
            let stream = runtime.block_on(tokio_kcp::KcpStream::connect(&tokio_kcp_config(), to));
            Box::new(Streaming { runtime, stream: stream.expect("a socket") })
        }
        Peer::Kcptun => {
            let program = kcptun::client();
            let stream = tcp((Ipv4Addr::LOCALHOST, kcptun::INSIDE), None);
            Box::new(Tunnel { stream, _program: program })
        }
        Peer::Quinn(_) => {
            let runtime = runtime();
            let stream = runtime.block_on(quic::connect(&setup.quic));
            Box::new(Streaming { runtime, stream })
        }
        Peer::Tcp(control) => Box::new(tcp((SERVER, PORT), Some(control))),
    }
}

/// One thread, which both the end and its timers run in.
pub(super) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The fastest that it has, with everything sent at once.
pub(super) fn tokio_kcp_config() -> tokio_kcp::KcpConfig {
    tokio_kcp::KcpConfig {
        nodelay: tokio_kcp::KcpNoDelayConfig::fastest(),
        flush_write: true,
        flush_acks_input: true,
        ..tokio_kcp::KcpConfig::default()
    }
}

/// Waits for whoever listens there.
fn tcp(to: (Ipv4Addr, u16), control: Option<&str>) -> TcpStream {
    let until = Instant::now() + Duration::from_secs(5);
    let stream = loop {
        match TcpStream::connect(to) {
            Ok(stream) => break stream,
            Err(error) if Instant::now() > until => panic!("{error}"),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    };
    stream.set_nodelay(true).expect("an option");
    if let Some(control) = control {
        let len = u32::try_from(control.len()).expect("a few bytes");
        // SAFETY: it reads that many bytes of a name.
        let failed = unsafe {
            let name = control.as_ptr().cast();
            libc::setsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name, len)
        };
        assert_eq!(failed, 0, "{control}: {}", io::Error::last_os_error());
    }
    stream
}

impl Near for UdpSocket {
    fn send(&mut self, message: &[u8]) -> bool {
        UdpSocket::send(self, message).is_ok()
    }

    fn wait(&mut self, until: Instant) {
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

impl Near for kcp::Socket {
    fn send(&mut self, message: &[u8]) -> bool {
        let is_taken = kcp::Socket::send(self, message).is_ok();
        self.flush();
        is_taken
    }

    fn wait(&mut self, until: Instant) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.set_read_timeout(Some(left));
            match self.recv_blocking(&mut [0; 16]) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => panic!("{error}"),
                _ => {}
            }
        }
    }
}

impl Near for Client {
    fn send(&mut self, message: &[u8]) -> bool {
        let is_taken = Client::send(self, CHANNEL, message).is_ok();
        self.flush();
        is_taken
    }

    fn wait(&mut self, until: Instant) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            self.poll(Some(left)).expect("a socket");
            while self.poll_event().is_some() {} // the other end may be gone: it has everything
            if left.is_zero() {
                return;
            }
        }
    }
}

impl Near for TcpStream {
    fn send(&mut self, message: &[u8]) -> bool {
        io::Write::write_all(self, message).is_ok()
    }

    fn wait(&mut self, until: Instant) {
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

/// A stream through another program.
struct Tunnel {
    stream: TcpStream,
    _program: kcptun::Program,
}

impl Near for Tunnel {
    fn send(&mut self, message: &[u8]) -> bool {
        self.stream.send(message)
    }

    fn wait(&mut self, until: Instant) {
        self.stream.wait(until);
    }
}

/// A stream under tokio.
struct Streaming<S> {
    runtime: Runtime,
    stream: S,
}

impl<S: AsyncWrite + Unpin> Near for Streaming<S> {
    fn send(&mut self, message: &[u8]) -> bool {
        let Self { runtime, stream } = self;
        runtime.block_on(async {
            // The other end is gone once it has everything.
            stream.write_all(message).await.is_ok() && stream.flush().await.is_ok()
        })
    }

    fn wait(&mut self, until: Instant) {
        self.runtime.block_on(async { tokio::time::sleep_until(until.into()).await });
    }
}
