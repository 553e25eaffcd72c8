//! All clients that are connected: who they are, and what is said to every one of them.

use super::{Server, SessionId};
use crate::channel::{AnyChannel, Channel, SendError};
use crate::message::pack::Payload;
use crate::session::connection::Connection;
use crate::session::error::CloseTextError;
use crate::time::Time;
use std::net::SocketAddr;

impl Server {
    /// The clients that are connected, in no order. The iterator owns its list, so you can send to them while you go through it.
    /// Among them may be clients whose [`Connected`](crate::Event::Connected) you have not taken yet; [`broadcast`](Self::broadcast) reaches them
    /// as well.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = SessionId> + use<> {
        let clients: Vec<_> = self.ids().filter(|id| self.is_connected(*id)).collect();
        clients.into_iter()
    }

    /// Whether a session is up and takes what is sent.
    #[must_use]
    pub fn is_connected(&self, id: SessionId) -> bool {
        self.connection(id).is_some_and(Connection::is_connected)
    }

    /// Where the client of a session is; `None`: there is no such session.
    #[must_use]
    pub fn peer_addr(&self, id: SessionId) -> Option<SocketAddr> {
        self.connection(id).map(Connection::peer_addr)
    }

    /// Queues a message for every client that is connected; it is packed only once. Returns the clients that it could not be queued for,
    /// and why: see [`Connection::send`]. Usually there are none, and nothing is allocated for them.
    pub fn broadcast<P: Payload + ?Sized>(
        &mut self,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        self.send_to(self.clients(), channel, message)
    }

    /// [`broadcast`](Self::broadcast) to all clients but one, such as the one that a message came from.
    pub fn broadcast_except<P: Payload + ?Sized>(
        &mut self,
        except: SessionId,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        self.send_to(self.clients().filter(|id| *id != except), channel, message)
    }

    /// Ends a session at once, and tells the client `code` and `text`: see [`Connection::kick`].
    ///
    /// # Errors
    ///
    /// The text is too long or has control characters, or the code is one of the library's own. Then nothing has changed.
    pub fn kick(&mut self, now: Time, id: SessionId, code: u16, text: &str) -> Result<(), CloseTextError> {
        let now = self.tick(now);
        super::check_close(code, text)?;
        self.connection_mut(id).map_or(Ok(()), |connection| connection.kick(now, code, text))
    }

    fn send_to<P: Payload + ?Sized>(
        &mut self,
        clients: impl Iterator<Item = SessionId>,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        let (handle, mut spare) = (AnyChannel::from(channel), Vec::new());
        let packed = P::pack(message, &mut spare);
        let send = |id| {
            let connection = self.connection_mut(id)?;
            let sent = match &packed {
                Ok((bytes, bits)) => connection.send_packed(handle, bytes, *bits),
                Err(error) => Err((*error).into()),
            };
            Some((id, sent.err()?))
        };
        clients.filter_map(send).collect()
    }
}
