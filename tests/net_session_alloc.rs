//! What a datagram of a session costs a driver: no allocation once the buffers have grown.

#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::sessions::on;
use allocation_counter::measure;
use std::time::{Duration, Instant};
use whitewater::{Client, ClientConfig, Event, Server, ServerConfig, SessionConfig, SessionId};

const PATIENCE: Duration = Duration::from_secs(30);

struct Ends {
    server: Server,
    client: Client,
    id: Option<SessionId>,
    buf: [u8; 1200],
}

impl Ends {
    /// A game frame: both ends send a message and a datagram, pump and read. Returns how many datagrams
    /// arrived.
    fn frame(&mut self) -> u64 {
        let Self { server, client, id, buf } = self;
        let _ = client.send_datagram(&[1; 100]);
        let _ = client.send(on(0), &[2; 300]);
        client.pump().unwrap();
        client.poll_event();
        server.pump().unwrap();
        while let Some((from, event)) = server.poll_event() {
            assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
            *id = Some(from);
        }
        let Some(id) = *id else { return 0 };
        while server.recv_into(id, on(0), buf).is_ok() {}
        while server.recv_datagram_into(id, buf).is_ok() {}
        let _ = server.send_datagram(id, &[3; 500]);
        let _ = server.send(id, on(0), &[4; 700]);
        server.pump().unwrap();
        client.pump().unwrap();
        while client.recv_into(on(0), buf).is_ok() {}
        while client.recv_datagram_into(buf).is_ok() {}
        while client.connection_mut().is_some_and(|connection| connection.pop_delivered().is_some()) {}
        while server.connection_mut(id).is_some_and(|connection| connection.pop_delivered().is_some()) {}
        server.connection(id).map_or(0, |connection| connection.stats().received)
    }

    fn until(&mut self, datagrams: u64) {
        let start = Instant::now();
        while self.frame() < datagrams {
            assert!(start.elapsed() < PATIENCE, "{:?}", self.server.stats());
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

#[test]
fn a_datagram_allocates_nothing_in_a_steady_state() {
    let server = Server::bind("127.0.0.1:0", &ServerConfig::insecure(SessionConfig::default())).unwrap();
    let config = ClientConfig::insecure(SessionConfig::default());
    let client = Client::connect(server.local_addr().unwrap(), &config).unwrap();
    let mut ends = Ends { server, client, id: None, buf: [0; 1200] };
    ends.until(3000);
    let allocated = measure(|| ends.until(8000));
    assert!(allocated.count_total <= MOST, "{allocated:?}");
}

/// Per 10,000 datagrams: what a queue may grow when the machine pauses.
const MOST: u64 = 20;
