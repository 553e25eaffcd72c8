//! Keyword arguments as settings: by the names of the library, whose defaults stay its own.

use crate::error;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView, PyString};
use std::time::Duration;
use zeroize::Zeroizing;

/// Gives each keyword argument to `set`, which returns whether it knows that name.
pub(crate) fn apply(
    of: &str,
    settings: Option<&Bound<'_, PyDict>>,
    mut set: impl FnMut(&str, &Bound<'_, PyAny>) -> PyResult<bool>,
) -> PyResult<()> {
    for (name, value) in settings.into_iter().flatten() {
        let py = value.py();
        let name: String = name.extract()?;
        match set(&name, &value) {
            Ok(true) => {}
            Ok(false) => return Err(PyTypeError::new_err(format!("{of} has no setting `{name}`"))),
            Err(wrong) if wrong.is_instance_of::<PyOverflowError>(py) => {
                return Err(error::config(py, format!("`{name}` is {value}, out of its range")));
            }
            Err(wrong) if wrong.is_instance_of::<PyTypeError>(py) => {
                return Err(PyTypeError::new_err(format!("`{name}`: {}", wrong.value(py))));
            }
            Err(wrong) => return Err(wrong),
        }
    }
    Ok(())
}

/// Sets fields of the same names; times are in seconds. Returns from a closure of [`apply`].
macro_rules! set_fields {
    ($config:ident, $name:ident, $value:ident: $($field:ident)*; seconds $($time:ident)*) => {
        match $name {
            $(stringify!($field) => $config.$field = $value.extract()?,)*
            $(stringify!($time) => $config.$time = $crate::settings::seconds($value)?,)*
            _ => return Ok(false),
        }
    };
}
pub(crate) use set_fields;

/// A time in seconds.
pub(crate) fn seconds(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds: f64 = value.extract()?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| error::config(value.py(), format!("{seconds} is no number of seconds")))
}

/// One of a few words.
pub(crate) fn word<T: Copy>(value: &Bound<'_, PyAny>, words: &[(&str, T)]) -> PyResult<T> {
    let word = value.cast::<PyString>()?.to_string();
    let found = words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(known, _)| format!("{known:?}")).collect();
        PyValueError::new_err(format!("{word:?} is not one of {}", known.join(", ")))
    })
}

/// Bytes of an object of Python.
pub(crate) fn bytes<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let is_known = value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>();
    if !is_known {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!("a bytes-like object is required, not '{kind}'")));
    }
    Ok(value.py().get_type::<PyBytes>().call1((value,))?.cast_into()?)
}

/// 32 secret bytes.
pub(crate) fn key(value: &Bound<'_, PyAny>) -> PyResult<Zeroizing<[u8; 32]>> {
    array(value, "a key").map(Zeroizing::new)
}

/// As many bytes as there have to be.
pub(crate) fn array<const N: usize>(value: &Bound<'_, PyAny>, what: &str) -> PyResult<[u8; N]> {
    let bytes = bytes(value)?;
    let bytes = bytes.as_bytes();
    bytes.try_into().map_err(|_| PyValueError::new_err(format!("{what} has {N} bytes, not {}", bytes.len())))
}
