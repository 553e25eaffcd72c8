//! Many KCP peers on one UDP socket: an echo server in an event loop, and three clients.

#![expect(clippy::indexing_slicing, reason = "`len` is what was written")]

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;
use whitewater::kcp::{self, Config, Conv, PeerEvent};

fn main() -> io::Result<()> {
    let limits = kcp::PeersConfig {
        kcp: Config::default(),
        max_peers: 100,
        idle_timeout: Duration::from_secs(1),
        ..kcp::PeersConfig::default()
    };
    let mut listener = kcp::Listener::bind("127.0.0.1:0", &limits)?;
    let address = listener.local_addr()?;
    let clients = [1, 2, 3].map(|conv| thread::spawn(move || client(address, Conv(conv))));

    let mut message = vec![0; 1 << 16];
    let mut closed = 0;
    while closed < clients.len() {
        listener.poll(None)?;
        while let Some(event) = listener.poll_event() {
            println!("{event:?}");
            match event {
                PeerEvent::Readable(id) => {
                    while let Some(peer) = listener.peer(id)
                        && let Ok(len) = peer.recv_into(&mut message)
                    {
                        if peer.send(&message[..len]).is_err() {
                            listener.close(id); // it sends and does not read
                        }
                    }
                }
                PeerEvent::Closed { .. } => closed += 1,
                _ => {}
            }
        }
    }
    println!("{:?}", listener.stats());
    clients.into_iter().try_for_each(|client| client.join().unwrap_or(Ok(())))
}

fn client(to: SocketAddr, conv: Conv) -> io::Result<()> {
    let mut socket = kcp::Socket::connect(to, conv, &Config::default())?;
    let mut buf = [0; 64];
    for round in 1..=3 {
        socket.send_blocking(format!("message {round} of client {conv}").as_bytes())?;
        let len = socket.recv_blocking(&mut buf)?;
        println!("    {}", String::from_utf8_lossy(&buf[..len]));
    }
    socket.drain(Duration::from_secs(1))
}
