//! Links of lightyear over the sessions of aeronet.

use crate::io::{OfClient, OfServer, PACKET_MAX};
use aeronet_io::Session;
use aeronet_io::connection::{LocalAddr, PeerAddr};
use bevy::prelude::*;
use bevy_whitewater::{ClientSession, WhitewaterClient, WhitewaterServer};
use lightyear::prelude::server::Server as LinkServer;
use lightyear::prelude::{Link, LinkMtu, LinkOf, LinkStart, Linked, Linking, UnlinkReason, Unlinked};
use lightyear_aeronet::server::ServerAeronetPlugin;
use lightyear_aeronet::{AeronetLinkOf, AeronetPlugin};
use std::io;
use std::net::SocketAddr;
use whitewater::{ClientConfig, ServerConfig};

/// A client of lightyear, for an entity with `RawClient`: connects to this address when it is [started](LinkStart). `config` has the session of
/// [`crate::io::session`]. An app has one client at a time.
pub fn client(to: SocketAddr, config: ClientConfig) -> impl Bundle {
    (link(), WhitewaterClientIo { to, config })
}

/// A server of lightyear, for an entity with `RawServer`: listens at this address when it is started. An app has one server at a time.
pub fn server(at: SocketAddr, config: ServerConfig) -> impl Bundle {
    WhitewaterServerIo { at, config }
}

#[derive(Component)]
struct WhitewaterClientIo {
    to: SocketAddr,
    config: ClientConfig,
}

#[derive(Component)]
#[require(LinkServer)]
struct WhitewaterServerIo {
    at: SocketAddr,
    config: ServerConfig,
}

/// Makes links of the sessions, beside [`crate::io::AeronetOverWhitewater`].
pub struct LightyearOverWhitewater;

impl Plugin for LightyearOverWhitewater {
    fn build(&self, app: &mut App) {
        if !app.is_plugin_added::<AeronetPlugin>() {
            app.add_plugins(AeronetPlugin); // which lightyear's own links over aeronet add as well
        }
        if !app.is_plugin_added::<ServerAeronetPlugin>() {
            app.add_plugins(ServerAeronetPlugin);
        }
        app.init_resource::<Started>().add_observer(start).add_observer(connecting).add_observer(connected);
    }
}

/// The client that was started last.
#[derive(Default, Resource)]
struct Started(Option<Entity>);

/// Both ends cut messages for the same length.
fn link() -> Link {
    Link::default().with_mtu(LinkMtu::new(PACKET_MAX))
}

fn start(
    start: On<LinkStart>,
    servers: Query<&WhitewaterServerIo, (Without<Linking>, Without<Linked>)>,
    clients: Query<&WhitewaterClientIo, (Without<Linking>, Without<Linked>)>,
    mut started: ResMut<Started>,
    mut commands: Commands,
) {
    let link = start.entity;
    let begun: io::Result<()> = if let Ok(io) = servers.get(link) {
        WhitewaterServer::bind(io.at, &io.config).and_then(|server| {
            commands.entity(link).insert(LocalAddr(server.local_addr()?));
            commands.spawn((OfServer, AeronetLinkOf(link)));
            commands.insert_resource(server);
            Ok(())
        })
    } else if let Ok(io) = clients.get(link) {
        WhitewaterClient::connect(io.to, &io.config).and_then(|client| {
            commands.entity(link).insert(LocalAddr(client.local_addr()?));
            started.0 = Some(link);
            commands.remove_resource::<WhitewaterClient>(); // that of an attempt before
            commands.insert_resource(client);
            Ok(())
        })
    } else {
        return;
    };
    if let Err(error) = begun {
        let reason = UnlinkReason::TransportError(error.to_string());
        commands.entity(link).insert(Unlinked { reason });
    }
}

/// At a client: each of its sessions is of the link that was started last.
fn connecting(session: On<Add, OfClient>, started: Res<Started>, mut commands: Commands) {
    if let Some(link) = started.0 {
        commands.entity(session.entity).insert(AeronetLinkOf(link));
    }
}

/// At the server: a client has a link of its own.
fn connected(
    session: On<Add, Session>,
    clients: Query<(&PeerAddr, &ChildOf), With<ClientSession>>,
    servers: Query<&AeronetLinkOf, With<OfServer>>,
    mut commands: Commands,
) {
    if let Ok((addr, server)) = clients.get(session.entity)
        && let Ok(server) = servers.get(server.parent())
    {
        let link = commands.spawn((LinkOf { server: server.0 }, link(), PeerAddr(addr.0))).id();
        commands.entity(session.entity).insert(AeronetLinkOf(link));
    }
}
