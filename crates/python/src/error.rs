//! Errors as exceptions. Their classes are in the package, with what they have.

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::io;
use whitewater::ConfigError;
use whitewater::channel::SendError;
use whitewater::kcp::{InputError, SendError as KcpSendError};
use whitewater::net::Error;
use whitewater::session::token::TokenError;
use whitewater::session::{CloseTextError, DecisionError, RedirectError};

/// An exception of the package with a text.
fn raised(py: Python<'_>, class: &'static PyOnceLock<Py<PyType>>, name: &str, text: String) -> PyErr {
    match class.import(py, "whitewater._errors", name) {
        Ok(class) => PyErr::from_type(class.clone(), text),
        Err(error) => error,
    }
}

macro_rules! exceptions {
    ($($(#[$doc:meta])* $function:ident: $name:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $function(py: Python<'_>, text: impl ToString) -> PyErr {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            raised(py, &CLASS, $name, text.to_string())
        }
    )*};
}

exceptions! {
    /// A setting is missing or out of range.
    config: "ConfigError";
    /// A message that can never be sent.
    too_long: "TooLong";
    /// A connect token that no server would accept.
    token: "TokenError";
    /// A datagram of KCP that changed nothing.
    input: "InputError";
    /// The session is over, and why is known to its user.
    over: "SessionOver";
}

pub(crate) fn of_config(py: Python<'_>, error: ConfigError) -> PyErr {
    config(py, error)
}

/// Why no socket could be made, or why it failed.
pub(crate) fn of_io(py: Python<'_>, error: &io::Error) -> PyErr {
    match Error::of(error) {
        Some(Error::Config(error)) => config(py, error),
        Some(error) => PyValueError::new_err(error.to_string()),
        None => match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, error.to_string())),
            None => PyOSError::new_err(error.to_string()),
        },
    }
}

/// Whether a message was queued: not if there is no room for it now.
pub(crate) fn of_send(py: Python<'_>, sent: Result<(), SendError>) -> PyResult<bool> {
    match sent {
        Ok(()) => Ok(true),
        Err(SendError::Full { .. }) => Ok(false),
        Err(error @ SendError::TooLong { .. }) => Err(too_long(py, error)),
        Err(error @ (SendError::NotConnected | SendError::Closed)) => Err(over(py, error)),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// The same for KCP.
pub(crate) fn of_kcp_send(py: Python<'_>, sent: Result<usize, KcpSendError>) -> PyResult<Option<usize>> {
    match sent {
        Ok(len) => Ok(Some(len)),
        Err(KcpSendError::Full { .. }) => Ok(None),
        Err(error) => Err(too_long(py, error)),
    }
}

pub(crate) fn of_input(py: Python<'_>, error: InputError) -> PyErr {
    input(py, error)
}

pub(crate) fn of_text(error: CloseTextError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn of_token(py: Python<'_>, error: TokenError) -> PyErr {
    token(py, error)
}

pub(crate) fn of_decision(py: Python<'_>, error: DecisionError) -> PyErr {
    match error {
        DecisionError::TooLong { .. } => too_long(py, error),
        DecisionError::Reserved { .. } => PyValueError::new_err(error.to_string()),
        _ => over(py, error),
    }
}

pub(crate) fn of_redirect(py: Python<'_>, error: RedirectError) -> PyErr {
    match error {
        RedirectError::Closed => over(py, error),
        RedirectError::TooLong { .. } => too_long(py, error),
        _ => token(py, error),
    }
}

/// What an end of the other kind has.
pub(crate) fn wrong_end() -> PyErr {
    PyTypeError::new_err("a client and a server differ in this")
}
