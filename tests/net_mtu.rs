//! Path MTU discovery over real sockets: on loopback, whose MTU may be anything. In a network namespace,
//! `unshare -rnm sh -c 'mount -t sysfs none /sys; ip link set lo up mtu 1400; ..'`, the same test meets a
//! path that refuses what is too long.

#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::sessions::on;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use whitewater::{Client, ClientConfig, Server, ServerConfig, SessionConfig, SessionId};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const MESSAGE: usize = 60_000;

fn session() -> SessionConfig {
    let (send_memory, receive_memory) = (4 << 20, 4 << 20);
    SessionConfig { path_mtu: Some(9000), send_memory, receive_memory, ..SessionConfig::default() }
}

/// What can be found out that loopback carries, bytes of UDP payload. Only Linux says what that is.
fn loopback() -> RangeInclusive<u16> {
    if cfg!(not(feature = "batch")) {
        return 1200..=1200; // this build lacks what discovery needs
    }
    if cfg!(not(target_os = "linux")) {
        return 1200..=9000;
    }
    let mtu: u32 = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse().unwrap();
    let longest = u16::try_from(mtu.min(9028) - 28).unwrap();
    longest - 16..=longest
}

fn message(number: usize) -> Vec<u8> {
    (0..MESSAGE).map(|at| (number.wrapping_mul(31) + at + (at >> 8)).to_le_bytes()[0]).collect()
}

#[test]
fn datagrams_become_as_long_as_loopback_carries_and_every_byte_arrives() {
    let config = ServerConfig::insecure(session());
    let mut server = Server::bind("127.0.0.1:0", &config).unwrap();
    let target = server.local_addr().unwrap();
    let config = ClientConfig::insecure(session());
    let mut client = Client::connect(target, &config).unwrap();
    let (mut sent, mut came, mut buf, start) = (0, 0, vec![0; MESSAGE], Instant::now());
    let expected = loopback();
    loop {
        let mtu = client.connection().map_or(0, |connection| connection.stats().mtu);
        if expected.contains(&mtu) && came >= 200 {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{mtu} of {expected:?}, {came} messages");
        while client.send(on(0), &message(sent)).is_ok() {
            sent += 1;
        }
        client.pump().unwrap();
        server.pump().unwrap();
        let ids: Vec<SessionId> = server.clients().collect();
        for id in ids {
            while server.recv_into(id, on(0), &mut buf).is_ok() {
                assert!(buf == message(came), "message {came}");
                came += 1;
            }
        }
    }
    let stats = client.connection().unwrap().stats();
    let (can, must) = (cfg!(feature = "batch"), cfg!(all(feature = "batch", target_os = "linux")));
    assert!(stats.mtu_probes > 0 || !must, "no probes");
    assert!(stats.mtu_probes == 0 || can, "{} probes", stats.mtu_probes);
    // The system reports that they are too long, which closes nothing.
    assert!(client.socket_stats().too_long >= stats.mtu_probes_lost, "{stats:?} {:?}", client.socket_stats());
}
