//! ECN marks over real sockets: sessions declare that they react to them, and loopback leaves them alone.

#![cfg(feature = "net")]

use crate::common::configs;
use crate::common::sessions::{on, ordered};
use std::time::{Duration, Instant};
use whitewater::kcp::{Config, Congestion};
use whitewater::{Client, ClientConfig, Server, ServerConfig, SessionConfig, SessionId};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn marks_are_found_to_pass_where_they_can_be_written_and_read() {
    let channels = ordered([Config { congestion: Congestion::Kcp, ..configs::turbo() }]);
    let session = SessionConfig { ecn: true, channels, ..SessionConfig::default() };
    let config = ServerConfig::insecure(session.clone());
    let mut server = Server::bind("127.0.0.1:0", &config).unwrap();
    let target = server.local_addr().unwrap();
    let config = ClientConfig::insecure(session);
    let mut client = Client::connect(target, &config).unwrap();
    let must = cfg!(all(feature = "batch", target_os = "linux"));
    let (mut came, mut buf, start) = (0, [0; 100], Instant::now());
    let mut is_valid = false;
    while came < 200 || (must && !is_valid) {
        assert!(start.elapsed() < PATIENCE, "{came}");
        let _ = client.send(on(0), &[1; 100]);
        client.pump().unwrap();
        server.pump().unwrap();
        let ids: Vec<SessionId> = server.clients().collect();
        for id in ids {
            while server.recv_into(id, on(0), &mut buf).is_ok() {
                came += 1;
                let _ = server.send(id, on(0), &buf);
            }
        }
        while client.recv_into(on(0), &mut buf).is_ok() {}
        is_valid = client.connection().is_some_and(|connection| connection.stats().ecn);
    }
    assert!(cfg!(feature = "batch") || !is_valid, "nobody has read the marks");
}
