//! One session and its UDP socket.

use super::super::client::{client, resolved};
use super::super::error::Error;
use super::core::Core as _;
use super::core::Sessions;
use super::driver::{Driver, clock};
use super::session::Session;
use super::shared::Handle;
use super::waiting::For;
use crate::session::{ClientConfig, CloseReason, ConnectError, DenyReason};
use ::tokio::net::{ToSocketAddrs, lookup_host};
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::task::Poll;
use whitewater_udp::socket_for;

/// Connects to a [`Server`](super::Server).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Client;

impl Client {
    /// Connects a session to the server at `addr` from a socket of its own. Each address that `addr` resolves to
    /// is tried, one after another, those of the same family as the first one before the others. An unspecified
    /// address, such as 0.0.0.0, means this machine. The socket is not connected, so an encrypted session survives
    /// when the machine changes networks.
    ///
    /// If cancelled, it stops connecting.
    ///
    /// # Errors
    ///
    /// If nobody answers (`TimedOut`) or the server refuses (`ConnectionRefused`), as [`Error::Closed`] or
    /// [`Error::Rejected`];
    /// if `addr` does not resolve, or to no address ([`Error::Connect`]); if `config` is wrong ([`Error::Config`]);
    /// if there is no socket; or if the system has no random bytes.
    pub async fn connect(addr: impl ToSocketAddrs, config: &ClientConfig) -> io::Result<Session> {
        let addresses = resolved(lookup_host(addr).await?);
        let is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
        let (first, second): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| address.is_ipv6() == is_v6);
        let mut failed = io::Error::from(Error::from(ConnectError::NoAddress));
        for addresses in [first, second] {
            let Some(address) = addresses.first() else { continue };
            let attempt = match socket_for(*address) {
                Ok(socket) => Self::over(socket, &addresses, config, true).await,
                Err(error) => Err(error),
            };
            match attempt {
                Ok(session) => return Ok(session),
                Err(error) if is_final(&error) => return Err(error),
                Err(error) if failed.kind() != io::ErrorKind::ConnectionRefused => failed = error,
                Err(_) => {} // a refusal says more than silence elsewhere
            }
        }
        Err(failed)
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

/// Whether no other address would help: this end's config is wrong, or the server has refused.
fn is_final(error: &io::Error) -> bool {
    matches!(
        Error::of(error),
        Some(
            Error::Config(_)
                | Error::Connect(_)
                | Error::Rejected { .. }
                | Error::Closed { reason: CloseReason::Denied(DenyReason::Shape(_)) }
        )
    )
}
