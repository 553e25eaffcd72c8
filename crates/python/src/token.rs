//! Connect tokens: a matchmaker makes them, a client comes with one, and a server tells whom it has let in.

use crate::address::{parsed, shown};
use crate::error;
use crate::settings::{array, bytes, key, seconds};
use crate::suite::Suite;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use whitewater::session::token::{Order, PublicToken};
use whitewater::session::{self, Pass, token};
use zeroize::Zeroizing;

/// What a client receives from the matchmaker.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct Token(pub(crate) PublicToken);

#[pymethods]
impl Token {
    #[staticmethod]
    fn decode(token: &Bound<'_, PyAny>) -> PyResult<Self> {
        let decoded = PublicToken::decode(bytes(token)?.as_bytes());
        decoded.map(Self).map_err(|error| error::of_token(token.py(), error))
    }

    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    #[getter]
    fn protocol_id(&self) -> u64 {
        self.0.protocol_id
    }

    #[getter]
    fn created(&self) -> u64 {
        self.0.created
    }

    #[getter]
    fn expires(&self) -> u64 {
        self.0.expires
    }

    #[getter]
    fn suite(&self) -> Suite {
        Suite(self.0.suite)
    }

    #[getter]
    fn addresses(&self) -> Vec<(String, u16)> {
        self.0.addresses.iter().copied().map(shown).collect()
    }
}

/// The key of a fleet of servers, which only matchmakers have.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct FleetKey(token::FleetKey);

#[pymethods]
impl FleetKey {
    #[new]
    fn new(secret: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(token::FleetKey::new(*key(secret)?)))
    }

    #[pyo3(signature = (server_id, key_id = 0))]
    fn server_key(&self, server_id: u64, key_id: u8) -> ServerKey {
        ServerKey { server_id, key_id, key: self.0.server_key(server_id, key_id) }
    }
}

/// The key of one server, which makes tokens for it.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct ServerKey {
    #[pyo3(get)]
    server_id: u64,
    #[pyo3(get)]
    key_id: u8,
    key: token::ServerKey,
}

#[pymethods]
impl ServerKey {
    #[new]
    fn new(server_id: u64, key_id: u8, secret: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { server_id, key_id, key: token::ServerKey::new(server_id, key_id, *key(secret)?) })
    }

    #[getter]
    fn secret<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.key.secret())
    }

    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    #[pyo3(signature = (protocol_id, client_id, addresses, *, expires_in = None, match_id = None, user = None, suite = None, server_key = None, routing_token = None, now = None))]
    fn mint(
        &self,
        py: Python<'_>,
        protocol_id: u64,
        client_id: u64,
        addresses: Vec<(String, u16)>,
        expires_in: Option<&Bound<'_, PyAny>>,
        match_id: Option<&Bound<'_, PyAny>>,
        user: Option<&Bound<'_, PyAny>>,
        suite: Option<&Bound<'_, Suite>>,
        server_key: Option<&Bound<'_, PyAny>>,
        routing_token: Option<&Bound<'_, PyAny>>,
        now: Option<u64>,
    ) -> PyResult<Token> {
        let addresses =
            addresses.iter().map(|(host, port)| parsed(host, *port)).collect::<PyResult<Vec<_>>>()?;
        let life = expires_in.map_or(Ok(LIFE), seconds)?;
        let [user, routing_token] = [user, routing_token].map(|given| given.map(bytes).transpose());
        let (user, routing_token) = (user?, routing_token?);
        let created = now.unwrap_or_else(unix_now);
        let order = Order {
            protocol_id,
            suite: suite.map_or(session::Suite::TOKEN, |suite| suite.get().0),
            client_id,
            match_id: match_id.map(|id| array(id, "`match_id`")).transpose()?.unwrap_or_default(),
            created,
            expires: created.saturating_add(life.as_secs()),
            addresses: &addresses,
            server_key: server_key.map(|key| array(key, "a key")).transpose()?,
            routing_token: routing_token.as_ref().map_or(&[], |token| token.as_bytes()),
            user: user.as_ref().map_or(&[], |user| user.as_bytes()),
        };
        let (mut psk, mut nonce) = (Zeroizing::new([0; 32]), [0; 24]);
        for random in [&mut psk[..], &mut nonce[..]] {
            getrandom::fill(random).map_err(|error| PyOSError::new_err(error.to_string()))?;
        }
        self.key.mint(&order, *psk, nonce).map(Token).map_err(|error| error::of_token(py, error))
    }
}

impl ServerKey {
    /// The same key once more: a server keeps its own.
    pub(crate) fn copy(&self) -> token::ServerKey {
        token::ServerKey::new(self.server_id, self.key_id, *self.key.secret())
    }
}

/// The claims of the connect token with which a client came.
#[pyclass(frozen, get_all, module = "whitewater")]
pub(crate) struct Claims {
    client_id: u64,
    match_id: Py<PyBytes>,
    created: u64,
    user: Py<PyBytes>,
}

impl Claims {
    pub(crate) fn of(py: Python<'_>, pass: &Pass) -> Self {
        Self {
            client_id: pass.client_id,
            match_id: PyBytes::new(py, &pass.match_id).unbind(),
            created: pass.created,
            user: PyBytes::new(py, &pass.user).unbind(),
        }
    }
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// How long a token is valid if nothing else is said.
const LIFE: Duration = Duration::from_secs(45);
