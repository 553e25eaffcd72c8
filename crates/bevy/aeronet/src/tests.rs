//! Packets and messages over sessions on this machine.

use super::*;
use aeronet_io::bytes::Bytes;
use aeronet_io::connection::{Disconnect, DisconnectReason};
use aeronet_io::server::{Close, Server};
use aeronet_io::{Session, connection};
use bevy_whitewater::{ClientSession, Reconnect, WhitewaterClient, WhitewaterServer};
use lightyear::prelude::client::Connected;
use lightyear::prelude::server::{Started, Stop};
use lightyear::prelude::{Linking, Unlink, UnlinkReason, Unlinked};
use std::time::Instant;

#[derive(Default, Resource)]
struct Left(Vec<String>);

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, WhitewaterPlugins, AeronetOverWhitewater))
        .init_resource::<Left>()
        .add_observer(|left: On<connection::Disconnected>, mut all: ResMut<Left>| {
            all.0.push(match &left.reason {
                DisconnectReason::ByPeer(text) => format!("peer: {text}"),
                DisconnectReason::ByUser(text) => format!("user: {text}"),
                DisconnectReason::ByError(error) => format!("error: {error}"),
            });
        });
    app
}

/// A server and a client whose packets it returns.
fn connected() -> (App, App) {
    let (mut server, mut client) = (app(), app());
    server.add_systems(Update, |mut sessions: Query<&mut Session, With<ClientSession>>| {
        for mut session in &mut sessions {
            let Session { recv, send, .. } = &mut *session;
            send.extend(recv.drain(..).map(|packet| packet.payload));
        }
    });
    client.add_systems(Update, |mut sessions: Query<&mut Session>| {
        for mut session in &mut sessions {
            session.recv.clear();
            session.send.push(Bytes::from_static(b"ping"));
        }
    });
    let listening =
        WhitewaterServer::bind("127.0.0.1:0", &ServerConfig::secret(io::session(1), SECRET)).unwrap();
    let addr = listening.local_addr().unwrap();
    server.insert_resource(listening);
    let there = WhitewaterClient::connect(addr, &ClientConfig::secret(io::session(1), SECRET)).unwrap();
    client.insert_resource(there.reconnecting(Reconnect { codes: &[9], ..Reconnect::default() }));
    run_until([&mut server, &mut client], |[_, client]| returned(client) >= 100);
    (server, client)
}

fn run_until<const N: usize>(mut apps: [&mut App; N], mut is_done: impl FnMut(&mut [&mut App; N]) -> bool) {
    let start = Instant::now();
    while !is_done(&mut apps) {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not end");
        apps.iter_mut().for_each(|app| app.update());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn returned(client: &mut App) -> usize {
    let mut sessions = client.world_mut().query::<&Session>();
    sessions.iter(client.world()).map(|session| session.stats.packets_recv.0).sum()
}

fn count<C: Component>(app: &mut App) -> usize {
    app.world_mut().query::<&C>().iter(app.world()).count()
}

fn left(app: &App) -> &[String] {
    &app.world().resource::<Left>().0
}

#[test]
fn packets_go_both_ways_and_the_reason_of_a_disconnect_arrives() {
    let (mut server, mut client) = connected();
    let world = client.world_mut();
    let (entity, session) = world.query::<(Entity, &Session)>().single(world).unwrap();
    let stats = session.stats;
    assert!(session.min_mtu() > 1100, "{}", session.min_mtu());
    assert!(stats.packets_sent.0 < stats.packets_recv.0 + 50, "no more than are on the way: {stats:?}");
    assert_eq!(stats.bytes_recv.0, 4 * stats.packets_recv.0);

    world.trigger(Disconnect::new(entity, "supper"));
    run_until([&mut server, &mut client], |[server, _]| count::<Session>(server) == 0);
    assert_eq!(count::<Session>(&mut client), 0);
    assert_eq!(left(&server), ["peer: supper"]);
    assert_eq!(left(&client), ["user: supper"]);
}

#[test]
fn a_server_that_is_closed_tells_its_clients_why_and_is_gone() {
    let (mut server, mut client) = connected();
    let world = server.world_mut();
    let entity = world.query_filtered::<Entity, With<Server>>().single(world).unwrap();
    world.trigger(Close::new(entity, "maintenance"));
    run_until([&mut server, &mut client], |[_, client]| count::<Session>(client) == 0);
    assert_eq!(left(&client), ["peer: maintenance"]);
    assert!(!server.world().contains_resource::<WhitewaterServer>());
    assert_eq!((count::<Server>(&mut server), count::<ClientSession>(&mut server)), (0, 0));
}

#[test]
fn removing_the_resource_ends_its_session_and_one_that_connects_again_has_another() {
    let (mut server, mut client) = connected();
    let world = server.world_mut();
    let id = world.query::<&ClientSession>().single(world).unwrap().id();
    world.resource_mut::<WhitewaterServer>().kick(id, 9, "restart").unwrap();
    run_until([&mut server, &mut client], |[_, client]| !left(client).is_empty());
    assert_eq!(count::<Session>(&mut client), 0);
    assert_eq!(left(&client), ["peer: restart"]);
    run_until([&mut server, &mut client], |[_, client]| returned(client) > 0);

    client.world_mut().remove_resource::<WhitewaterClient>();
    run_until([&mut server, &mut client], |[server, _]| count::<Session>(server) == 0);
    assert_eq!(count::<Session>(&mut client), 0);
    assert_eq!(left(&client), ["peer: restart", "user: "]);
}

/// A server of lightyear and a client, with their links, which are up.
fn linked() -> ([App; 2], [Entity; 2]) {
    let [mut server, mut client] = [App::new(), App::new()];
    for app in [&mut server, &mut client] {
        app.add_plugins(MinimalPlugins);
    }
    let listening = serve(&mut server, "127.0.0.1:0".parse().unwrap());
    server.world_mut().flush();
    let at = server.world().resource::<WhitewaterServer>().local_addr().unwrap();
    let connecting = play(&mut client, at);
    for app in [&mut server, &mut client] {
        app.finish();
        app.cleanup();
    }
    run_until([&mut server, &mut client], |[server, client]| {
        count::<Connected>(server) == 1 && client.world().entity(connecting).contains::<Connected>()
    });
    ([server, client], [listening, connecting])
}

#[test]
fn messages_of_lightyear_come_back_in_order_whatever_their_length() {
    let ([mut server, mut client], [listening, _]) = linked();
    assert!(server.world().entity(listening).contains::<Started>(), "what replicates waits for that");
    run_until([&mut server, &mut client], |[_, client]| client.world().resource::<Returned>().0.len() >= 200);
    let returned = &client.world().resource::<Returned>().0;
    assert!(returned.iter().zip(0..).all(|(ping, n)| ping.number == n), "{returned:?}");
    for len in [1000, 1100, 1150, 1200, 5000, 100_000] {
        client.world_mut().resource_mut::<Returned>().0.clear();
        let world = client.world_mut();
        let mut sender = world.query::<&mut MessageSender<Ping>>().single_mut(world).unwrap();
        sender.send::<Reliable>(Ping { number: u32::MAX, filling: vec![9; len] });
        run_until([&mut server, &mut client], |[_, client]| {
            let returned = &client.world().resource::<Returned>().0;
            returned.iter().any(|ping| ping.filling == vec![9; len])
        });
    }
}

#[test]
fn an_unlink_reaches_the_other_end_and_the_client_can_be_started_again() {
    let ([mut server, mut client], [_, link]) = linked();
    for _ in 0..2 {
        let reason = UnlinkReason::UserRequested(Some("supper".to_owned()));
        client.world_mut().trigger(Unlink { entity: link, reason });
        run_until([&mut server, &mut client], |[server, _]| count::<Connected>(server) == 0);
        let world = server.world_mut();
        let mut ends = world.query_filtered::<&Unlinked, With<ClientOf>>();
        let is_told = ends.iter(world).any(|end| matches!(end.reason, UnlinkReason::ByPeer(_))); // lightyear 0.30 loses the text
        assert!(is_told && client.world().entity(link).contains::<Unlinked>());
        client.world_mut().trigger(LinkStart { entity: link });
        run_until([&mut server, &mut client], |[server, client]| {
            count::<Connected>(server) == 1 && client.world().entity(link).contains::<Connected>()
        });
    }
}

#[test]
fn a_server_that_stops_unlinks_its_clients_and_can_be_started_again() {
    let ([mut server, mut client], [listening, link]) = linked();
    server.world_mut().trigger(Stop { entity: listening });
    run_until([&mut server, &mut client], |[_, client]| client.world().entity(link).contains::<Unlinked>());
    // Lightyear 0.30 leaves a `RawServer` `Stopping` for ever.
    assert!(server.world().entity(listening).contains::<Unlinked>());
    assert!(!server.world().contains_resource::<WhitewaterServer>());
    assert_eq!((count::<ClientSession>(&mut server), count::<Server>(&mut server)), (0, 0));
    server.world_mut().trigger(LinkStart { entity: listening });
    run_until([&mut server], |[server]| server.world().entity(listening).contains::<Started>());
}

#[test]
fn each_attempt_that_fails_unlinks_its_client() {
    let mut client = App::new();
    client.add_plugins(MinimalPlugins);
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let link = play(&mut client, nobody.local_addr().unwrap());
    client.finish();
    client.cleanup();
    for attempt in 0..2 {
        run_until([&mut client], |[client]| client.world().entity(link).contains::<Linking>());
        run_until([&mut client], |[client]| client.world().entity(link).contains::<Unlinked>());
        let end = client.world().entity(link).get::<Unlinked>().unwrap();
        assert!(matches!(&end.reason, UnlinkReason::TransportError(_)), "{attempt}: {:?}", end.reason);
        client.world_mut().trigger(LinkStart { entity: link });
    }
}

#[test]
fn whoever_despawns_an_entity_ends_what_it_stands_for() {
    let ([mut server, mut client], [listening, link]) = linked();
    client.world_mut().despawn(link);
    run_until([&mut server, &mut client], |[server, _]| count::<ClientSession>(server) == 0);
    server.world_mut().despawn(listening);
    run_until([&mut server], |[server]| !server.world().contains_resource::<WhitewaterServer>());
}
