//! A client or a server with its socket. The package pumps it when the socket is readable or something is due.

use crate::address::{parsed, shown};
use crate::channel::Channels;
use crate::client_config::ClientConfig;
use crate::error;
use crate::event::{Closed, Happened};
use crate::link::{Link, Seat};
use crate::server_config::ServerConfig;
use crate::settings::bytes;
use crate::stats::ServerStats;
use crate::token::{Claims, ServerKey};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use whitewater::machine::Machine as _;
use whitewater::session::Connection;
use whitewater::session::token::Verifier;
use whitewater::{Client, Event, Server, SessionId};

/// A client or a server.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct Endpoint {
    end: Arc<End>,
    /// Of a server with connect tokens.
    verifier: Option<Verifier>,
    /// Of a client.
    link: Option<Py<Link>>,
}

/// What an endpoint shares with its sessions.
pub(crate) struct End {
    state: Mutex<State>,
    pub(crate) channels: Channels,
}

/// `core` is `None` once the socket is closed.
pub(crate) struct State {
    pub(crate) core: Option<Core>,
    seats: HashMap<SessionId, Weak<Seat>>,
}

pub(crate) enum Core {
    Client(Box<Client>),
    Server(Box<Server>),
}

#[pymethods]
impl Endpoint {
    /// A client that begins to connect.
    #[staticmethod]
    fn connect(
        py: Python<'_>,
        addresses: Vec<(String, u16)>,
        config: &Bound<'_, ClientConfig>,
    ) -> PyResult<Self> {
        let addresses =
            addresses.iter().map(|(host, port)| parsed(host, *port)).collect::<PyResult<Vec<_>>>()?;
        let config = &config.get().0;
        let client = py.detach(|| Client::connect(&*addresses, config));
        let client = client.map_err(|error| error::of_io(py, &error))?;
        let channels = Channels::of(&config.session.channels);
        let end = End::new(Core::Client(Box::new(client)), channels);
        let link = Link::new(Arc::clone(&end), Arc::default());
        Ok(Self { end, verifier: None, link: Some(Py::new(py, link)?) })
    }

    /// A server.
    #[staticmethod]
    fn bind(py: Python<'_>, host: &str, port: u16, config: &Bound<'_, ServerConfig>) -> PyResult<Self> {
        let config = &config.get().0;
        let server = py.detach(|| Server::bind((host, port), config));
        let server = server.map_err(|error| error::of_io(py, &error))?;
        let channels = Channels::of(&config.session.channels);
        let end = End::new(Core::Server(Box::new(server)), channels);
        Ok(Self { end, verifier: config.tokens.clone(), link: None })
    }

    /// Reads what has arrived, does what is due and sends. Returns in how many seconds to call it again, and the events. `None`: not before
    /// something arrives or is sent.
    fn pump(&self, py: Python<'_>) -> PyResult<(Option<f64>, Vec<Py<PyAny>>)> {
        let (wait, happened) = py.detach(|| self.end.pump());
        let wait = wait.map_err(|error| error::of_io(py, &error))?;
        let events = happened.into_iter().map(|(session, event)| event.into_python(py, session));
        Ok((wait.map(|wait| wait.as_secs_f64()), events.collect::<PyResult<_>>()?))
    }

    /// The socket, for a selector. It can change when a client changes networks. -1: it is closed.
    fn fileno(&self) -> i64 {
        self.end.lock().core.as_ref().map_or(-1, Core::fileno)
    }

    fn local_address(&self, py: Python<'_>) -> PyResult<(String, u16)> {
        let state = self.end.lock();
        let address = match &state.core {
            Some(Core::Client(client)) => client.local_addr(),
            Some(Core::Server(server)) => server.local_addr(),
            None => return Err(error::over(py, "the socket is closed")),
        };
        address.map(shown).map_err(|error| error::of_io(py, &error))
    }

    /// The session of a client.
    fn link(&self, py: Python<'_>) -> PyResult<Py<Link>> {
        self.link.as_ref().map(|link| link.clone_ref(py)).ok_or_else(error::wrong_end)
    }

    /// What saves a client a round trip next time.
    fn ticket<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let ticket = self.end.client(|client| client.ticket().to_vec()).unwrap_or_else(|| Some(Vec::new()));
        Ok(PyBytes::new(py, &ticket.ok_or_else(error::wrong_end)?))
    }

    /// A client has changed networks.
    fn path_changed(&self) {
        self.end.client(Client::path_changed);
    }

    /// A client that asks to join: its address, what it says, and the claims of its token. `None`: it asks no longer.
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn request(&self, py: Python<'_>, session: u32) -> Option<((String, u16), Py<PyBytes>, Option<Claims>)> {
        let of = |server: &mut Server| {
            let request = server.request(SessionId::from_bits(session))?;
            Some((shown(request.address), request.user.to_vec(), request.pass.cloned()))
        };
        let (address, user, pass) = self.end.server(of)???;
        Some((address, PyBytes::new(py, &user).unbind(), pass.map(|pass| Claims::of(py, &pass))))
    }

    fn admit(&self, py: Python<'_>, session: u32, user: &Bound<'_, PyAny>) -> PyResult<()> {
        let user = bytes(user)?;
        let id = SessionId::from_bits(session);
        self.decided(py, |server| server.admit(id, user.as_bytes()))
    }

    fn reject(&self, py: Python<'_>, session: u32, code: u16, user: &Bound<'_, PyAny>) -> PyResult<()> {
        let user = bytes(user)?;
        let id = SessionId::from_bits(session);
        self.decided(py, |server| server.reject(id, code, user.as_bytes()))
    }

    /// Queues a message for all clients but one. Returns those that it could not be queued for.
    fn broadcast(
        &self,
        py: Python<'_>,
        message: &Bound<'_, PyAny>,
        channel: &Bound<'_, PyAny>,
        but: Option<u32>,
    ) -> PyResult<Vec<u32>> {
        let (message, channel) = (bytes(message)?, self.end.channels.named(channel)?);
        let failed = self.end.server(|server| match but {
            None => server.broadcast(channel, message.as_bytes()),
            Some(but) => server.broadcast_except(SessionId::from_bits(but), channel, message.as_bytes()),
        });
        let failed = failed.flatten().ok_or_else(|| error::over(py, "the server is closed"))?;
        let mut left_out = Vec::with_capacity(failed.len());
        for (id, error) in failed {
            match error::of_send(py, Err(error)) {
                Err(error) if error.is_instance_of::<pyo3::exceptions::PyValueError>(py) => {
                    return Err(error);
                }
                _ => left_out.push(id.to_bits()),
            }
        }
        Ok(left_out)
    }

    /// Begins or goes on to end all sessions of a server. Returns whether none is left.
    fn shut_down(&self, code: u16) -> bool {
        let end = |server: &mut Server| {
            let now = server.now();
            server.machine_mut().shutdown(now, code)
        };
        self.end.server(end).flatten().unwrap_or(true)
    }

    /// Expects connect tokens that are sealed with another key.
    fn rotate(&self, py: Python<'_>, key: &Bound<'_, ServerKey>) -> PyResult<()> {
        let verifier = self.verifier.as_ref();
        verifier
            .ok_or_else(|| error::config(py, "this server has no connect tokens"))?
            .rotate(key.get().copy());
        Ok(())
    }

    fn stats(&self, py: Python<'_>) -> PyResult<ServerStats> {
        let stats = self.end.server(|server| server.stats().into());
        stats.ok_or_else(|| error::over(py, "the server is closed"))?.ok_or_else(error::wrong_end)
    }

    /// Says goodbye without waiting, and closes the socket.
    fn abandon(&self, py: Python<'_>) {
        py.detach(|| drop(self.end.lock().core.take()));
    }
}

impl Endpoint {
    fn decided(
        &self,
        py: Python<'_>,
        decide: impl FnOnce(&mut Server) -> Result<(), whitewater::session::DecisionError>,
    ) -> PyResult<()> {
        let decided = self.end.server(decide).flatten();
        decided
            .ok_or_else(|| error::over(py, "the server is closed"))?
            .map_err(|error| error::of_decision(py, error))
    }
}

impl End {
    fn new(core: Core, channels: Channels) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { core: Some(core), seats: HashMap::new() }), channels })
    }

    /// Held for calls that neither wait nor need Python.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `call` with the server. The outer `None`: it is closed; the inner one: this is a client.
    fn server<T>(&self, call: impl FnOnce(&mut Server) -> T) -> Option<Option<T>> {
        match self.lock().core.as_mut()? {
            Core::Server(server) => Some(Some(call(server))),
            Core::Client(_) => Some(None),
        }
    }

    fn client<T>(&self, call: impl FnOnce(&mut Client) -> T) -> Option<Option<T>> {
        match self.lock().core.as_mut()? {
            Core::Client(client) => Some(Some(call(client))),
            Core::Server(_) => Some(None),
        }
    }

    fn pump(self: &Arc<Self>) -> (io::Result<Option<Duration>>, Vec<(u32, Happened)>) {
        let (mut state, mut happened) = (self.lock(), Vec::new());
        let State { core, seats } = &mut *state;
        let wait = match core {
            None => Ok(None),
            Some(Core::Client(client)) => {
                let wait = client.pump();
                while let Some(event) = client.poll_event() {
                    happened.extend(of_client(client, event).map(|event| (0, event)));
                }
                wait
            }
            Some(Core::Server(server)) => {
                let wait = server.pump();
                while let Some((id, event)) = server.poll_event() {
                    let event = self.of_server(server, seats, id, event);
                    happened.extend(event.map(|event| (id.to_bits(), event)));
                }
                wait
            }
        };
        (wait, happened)
    }

    fn of_server(
        self: &Arc<Self>,
        server: &mut Server,
        seats: &mut HashMap<SessionId, Weak<Seat>>,
        id: SessionId,
        event: Event,
    ) -> Option<Happened> {
        Some(match event {
            Event::Requested => Happened::Requested,
            Event::Connected => {
                let seat = Arc::new(Seat::of(id));
                seats.insert(id, Arc::downgrade(&seat));
                Happened::Connected(Some(Link::new(Arc::clone(self), seat)))
            }
            Event::Closed { reason, undelivered } => {
                let ended = server.pop_ended();
                let text = ended.as_ref().map(Connection::close_text).unwrap_or_default().to_owned();
                if let (Some(seat), Some(ended)) = (seats.remove(&id).and_then(|seat| seat.upgrade()), ended)
                {
                    seat.end(ended);
                }
                Happened::Closed(Closed { reason, undelivered, text, user: Vec::new() })
            }
            event => return common(event),
        })
    }
}

fn of_client(client: &mut Client, event: Event) -> Option<Happened> {
    Some(match event {
        Event::Connected => Happened::Connected(None),
        Event::Redirected => Happened::Redirected(client.take_redirect()?),
        Event::Closed { reason, undelivered } => {
            let (text, user) = (client.close_text().to_owned(), client.rejection().to_vec());
            Happened::Closed(Closed { reason, undelivered, text, user })
        }
        event => return common(event),
    })
}

fn common(event: Event) -> Option<Happened> {
    match event {
        Event::Readable => Some(Happened::Readable),
        Event::Writable => Some(Happened::Writable),
        Event::Moved { from, to } => Some(Happened::Moved(from, to)),
        _ => None,
    }
}

impl Core {
    pub(crate) fn connection(&mut self, id: Option<SessionId>) -> Option<&mut Connection> {
        match self {
            Self::Client(client) => client.connection_mut(),
            Self::Server(server) => server.connection_mut(id?),
        }
    }

    pub(crate) fn peer_addr(&self, id: Option<SessionId>) -> Option<SocketAddr> {
        match self {
            Self::Client(client) => client.peer_addr(),
            Self::Server(server) => server.peer_addr(id?),
        }
    }

    #[cfg(unix)]
    fn fileno(&self) -> i64 {
        use std::os::fd::{AsFd, AsRawFd};
        match self {
            Self::Client(client) => client.as_fd().as_raw_fd().into(),
            Self::Server(server) => server.as_fd().as_raw_fd().into(),
        }
    }

    #[cfg(windows)]
    fn fileno(&self) -> i64 {
        use std::os::windows::io::{AsRawSocket, AsSocket};
        let socket = match self {
            Self::Client(client) => client.as_socket().as_raw_socket(),
            Self::Server(server) => server.as_socket().as_raw_socket(),
        };
        i64::try_from(socket).unwrap_or(-1)
    }
}
