//! A client that asks to join.

use super::core::Sessions;
use super::shared::Shared;
use crate::session::{DecisionError, Pass, Server, SessionId, Suite};
use std::net::SocketAddr;
use std::sync::Arc;

/// A client that asks to join a [`Server`](super::Server) whose config has `ask`: admit or reject it within 10 s. Dropping it rejects the
/// client with code 0.
#[derive(Debug)]
pub struct Request {
    shared: Arc<Shared<Sessions>>,
    id: SessionId,
    is_answered: bool,
    address: SocketAddr,
    suite: Suite,
    user: Vec<u8>,
    pass: Option<Pass>,
}

impl Request {
    /// The request of that number, if it is still open.
    pub(super) fn of(shared: &Arc<Shared<Sessions>>, server: &Server, id: SessionId) -> Option<Self> {
        let request = server.request(id)?;
        Some(Self {
            shared: Arc::clone(shared),
            id,
            is_answered: false,
            address: request.address,
            suite: request.suite,
            user: request.user.to_vec(),
            pass: request.pass.cloned(),
        })
    }

    /// Where the client is. It has shown that it receives what is sent there.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.address
    }

    /// How the session will be protected.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// What its application says, at most 256 bytes.
    #[must_use]
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// The claims of its connect token, if the server requires one.
    #[must_use]
    pub const fn pass(&self) -> Option<&Pass> {
        self.pass.as_ref()
    }

    /// Admits the client and tells its application `user`. [`accept`](super::Server::accept) returns the session once the client has
    /// confirmed it. See [`session::Server::admit`](crate::session::Server::admit), also for its errors.
    pub fn admit(mut self, user: &[u8]) -> Result<(), DecisionError> {
        self.answer(|server, now, id| server.admit(now, id, user))
    }

    /// Rejects the client and tells it why. See [`session::Server::reject`](crate::session::Server::reject), also for its errors.
    pub fn reject(mut self, code: u16, user: &[u8]) -> Result<(), DecisionError> {
        self.answer(|server, now, id| server.reject(now, id, code, user))
    }

    fn answer(
        &mut self,
        answer: impl FnOnce(&mut Server, crate::time::Time, SessionId) -> Result<(), DecisionError>,
    ) -> Result<(), DecisionError> {
        let now = self.shared.clock.now();
        let answered = self.shared.change(|state| {
            state.core.server().map_or(Err(DecisionError::NoRequest), |server| answer(server, now, self.id))
        });
        self.is_answered = answered.is_ok();
        answered
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.is_answered {
            let _ = self.answer(|server, now, id| server.reject(now, id, 0, b"")); // or it has timed out
        }
    }
}
