//! One session.

use crate::address::shown;
use crate::endpoint::{Core, End};
use crate::error;
use crate::settings::bytes;
use crate::stats::Stats;
use crate::token::Claims;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use whitewater::SessionId;
use whitewater::channel::SendError;
use whitewater::session::{CloseTextError, Connection, RedirectError};

/// A session of an endpoint. It can be read from after its end.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct Link {
    end: Arc<End>,
    seat: Arc<Seat>,
}

/// Which session, and what is left of it at a server once it is over: its number may then be another session's.
#[derive(Default)]
pub(crate) struct Seat {
    id: Option<SessionId>,
    over: OnceLock<Mutex<Connection>>,
}

impl Seat {
    pub(crate) const fn of(id: SessionId) -> Self {
        Self { id: Some(id), over: OnceLock::new() }
    }

    pub(crate) fn end(&self, connection: Connection) {
        let _ = self.over.set(Mutex::new(connection)); // it ends once
    }
}

#[pymethods]
impl Link {
    /// Queues a message. Returns whether there was room.
    fn send(&self, py: Python<'_>, message: &Bound<'_, PyAny>, channel: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (message, channel) = (bytes(message)?, self.end.channels.named(channel)?);
        let sent = self.with(|connection| connection.send(channel, message.as_bytes()));
        error::of_send(py, sent.unwrap_or(Err(SendError::Closed)))
    }

    /// Marks the end of a stream. Returns whether there was room.
    fn send_end(&self, py: Python<'_>, channel: &Bound<'_, PyAny>) -> PyResult<bool> {
        let channel = self.end.channels.named(channel)?;
        let sent = self.with(|connection| connection.send_end(channel));
        error::of_send(py, sent.unwrap_or(Err(SendError::Closed)))
    }

    /// Takes the next message.
    fn recv<'py>(
        &self,
        py: Python<'py>,
        channel: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let channel = self.end.channels.named(channel)?;
        let message = self.with(|connection| connection.recv(channel)).flatten();
        Ok(message.map(|message| PyBytes::new(py, &message)))
    }

    /// Whether there is a message.
    fn is_readable(&self, channel: &Bound<'_, PyAny>) -> PyResult<bool> {
        let channel = self.end.channels.named(channel)?;
        Ok(self.with(|connection| connection.peek_size(channel).is_some()).unwrap_or(false))
    }

    /// Queues an unreliable datagram. Returns whether there was room.
    fn send_datagram(&self, py: Python<'_>, datagram: &Bound<'_, PyAny>) -> PyResult<bool> {
        let datagram = bytes(datagram)?;
        let sent = self.with(|connection| connection.send_datagram(datagram.as_bytes()).map(drop));
        error::of_send(py, sent.unwrap_or(Err(SendError::Closed)))
    }

    fn recv_datagram<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let datagram = self.with(Connection::recv_datagram).flatten();
        datagram.map(|datagram| PyBytes::new(py, &datagram))
    }

    fn is_delivered(&self, channel: &Bound<'_, PyAny>) -> PyResult<bool> {
        let channel = self.end.channels.named(channel)?;
        Ok(self.with(|connection| connection.is_delivered(channel)).unwrap_or(true))
    }

    /// Whether the session is up and takes what is sent.
    fn is_connected(&self) -> bool {
        self.with(|connection| connection.is_connected()).unwrap_or(false)
    }

    /// Closes the session once everything sent has arrived.
    fn close(&self, code: u16, text: &str) -> PyResult<()> {
        self.said(|core, id| match core {
            Core::Client(client) => client.close_with(code, text),
            Core::Server(server) => id.map_or(Ok(()), |id| server.close_with(id, code, text)),
        })
    }

    /// Ends the session, or the attempt to connect, at once.
    fn kick(&self, code: u16, text: &str) -> PyResult<()> {
        self.said(|core, id| match core {
            Core::Client(client) => client.kick(code, text),
            Core::Server(server) => id.map_or(Ok(()), |id| server.kick(id, code, text)),
        })
    }

    /// Sends the client to another server.
    fn redirect(&self, py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<()> {
        let token = bytes(token)?;
        let redirected = self.live(|core, id| match (core, id) {
            (Core::Server(server), Some(id)) => Ok(server.redirect(id, token.as_bytes())),
            _ => Err(error::wrong_end()),
        });
        let redirected = redirected.unwrap_or(Ok(Err(RedirectError::Closed)))?;
        redirected.map_err(|error| error::of_redirect(py, error))
    }

    /// The number of the session at a server; 0 at a client.
    #[getter]
    fn id(&self) -> u32 {
        self.seat.id.map_or(0, SessionId::to_bits)
    }

    /// The claims of the connect token with which the client came.
    fn claims(&self, py: Python<'_>) -> Option<Claims> {
        let pass = |core: &mut Core, id: Option<SessionId>| match core {
            Core::Server(server) => server.pass(id?).cloned(),
            Core::Client(_) => None,
        };
        self.live(pass)?.map(|pass| Claims::of(py, &pass))
    }

    fn peer_address(&self) -> Option<(String, u16)> {
        self.live(|core, id| core.peer_addr(id)).flatten().map(shown)
    }

    /// What the peer's program said in the handshake.
    fn user<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let user = self.with(|connection| connection.user().to_vec());
        PyBytes::new(py, &user.unwrap_or_default())
    }

    fn stats(&self) -> Option<Stats> {
        self.with(|connection| Stats::of(connection))
    }
}

impl Link {
    pub(crate) const fn new(end: Arc<End>, seat: Arc<Seat>) -> Self {
        Self { end, seat }
    }

    /// Calls `call` with the session, or what is left of it. `None`: it is gone, or was never up.
    fn with<T>(&self, call: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let mut state = self.end.lock();
        if let Some(over) = self.seat.over.get() {
            return Some(call(&mut over.lock().unwrap_or_else(PoisonError::into_inner)));
        }
        state.core.as_mut()?.connection(self.seat.id).map(call)
    }

    /// Calls `call` if the session is not over.
    fn live<T>(&self, call: impl FnOnce(&mut Core, Option<SessionId>) -> T) -> Option<T> {
        let mut state = self.end.lock();
        let is_over = self.seat.over.get().is_some();
        state.core.as_mut().filter(|_| !is_over).map(|core| call(core, self.seat.id))
    }

    fn said(
        &self,
        say: impl FnOnce(&mut Core, Option<SessionId>) -> Result<(), CloseTextError>,
    ) -> PyResult<()> {
        self.live(say).unwrap_or(Ok(())).map_err(error::of_text)
    }
}
