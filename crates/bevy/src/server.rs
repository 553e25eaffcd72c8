//! A server as a resource, and its clients as entities.

use crate::event::{Received, SessionEvent};
use crate::rate::{Meter, Traffic};
use crate::{Reading, STATS_EACH, WhitewaterSystems};
use bevy::ecs::entity::EntityHashSet;
use bevy::ecs::system::ScheduleSystem;
use bevy::platform::collections::HashMap;
use bevy::prelude::*;
use bevy::time::Real;
use bevy::time::common_conditions::on_real_timer;
use std::io;
use std::net::{ToSocketAddrs, UdpSocket};
use whitewater::message::Payload;
use whitewater::session::{Connection, Pass};
use whitewater::{Channel, Event, Server, ServerConfig, SessionId};

/// A server of the app: insert it to start, remove it to stop. All methods of [`Server`] are there; the plugin pumps it. To put another one in
/// its place, remove it first, and insert the other one in a later frame.
#[derive(Debug, Deref, DerefMut, Resource)]
#[expect(clippy::exhaustive_structs, reason = "a server with another name")]
pub struct WhitewaterServer(pub Server);

impl WhitewaterServer {
    /// Binds a server to `addr`; see [`Server::bind`].
    ///
    /// # Errors
    ///
    /// Those of [`Server::bind`].
    pub fn bind(addr: impl ToSocketAddrs, config: &ServerConfig) -> io::Result<Self> {
        Server::bind(addr, config).map(Self)
    }

    /// The same from a socket; see [`Server::from_socket`].
    ///
    /// # Errors
    ///
    /// Those of [`Server::from_socket`].
    pub fn from_socket(socket: UdpSocket, config: &ServerConfig) -> io::Result<Self> {
        Server::from_socket(socket, config).map(Self)
    }
}

/// A client that is connected. The plugin spawns an entity with it, and despawns it in `PostUpdate` of the frame in which the session has ended.
/// Despawning it yourself closes the session, once everything sent has arrived.
#[derive(Clone, Component, Copy, Debug, Eq, PartialEq)]
#[component(immutable)]
#[require(Meter, Name::new("client"), Traffic)]
pub struct ClientSession(pub(crate) SessionId);

impl ClientSession {
    /// Its session, by which the methods of [`WhitewaterServer`] find it.
    #[must_use]
    pub const fn id(self) -> SessionId {
        self.0
    }
}

/// What the connect token of a client says, at a server with tokens.
#[derive(Clone, Component, Debug, Deref)]
pub struct ClientPass(Pass);

/// The entities of clients, by their sessions.
#[derive(Debug, Default, Deref, Resource)]
pub struct ClientEntities(HashMap<SessionId, Entity>);

/// Sessions in which something has arrived in this frame. One that has ended is read from for the last time: the server has forgotten it.
#[derive(Debug, Default, Resource)]
pub(crate) struct Arrivals(Vec<(SessionId, Option<Box<Connection>>)>);

impl Arrivals {
    /// Calls `read` with each of the sessions.
    pub(crate) fn each(&mut self, server: &mut Server, mut read: impl FnMut(SessionId, &mut Connection)) {
        for (id, ended) in &mut self.0 {
            if let Some(connection) = ended.as_deref_mut().or_else(|| server.connection_mut(*id)) {
                read(*id, connection);
            }
        }
    }
}

/// Clients whose sessions have ended in this frame.
#[derive(Debug, Default, Resource)]
struct Ended(EntityHashSet);

/// Drives a [`WhitewaterServer`].
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a plugin without settings")]
pub struct WhitewaterServerPlugin;

impl Plugin for WhitewaterServerPlugin {
    fn build(&self, app: &mut App) {
        app.add_message::<SessionEvent>()
            .init_resource::<Arrivals>()
            .init_resource::<ClientEntities>()
            .init_resource::<Ended>()
            .add_observer(close_despawned)
            .add_systems(
                PreUpdate,
                (
                    despawn_all.run_if(resource_removed::<WhitewaterServer>),
                    (pump, measure.run_if(on_real_timer(STATS_EACH)))
                        .chain()
                        .run_if(resource_exists::<WhitewaterServer>),
                )
                    .chain()
                    .in_set(WhitewaterSystems::Receive),
            )
            .add_systems(PostUpdate, despawn_ended.before(WhitewaterSystems::Send))
            .add_systems(
                PostUpdate,
                send.run_if(resource_exists::<WhitewaterServer>).in_set(WhitewaterSystems::Send),
            );
    }
}

/// Reads what the socket has, and reports what has happened. Not by `World::resource_scope`, which removes the server and adds it again: that would
/// call observers, and `resource_added` would be true in each frame.
fn pump(
    mut commands: Commands<'_, '_>,
    mut server: ResMut<'_, WhitewaterServer>,
    mut arrivals: ResMut<'_, Arrivals>,
    mut clients: ResMut<'_, ClientEntities>,
    mut over: ResMut<'_, Ended>,
    mut happened: MessageWriter<'_, SessionEvent>,
) {
    if let Err(error) = server.pump() {
        error_once!("the server's socket fails: {error}"); // what is due was done anyway
    }
    arrivals.0.clear();
    while let Some((id, event)) = server.poll_event() {
        match event {
            Event::Readable => {
                arrivals.0.push((id, None));
                continue;
            }
            Event::Connected => {
                let mut client = commands.spawn(ClientSession(id));
                if let Some(pass) = server.pass(id) {
                    client.insert(ClientPass(pass.clone()));
                }
                clients.0.insert(id, client.id());
            }
            Event::Closed { .. } => over.0.extend(clients.get(&id)),
            _ => {}
        }
        let ended = if matches!(event, Event::Closed { .. }) { server.pop_ended() } else { None };
        let text = ended.as_ref().map(|ended| ended.close_text().into()).unwrap_or_default();
        happened.write(SessionEvent { client: Some(id), event, text });
        if let Some(ended) = ended {
            arrivals.0.push((id, Some(Box::new(ended))));
        }
    }
}

/// Has the messages of a channel written once they are there.
pub(crate) fn receive<P>(app: &mut App, channel: Channel<P>)
where
    P: Payload<Received: Send + Sync> + ?Sized + 'static,
{
    let read = move |mut server: ResMut<'_, WhitewaterServer>,
                     mut arrivals: ResMut<'_, Arrivals>,
                     mut received: MessageWriter<'_, Received<P>>| {
        arrivals.each(&mut server, |id, connection| {
            while let Some(message) = connection.recv(channel) {
                received.write(Received { client: Some(id), channel: channel.number(), message });
            }
        });
    };
    add_reader(app, read);
}

/// Adds a system that reads from [`Arrivals`].
pub(crate) fn add_reader<M>(app: &mut App, read: impl IntoScheduleConfigs<ScheduleSystem, M>) {
    app.init_resource::<Arrivals>().add_systems(
        PreUpdate,
        read.run_if(resource_exists::<WhitewaterServer>)
            .after(pump)
            .in_set(Reading)
            .in_set(WhitewaterSystems::Receive),
    );
}

fn measure(
    server: Res<'_, WhitewaterServer>,
    time: Res<'_, Time<Real>>,
    mut clients: Query<'_, '_, (&ClientSession, &mut Meter, &mut Traffic)>,
) {
    for (client, mut meter, mut traffic) in &mut clients {
        let Some(stats) = server.connection(client.0).map(Connection::stats) else {
            continue;
        };
        let [sent, received] = meter.measure(time.elapsed(), [stats.bytes_sent, stats.bytes_received]);
        traffic.set_if_neq(Traffic { sent, received });
    }
}

fn despawn_ended(mut commands: Commands<'_, '_>, mut ended: ResMut<'_, Ended>) {
    for client in ended.0.drain() {
        commands.entity(client).try_despawn();
    }
}

/// The server is gone, and all sessions with it.
fn despawn_all(
    mut commands: Commands<'_, '_>,
    clients: Res<'_, ClientEntities>,
    mut arrivals: ResMut<'_, Arrivals>,
) {
    arrivals.0.clear();
    for client in clients.values() {
        commands.entity(*client).try_despawn();
    }
}

/// A client is despawned, by us or by the app, which wants to be rid of it.
fn close_despawned(
    remove: On<'_, '_, Remove, ClientSession>,
    clients: Query<'_, '_, &ClientSession>,
    server: Option<ResMut<'_, WhitewaterServer>>,
    mut entities: ResMut<'_, ClientEntities>,
) -> Result {
    let id = clients.get(remove.entity)?.0;
    entities.0.remove(&id);
    if let Some(mut server) = server {
        server.close(id, 0); // without effect if it is over
    }
    Ok(())
}

fn send(mut server: ResMut<'_, WhitewaterServer>) {
    server.flush();
}
