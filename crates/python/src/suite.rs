//! How sessions are protected.

use crate::settings::{key, word};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use whitewater::session;
use whitewater::session::{Cipher, Pattern};

/// How a session is protected.
#[pyclass(frozen, eq, hash, module = "whitewater")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Suite(pub(crate) session::Suite);

#[pymethods]
impl Suite {
    #[classattr]
    const CHECKED: Self = Self(session::Suite::Checked);
    #[classattr]
    const TOKEN: Self = Self(session::Suite::TOKEN);
    #[classattr]
    const HYBRID_TOKEN: Self = Self(session::Suite::HYBRID_TOKEN);

    #[staticmethod]
    #[pyo3(signature = (pattern, cipher = None))]
    fn noise(pattern: &Bound<'_, PyAny>, cipher: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(Self(session::Suite::Noise(word(pattern, &PATTERNS)?, chosen(cipher)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (pattern, cipher = None))]
    fn hybrid(pattern: &Bound<'_, PyAny>, cipher: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(Self(session::Suite::Hybrid(word(pattern, &PATTERNS)?, chosen(cipher)?)))
    }

    /// Its number on the wire.
    #[getter]
    fn code(&self) -> u16 {
        self.0.code()
    }

    fn __repr__(&self) -> String {
        format!("Suite.{:?}", self.0)
    }
}

const PATTERNS: [(&str, Pattern); 4] =
    [("nn", Pattern::Nn), ("nnpsk0", Pattern::NnPsk0), ("nk", Pattern::Nk), ("nkpsk0", Pattern::NkPsk0)];

fn chosen(cipher: Option<&Bound<'_, PyAny>>) -> PyResult<Cipher> {
    let known = [("chachapoly", Cipher::ChaChaPoly), ("aesgcm", Cipher::AesGcm)];
    cipher.map_or(Ok(Cipher::ChaChaPoly), |cipher| word(cipher, &known))
}

/// The public half of a server's private key.
#[pyfunction]
pub(crate) fn public_key<'py>(private: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(private.py(), &session::public_key(&*key(private)?)))
}
