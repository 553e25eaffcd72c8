//! The sessions of a server, or the one of a client, for the driver.

use super::super::batch::{Fragments, Offload};
use super::super::driver;
use super::super::error::Error;
use super::core::{Closed, Core, Notice};
use crate::arq::RecvError;
use crate::machine::{Arrival, Machine, Transmit};
use crate::message::Message;
use crate::message::channel::Received;
use crate::session::{ClientState, Connection, Event, SendError, Server, Session, SessionConfig, SessionId};
use crate::time::Time;
use std::collections::VecDeque;
use std::net::UdpSocket;

/// Either end of sessions.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one a socket")]
pub(super) enum Sessions<M> {
    Server(Server<M>),
    Client(Session<M>),
}

/// Which session: a client has but one.
pub(super) type Id = Option<SessionId>;

/// What had arrived and was not read when a session ended.
pub(super) struct Remains<M> {
    lanes: Vec<VecDeque<Vec<u8>>>,
    pub(super) datagrams: VecDeque<Vec<u8>>,
    messages: VecDeque<(usize, Received<M>)>,
}

impl<M> Remains<M> {
    pub(super) fn take_message(&mut self, channel: usize) -> Option<Received<M>> {
        let at = self.messages.iter().position(|(other, _)| *other == channel)?;
        self.messages.remove(at).map(|(_, message)| message)
    }
}

/// The knobs of a session on a socket.
pub(super) fn within(socket: &UdpSocket, config: &SessionConfig) -> SessionConfig {
    driver::within(config, Offload::new(socket, false, Fragments::Forbidden).may_fragment())
}

impl<M: Message> Sessions<M> {
    pub(super) fn connection(&mut self, id: Id) -> Option<&mut Connection<M>> {
        match (self, id) {
            (Self::Server(server), Some(id)) => server.session_mut(id),
            (Self::Client(session), _) => session.connection_mut(),
            (Self::Server(_), None) => None,
        }
    }

    /// The same, to look at.
    pub(super) fn look(&self, id: Id) -> Option<&Connection<M>> {
        match (self, id) {
            (Self::Server(server), Some(id)) => server.session(id),
            (Self::Client(session), _) => session.connection(),
            (Self::Server(_), None) => None,
        }
    }

    pub(super) fn close(&mut self, now: Time, id: Id, code: u16) {
        match (self, id) {
            (Self::Server(server), Some(id)) => server.close(now, id, code),
            (Self::Client(session), _) => session.close(now, code),
            (Self::Server(_), None) => {}
        }
    }

    pub(super) const fn server(&mut self) -> Option<&mut Server<M>> {
        match self {
            Self::Server(server) => Some(server),
            Self::Client(_) => None,
        }
    }

    pub(super) const fn client(&mut self) -> Option<&mut Session<M>> {
        match self {
            Self::Server(_) => None,
            Self::Client(session) => Some(session),
        }
    }

    fn remains(&mut self, id: Id) -> Remains<M> {
        let mut remains =
            Remains { lanes: Vec::new(), datagrams: VecDeque::new(), messages: VecDeque::new() };
        let Some(connection) = self.connection(id) else { return remains };
        let mut lane = 0;
        while connection.lane_stats(lane).is_some() {
            let mut messages = VecDeque::new();
            while let Some(len) = connection.peek_size(lane) {
                let mut message = vec![0; len];
                if connection.recv(lane, &mut message).is_err() {
                    break;
                }
                messages.push_back(message);
            }
            remains.lanes.push(messages);
            lane += 1;
        }
        let mut buf = vec![0; usize::from(u16::MAX)];
        while let Ok(len) = connection.recv_datagram(&mut buf) {
            remains.datagrams.extend(buf.get(..len).map(<[_]>::to_vec));
        }
        for channel in 0..CHANNELS_MAX {
            while let Some(message) = connection.recv_message(channel) {
                remains.messages.push_back((channel, message));
            }
        }
        remains
    }
}

impl<M: Message> Machine for Sessions<M> {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        match self {
            Self::Server(server) => server.handle_datagram(now, from, datagram),
            Self::Client(session) => session.handle_datagram(now, from, datagram),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Server(server) => server.handle_timeout(now),
            Self::Client(session) => session.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Server(server) => server.poll_transmit(now, out),
            Self::Client(session) => session.poll_transmit(now, out),
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::Server(server) => server.poll_timeout(),
            Self::Client(session) => session.poll_timeout(),
        }
    }

    fn shutdown(&mut self, now: Time, code: u16) -> bool {
        match self {
            Self::Server(server) => server.shutdown(now, code),
            Self::Client(session) => session.shutdown(now, code),
        }
    }
}

impl<M: Message + Send + 'static> Core for Sessions<M> {
    type Id = Id;
    type Remains = Remains<M>;
    const HAS_END: bool = true;
    const HAS_FLUSH: bool = false;
    const FRAGMENTS: Fragments = Fragments::Forbidden;

    fn poll_notice(&mut self, _: Time) -> Option<(Id, Notice<Remains<M>>)> {
        let (id, event) = match self {
            Self::Server(server) => server.poll_event().map(|(id, event)| (Some(id), event))?,
            Self::Client(session) => (None, session.poll_event()?),
        };
        let notice = match event {
            Event::Connected => Notice::Up,
            Event::Readable => Notice::Readable,
            Event::Writable => Notice::Writable,
            Event::Closed { reason, undelivered } => {
                let closed = Closed { error: Error::Closed { reason }, undelivered };
                Notice::Closed(closed, self.remains(id))
            }
            event => Notice::Told(event),
        };
        Some((id, notice))
    }

    fn send(&mut self, id: Id, lane: usize, message: &[u8]) -> Result<usize, SendError> {
        self.connection(id).ok_or(SendError::Closed)?.send(lane, message)
    }

    fn send_end(&mut self, id: Id, lane: usize) -> Result<(), SendError> {
        self.connection(id).ok_or(SendError::Closed)?.send_end(lane)
    }

    fn recv(&mut self, id: Id, lane: usize, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.connection(id).ok_or(RecvError::NoMessage)?.recv(lane, buf)
    }

    fn is_readable(&mut self, id: Id, lane: usize) -> bool {
        self.look(id).is_some_and(|connection| connection.peek_size(lane).is_some())
    }

    fn unacked(&mut self, id: Id, lane: usize) -> usize {
        let Some(connection) = self.connection(id) else { return 0 };
        if connection.is_delivered(lane) {
            return 0;
        }
        connection.lane_stats(lane).map_or(0, |stats| stats.in_flight as usize + stats.snd_queue as usize)
    }

    fn flush(&mut self, _: Id) {}

    fn release(&mut self, now: Time, id: Id) {
        self.close(now, id, 0);
    }

    fn is_idle(&self) -> bool {
        match self {
            Self::Server(server) => {
                server.ids().all(|id| server.session(id).is_none_or(Connection::is_closed))
            }
            Self::Client(session) => session.state() == ClientState::Closed,
        }
    }

    fn recv_remains(remains: &mut Remains<M>, lane: usize, buf: &mut [u8]) -> Result<usize, RecvError> {
        let messages = remains.lanes.get_mut(lane).ok_or(RecvError::NoMessage)?;
        take_first(messages, buf)
    }
}

/// Moves the first message to `buf`, if it fits.
pub(super) fn take_first(messages: &mut VecDeque<Vec<u8>>, buf: &mut [u8]) -> Result<usize, RecvError> {
    let message = messages.front().ok_or(RecvError::NoMessage)?;
    let (have, need) = (buf.len(), message.len());
    buf.get_mut(..need).ok_or(RecvError::BufferTooSmall { have, need })?.copy_from_slice(message);
    messages.pop_front();
    Ok(need)
}

/// Channels of a session at most.
const CHANNELS_MAX: usize = 64;
