//! Who may join a server, and its limits.

use crate::error;
use crate::session_config::SessionConfig;
use crate::settings::{apply, array, bytes, key, set_fields};
use crate::suite::Suite;
use crate::token::ServerKey;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use whitewater::session::Secret;

/// A server's sessions and limits.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct ServerConfig(pub(crate) whitewater::ServerConfig);

#[pymethods]
impl ServerConfig {
    #[new]
    #[pyo3(signature = (session, suites, **settings))]
    fn new(
        session: &Bound<'_, SessionConfig>,
        suites: &Bound<'_, PyAny>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let suites = suites.try_iter()?.map(|suite| Ok(suite?.cast::<Suite>()?.get().0));
        let suites = suites.collect::<PyResult<_>>()?;
        let config = whitewater::ServerConfig::insecure(session.get().0.clone());
        Self::with(session.py(), whitewater::ServerConfig { suites, ..config }, settings)
    }

    #[staticmethod]
    #[pyo3(signature = (session, psk, **settings))]
    fn secret(
        session: &Bound<'_, SessionConfig>,
        psk: &Bound<'_, PyAny>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let config = whitewater::ServerConfig::secret(session.get().0.clone(), Secret::from(&*key(psk)?));
        Self::with(session.py(), config, settings)
    }

    #[staticmethod]
    #[pyo3(signature = (session, key, **settings))]
    fn tokens(
        session: &Bound<'_, SessionConfig>,
        key: &Bound<'_, ServerKey>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let config = whitewater::ServerConfig::tokens(session.get().0.clone(), key.get().copy());
        Self::with(session.py(), config, settings)
    }

    #[staticmethod]
    #[pyo3(signature = (session, **settings))]
    fn insecure(session: &Bound<'_, SessionConfig>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let config = whitewater::ServerConfig::insecure(session.get().0.clone());
        Self::with(session.py(), config, settings)
    }
}

impl ServerConfig {
    fn with(
        py: Python<'_>,
        mut config: whitewater::ServerConfig,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        apply("a server", settings, |name, value| {
            match name {
                "suites" => {
                    let suites = value.try_iter()?.map(|suite| Ok(suite?.cast::<Suite>()?.get().0));
                    config.suites = suites.collect::<PyResult<_>>()?;
                }
                "psk" => config.psk = Some((&*key(value)?).into()),
                "server_key" => config.server_key = Some((&*key(value)?).into()),
                "reset_key" => config.reset_key = Some(array(value, "the key of resets")?),
                "proxies" => config.proxies = value.extract()?,
                "user" => config.user = bytes(value)?.as_bytes().to_vec(),
                _ => set_fields!(config, name, value: max_sessions memory sessions_per_address half_open
                    half_open_per_address accepts_per_second accept_burst challenges_per_second refusals_per_second
                    deny_protocol ask migration routing_token; seconds),
            }
            Ok(true)
        })?;
        config.check().map_err(|error| error::of_config(py, error))?;
        Ok(Self(config))
    }
}
