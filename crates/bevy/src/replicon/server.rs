//! The backend of a server.

use super::backlog::{Backlog, Broken};
use super::routes::Routes;
use super::{CANNOT_REPLICATE, RefusedMessages};
use crate::rate::Traffic;
use crate::server::{Arrivals, add_reader};
use crate::{ClientEntities, ClientPass, ClientSession, STATS_EACH, WhitewaterServer, WhitewaterSystems};
use bevy::prelude::*;
use bevy::time::common_conditions::on_real_timer;
use bevy_replicon::prelude::*;
use bevy_replicon::shared::backend::connected_client::{ConnectedClient, NetworkId};
use whitewater::SessionId;

pub(super) fn build(app: &mut App) {
    app.init_resource::<ServerRoutes>()
        .init_resource::<ClientEntities>()
        .configure_sets(PreUpdate, ServerSystems::ReceivePackets.after(WhitewaterSystems::Receive))
        .configure_sets(PostUpdate, ServerSystems::SendPackets.before(WhitewaterSystems::Send))
        .add_systems(
            PreUpdate,
            (set_state, register, tell.run_if(on_real_timer(STATS_EACH)))
                .chain()
                .in_set(ServerSystems::ReceivePackets),
        )
        .add_systems(
            PostUpdate,
            (
                send.run_if(resource_exists::<WhitewaterServer>).in_set(ServerSystems::SendPackets),
                // Afterwards, so that clients receive what was sent before.
                disconnect.after(ServerSystems::SendPackets).before(WhitewaterSystems::Send),
            ),
        );
    add_reader(app, receive);
}

/// The routes of the server's sessions.
#[derive(Default, Resource)]
struct ServerRoutes(Routes);

fn set_state(
    server: Option<Res<'_, WhitewaterServer>>,
    channels: Res<'_, RepliconChannels>,
    state: Res<'_, State<ServerState>>,
    mut next: ResMut<'_, NextState<ServerState>>,
    mut routes: ResMut<'_, ServerRoutes>,
) {
    if channels.is_changed() {
        routes.0 = Routes::of(&channels);
    }
    let wanted = if server.is_some() { ServerState::Running } else { ServerState::Stopped };
    if *state.get() != wanted {
        next.set(wanted);
    }
}

/// Tells replicon of new clients.
fn register(
    mut commands: Commands<'_, '_>,
    clients: Query<'_, '_, (Entity, &ClientSession, Option<&ClientPass>), Without<ConnectedClient>>,
    mut server: Option<ResMut<'_, WhitewaterServer>>,
    routes: Res<'_, ServerRoutes>,
) {
    for (client, session, pass) in &clients {
        let Some(connection) = server.as_mut().and_then(|server| server.connection_mut(session.id())) else {
            continue;
        };
        let max_size = routes.0.to_clients.longest_unreliable(connection);
        let network_id =
            NetworkId::new(pass.map_or_else(|| session.id().to_bits().into(), |pass| pass.client_id));
        commands.entity(client).insert((ConnectedClient { max_size }, network_id, Backlog::default()));
    }
}

fn receive(
    mut server: ResMut<'_, WhitewaterServer>,
    mut arrivals: ResMut<'_, Arrivals>,
    clients: Res<'_, ClientEntities>,
    routes: Res<'_, ServerRoutes>,
    mut messages: ResMut<'_, ServerMessages>,
    mut refused: ResMut<'_, RefusedMessages>,
) {
    arrivals.each(&mut server, |id, connection| {
        let Some(client) = clients.get(&id) else { return };
        let direction = &routes.0.to_server;
        refused.0 += direction
            .receive(connection, |number, message| messages.insert_received(*client, number, message));
    });
}

fn tell(
    server: Option<Res<'_, WhitewaterServer>>,
    mut clients: Query<'_, '_, (&ClientSession, &Traffic, &mut ConnectedClientStats)>,
) {
    let Some(server) = server else { return };
    for (session, traffic, mut stats) in &mut clients {
        if let Some(connection) = server.connection(session.id()) {
            stats.0 = super::stats(&connection.stats(), *traffic);
        }
    }
}

fn send(
    mut server: ResMut<'_, WhitewaterServer>,
    mut messages: ResMut<'_, ServerMessages>,
    mut clients: Query<'_, '_, (&ClientSession, &mut Backlog)>,
    routes: Res<'_, ServerRoutes>,
) {
    let direction = &routes.0.to_clients;
    for (session, mut backlog) in clients.iter_mut().filter(|(_, backlog)| !backlog.is_empty()) {
        if let Some(connection) = server.connection_mut(session.id())
            && let Err(error) = backlog.flush(direction, connection)
        {
            give_up(&mut server, session.id(), &error);
        }
    }
    for (client, number, message) in messages.drain_sent() {
        let Ok((session, mut backlog)) = clients.get_mut(client) else { continue };
        let Some(connection) = server.connection_mut(session.id()) else { continue };
        if let Err(error) = backlog.send(direction, connection, number, message) {
            give_up(&mut server, session.id(), &error);
        }
    }
}

/// Without this message the client would never have the same world again.
fn give_up(server: &mut WhitewaterServer, id: SessionId, error: &Broken) {
    warn!("session {id} ends, because replication cannot go on: {error}");
    let _ = server.kick(id, CANNOT_REPLICATE, "replication cannot go on"); // the text is short enough
}

fn disconnect(mut commands: Commands<'_, '_>, mut requests: MessageReader<'_, '_, DisconnectRequest>) {
    for request in requests.read() {
        commands.entity(request.client).try_despawn(); // which closes the session
    }
}
