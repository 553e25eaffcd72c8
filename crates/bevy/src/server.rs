//! A server as a resource, and its clients as entities.

use crate::event::{Readers, SessionEvent, report};
use crate::rate::{Meter, Traffic};
use crate::{STATS_EACH, WhitewaterSystems};
use bevy::ecs::entity::EntityHashSet;
use bevy::platform::collections::HashMap;
use bevy::prelude::*;
use bevy::time::Real;
use bevy::time::common_conditions::on_real_timer;
use std::io;
use std::net::{ToSocketAddrs, UdpSocket};
use whitewater::session::Pass;
use whitewater::{Event, Server, ServerConfig, SessionId};

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
            .init_resource::<Readers>()
            .init_resource::<ClientEntities>()
            .init_resource::<Ended>()
            .add_observer(close_despawned)
            .add_systems(
                PreUpdate,
                (
                    despawn_all.run_if(resource_removed::<WhitewaterServer>),
                    (receive, measure.run_if(on_real_timer(STATS_EACH)))
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

fn receive(world: &mut World) {
    world.resource_scope(|world, mut server: Mut<'_, WhitewaterServer>| {
        if let Err(error) = server.pump() {
            error_once!("the server's socket fails: {error}"); // what is due was done anyway
        }
        while let Some((id, event)) = server.poll_event() {
            match event {
                Event::Connected => {
                    let client = world.spawn(ClientSession(id)).id();
                    if let Some(pass) = server.pass(id) {
                        world.entity_mut(client).insert(ClientPass(pass.clone()));
                    }
                    world.resource_mut::<ClientEntities>().0.insert(id, client);
                }
                Event::Closed { .. } => {
                    if let Some(client) = world.resource_mut::<ClientEntities>().0.get(&id).copied() {
                        world.resource_mut::<Ended>().0.insert(client);
                    }
                }
                _ => {}
            }
            report(world, Some(id), event, server.connection_mut(id));
        }
    });
}

fn measure(
    server: Res<'_, WhitewaterServer>,
    time: Res<'_, Time<Real>>,
    mut clients: Query<'_, '_, (&ClientSession, &mut Meter, &mut Traffic)>,
) {
    for (client, mut meter, mut traffic) in &mut clients {
        let Some(stats) = server.connection(client.0).map(whitewater::session::Connection::stats) else {
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
fn despawn_all(mut commands: Commands<'_, '_>, clients: Res<'_, ClientEntities>) {
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
