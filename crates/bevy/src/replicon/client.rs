//! The backend of a client.

use super::backlog::Backlog;
use super::routes::Routes;
use super::{CANNOT_REPLICATE, RefusedMessages};
use crate::client::add_reader;
use crate::rate::{Meter, Traffic};
use crate::{WhitewaterClient, WhitewaterSystems};
use bevy::prelude::*;
use bevy::time::Real;
use bevy_replicon::prelude::*;
use whitewater::session;

pub(super) fn build(app: &mut App) {
    app.init_resource::<ClientRoutes>()
        .configure_sets(PreUpdate, ClientSystems::ReceivePackets.after(WhitewaterSystems::Receive))
        .configure_sets(PostUpdate, ClientSystems::SendPackets.before(WhitewaterSystems::Send))
        .add_systems(PreUpdate, (set_state, tell).chain().in_set(ClientSystems::ReceivePackets))
        .add_systems(
            PostUpdate,
            send.run_if(resource_exists::<WhitewaterClient>).in_set(ClientSystems::SendPackets),
        );
    add_reader(app, receive);
}

/// The routes of the client's session, and what waits for room in it.
#[derive(Default, Resource)]
struct ClientRoutes {
    routes: Routes,
    backlog: Backlog,
}

fn set_state(
    client: Option<Res<'_, WhitewaterClient>>,
    channels: Res<'_, RepliconChannels>,
    state: Res<'_, State<ClientState>>,
    mut next: ResMut<'_, NextState<ClientState>>,
    mut routes: ResMut<'_, ClientRoutes>,
) {
    if channels.is_changed() {
        routes.routes = Routes::of(&channels);
    }
    let now = match client.as_deref().map(|client| (client.state(), client.is_reconnecting())) {
        // Replicon expects to hear of each step.
        Some((session::ClientState::Up, _)) if *state.get() == ClientState::Disconnected => {
            ClientState::Connecting
        }
        Some((session::ClientState::Up, _)) => ClientState::Connected,
        Some((session::ClientState::Closing, _) | (session::ClientState::Closed, false)) | None => {
            ClientState::Disconnected
        }
        Some(_) => ClientState::Connecting,
    };
    if *state.get() != now {
        routes.backlog.clear();
        next.set(now);
    }
}

fn receive(
    mut client: ResMut<'_, WhitewaterClient>,
    routes: Res<'_, ClientRoutes>,
    mut messages: ResMut<'_, ClientMessages>,
    mut refused: ResMut<'_, RefusedMessages>,
) {
    client.with_connection(|connection| {
        let Some(connection) = connection else { return };
        refused.0 += routes
            .routes
            .to_clients
            .receive(connection, |number, message| messages.insert_received(number, message));
    });
}

fn tell(
    client: Option<Res<'_, WhitewaterClient>>,
    time: Res<'_, Time<Real>>,
    mut meter: Local<'_, Meter>,
    mut stats: ResMut<'_, ClientStats>,
) {
    let Some(client) = client else { return };
    if let Some(connection) = client.connection() {
        let counted = connection.stats();
        let [sent, received] = meter.measure(time.elapsed(), [counted.bytes_sent, counted.bytes_received]);
        *stats = super::stats(&counted, Traffic { sent, received });
    }
}

fn send(
    mut client: ResMut<'_, WhitewaterClient>,
    mut messages: ResMut<'_, ClientMessages>,
    mut routes: ResMut<'_, ClientRoutes>,
) {
    let ClientRoutes { routes, backlog } = &mut *routes;
    let mut sent = Ok(());
    client.with_connection(|connection| {
        let Some(connection) = connection else { return };
        sent = backlog.flush(&routes.to_server, connection);
        for (number, message) in messages.drain_sent() {
            if sent.is_ok() {
                sent = backlog.send(&routes.to_server, connection, number, message);
            }
        }
    });
    if let Err(error) = sent {
        warn!("the session ends, because replication cannot go on: {error}");
        let _ = client.kick(CANNOT_REPLICATE, "replication cannot go on"); // the text is short enough
    }
}
