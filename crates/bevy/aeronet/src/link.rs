//! Links of lightyear over the sessions of aeronet.

use crate::io::OfClient;
use aeronet_io::connection::{LocalAddr, PeerAddr};
use aeronet_io::{Session, server::Server};
use bevy::prelude::*;
use bevy_whitewater::{ClientSession, WhitewaterClient, WhitewaterServer};
use lightyear::prelude::{Link, LinkOf, LinkStart, server::Server as LinkServer};
use lightyear_aeronet::{AeronetLinkOf, AeronetPlugin, server::ServerAeronetPlugin};
use std::net::SocketAddr;
use whitewater::{ClientConfig, ServerConfig};

/// A client of lightyear: connects when it is [started](LinkStart).
#[derive(Component)]
#[require(Link)]
pub struct WhitewaterClientIo {
    /// Where the server is.
    pub to: SocketAddr,
    /// With the session of [`crate::io::session`].
    pub config: ClientConfig,
}

/// A server of lightyear: listens when it is [started](LinkStart).
#[derive(Component)]
#[require(LinkServer)]
pub struct WhitewaterServerIo {
    /// Where it listens.
    pub at: SocketAddr,
    /// With the session of [`crate::io::session`].
    pub config: ServerConfig,
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
        app.add_observer(start).add_observer(opened).add_observer(connecting).add_observer(connected);
    }
}

fn start(
    start: On<LinkStart>,
    servers: Query<&WhitewaterServerIo>,
    clients: Query<&WhitewaterClientIo>,
    mut commands: Commands,
) -> Result {
    if let Ok(io) = servers.get(start.entity) {
        let server = WhitewaterServer::bind(io.at, &io.config)?;
        commands.entity(start.entity).insert(LocalAddr(server.local_addr()?));
        commands.insert_resource(server);
    }
    if let Ok(io) = clients.get(start.entity) {
        let client = WhitewaterClient::connect(io.to, &io.config)?;
        commands.entity(start.entity).insert(LocalAddr(client.local_addr()?));
        commands.insert_resource(client);
    }
    Ok(())
}

fn opened(opened: On<Add, Server>, link: Single<Entity, With<WhitewaterServerIo>>, mut commands: Commands) {
    commands.entity(opened.entity).insert(AeronetLinkOf(*link));
}

fn connecting(
    session: On<Add, OfClient>,
    link: Single<Entity, With<WhitewaterClientIo>>,
    mut commands: Commands,
) {
    commands.entity(session.entity).insert(AeronetLinkOf(*link));
}

/// At the server: a client has a link of its own.
fn connected(
    session: On<Add, Session>,
    clients: Query<&PeerAddr, With<ClientSession>>,
    server: Single<Entity, With<WhitewaterServerIo>>,
    mut commands: Commands,
) {
    if let Ok(addr) = clients.get(session.entity) {
        let link = commands.spawn((LinkOf { server: *server }, Link::default(), PeerAddr(addr.0))).id();
        commands.entity(session.entity).insert(AeronetLinkOf(link));
    }
}
