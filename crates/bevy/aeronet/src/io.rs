//! Sessions of aeronet over those of whitewater: one encrypted datagram for each packet, and nothing is resent. The library on top does that,
//! so reliability is paid for once.

use aeronet_io::connection::{Disconnect, DisconnectReason, Disconnected, PeerAddr};
use aeronet_io::packet::RecvPacket;
use aeronet_io::server::{self, Closed, Server};
use aeronet_io::{AeronetIoPlugin, IoSystems, Session, SessionEndpoint};
use bevy::ecs::system::SystemParam;
use bevy::platform::time::Instant;
use bevy::prelude::*;
use bevy_whitewater::{
    ClientEntities, ClientSession, ReceiveAppExt, Received, SessionEvent, WhitewaterClient, WhitewaterServer,
    WhitewaterSystems,
};
use whitewater::channel::SendError;
use whitewater::{Channel, CloseReason, Event, SessionConfig, SessionId};

/// What a [`WhitewaterServer`] and a [`WhitewaterClient`] for aeronet have in their settings. The number of the protocol is yours.
pub fn session(protocol_id: u64) -> SessionConfig {
    SessionConfig::new(protocol_id, [PACKETS.config()])
}

const PACKETS: Channel = Channel::unreliable(0);
/// The longest packet, bytes: what one message may have in datagrams of 1200.
pub const PACKET_MAX: usize = 1160;

/// Makes entities of the resources: the server has a [`Server`], with a [`Session`] below it for each of its clients, and the client has a
/// [`Session`]. They come and go with the resources. A client that connects again, or goes to another server, has another one. Despawning an
/// entity ends what it stands for.
pub struct AeronetOverWhitewater;

impl Plugin for AeronetOverWhitewater {
    fn build(&self, app: &mut App) {
        if !app.is_plugin_added::<AeronetIoPlugin>() {
            app.add_plugins(AeronetIoPlugin);
        }
        app.receive(PACKETS)
            .configure_sets(PreUpdate, IoSystems::Poll.after(WhitewaterSystems::Receive))
            .configure_sets(PostUpdate, IoSystems::Flush.before(WhitewaterSystems::Send))
            .add_systems(PreUpdate, (connected, receive, disconnected).chain().in_set(IoSystems::Poll))
            .add_systems(PostUpdate, flush.in_set(IoSystems::Flush))
            .add_observer(opened)
            .add_observer(closed)
            .add_observer(connecting)
            .add_observer(left)
            .add_observer(disconnect)
            .add_observer(close_server)
            .add_observer(close_client);
    }
}

/// The server, which may be waiting for its resource.
#[derive(Component)]
#[require(Name::new("server"))]
pub struct OfServer;

/// The session of the client.
#[derive(Component)]
#[require(Name::new("session"), SessionEndpoint)]
pub struct OfClient;

/// Which entity has a session.
#[derive(SystemParam)]
struct Sessions<'w, 's> {
    clients: Option<Res<'w, ClientEntities>>,
    ours: Query<'w, 's, Entity, With<OfClient>>,
}

impl Sessions<'_, '_> {
    fn get(&self, client: Option<SessionId>) -> Option<Entity> {
        match client {
            Some(id) => self.clients.as_ref()?.get(&id).copied(),
            None => self.ours.single().ok(),
        }
    }
}

fn opened(_: On<Add, WhitewaterServer>, waiting: Query<Entity, With<OfServer>>, mut commands: Commands) {
    let server = waiting.iter().next().unwrap_or_else(|| commands.spawn(OfServer).id());
    commands.entity(server).insert(Server::new(Instant::now()));
}

fn closed(_: On<Remove, WhitewaterServer>, servers: Query<Entity, With<OfServer>>, mut commands: Commands) {
    for entity in &servers {
        commands.trigger(Closed { entity, reason: server::CloseReason::by_user("") });
    }
}

fn connecting(_: On<Add, WhitewaterClient>, waiting: Query<(), With<OfClient>>, mut commands: Commands) {
    if waiting.is_empty() {
        commands.spawn(OfClient);
    }
}

fn left(_: On<Remove, WhitewaterClient>, ours: Query<Entity, With<OfClient>>, mut commands: Commands) {
    for entity in &ours {
        commands.trigger(Disconnected { entity, reason: DisconnectReason::by_user("") });
    }
}

fn connected(
    mut commands: Commands,
    mut events: MessageReader<SessionEvent>,
    server: Option<Res<WhitewaterServer>>,
    client: Option<Res<WhitewaterClient>>,
    servers: Query<Entity, With<OfServer>>,
    entities: Sessions,
    sessions: Query<(), With<Session>>,
) {
    for SessionEvent { client: id, .. } in events.read().filter(|e| e.event == Event::Connected) {
        let addr = match id {
            Some(id) => server.as_ref().and_then(|server| server.peer_addr(*id)),
            None => client.as_ref().and_then(|client| client.peer_addr()),
        };
        let Some(addr) = addr else { continue }; // it is over already
        let mut entity = match (entities.get(*id), id) {
            (Some(entity), None) if sessions.contains(entity) => {
                // The server has sent it to another one.
                let new = commands.spawn(OfClient).id();
                commands.trigger(Disconnected { entity, reason: DisconnectReason::by_peer("redirected") });
                commands.entity(new)
            }
            (Some(entity), _) => commands.entity(entity),
            (None, None) => commands.spawn(OfClient), // it has connected again
            _ => continue,
        };
        if let (Some(_), Some(server)) = (id, servers.iter().next()) {
            entity.insert(ChildOf(server));
        }
        entity.insert((PeerAddr(addr), Session::new(Instant::now(), PACKET_MAX)));
    }
}

fn receive(mut packets: MessageReader<Received>, entities: Sessions, mut sessions: Query<&mut Session>) {
    for Received { client, message, .. } in packets.read().filter(|packet| packet.channel == PACKETS.number())
    {
        let entity = entities.get(*client);
        if let Some(mut session) = entity.and_then(|entity| sessions.get_mut(entity).ok()) {
            let payload = message.clone();
            session.stats.packets_recv += 1;
            session.stats.bytes_recv += payload.len();
            session.recv.push(RecvPacket { recv_at: Instant::now(), payload });
        }
    }
}

fn disconnected(mut commands: Commands, mut events: MessageReader<SessionEvent>, sessions: Sessions) {
    for SessionEvent { client, event, text } in events.read() {
        let Event::Closed { reason, .. } = *event else { continue };
        let Some(entity) = sessions.get(*client) else { continue };
        let reason = match reason {
            CloseReason::Local(_) => DisconnectReason::by_user(text),
            CloseReason::Peer(_) => DisconnectReason::by_peer(text),
            error => DisconnectReason::by_error(error),
        };
        commands.trigger(Disconnected { entity, reason });
    }
}

fn flush(
    mut server: Option<ResMut<WhitewaterServer>>,
    mut client: Option<ResMut<WhitewaterClient>>,
    mut sessions: Query<(&mut Session, Option<&ClientSession>, Has<OfClient>)>,
) {
    for (mut session, of, is_ours) in &mut sessions {
        let Session { send, stats, .. } = &mut *session;
        for packet in send.drain(..) {
            let sent = match (of, &mut server, &mut client) {
                (Some(of), Some(server), _) => server.send(of.id(), PACKETS, &packet),
                (None, _, Some(client)) if is_ours => client.send(PACKETS, &packet),
                _ => continue,
            };
            match sent {
                Ok(()) => {
                    stats.packets_sent += 1;
                    stats.bytes_sent += packet.len();
                }
                Err(error @ SendError::TooLong { .. }) => warn!("a packet is lost: {error}"),
                Err(_) => {} // it is as if it were lost
            }
        }
    }
}

/// Tells the peer why. Aeronet despawns the entity, which closes the session of a client in any case.
fn disconnect(
    disconnect: On<Disconnect>,
    sessions: Query<&ClientSession>,
    ours: Query<(), With<OfClient>>,
    server: Option<ResMut<WhitewaterServer>>,
    client: Option<ResMut<WhitewaterClient>>,
) {
    if let (Ok(session), Some(mut server)) = (sessions.get(disconnect.entity), server) {
        let _ = server.kick(session.id(), 0, &disconnect.reason); // fails if the text is too long
    } else if let (true, Some(mut client)) = (ours.contains(disconnect.entity), client)
        && client.kick(0, &disconnect.reason).is_err()
    {
        client.close(0);
    }
}

/// Aeronet has told the clients why, and despawned it.
fn close_server(_: On<Remove, OfServer>, mut commands: Commands) {
    commands.remove_resource::<WhitewaterServer>();
}

/// Somebody may have despawned it without a word.
fn close_client(
    removed: On<Remove, OfClient>,
    ours: Query<Entity, With<OfClient>>,
    client: Option<ResMut<WhitewaterClient>>,
) {
    if ours.iter().all(|entity| entity == removed.entity)
        && let Some(mut client) = client
        && client.is_connected()
    {
        client.close(0);
    }
}
