//! What an app hears of its sessions: events, and the messages of channels.

use bevy::prelude::*;
use whitewater::message::Payload;
use whitewater::session::Connection;
use whitewater::{Channel, Event, SessionId};

/// Something has happened in a session, or to one.
#[derive(Clone, Copy, Debug, Message)]
#[expect(clippy::exhaustive_structs, reason = "where, and what")]
pub struct SessionEvent {
    /// The session, at a server. `None`: it is that of the client.
    pub client: Option<SessionId>,
    /// What it was. There is none for data: see [`Received`].
    pub event: Event,
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
    /// Reads the messages of a channel as they arrive: systems take them from a `MessageReader<Received<P>>`. What arrives on a channel
    /// that is not read here waits for calls of `recv`, and fills the channel.
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
        read(self, move |world, client, connection| {
            while let Some(message) = connection.recv(channel) {
                world.write_message(Received::<P> { client, channel: channel.number(), message });
            }
        });
        self
    }
}

/// Has what arrives in sessions taken by `reader`.
pub(crate) fn read(
    app: &mut App,
    reader: impl Fn(&mut World, Option<SessionId>, &mut Connection) + Send + Sync + 'static,
) {
    app.init_resource::<Readers>().world_mut().resource_mut::<Readers>().0.push(Box::new(reader));
}

/// Takes what a session has received.
type Reader = Box<dyn Fn(&mut World, Option<SessionId>, &mut Connection) + Send + Sync>;

/// What takes data from sessions.
#[derive(Default, Resource)]
pub(crate) struct Readers(Vec<Reader>);

/// Reports an event of a session, and reads what has arrived in it. Of one that has just ended this is the last chance.
pub(crate) fn report(
    world: &mut World,
    client: Option<SessionId>,
    event: Event,
    connection: Option<&mut Connection>,
) {
    if let Some(connection) = connection
        && matches!(event, Event::Readable | Event::Closed { .. })
    {
        world.resource_scope(|world, readers: Mut<'_, Readers>| {
            readers.0.iter().for_each(|read| read(world, client, connection));
        });
    }
    if event != Event::Readable {
        world.write_message(SessionEvent { client, event });
    }
}
