//! What has happened, as Python gets it: a kind, the number of the session, and what belongs to it.

use crate::address::shown;
use crate::link::Link;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::net::SocketAddr;
use whitewater::CloseReason;
use whitewater::session::{DenyReason, Undelivered};
use zeroize::Zeroizing;

/// An event with all that it needs: it is made without the GIL.
pub(crate) enum Happened {
    Requested,
    /// At a server, with the session.
    Connected(Option<Link>),
    Readable,
    Writable,
    Redirected(Zeroizing<Vec<u8>>),
    Moved(SocketAddr, SocketAddr),
    Closed(Closed),
}

/// Why a session has ended.
pub(crate) struct Closed {
    pub(crate) reason: CloseReason,
    pub(crate) undelivered: Undelivered,
    /// What the peer said.
    pub(crate) text: String,
    /// What the server said when it rejected us.
    pub(crate) user: Vec<u8>,
}

impl Happened {
    /// `(kind, session, more)`.
    pub(crate) fn into_python(self, py: Python<'_>, session: u32) -> PyResult<Py<PyAny>> {
        let nothing = || py.None();
        let (kind, more) = match self {
            Self::Requested => (1, nothing()),
            Self::Connected(link) => (2, link.into_py_any(py)?),
            Self::Readable => (3, nothing()),
            Self::Writable => (4, nothing()),
            Self::Redirected(token) => (5, PyBytes::new(py, &token).into_any().unbind()),
            Self::Moved(from, to) => (6, (shown(from), shown(to)).into_py_any(py)?),
            Self::Closed(closed) => (7, closed.into_python(py)?),
        };
        (kind, session, more).into_py_any(py)
    }
}

impl Closed {
    /// `(reason, message, code, text, denied, user, is_delivered)`.
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Self { reason, undelivered, text, user } = self;
        let (name, code, denied) = named(reason);
        let message = reason.to_string();
        (name, message, code, text, denied, PyBytes::new(py, &user), undelivered.is_empty()).into_py_any(py)
    }
}

/// The name of a reason, with the code of an application, and why a server has denied us.
const fn named(reason: CloseReason) -> (&'static str, u16, Option<&'static str>) {
    match reason {
        CloseReason::Local(code) => ("local", code, None),
        CloseReason::Peer(code) => ("peer", code, None),
        CloseReason::Rejected(code) => ("rejected", code, None),
        CloseReason::Denied(denied) => ("denied", 0, Some(denial(denied))),
        CloseReason::ConnectTimeout => ("connect_timeout", 0, None),
        CloseReason::Timeout => ("timeout", 0, None),
        CloseReason::ServerForgot => ("server_forgot", 0, None),
        CloseReason::Protocol => ("protocol", 0, None),
        CloseReason::DeadLink => ("dead_link", 0, None),
        CloseReason::SlowPeer => ("slow_peer", 0, None),
        CloseReason::StreamCorrupt => ("stream_corrupt", 0, None),
        CloseReason::Replaced => ("replaced", 0, None),
        CloseReason::Exhausted => ("exhausted", 0, None),
        CloseReason::NoMemory => ("no_memory", 0, None),
        _ => ("other", 0, None),
    }
}

const fn denial(denied: DenyReason) -> &'static str {
    match denied {
        DenyReason::Version => "version",
        DenyReason::Suite => "suite",
        DenyReason::Protocol => "protocol",
        DenyReason::Busy => "busy",
        DenyReason::Secret => "secret",
        DenyReason::Token => "token",
        DenyReason::Shape(_) => "shape",
        _ => "other",
    }
}
