//! A client that asks to join.

use super::core::Sessions;
use super::session::Session;
use super::shared::{Handle, Shared, State};
use super::waiting::For;
use crate::session::token::TokenId;
use crate::session::{DecisionError, Pass, Server, SessionId, Suite};
use crate::time::Time;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

/// A client that asks to join a [`Server`](super::Server) whose config has `ask`: admit or reject it within 10 s. Dropping it rejects the
/// client with code 0. It can be answered even if the server was dropped.
#[derive(Debug)]
pub struct Request {
    handle: Handle<Sessions>,
    id: SessionId,
    address: SocketAddr,
    suite: Suite,
    user: Vec<u8>,
    pass: Option<Pass>,
    token: Option<TokenId>,
}

impl Request {
    /// The request with this id, if it is still open.
    pub(super) fn of(
        shared: &Arc<Shared<Sessions>>,
        state: &mut State<Sessions>,
        id: SessionId,
    ) -> Option<Self> {
        let request = state.core.server()?.request(id)?;
        let (address, suite, token) = (request.address, request.suite, request.token);
        let (user, pass) = (request.user.to_vec(), request.pass.cloned());
        Some(Self { handle: Handle::of(shared, state, Some(id)), id, address, suite, user, pass, token })
    }

    /// The client's address. The client has shown that it receives what is sent there.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.address
    }

    /// How the session will be protected.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// What the client's application said, at most 256 bytes.
    #[must_use]
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// The claims of its connect token, if the server requires one.
    #[must_use]
    pub const fn pass(&self) -> Option<&Pass> {
        self.pass.as_ref()
    }

    /// Which token that is, for servers that share tokens.
    #[must_use]
    pub const fn token(&self) -> Option<TokenId> {
        self.token
    }

    /// Admits the client, tells its application `user`, and returns the session once the client has confirmed it.
    /// That takes a round trip; do not wait for it in the loop that takes requests. If this is cancelled and the request
    /// is dropped, the session closes.
    ///
    /// # Errors
    ///
    /// With a [`DecisionError`] inside, of the kind `InvalidInput`, nothing has changed: `user` is too long, or the request is
    /// no longer open. Otherwise the client did not confirm within 10 s, or the socket has failed.
    pub async fn admit(&mut self, user: &[u8]) -> io::Result<Session> {
        self.answer(|server, now, id| server.admit(now, id, user))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let Handle { shared, id } = &self.handle;
        poll_fn(|cx| {
            shared.poll(|state| match state.waiting.get(id) {
                Some(known) if known.is_up => Poll::Ready(Ok(())),
                _ => state.wait(*id, For::Event, cx),
            })
        })
        .await?;
        Ok(Session::new(self.handle.clone()))
    }

    /// Rejects the client and tells it why. See [`session::Server::reject`](crate::session::Server::reject), also for its errors.
    pub fn reject(&mut self, code: u16, user: &[u8]) -> Result<(), DecisionError> {
        self.answer(|server, now, id| server.reject(now, id, code, user))
    }

    fn answer(
        &self,
        answer: impl FnOnce(&mut Server, Time, SessionId) -> Result<(), DecisionError>,
    ) -> Result<(), DecisionError> {
        let now = self.handle.shared.clock.now();
        self.handle.shared.change(|state| {
            state.core.server().map_or(Err(DecisionError::NoRequest), |server| answer(server, now, self.id))
        })
    }
}
