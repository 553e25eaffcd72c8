//! What a driver task and its handles need from the machine they share: bare KCP peers or sessions.

use super::super::end::{End, Id};
use super::super::error::Error;
use crate::channel::{RecvError, SendError, cure};
use crate::kcp;
use crate::machine::{Arrival, Machine, Transmit};
use crate::session::peers::{Peer, PeerCloseReason, PeerEvent, PeerId, Peers};
use crate::session::{Client, ClientState, CloseReason, Connection, Event, Server, Undelivered};
use crate::time::Time;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

/// Peers or sessions without I/O, each with an id and channels.
pub(super) trait Core: Machine + Send + 'static {
    type Id: Copy + Debug + Eq + Hash + Send + Sync + Unpin;
    type Member: Member;
    /// Most members that are kept for the data they sent, although they ended before they were accepted.
    const ENDED_MAX: usize;

    fn poll_notice(&mut self) -> Option<(Self::Id, Notice<Self::Member>)>;

    /// A member that has not ended.
    fn member(&mut self, id: Self::Id) -> Option<&mut Self::Member>;

    /// Closes a member that nobody uses any more, once everything sent has arrived.
    fn release(&mut self, now: Time, id: Self::Id);

    /// Whether nothing is left to do for released members.
    fn is_idle(&self) -> bool;
}

/// A peer or a session. A bare KCP peer has one channel, number 0.
pub(super) trait Member: Send {
    /// Whether an empty message of a stream marks the end of what the peer sends there. Without such an end,
    /// data must be flushed.
    const HAS_END: bool;

    /// Sends a message, or as many bytes of a stream as there is room for.
    fn write(&mut self, channel: u8, bytes: &[u8]) -> Result<usize, SendError>;

    /// Ends what this end sends on a stream, and sends what waits.
    fn send_end(&mut self, channel: u8) -> Result<(), SendError>;

    /// Takes a message, or the bytes of a stream that have arrived.
    fn read(&mut self, channel: u8, buf: &mut [u8]) -> Result<usize, RecvError>;

    /// Whether there is a message on a channel.
    fn is_readable(&self, channel: u8) -> bool;

    /// Segments of a channel that are not acknowledged. If there are some, [`Event::Writable`] reports when there are
    /// none.
    fn unacked(&mut self, channel: u8) -> usize;

    fn flush(&mut self);

    /// Whether it accepts messages.
    fn is_up(&self) -> bool;
}

pub(super) enum Notice<T> {
    Event(Event),
    Closed(Closed<T>),
}

/// The end of a peer or a session.
pub(super) struct Closed<T> {
    pub(super) error: Error,
    pub(super) undelivered: Undelivered,
    /// What had arrived from it and can still be read.
    pub(super) ended: Option<Box<T>>,
}

impl Core for Peers {
    type Id = PeerId;
    type Member = Peer;
    /// Whoever accepts gets only peers that are there.
    const ENDED_MAX: usize = 0;

    fn poll_notice(&mut self) -> Option<(PeerId, Notice<Peer>)> {
        Some(match self.poll_event()? {
            PeerEvent::Accepted(id) => (id, Notice::Event(Event::Connected)),
            PeerEvent::Readable(id) => (id, Notice::Event(Event::Readable)),
            PeerEvent::Writable(id) => (id, Notice::Event(Event::Writable)),
            PeerEvent::Closed { id, reason } => {
                let error = match reason {
                    PeerCloseReason::DeadLink => Error::DeadLink { sends: self.config().kcp.dead_link },
                    PeerCloseReason::Idle => Error::PeerSilent { waited: self.config().idle_timeout },
                };
                let ended = self.pop_ended().map(Box::new);
                let segments = ended.as_ref().map_or(0, |peer| peer.kcp().wait_snd());
                let undelivered = Undelivered { segments, ..Undelivered::default() };
                (id, Notice::Closed(Closed { error, undelivered, ended }))
            }
        })
    }

    fn member(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.peer(id)
    }

    fn release(&mut self, now: Time, id: PeerId) {
        self.close_within(now, id, LINGER);
    }

    fn is_idle(&self) -> bool {
        self.is_empty() && self.poll_timeout().is_none() // nothing is left to send
    }
}

impl Member for Peer {
    const HAS_END: bool = false;

    fn write(&mut self, channel: u8, message: &[u8]) -> Result<usize, SendError> {
        self.send(message).map_err(|error| match error {
            kcp::SendError::TooLong { len, max } => {
                SendError::TooLong { channel, len, max, cure: cure::SND_QUEUE }
            }
            _ => SendError::Full { channel },
        })
    }

    fn send_end(&mut self, _: u8) -> Result<(), SendError> {
        self.flush();
        Ok(())
    }

    fn read(&mut self, _: u8, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.recv_into(buf).map_err(|error| match error {
            kcp::RecvError::BufferTooSmall { have, need } => RecvError::BufferTooSmall { have, need },
            _ => RecvError::Empty,
        })
    }

    fn is_readable(&self, _: u8) -> bool {
        self.kcp().peek_size().is_some()
    }

    fn unacked(&mut self, _: u8) -> usize {
        if self.is_delivered() { 0 } else { self.kcp().wait_snd() }
    }

    fn flush(&mut self) {
        self.flush();
    }

    fn is_up(&self) -> bool {
        true
    }
}

/// Either end of sessions.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one per socket")]
pub(super) enum Sessions {
    Server(Server),
    Client(Client),
}

macro_rules! either {
    ($sessions:expr, $end:ident => $call:expr) => {
        match $sessions {
            Sessions::Server($end) => $call,
            Sessions::Client($end) => $call,
        }
    };
}

impl Sessions {
    pub(super) fn close(&mut self, now: Time, id: Id, code: u16, text: &str) {
        either!(self, end => End::close(end, now, id, code, text));
    }

    pub(super) const fn server(&mut self) -> Option<&mut Server> {
        if let Self::Server(server) = self { Some(server) } else { None }
    }
}

impl Machine for Sessions {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        either!(self, end => end.handle_datagram(now, from, datagram));
    }

    fn handle_timeout(&mut self, now: Time) {
        either!(self, end => end.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        either!(self, end => end.poll_transmit(now, out))
    }

    fn set_unix_time(&mut self, now: Time, unix: Duration) {
        either!(self, end => end.set_unix_time(now, unix));
    }

    fn path_changed(&mut self, now: Time) -> bool {
        either!(self, end => end.path_changed(now))
    }

    fn poll_timeout(&self) -> Option<Time> {
        either!(self, end => end.poll_timeout())
    }

    fn shutdown(&mut self, now: Time, code: u16) -> bool {
        either!(self, end => end.shutdown(now, code))
    }
}

impl Core for Sessions {
    type Id = Id;
    type Member = Connection;
    const ENDED_MAX: usize = 64;

    fn poll_notice(&mut self) -> Option<(Id, Notice<Connection>)> {
        let (id, event) = either!(self, end => end.next_event())?;
        let notice = match event {
            Event::Closed { reason, undelivered } => {
                let ended = self.server().and_then(Server::pop_ended).map(Box::new); // a client keeps its own
                let error = match (&*self, reason) {
                    (Self::Client(client), CloseReason::Rejected(code)) => {
                        Error::Rejected { code, user: client.rejection().to_vec() }
                    }
                    _ => Error::Closed { reason },
                };
                Notice::Closed(Closed { error, undelivered, ended })
            }
            event => Notice::Event(event),
        };
        Some((id, notice))
    }

    fn member(&mut self, id: Id) -> Option<&mut Connection> {
        either!(self, end => end.connection(id))
    }

    fn release(&mut self, now: Time, id: Id) {
        if let (Some(server), Some(id)) = (self.server(), id) {
            let _ = server.reject(now, id, 0, b""); // in case it is not a session yet
        }
        self.close(now, id, 0, "");
    }

    fn is_idle(&self) -> bool {
        match self {
            Self::Server(server) => {
                server.ids().all(|id| server.connection(id).is_none_or(Connection::is_closed))
            }
            Self::Client(session) => session.state() == ClientState::Closed,
        }
    }
}

impl Member for Connection {
    const HAS_END: bool = true;

    fn write(&mut self, channel: u8, bytes: &[u8]) -> Result<usize, SendError> {
        self.write_packed(channel, bytes)
    }

    fn send_end(&mut self, channel: u8) -> Result<(), SendError> {
        self.end_packed(channel)
    }

    fn read(&mut self, channel: u8, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.read_stream(channel, buf)
    }

    fn is_readable(&self, channel: u8) -> bool {
        self.next_len(channel).is_some()
    }

    fn unacked(&mut self, channel: u8) -> usize {
        self.unacked_of(channel)
    }

    fn flush(&mut self) {}

    fn is_up(&self) -> bool {
        self.is_connected()
    }
}

/// How long data for a peer may take to arrive once nobody uses the peer any more.
const LINGER: Duration = Duration::from_secs(5);
