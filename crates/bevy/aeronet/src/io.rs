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

/// Makes entities of the resources: the server has a [`Server`], with a [`Session`] below it for each of its clients, and the client has a
/// [`Session`]. They come and go with the resources, and a client that connects again has another one.
pub struct AeronetOverWhitewater;

impl Plugin for AeronetOverWhitewater {
    fn build(&self, app: &mut App) {
        app.add_plugins(AeronetIoPlugin)
            .receive(PACKETS)
            .configure_sets(PreUpdate, IoSystems::Poll.after(WhitewaterSystems::Receive))
            .configure_sets(PostUpdate, IoSystems::Flush.before(WhitewaterSystems::Send))
            .add_systems(PreUpdate, (connected, receive, disconnected).chain().in_set(IoSystems::Poll))
            .add_systems(PostUpdate, flush.in_set(IoSystems::Flush))
            .add_observer(opened)
            .add_observer(closed)
            .add_observer(connecting)
            .add_observer(left)
            .add_observer(disconnect)
            .add_observer(close);
    }
}

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

fn opened(_: On<Add, WhitewaterServer>, mut commands: Commands) {
    commands.spawn((Name::new("server"), Server::new(Instant::now())));
}

fn closed(_: On<Remove, WhitewaterServer>, servers: Query<Entity, With<Server>>, mut commands: Commands) {
    for entity in &servers {
        commands.trigger(Closed { entity, reason: server::CloseReason::by_user("") });
    }
}

fn connecting(_: On<Add, WhitewaterClient>, mut commands: Commands) {
    commands.spawn(OfClient);
}

fn left(_: On<Remove, WhitewaterClient>, ours: Query<Entity, With<OfClient>>, mut commands: Commands) {
    for entity in &ours {
        commands.trigger(Disconnected { entity, reason: DisconnectReason::by_user("") });
    }
}

fn connected(
    mut commands: Commands,
    mut events: MessageReader<SessionEvent>,
    mut server: Option<ResMut<WhitewaterServer>>,
    mut client: Option<ResMut<WhitewaterClient>>,
    open: Query<Entity, With<Server>>,
    sessions: Sessions,
) {
    for SessionEvent { client: id, .. } in events.read().filter(|e| e.event == Event::Connected) {
        // A packet that no datagram holds is refused, and the error names the limit.
        let too_long = [0; 1 << 16];
        let (sent, addr) = match (*id, &mut server, &mut client) {
            (Some(id), Some(server), _) => (server.send(id, PACKETS, &too_long), server.peer_addr(id)),
            (None, _, Some(client)) => (client.send(PACKETS, &too_long), client.peer_addr()),
            _ => continue,
        };
        let (Err(SendError::TooLong { max, .. }), Some(addr)) = (sent, addr) else {
            continue; // it is over already
        };
        let mut entity = match (sessions.get(*id), id) {
            (Some(entity), _) => commands.entity(entity),
            (None, None) => commands.spawn(OfClient), // it has connected again
            _ => continue,
        };
        if let (Some(_), Ok(open)) = (id, open.single()) {
            entity.insert(ChildOf(open));
        }
        entity.insert((PeerAddr(addr), Session::new(Instant::now(), max)));
    }
}

fn receive(mut packets: MessageReader<Received>, entities: Sessions, mut sessions: Query<&mut Session>) {
    for Received { client, message, .. } in packets.read() {
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
            if sent.is_ok() {
                stats.packets_sent += 1;
                stats.bytes_sent += packet.len();
            } // otherwise it is as if it were lost
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

/// The server is to stop. Its clients have been told why.
fn close(closed: On<Closed>, servers: Query<(), With<Server>>, mut commands: Commands) {
    if servers.contains(closed.entity) {
        commands.remove_resource::<WhitewaterServer>();
    }
}
