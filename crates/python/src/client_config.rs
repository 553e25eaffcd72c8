//! How a client connects.

use crate::error;
use crate::session_config::SessionConfig;
use crate::settings::{apply, array, bytes, key, set_fields};
use crate::suite::Suite;
use crate::token::Token;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use whitewater::session::Secret;

/// How a client connects, and the settings of its session.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct ClientConfig(pub(crate) whitewater::ClientConfig);

#[pymethods]
impl ClientConfig {
    #[new]
    #[pyo3(signature = (session, suite, **settings))]
    fn new(
        session: &Bound<'_, SessionConfig>,
        suite: &Bound<'_, Suite>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let config = whitewater::ClientConfig::insecure(session.get().0.clone());
        let suite = suite.get().0;
        Self::with(session.py(), whitewater::ClientConfig { suite, ..config }, settings)
    }

    #[staticmethod]
    #[pyo3(signature = (session, psk, **settings))]
    fn secret(
        session: &Bound<'_, SessionConfig>,
        psk: &Bound<'_, PyAny>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let config = whitewater::ClientConfig::secret(session.get().0.clone(), Secret::from(&*key(psk)?));
        Self::with(session.py(), config, settings)
    }

    #[staticmethod]
    #[pyo3(signature = (session, token, **settings))]
    fn token(
        session: &Bound<'_, SessionConfig>,
        token: &Bound<'_, Token>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let config = whitewater::ClientConfig::token(session.get().0.clone(), &token.get().0);
        Self::with(session.py(), config, settings)
    }

    #[staticmethod]
    #[pyo3(signature = (session, **settings))]
    fn insecure(session: &Bound<'_, SessionConfig>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let config = whitewater::ClientConfig::insecure(session.get().0.clone());
        Self::with(session.py(), config, settings)
    }
}

impl ClientConfig {
    fn with(
        py: Python<'_>,
        mut config: whitewater::ClientConfig,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        apply("a client", settings, |name, value| {
            match name {
                "psk" => config.psk = Some((&*key(value)?).into()),
                "server_key" => config.server_key = Some(array(value, "a key")?),
                "ticket" => config.ticket = bytes(value)?.as_bytes().to_vec(),
                "routing_token" => config.routing_token = bytes(value)?.as_bytes().to_vec(),
                "user" => config.user = bytes(value)?.as_bytes().to_vec(),
                _ => set_fields!(config, name, value: hello; seconds deadline),
            }
            Ok(true)
        })?;
        config.check().map_err(|error| error::of_config(py, error))?;
        Ok(Self(config))
    }
}
