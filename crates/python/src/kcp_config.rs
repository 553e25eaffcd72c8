//! The settings of KCP.

use crate::error;
use crate::settings::{apply, set_fields, word};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use whitewater::Repairs;
use whitewater::kcp::{Config, Congestion, Modern, Recovery};

/// The settings of KCP.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct KcpConfig(pub(crate) Config);

#[pymethods]
impl KcpConfig {
    #[new]
    #[pyo3(signature = (**settings))]
    fn new(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::with(py, Config::default(), settings)
    }

    /// The settings of `ikcp_create`.
    #[staticmethod]
    #[pyo3(signature = (**settings))]
    fn classic(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::with(py, Config::classic(), settings)
    }

    /// For bulk data beside a game.
    #[staticmethod]
    #[pyo3(signature = (**settings))]
    fn bulk(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::with(py, Config::bulk(), settings)
    }
}

impl KcpConfig {
    fn with(py: Python<'_>, mut config: Config, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        apply("KCP", settings, |name, value| {
            match name {
                "congestion" => config.congestion = word(value, &CONGESTION)?,
                "repairs" => {
                    let repairs = word(value, &[("off", Repairs::Off), ("auto", Repairs::Auto)])?;
                    if let Recovery::Modern(modern) = config.recovery {
                        config.recovery = Recovery::Modern(Modern { repairs, ..modern });
                    } else {
                        return Err(error::config(py, "`repairs` are not for classic recovery"));
                    }
                }
                _ => {
                    set_fields!(config, name, value: mtu rcv_mtu snd_wnd rcv_wnd nodelay interval fast_resend stream
                    min_rto fast_limit dead_link snd_queue snd_queue_bytes; seconds)
                }
            }
            Ok(true)
        })?;
        config.check().map_err(|error| error::of_config(py, error))?;
        Ok(Self(config))
    }
}

const CONGESTION: [(&str, Congestion); 4] = [
    ("none", Congestion::None),
    ("kcp", Congestion::Kcp),
    ("cubic", Congestion::Cubic),
    ("delay", Congestion::Delay),
];
