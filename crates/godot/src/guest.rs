//! A client as Godot sees it, without the engine.

use crate::inbox::Inbox;
use crate::lane::Lane;
use crate::link::{Change, End, GOODBYE, OVERRUN, OVERRUN_TEXT, Refused, SERVER, receive, send};
use std::io;
use std::net::ToSocketAddrs;
use whitewater::channel::SendError;
use whitewater::session::{CloseTextError, Connection};
use whitewater::{Client, ClientConfig, CloseReason, Event};

#[derive(Debug)]
pub(crate) struct Guest {
    client: Client,
    /// Godot's number of this client, once the server has told it.
    id: Option<i32>,
    lanes: Vec<Lane>,
    is_unread: bool,
}

impl Guest {
    pub(crate) fn connect(addr: impl ToSocketAddrs, config: &ClientConfig) -> io::Result<Self> {
        let lanes = Lane::of(&config.session.channels);
        Ok(Self { client: Client::connect(addr, config)?, id: None, lanes, is_unread: false })
    }

    /// Receives and sends.
    pub(crate) fn poll(&mut self, inbox: &mut Inbox, changes: &mut Vec<Change>) -> io::Result<()> {
        let pumped = self.client.pump(); // what is due is done even if the socket fails
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Connected => match id(self.client.user()) {
                    Some(id) => {
                        self.id = Some(id);
                        changes.push(Change::Joined(SERVER));
                    }
                    None => self.client.close(GOODBYE), // its server gives no numbers; `Closed` follows
                },
                Event::Readable => self.is_unread = true,
                Event::Redirected => changes
                    .extend(self.client.take_redirect().map(|token| Change::Redirected(token.to_vec()))),
                Event::Closed { reason, .. } => {
                    self.read(inbox); // what came before the end
                    changes.push(Change::Left(SERVER, self.end(reason)));
                }
                _ => {}
            }
        }
        self.read(inbox);
        pumped.map(drop)
    }

    /// Sends what was queued since the last poll.
    pub(crate) fn flush(&mut self) {
        self.client.flush();
    }

    /// A client sends to the server only: others are reached through it.
    pub(crate) fn send(&mut self, target: i32, lane: Lane, packet: &[u8]) -> Result<(), Refused> {
        match target {
            0 | SERVER => {}
            _ if target == -SERVER => return Ok(()), // all but the server
            _ => return Err(Refused::NoPeer),
        }
        let connection = self.client.connection_mut().ok_or(Refused::Send(SendError::NotConnected))?;
        match send(connection, lane, packet) {
            Err(SendError::Full { .. }) => {
                let _ = self.client.kick(OVERRUN, OVERRUN_TEXT); // the text is short enough
                Ok(()) // `Closed` follows
            }
            sent => sent.map_err(Refused::Send),
        }
    }

    /// Ends the session once everything has arrived.
    pub(crate) fn disconnect(&mut self) {
        self.client.close(GOODBYE);
    }

    /// Ends the session at once, and tells the server why.
    pub(crate) fn kick(&mut self, code: u16, text: &str) -> Result<(), CloseTextError> {
        self.client.kick(code, text)
    }

    /// Ends the session, and blocks until everything has arrived, for a limited time.
    pub(crate) fn shutdown(&mut self) -> io::Result<()> {
        self.client.shutdown(GOODBYE)
    }

    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.client.connection()
    }

    /// Godot's number of this client; `None` before the session is up.
    pub(crate) const fn id(&self) -> Option<i32> {
        self.id
    }

    pub(crate) fn port(&self) -> io::Result<u16> {
        self.client.local_addr().map(|addr| addr.port())
    }

    fn end(&self, reason: CloseReason) -> End {
        let text = match reason {
            CloseReason::Rejected(_) => String::from_utf8_lossy(self.client.rejection()).into_owned(),
            _ => self.client.close_text().to_owned(),
        };
        End { reason, text, had_joined: self.id.is_some() }
    }

    fn read(&mut self, inbox: &mut Inbox) {
        if let Some(connection) = self.client.connection_mut().filter(|_| self.is_unread && self.id.is_some())
        {
            self.is_unread = !receive(connection, SERVER, &self.lanes, inbox);
        }
    }
}

/// The number that the server gives a client.
fn id(user: &[u8]) -> Option<i32> {
    let id = i32::from_le_bytes(user.try_into().ok()?);
    (id > SERVER).then_some(id)
}
