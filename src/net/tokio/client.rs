//! One session, and its UDP socket.

use super::super::client::client;
use super::super::error::Error;
use super::core::Core as _;
use super::core::Sessions;
use super::driver::Driver;
use super::session::Session;
use super::shared::Handle;
use super::waiting::For;
use crate::message::Message;
use crate::session::{ClientConfig, ConnectError, Target};
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
    /// A session that is up, from a socket of its own. The addresses of `target` are tried one after another, those of the family of the first
    /// before the others. The socket is not bound to a way to the server: when the machine goes from one network to another, an encrypted session
    /// goes on.
    ///
    /// Cancelled, it connects no more.
    ///
    /// # Errors
    ///
    /// Nobody has answered (`TimedOut`) or wants us (`ConnectionRefused`), both an [`Error::Closed`]; `target` is none that can be connected
    /// to ([`Error::Connect`]), `config` is out of range ([`Error::Config`]), no socket, or the system has no random bytes.
    pub async fn connect<M: Message + Send + 'static>(
        target: Target,
        config: &ClientConfig,
    ) -> io::Result<Session<M>> {
        let is_v6 = target.addresses.first().is_some_and(SocketAddr::is_ipv6);
        let (first, second): (Vec<_>, Vec<_>) =
            target.addresses.iter().copied().partition(|address| address.is_ipv6() == is_v6);
        let mut failed = Error::from(ConnectError::NoAddress).into();
        for addresses in [first, second] {
            let Some(address) = addresses.first() else { continue };
            let attempt = match socket_for(*address) {
                Ok(socket) => Self::over(socket, Target { addresses, ..target.clone() }, config).await,
                Err(error) => Err(error),
            };
            match attempt {
                Ok(session) => return Ok(session),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// The same from a socket that is bound already, and not connected. One of IPv4 cannot send to IPv6.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect), or the socket fails.
    pub async fn over<M: Message + Send + 'static>(
        socket: UdpSocket,
        target: Target,
        config: &ClientConfig,
    ) -> io::Result<Session<M>> {
        let (port, clock, session) = client(socket, target, config)?;
        let driver = Driver::new(port, Sessions::Client(session), clock, false)?;
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
