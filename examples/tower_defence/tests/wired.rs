//! The game over each transport by real sockets on loopback: the measurements of the comparison exist.

use std::net::UdpSocket;
use std::thread;
use tower_defence::headless::Figures;
use tower_defence::lab::{Transport, wired};

#[test]
fn bots_play_and_are_measured_over_each_transport() {
    let threads = [Transport::Sessions, Transport::Kcp, Transport::Tcp].map(|transport| {
        thread::spawn(move || {
            let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let server = thread::spawn(move || wired::serve(at, transport, 12, 1).unwrap());
            thread::sleep(std::time::Duration::from_millis(300)); // TCP is refused before somebody listens
            let samples = wired::play(at, transport, 3, 10, 1).unwrap();
            server.join().unwrap();
            let figures = Figures::of(&samples);
            assert!(samples.snapshots.len() > 300, "{transport:?}: {} snapshots", samples.snapshots.len());
            assert!(figures.effect[0] > 10.0, "{transport:?}: {figures:?}");
            assert!(figures.traffic.iter().all(|bytes| *bytes > 100.0), "{transport:?}: {figures:?}");
            assert!(figures.bytes[0] < figures.bytes[1], "{transport:?}: {figures:?}");
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}
