//! The settings of a session.

use crate::channel::Channel;
use crate::error;
use crate::settings::{apply, set_fields};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use whitewater::Repairs;

/// The settings of a session.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct SessionConfig(pub(crate) whitewater::SessionConfig);

#[pymethods]
impl SessionConfig {
    #[new]
    #[pyo3(signature = (protocol_id = None, channels = None, **settings))]
    fn new(
        py: Python<'_>,
        protocol_id: Option<u64>,
        channels: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut config = whitewater::SessionConfig::default();
        config.protocol_id = protocol_id.unwrap_or(config.protocol_id);
        if let Some(channels) = channels {
            let channels = channels.try_iter()?;
            config.channels =
                channels.map(|channel| Ok(channel?.cast::<Channel>()?.get().0)).collect::<PyResult<_>>()?;
        }
        apply("a session", settings, |name, value| {
            match name {
                "repairs" => config.repairs = repairs(value)?,
                _ => {
                    set_fields!(config, name, value: max_datagram path_mtu ecn datagrams_out datagrams_in send_memory
                    receive_memory unacked mask_headers key_update; seconds ack_delay keepalive timeout drain slow_peer)
                }
            }
            Ok(true)
        })?;
        config.check().map_err(|error| error::of_config(py, error))?;
        Ok(Self(config))
    }

    #[getter]
    fn protocol_id(&self) -> u64 {
        self.0.protocol_id
    }
}

/// `"off"`, `"auto"`, or the most bytes in percent.
fn repairs(value: &Bound<'_, PyAny>) -> PyResult<Repairs> {
    if let Ok(percent) = value.extract() {
        return Ok(Repairs::Budget(percent));
    }
    match value.cast::<PyString>().map(ToString::to_string).as_deref() {
        Ok("off") => Ok(Repairs::Off),
        Ok("auto") => Ok(Repairs::Auto),
        Ok(other) => Err(PyValueError::new_err(format!("{other:?} is not one of \"off\", \"auto\""))),
        Err(_) => Err(PyTypeError::new_err("\"off\", \"auto\" or a number of percent")),
    }
}
