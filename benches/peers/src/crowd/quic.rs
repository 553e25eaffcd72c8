//! QUIC, by quinn-proto: one endpoint with all connections on each side, encrypted by ring. A message is 64 bytes of
//! the stream that each end opens.

use super::bare::address;
use super::{SIZE, Side};
use crate::runtime::quic::configs;
use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    StreamEvent, StreamId, TransportConfig,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// One side.
pub(super) struct Ends {
    endpoint: Endpoint,
    /// Of a client.
    config: Option<ClientConfig>,
    ends: Vec<Option<End>>,
    /// The session of each handle.
    indices: Vec<usize>,
    /// When each of them is looked at, and those of each ms.
    due: Vec<u32>,
    agenda: BTreeMap<u32, Vec<usize>>,
    /// Answers that no connection sends.
    answers: Vec<(usize, Vec<u8>)>,
    heard: Vec<usize>,
    buf: Vec<u8>,
}

struct End {
    handle: ConnectionHandle,
    connection: Connection,
    sends: Option<StreamId>,
    receives: Option<StreamId>,
}

impl Ends {
    pub(super) fn server(count: usize, _: u32) -> Self {
        let (server, _) = both();
        Self::new(
            count,
            Endpoint::new(Arc::default(), Some(Arc::new(server.clone())), true, Some([7; 32])),
            None,
        )
    }

    pub(super) fn clients(count: usize, _: u32) -> Self {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([8; 32]));
        let mut ends =
            Self::new(count, Endpoint::new(Arc::new(config), None, true, None), Some(both().1.clone()));
        for index in 0..count {
            ends.touch(u32::try_from(index / STARTS).expect("thousands"), index);
        }
        ends
    }

    fn new(count: usize, endpoint: Endpoint, config: Option<ClientConfig>) -> Self {
        Self {
            endpoint,
            config,
            ends: (0..count).map(|_| None).collect(),
            indices: vec![usize::MAX; count],
            due: vec![u32::MAX; count],
            agenda: BTreeMap::new(),
            answers: Vec::new(),
            heard: Vec::new(),
            buf: Vec::new(),
        }
    }

    fn touch(&mut self, at: u32, index: usize) {
        if self.due[index] > at {
            self.due[index] = at;
            self.agenda.entry(at).or_default().push(index);
        }
    }

    fn start(&mut self, index: usize, handle: ConnectionHandle, connection: Connection) {
        self.indices[handle.0] = index;
        self.ends[index] = Some(End { handle, connection, sends: None, receives: None });
    }

    /// Does what is due for one connection, and says when it is next.
    fn drive(&mut self, now: u32, index: usize, out: &mut impl FnMut(usize, &[u8])) {
        let Some(End { handle, connection, .. }) = &mut self.ends[index] else { return };
        if connection.poll_timeout().is_some_and(|due| due <= at(now)) {
            connection.handle_timeout(at(now));
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        self.buf.clear();
        while connection.poll_transmit(at(now), 1, &mut self.buf).is_some() {
            out(index, &self.buf);
            self.buf.clear();
        }
        if let Some(next) = connection.poll_timeout() {
            let next = next.duration_since(at(0)).as_micros().div_ceil(1000) as u32;
            self.touch(next.max(now + 1), index);
        }
    }
}

impl Side for Ends {
    fn is_due(&self, now: u32) -> bool {
        let due = self.agenda.range(..=now).flat_map(|(_, indices)| indices);
        due.into_iter().any(|index| self.due[*index] <= now)
    }

    fn input(&mut self, now: u32, index: usize, datagram: &[u8]) {
        let (from, datagram) =
            (if self.config.is_some() { server_address() } else { address(index) }, BytesMut::from(datagram));
        self.buf.clear();
        let handle = match self.endpoint.handle(at(now), from, None, None, datagram, &mut self.buf) {
            None => return,
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let end = self.ends[self.indices[handle.0]].as_mut().expect("it is up");
                end.connection.handle_event(event);
                handle
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, at(now), &mut self.buf, None);
                let (handle, connection) = accepted.map_err(|error| error.cause).expect("a client");
                self.start(index, handle, connection);
                handle
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.answers.push((index, self.buf[..transmit.size].to_vec()));
                return;
            }
        };
        let index = self.indices[handle.0];
        self.heard.push(index);
        self.touch(now, index);
    }

    fn send(&mut self, now: u32, index: usize, message: &[u8]) {
        let Some(end) = &mut self.ends[index] else { return };
        let Some(stream) = end.sends else { return };
        assert_eq!(end.connection.send_stream(stream).write(message), Ok(message.len()));
        self.touch(now, index);
    }

    fn update(&mut self, now: u32, mut out: impl FnMut(usize, &[u8])) {
        self.answers.drain(..).for_each(|(index, datagram)| out(index, &datagram));
        while let Some(entry) = self.agenda.first_entry().filter(|entry| *entry.key() <= now) {
            for index in entry.remove() {
                if self.due[index] > now {
                    continue;
                }
                self.due[index] = u32::MAX;
                if let (None, Some(config)) = (&self.ends[index], &self.config) {
                    let started =
                        self.endpoint.connect(at(now), config.clone(), server_address(), "localhost");
                    let (handle, connection) = started.expect("a config");
                    self.start(index, handle, connection);
                }
                self.drive(now, index, &mut out);
            }
        }
    }

    fn recv(&mut self, _: u32, mut take: impl FnMut(&[u8])) {
        for index in self.heard.drain(..) {
            let Some(End { connection, sends, receives, .. }) = &mut self.ends[index] else { continue };
            while let Some(event) = connection.poll() {
                match event {
                    Event::Connected => *sends = connection.streams().open(Dir::Uni),
                    Event::Stream(StreamEvent::Opened { dir }) => {
                        *receives = connection.streams().accept(dir)
                    }
                    Event::ConnectionLost { reason } => panic!("{reason}"),
                    _ => {}
                }
            }
            let Some(stream) = *receives else { continue };
            let mut stream = connection.recv_stream(stream);
            let mut chunks = stream.read(true).expect("it is open");
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                assert_eq!(chunk.bytes.len() % SIZE, 0, "a packet has room for a message");
                chunk.bytes.chunks(SIZE).for_each(&mut take);
            }
            let _ = chunks.finalize(); // the connection is looked at anyway
        }
    }
}

/// Of both ends, which know each other. An idle connection is kept alive as often as a session.
fn both() -> &'static (quinn_proto::ServerConfig, ClientConfig) {
    static CONFIGS: OnceLock<(quinn_proto::ServerConfig, ClientConfig)> = OnceLock::new();
    CONFIGS.get_or_init(|| {
        let mut transport = TransportConfig::default();
        transport.keep_alive_interval(Some(Duration::from_millis(500)));
        configs(&Arc::new(transport))
    })
}

fn at(now: u32) -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now) + Duration::from_millis(now.into())
}

fn server_address() -> SocketAddr {
    SocketAddr::from(([11, 0, 0, 1], 4000))
}

/// Clients that connect in the same ms.
const STARTS: usize = 20;
