//! A server whose sessions are open from their first datagram, lose nothing and have no time. A datagram is a session, a channel and a message.

use crate::channel::{AnyChannel, DATAGRAMS, SendError};
use crate::machine::{Arrival, Machine, Transmit};
use crate::message::BitsError;
use crate::net::end::{End, Id};
use crate::net::sync::Bell;
use bytes::Bytes;
use shuttle::sync::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use whitewater::{ChannelConfig, CloseReason, Event, SessionId, Time};

/// What a socket and the peers behind it are.
#[derive(Debug, Default)]
pub struct Wire {
    state: Mutex<State>,
    pub(crate) bell: Arc<Bell>,
}

#[derive(Debug, Default)]
struct State {
    arrived: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    has_failed: bool,
}

impl Wire {
    /// A datagram arrives.
    pub fn arrive(&self, session: u8, channel: u8, message: u8) {
        self.state.lock().unwrap().arrived.push_back(vec![session, channel, message]);
        self.bell.ring();
    }

    /// Reading fails from now on.
    pub fn fail(&self) {
        self.state.lock().unwrap().has_failed = true;
        self.bell.ring();
    }

    /// Everything that was sent: session, channel, message.
    pub fn sent_so_far(&self) -> Vec<Vec<u8>> {
        self.state.lock().unwrap().sent.clone()
    }

    pub(crate) fn take(&self) -> io::Result<Option<Vec<u8>>> {
        let mut state = self.state.lock().unwrap();
        if state.has_failed { Err(io::Error::other("no socket")) } else { Ok(state.arrived.pop_front()) }
    }

    pub(crate) fn sent(&self, datagram: Vec<u8>) {
        self.state.lock().unwrap().sent.push(datagram);
    }
}

/// What the threads read of a session's settings.
#[derive(Clone, Default)]
pub struct SessionConfig {
    pub channels: Vec<ChannelConfig>,
    pub drain: Duration,
}

impl SessionConfig {
    pub(crate) fn datagram_max_here(&self) -> usize {
        1000
    }
}

pub(crate) struct Model {
    shard: u8,
    config: SessionConfig,
    sessions: BTreeMap<SessionId, Connection>,
    ended: Option<(SessionId, Connection)>,
}

#[derive(Default)]
pub(crate) struct Connection {
    id: u8,
    events: VecDeque<Event>,
    arrived: BTreeMap<u8, VecDeque<Bytes>>,
    /// Room for one.
    leaves: Option<(u8, Vec<u8>)>,
    is_closed: bool,
}

impl Model {
    pub(crate) fn new(shard: u8, config: &SessionConfig) -> Self {
        Self { shard, config: config.clone(), sessions: BTreeMap::new(), ended: None }
    }

    /// As `Server::handle_own`: a datagram's session names its shard in its lowest bits.
    pub(crate) fn handle_own(
        &mut self,
        now: Time,
        from: Arrival,
        datagram: &mut [u8],
        shards: usize,
    ) -> Option<usize> {
        let owner = usize::from(datagram[0]) % shards;
        if owner != usize::from(self.shard) {
            return Some(owner);
        }
        self.handle_datagram(now, from, datagram);
        None
    }

    pub(crate) fn id(session: u8, shards: u8) -> SessionId {
        SessionId::from_bits(u32::from(session % shards) << 26 | u32::from(session))
    }
}

impl Machine for Model {
    fn handle_datagram(&mut self, _: Time, _: Arrival, datagram: &mut [u8]) {
        let [session, channel, message] = *datagram else { return };
        let id = SessionId::from_bits(u32::from(self.shard) << 26 | u32::from(session));
        let connection = self.sessions.entry(id).or_insert_with(|| Connection {
            id: session,
            events: [Event::Connected].into(),
            ..Connection::default()
        });
        if channel == GOODBYE {
            return connection.end(CloseReason::Peer(0));
        }
        connection.arrived.entry(channel).or_default().push_back(vec![message].into());
        connection.events.push_back(Event::Readable);
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, _: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let leaves = |connection: &mut Connection| Some((connection.id, connection.leaves.take()?));
        let (id, (channel, message)) = self.sessions.values_mut().find_map(leaves)?;
        out.extend([id, channel]);
        out.extend(message);
        Some(address().into())
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    fn shutdown(&mut self, _: Time, _: u16) -> bool {
        true
    }
}

impl End for Model {
    fn config(&self) -> &SessionConfig {
        &self.config
    }

    fn next_event(&mut self) -> Option<(Id, Event)> {
        self.ended = None;
        let next =
            |(id, connection): (&SessionId, &mut Connection)| Some((*id, connection.events.pop_front()?));
        let (id, event) = self.sessions.iter_mut().find_map(next)?;
        if matches!(event, Event::Closed { .. }) {
            self.ended = self.sessions.remove(&id).map(|connection| (id, connection));
        }
        Some((Some(id), event))
    }

    fn connection(&mut self, id: Id) -> Option<&mut Connection> {
        let id = id?;
        match &mut self.ended {
            Some((ended, connection)) if *ended == id => Some(connection),
            _ => self.sessions.get_mut(&id),
        }
    }

    fn close(&mut self, _: Time, id: Id, code: u16, _: &str) {
        self.connection(id).into_iter().for_each(|connection| connection.end(CloseReason::Local(code)));
    }

    fn close_rest(&mut self, _: Time, code: u16, except: impl Fn(Id) -> bool) -> bool {
        for (id, connection) in &mut self.sessions {
            if !except(Some(*id)) {
                connection.end(CloseReason::Local(code));
            }
        }
        self.sessions.values().all(|connection| connection.is_closed && connection.leaves.is_none())
    }
}

impl Connection {
    fn end(&mut self, reason: CloseReason) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.events.push_back(Event::Closed { reason, undelivered: Default::default() });
        }
    }

    fn leave(&mut self, channel: u8, message: &[u8]) -> Result<(), SendError> {
        if self.is_closed {
            return Err(SendError::Closed);
        }
        if self.leaves.is_some() {
            return Err(SendError::Full { channel });
        }
        self.leaves = Some((channel, message.to_vec()));
        Ok(())
    }

    pub(crate) fn send_packed(
        &mut self,
        channel: AnyChannel,
        bytes: &[u8],
        _: usize,
    ) -> Result<(), SendError> {
        self.leave(channel.number(), bytes)
    }

    pub(crate) fn write_packed(&mut self, channel: u8, bytes: &[u8]) -> Result<usize, SendError> {
        self.leave(channel, bytes).map(|()| bytes.len())
    }

    pub(crate) fn send_datagram(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        self.leave(DATAGRAMS, bytes)
    }

    pub(crate) fn recv_packed(&mut self, channel: u8) -> Option<Bytes> {
        self.arrived.get_mut(&channel)?.pop_front()
    }

    pub(crate) fn recv_datagram(&mut self) -> Option<Bytes> {
        self.recv_packed(DATAGRAMS)
    }

    pub(crate) fn next_len(&self, channel: u8) -> Option<usize> {
        self.arrived.get(&channel)?.front().map(Bytes::len)
    }

    pub(crate) fn kick(&mut self, _: Time, code: u16, _: &str) -> Result<(), SendError> {
        self.end(CloseReason::Local(code));
        Ok(())
    }

    pub(crate) fn on_bad_message(&mut self, _: &BitsError) {
        self.end(CloseReason::Protocol);
    }

    pub(crate) fn user(&self) -> &[u8] {
        b""
    }

    pub(crate) fn ticket(&self) -> &[u8] {
        b""
    }

    pub(crate) fn close_text(&self) -> &str {
        ""
    }

    pub(crate) fn peer_addr(&self) -> SocketAddr {
        address()
    }
}

/// Of everybody.
pub(crate) fn address() -> SocketAddr {
    ([10, 0, 0, 1], 7).into()
}

/// A channel on which the peer says that it is over.
pub const GOODBYE: u8 = 254;
