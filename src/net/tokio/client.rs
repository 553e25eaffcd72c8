//! One session and its UDP socket.

use super::super::client::{client, opened, resolved};
use super::core::Core as _;
use super::core::Sessions;
use super::driver::{Driver, clock};
use super::session::Session;
use super::shared::Handle;
use super::waiting::For;
use crate::session::ClientConfig;
use ::tokio::net::{ToSocketAddrs, lookup_host};
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::task::Poll;

/// Connects to a [`Server`](super::Server).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Client;

impl Client {
    /// Connects a session to the server at `addr` from a socket of its own. Of all addresses that `addr` resolves to,
    /// four are tried at a time, and the first that answers is taken; see
    /// [`session::Client::connect`](crate::session::Client#method.connect). Those of a family, IPv4 or IPv6, that this
    /// host lacks are skipped. An unspecified address, such as 0.0.0.0, means this machine. The socket is not
    /// connected, so an encrypted session survives when the machine changes networks.
    ///
    /// If cancelled, it stops connecting.
    ///
    /// # Errors
    ///
    /// If nobody answers (`TimedOut`) or the server refuses (`ConnectionRefused`), as [`Error::Closed`] or
    /// [`Error::Rejected`]; if `addr` does not resolve, or to no address ([`Error::Connect`]); if `config` is wrong ([`Error::Config`]);
    /// if there is no socket; or if the system has no random bytes.
    ///
    /// [`Error::Closed`]: crate::net::Error::Closed
    /// [`Error::Rejected`]: crate::net::Error::Rejected
    /// [`Error::Connect`]: crate::net::Error::Connect
    /// [`Error::Config`]: crate::net::Error::Config
    pub async fn connect(addr: impl ToSocketAddrs, config: &ClientConfig) -> io::Result<Session> {
        let (socket, addresses) = opened(resolved(lookup_host(addr).await?))?;
        Self::over(socket, &addresses, config, true).await
    }

    /// The same over a socket that is already bound and not connected. An IPv4 socket cannot send to IPv6.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect), or the socket fails.
    pub async fn from_socket(
        socket: UdpSocket,
        addr: impl ToSocketAddrs,
        config: &ClientConfig,
    ) -> io::Result<Session> {
        Self::over(socket, &resolved(lookup_host(addr).await?), config, false).await
    }

    async fn over(
        socket: UdpSocket,
        addresses: &[SocketAddr],
        config: &ClientConfig,
        is_ours: bool,
    ) -> io::Result<Session> {
        let clock = clock();
        let (mut port, session) = client(clock, socket, addresses, config)?;
        if is_ours {
            port.make_replaceable();
        }
        let mut driver = Driver::new(port, Sessions::Client(session), clock, false)?;
        driver.line.watch();
        let handle = Handle::of(&driver.shared, &mut driver.shared.lock(), None);
        ::tokio::spawn(driver);
        poll_fn(|cx| {
            let mut state = handle.shared.lock();
            if state.core.member(None).is_some() {
                return Poll::Ready(Ok(()));
            }
            state.wait(None, For::Event, cx)
        })
        .await?;
        Ok(Session::new(handle))
    }
}
