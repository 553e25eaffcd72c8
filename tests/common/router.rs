//! A proxy of these tests that finds servers by routing tokens, as Quilkin does with its filters `Capture` and `TokenRouter`: by the last eight bytes of
//! each datagram of a client. It passes it on to the server with that token, from a port that this client and server have for themselves.

use super::told::header;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use whitewater::rand_core::Rng as _;
use whitewater_sim::SimRng;

pub(crate) type Token = [u8; 8];

/// What the servers get of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Passes {
    /// All but its token.
    Payload,
    /// All of it, after a header that says who the client is.
    Told,
}

/// Runs until it is dropped.
pub(crate) struct Router {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Router {
    /// At `address`, before these servers, for clients on loopback. One in `loses` datagrams is lost each way; those with another token all are.
    pub(crate) fn start(
        address: SocketAddr,
        servers: &[(Token, SocketAddr)],
        loses: u32,
        passes: Passes,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut routes = Routes {
            clients: unblocked(UdpSocket::bind(address).unwrap()),
            servers: servers.iter().copied().collect(),
            ports: HashMap::new(),
            rng: SimRng::new(23, 0),
            loses,
            passes,
        };
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                routes.pass_on();
                thread::sleep(Duration::from_micros(500));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()) || thread::panicking(), "the router");
    }
}

struct Routes {
    clients: UdpSocket,
    servers: HashMap<Token, SocketAddr>,
    /// By the client and the server.
    ports: HashMap<(SocketAddr, SocketAddr), UdpSocket>,
    rng: SimRng,
    loses: u32,
    passes: Passes,
}

impl Routes {
    fn pass_on(&mut self) {
        let Self { clients, servers, ports, rng, loses, passes } = self;
        let mut buf = [0; 2048];
        while let Some((len, client)) = next(clients, &mut buf) {
            let Some((payload, token)) = buf[..len].split_last_chunk() else { continue };
            let Some(server) = servers.get(token) else { continue };
            let port = ports.entry((client, *server)).or_insert_with(|| {
                let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
                port.connect(server).unwrap();
                unblocked(port)
            });
            if !rng.next_u32().is_multiple_of(*loses) {
                let _ = match passes {
                    Passes::Payload => port.send(payload),
                    Passes::Told => port.send(&[&header(client)[..], &buf[..len]].concat()),
                };
            }
        }
        for ((client, _), port) in ports {
            while let Some((len, _)) = next(port, &mut buf) {
                if !rng.next_u32().is_multiple_of(*loses) {
                    let _ = clients.send_to(&buf[..len], client);
                }
            }
        }
    }
}

fn next(socket: &UdpSocket, buf: &mut [u8]) -> Option<(usize, SocketAddr)> {
    match socket.recv_from(buf) {
        Ok(received) => Some(received),
        Err(error) => {
            let is_over = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused);
            assert!(is_over, "{error}");
            None
        }
    }
}

fn unblocked(socket: UdpSocket) -> UdpSocket {
    socket.set_nonblocking(true).unwrap();
    socket
}
