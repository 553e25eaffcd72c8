//! What an app hears of its sessions: events, and the messages of channels.

use bevy::prelude::*;
use whitewater::message::Payload;
use whitewater::{Channel, Event, SessionId};

/// Something has happened in a session, or to one.
#[derive(Clone, Debug, Message)]
#[expect(clippy::exhaustive_structs, reason = "where, what, and why")]
pub struct SessionEvent {
    /// The session, at a server. `None`: it is that of the client.
    pub client: Option<SessionId>,
    /// What it was. There is none for data: see [`Received`].
    pub event: Event,
    /// With [`Event::Closed`]: what the peer said when it ended the session, with `kick` or `close_with`. Otherwise empty. Trust it as far as you trust the peer.
    pub text: String,
}

/// A message of a channel that the app [receives](ReceiveAppExt::receive).
#[derive(Message)]
#[expect(clippy::exhaustive_structs, reason = "from whom, and what")]
pub struct Received<P: Payload<Received: Send + Sync> + ?Sized + 'static = [u8]> {
    /// The session that it came from, at a server. `None`: it came from the server.
    pub client: Option<SessionId>,
    /// The number of its channel.
    pub channel: u8,
    /// The message.
    pub message: P::Received,
}

/// Receiving the messages of channels.
pub trait ReceiveAppExt {
    /// Reads the messages of a channel as they arrive: systems take them from a `MessageReader<Received<P>>`. Those of one channel are in its order.
    /// What arrives on a channel that is not read here waits for calls of `recv`, and fills the channel; at a server, it is lost when the session ends.
    fn receive<P>(&mut self, channel: Channel<P>) -> &mut Self
    where
        P: Payload<Received: Send + Sync> + ?Sized + 'static;
}

impl ReceiveAppExt for App {
    fn receive<P>(&mut self, channel: Channel<P>) -> &mut Self
    where
        P: Payload<Received: Send + Sync> + ?Sized + 'static,
    {
        self.add_message::<Received<P>>();
        #[cfg(feature = "client")]
        crate::client::receive(self, channel);
        #[cfg(all(feature = "server", not(target_arch = "wasm32")))]
        crate::server::receive(self, channel);
        self
    }
}
