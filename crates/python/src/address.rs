//! Addresses, which in Python are a host and a port.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

pub(crate) fn shown(address: SocketAddr) -> (String, u16) {
    let host = match address {
        SocketAddr::V6(at) if at.scope_id() != 0 => format!("{}%{}", at.ip(), at.scope_id()),
        address => address.ip().to_string(),
    };
    (host, address.port())
}

/// An address whose host is a number, as the resolver of asyncio returns it.
pub(crate) fn parsed(host: &str, port: u16) -> PyResult<SocketAddr> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let scoped = format!("[{host}]:{port}").parse::<SocketAddrV6>();
    scoped.map(Into::into).map_err(|_| PyValueError::new_err(format!("{host:?} is not an IP address")))
}
