//! The sessions of a server, or the one of a client, for the driver.

use super::super::error::Error;
use super::core::{Closed, Core, Member, Notice};
use crate::arq::RecvError;
use crate::machine::{Arrival, Machine, Transmit};
use crate::message::Message;
use crate::session::{ClientState, Connection, Event, SendError, Server, Session, SessionId};
use crate::time::Time;

/// Either end of sessions.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one a socket")]
pub(super) enum Sessions<M> {
    Server(Server<M>),
    Client(Session<M>),
}

/// Which session: a client has but one.
pub(super) type Id = Option<SessionId>;

/// The same call of either.
macro_rules! either {
    ($sessions:expr, $end:ident => $call:expr) => {
        match $sessions {
            Sessions::Server($end) => $call,
            Sessions::Client($end) => $call,
        }
    };
}

impl<M: Message> Sessions<M> {
    pub(super) fn close(&mut self, now: Time, id: Id, code: u16) {
        match (self, id) {
            (Self::Server(server), Some(id)) => server.close(now, id, code),
            (Self::Client(session), _) => session.close(now, code),
            (Self::Server(_), None) => {}
        }
    }

    pub(super) const fn server(&mut self) -> Option<&mut Server<M>> {
        if let Self::Server(server) = self { Some(server) } else { None }
    }

    pub(super) const fn client(&mut self) -> Option<&mut Session<M>> {
        if let Self::Client(session) = self { Some(session) } else { None }
    }
}

impl<M: Message> Machine for Sessions<M> {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        either!(self, end => end.handle_datagram(now, from, datagram));
    }

    fn handle_timeout(&mut self, now: Time) {
        either!(self, end => end.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        either!(self, end => end.poll_transmit(now, out))
    }

    fn poll_timeout(&self) -> Option<Time> {
        either!(self, end => end.poll_timeout())
    }

    fn shutdown(&mut self, now: Time, code: u16) -> bool {
        either!(self, end => end.shutdown(now, code))
    }
}

impl<M: Message + Send + 'static> Core for Sessions<M> {
    type Id = Id;
    type Member = Connection<M>;

    fn poll_notice(&mut self) -> Option<(Id, Notice<Connection<M>>)> {
        let (id, event) = match self {
            Self::Server(server) => server.poll_event().map(|(id, event)| (Some(id), event))?,
            Self::Client(session) => (None, session.poll_event()?),
        };
        let notice = match event {
            Event::Connected => Notice::Up,
            Event::Readable => Notice::Readable,
            Event::Writable => Notice::Writable,
            Event::Closed { reason, undelivered } => {
                let ended = self.server().and_then(Server::pop_ended).map(Box::new); // that of a client stays
                Notice::Closed(Closed { error: Error::Closed { reason }, undelivered, ended })
            }
            event => Notice::Told(event),
        };
        Some((id, notice))
    }

    fn member(&mut self, id: Id) -> Option<&mut Connection<M>> {
        match self {
            Self::Server(server) => server.session_mut(id?),
            Self::Client(session) => session.connection_mut(),
        }
    }

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
}

impl<M: Message + Send + 'static> Member for Connection<M> {
    const HAS_END: bool = true;

    fn send(&mut self, lane: usize, message: &[u8]) -> Result<usize, SendError> {
        self.send(lane, message)
    }

    fn send_end(&mut self, lane: usize) -> Result<(), SendError> {
        self.send_end(lane)
    }

    fn recv(&mut self, lane: usize, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.recv(lane, buf)
    }

    fn is_readable(&self, lane: usize) -> bool {
        self.peek_size(lane).is_some()
    }

    fn unacked(&mut self, lane: usize) -> usize {
        if self.is_delivered(lane) {
            return 0;
        }
        self.lane_stats(lane).map_or(0, |stats| stats.in_flight as usize + stats.snd_queue as usize)
    }

    fn flush(&mut self) {}
}
