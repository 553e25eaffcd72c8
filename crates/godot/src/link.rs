//! What a server and a client have in common.

use crate::guest::Guest;
use crate::host::Host;
use crate::inbox::{Inbox, Packet};
use crate::lane::Lane;
use std::io;
use whitewater::CloseReason;
use whitewater::channel::SendError;
use whitewater::session::{CloseTextError, Connection};

/// One end of sessions.
#[derive(Debug)]
pub(crate) enum Link {
    Host(Box<Host>),
    Guest(Box<Guest>),
}

/// Something that has happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Change {
    /// A peer is connected.
    Joined(i32),
    /// A session is over: that of a peer that had joined, or that of a client that did not get as far.
    Left(i32, End),
    /// The server sends us to another one, with this connect token.
    Redirected(Vec<u8>),
}

/// Why a session is over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct End {
    pub(crate) reason: CloseReason,
    /// What the peer said, or a server that rejects.
    pub(crate) text: String,
    /// Whether it was up.
    pub(crate) had_joined: bool,
}

/// Why a packet was not sent.
#[derive(Debug)]
pub(crate) enum Refused {
    NoPeer,
    Send(SendError),
}

/// Godot's number of every server.
pub(crate) const SERVER: i32 = 1;

/// The code that a peer is told that a script disconnects.
pub(crate) const GOODBYE: u16 = 0;

/// What a peer is told for whom more waits than [`BYTES_MAX`](crate::lane::BYTES_MAX).
pub(crate) const OVERRUN: u16 = 0xfeff;
pub(crate) const OVERRUN_TEXT: &str = "too much waits to be sent";

impl Link {
    /// Receives and sends.
    ///
    /// # Errors
    ///
    /// The socket has failed. What is due was done anyway.
    pub(crate) fn poll(&mut self, inbox: &mut Inbox, changes: &mut Vec<Change>) -> io::Result<()> {
        match self {
            Self::Host(host) => host.poll(inbox, changes),
            Self::Guest(guest) => guest.poll(inbox, changes),
        }
    }

    /// Sends what was queued since the last poll.
    pub(crate) fn flush(&mut self) {
        match self {
            Self::Host(host) => host.flush(),
            Self::Guest(guest) => guest.flush(),
        }
    }

    /// Queues a packet for Godot's targets: one peer, 0 for all, or the negative number of one who is left out. A peer for whom too much waits
    /// loses its session.
    pub(crate) fn send(&mut self, target: i32, lane: Lane, packet: &[u8]) -> Result<(), Refused> {
        match self {
            Self::Host(host) => host.send(target, lane, packet),
            Self::Guest(guest) => guest.send(target, lane, packet),
        }
    }

    /// Ends a session at once, and tells the peer why.
    pub(crate) fn kick(&mut self, peer: i32, code: u16, text: &str) -> Result<(), CloseTextError> {
        match self {
            Self::Host(host) => host.kick(peer, code, text),
            Self::Guest(guest) => guest.kick(code, text),
        }
    }

    /// Ends all sessions, and blocks until everything has arrived, for a limited time.
    pub(crate) fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Host(host) => host.shutdown(),
            Self::Guest(guest) => guest.shutdown(),
        }
    }

    /// The session of a peer.
    pub(crate) fn connection(&self, peer: i32) -> Option<&Connection> {
        match self {
            Self::Host(host) => host.connection(peer),
            Self::Guest(guest) => guest.connection().filter(|_| peer == SERVER),
        }
    }

    pub(crate) fn port(&self) -> io::Result<u16> {
        match self {
            Self::Host(host) => host.port(),
            Self::Guest(guest) => guest.port(),
        }
    }

    pub(crate) const fn is_host(&self) -> bool {
        matches!(self, Self::Host(_))
    }

    /// Godot's number of this end; `None`: a client that is not connected yet.
    pub(crate) const fn id(&self) -> Option<i32> {
        match self {
            Self::Host(_) => Some(SERVER),
            Self::Guest(guest) => guest.id(),
        }
    }
}

/// Sends a packet. One that is too long for a datagram goes on the reliable channel of the same number; one that finds no room and need not
/// arrive counts as lost.
pub(crate) fn send(connection: &mut Connection, lane: Lane, packet: &[u8]) -> Result<(), SendError> {
    let is_reliable = lane == lane.for_long();
    match connection.send(lane.handle(), packet) {
        Err(SendError::TooLong { .. }) if !is_reliable => send(connection, lane.for_long(), packet),
        Err(SendError::Full { .. }) if !is_reliable => Ok(()),
        Err(SendError::Closed) => Ok(()), // scripts are about to hear of it
        sent => sent,
    }
}

/// Takes what has arrived. Returns whether that was all.
pub(crate) fn receive(connection: &mut Connection, peer: i32, lanes: &[Lane], inbox: &mut Inbox) -> bool {
    for lane in lanes {
        while inbox.has_room() {
            let Some(bytes) = connection.recv(lane.handle()) else { break };
            inbox.push(Packet { peer, lane: *lane, bytes });
        }
    }
    inbox.has_room()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Mode;
    use crate::settings::Settings;
    use std::thread::{sleep, spawn};
    use std::time::{Duration, Instant};

    /// Long enough for any machine; a test that waits this long has failed.
    const PATIENCE: Duration = Duration::from_secs(30);
    const LANE: Lane = Lane { mode: Mode::Reliable, channel: 0 };

    fn settings() -> Settings {
        Settings { channel_count: 4, timeout: 20.0, is_insecure: true, ..Settings::default() }
    }

    fn host() -> Link {
        Link::Host(Box::new(Host::bind("127.0.0.1:0", &settings().server(32).unwrap()).unwrap()))
    }

    fn guest(port: u16) -> Link {
        Link::Guest(Box::new(Guest::connect(("127.0.0.1", port), &settings().client().unwrap()).unwrap()))
    }

    /// Polls all until `is_done` of what has happened to each.
    fn until<const N: usize>(
        links: &mut [(Link, Inbox); N],
        mut is_done: impl FnMut(&[Vec<Change>; N], &mut [(Link, Inbox); N]) -> bool,
    ) -> [Vec<Change>; N] {
        let (start, mut changes) = (Instant::now(), [const { Vec::new() }; N]);
        while !is_done(&changes, links) {
            for ((link, inbox), changes) in links.iter_mut().zip(&mut changes) {
                link.poll(inbox, changes).unwrap();
            }
            assert!(start.elapsed() < PATIENCE, "it never happened: {changes:?}");
            sleep(Duration::from_millis(1));
        }
        changes
    }

    fn pair() -> [(Link, Inbox); 2] {
        let host = host();
        let guest = guest(host.port().unwrap());
        let mut links = [(host, Inbox::default()), (guest, Inbox::default())];
        let changes = until(&mut links, |changes, _| changes.iter().all(|changes| !changes.is_empty()));
        let id = links[1].0.id().unwrap();
        assert_eq!(changes, [[Change::Joined(id)], [Change::Joined(SERVER)]]);
        links
    }

    #[test]
    fn a_shutdown_blocks_until_everything_has_arrived() {
        let [host, (mut guest, _)] = pair();
        for number in 0..100 {
            guest.send(SERVER, LANE, &[number]).unwrap();
        }
        let reader = spawn(move || {
            let (mut links, mut got) = ([host], Vec::new());
            until(&mut links, |changes, [(_, inbox)]| {
                got.extend(std::iter::from_fn(|| inbox.pop()).map(|packet| packet.bytes[0]));
                matches!(changes, [changes] if !changes.is_empty())
            });
            got
        });
        guest.shutdown().unwrap();
        assert_eq!(reader.join().unwrap(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn what_finds_no_room_in_the_inbox_is_read_later_and_nobody_is_passed_over() {
        let host = host();
        let port = host.port().unwrap();
        let mut links =
            [(host, Inbox::default()), (guest(port), Inbox::default()), (guest(port), Inbox::default())];
        until(&mut links, |changes, _| changes[0].len() == 2);
        for (link, _) in &mut links[1..] {
            for _ in 0..20 {
                link.send(SERVER, LANE, &vec![1; 1 << 20]).unwrap();
            }
        }
        let mut got = Vec::new();
        until(&mut links, |_, links| {
            let inbox = &mut links[0].1;
            assert!(inbox.len() <= 17, "the inbox is bounded");
            if inbox.len() >= 16 || got.len() >= 24 {
                got.extend(std::iter::from_fn(|| inbox.pop()).map(|packet| packet.peer));
            }
            got.len() == 40
        });
        let first = got[0];
        assert_eq!(got.iter().filter(|peer| **peer == first).count(), 20);
    }

    #[test]
    fn a_server_that_gives_no_number_is_left() {
        let session = settings().client().unwrap().session;
        let mut server =
            whitewater::Server::bind("127.0.0.1:0", &whitewater::ServerConfig::insecure(session)).unwrap();
        let mut links = [(guest(server.local_addr().unwrap().port()), Inbox::default())];
        let [changes] = until(&mut links, |changes, _| {
            server.pump().unwrap();
            changes.iter().any(|changes| !changes.is_empty())
        });
        assert!(matches!(&*changes, [Change::Left(SERVER, End { had_joined: false, .. })]), "{changes:?}");
        assert_eq!(links[0].0.id(), None);
    }

    #[test]
    fn only_clients_that_have_joined_can_be_sent_to_and_disconnected() {
        let mut links = pair();
        let id = links[1].0.id().unwrap();
        assert!(matches!(links[0].0.send(id ^ 1, LANE, b"x"), Err(Refused::NoPeer)));
        assert!(matches!(links[0].0.send(-(id ^ 1), LANE, b"x"), Err(Refused::NoPeer)));
        assert!(matches!(links[0].0.send(i32::MIN, LANE, b"x"), Err(Refused::NoPeer)));
        assert!(matches!(links[1].0.send(id ^ 1, LANE, b"x"), Err(Refused::NoPeer)));
        links[0].0.send(-SERVER, LANE, b"all").unwrap();
        links[1].0.send(-SERVER, LANE, b"nobody").unwrap();
        until(&mut links, |_, links| links[1].1.len() == 1);
        assert_eq!(links[0].1.len(), 0);
        links[0].0.kick(id, 3, "enough").unwrap();
        let changes = until(&mut links, |changes, _| changes.iter().all(|changes| !changes.is_empty()));
        let end = |reason, text: &str| End { reason, text: text.to_owned(), had_joined: true };
        assert_eq!(changes[0], [Change::Left(id, end(CloseReason::Local(3), ""))]);
        assert_eq!(changes[1], [Change::Left(SERVER, end(CloseReason::Peer(3), "enough"))]);
        assert!(matches!(links[0].0.send(id, LANE, b"x"), Err(Refused::NoPeer)));
    }
}
