//! Channels: a number, a kind, and settings.

use crate::error;
use crate::kcp_config::KcpConfig;
use crate::settings::{apply, seconds, set_fields, word};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use whitewater::channel::{Carrier, Resend};
use whitewater::{Channel as Handle, ChannelConfig};

/// A channel of a session. Messages are bytes.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct Channel(pub(crate) ChannelConfig);

#[pymethods]
impl Channel {
    #[staticmethod]
    #[pyo3(signature = (number, **settings))]
    fn ordered(py: Python<'_>, number: u8, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, Handle::ordered(number), settings)
    }

    #[staticmethod]
    #[pyo3(signature = (number, **settings))]
    fn unordered(py: Python<'_>, number: u8, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, Handle::unordered(number), settings)
    }

    #[staticmethod]
    #[pyo3(signature = (number, **settings))]
    fn sequenced(py: Python<'_>, number: u8, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, Handle::sequenced(number), settings)
    }

    #[staticmethod]
    #[pyo3(signature = (number, **settings))]
    fn unreliable(py: Python<'_>, number: u8, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, Handle::unreliable(number), settings)
    }

    #[staticmethod]
    #[pyo3(signature = (number, **settings))]
    fn stream(py: Python<'_>, number: u8, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, Handle::stream(number), settings)
    }

    #[getter]
    fn number(&self) -> u8 {
        self.0.channel.number()
    }

    #[getter]
    fn kind(&self) -> String {
        self.0.channel.kind().to_string()
    }

    fn __repr__(&self) -> String {
        format!("Channel.{}({})", self.0.channel.kind(), self.0.channel.number())
    }
}

impl Channel {
    fn new(py: Python<'_>, handle: Handle, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut config = handle.config();
        apply("a channel", settings, |name, value| {
            match name {
                "carrier" => {
                    config.carrier = word(value, &[("kcp", Carrier::Kcp), ("packets", Carrier::Packets)])?;
                }
                "kcp" => config.kcp = value.cast::<KcpConfig>()?.get().0,
                "resend" => config.resend = Resend::After(seconds(value)?),
                "expire_after" => {
                    config.expire_after = if value.is_none() { None } else { Some(seconds(value)?) };
                }
                _ => {
                    set_fields!(config, name, value: max_message send_buffer receive_buffer messages_per_packet
                    bits_per_packet resend_lost; seconds)
                }
            }
            Ok(true)
        })?;
        config.check().map_err(|error| error::of_config(py, error))?;
        Ok(Self(config))
    }
}

/// The channels of a session by number.
pub(crate) struct Channels(Vec<Handle>);

impl Channels {
    pub(crate) fn of(channels: &[ChannelConfig]) -> Self {
        Self(channels.iter().filter_map(|config| config.channel.of().ok()).collect())
    }

    /// The channel that an argument names, by its number or as a [`Channel`].
    pub(crate) fn named(&self, argument: &Bound<'_, PyAny>) -> PyResult<Handle> {
        let number = match argument.extract::<usize>() {
            Ok(number) => number,
            Err(_) => match argument.cast::<Channel>() {
                Ok(channel) => channel.get().number().into(),
                Err(_) if argument.is_instance_of::<pyo3::types::PyInt>() => usize::MAX,
                Err(_) => return Err(PyTypeError::new_err("a channel is a number or a Channel")),
            },
        };
        self.0.get(number).copied().ok_or_else(|| {
            PyValueError::new_err(format!("there is no channel {argument}: the session has {}", self.0.len()))
        })
    }
}
