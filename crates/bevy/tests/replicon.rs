//! The backend of bevy_replicon. The first six tests are those of bevy_replicon_renet 0.20 (`tests/netcode.rs`, MIT or Apache-2.0), restated for
//! whitewater.

#![cfg(feature = "replicon")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

mod common;

use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy_replicon::prelude::*;
use bevy_replicon::shared::backend::connected_client::ConnectedClient;
use bevy_whitewater::replicon::{CANNOT_REPLICATE, RefusedMessages, RepliconBackend, RepliconSession};
use bevy_whitewater::{Reconnect, SessionEvent, WhitewaterClient, WhitewaterPlugins, WhitewaterServer};
use common::{Relay, SECRET, update_until};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::{ClientConfig, CloseReason, Event as Happened, ServerConfig};

#[test]
fn connect_disconnect() {
    let (mut server_app, mut client_app) = connected(|_| {});

    assert_eq!(server_state(&server_app), ServerState::Running);
    assert_eq!(server_app.world().resource::<WhitewaterServer>().clients().len(), 1);
    let mut clients = server_app.world_mut().query::<(&ConnectedClient, &AuthorizedClient)>();
    assert_eq!(clients.iter(server_app.world()).len(), 1);
    assert_eq!(client_state(&client_app), ClientState::Connected);

    client_app.world_mut().resource_mut::<WhitewaterClient>().close(0);
    update_until([&mut client_app, &mut server_app], |[client_app, _]| {
        client_app.world().resource::<WhitewaterClient>().state() == whitewater::session::ClientState::Closed
    });
    server_app.update();
    client_app.update();

    assert_eq!(clients.iter(server_app.world()).len(), 0);
    assert_eq!(server_app.world().resource::<WhitewaterServer>().clients().len(), 0);
    assert_eq!(client_state(&client_app), ClientState::Disconnected);
}

#[test]
fn disconnect_request() {
    let (mut server_app, mut client_app) = connected(|app| {
        app.add_server_message::<Test>(Channel::Ordered);
    });

    server_app.world_mut().spawn(Replicated);
    server_app.world_mut().write_message(ToClients { targets: SendTargets::All, message: Test });
    let mut clients = server_app.world_mut().query_filtered::<Entity, With<ConnectedClient>>();
    let client = clients.single(server_app.world()).unwrap();
    server_app.world_mut().write_message(DisconnectRequest { client });

    server_app.update();
    assert_eq!(clients.iter(server_app.world()).len(), 0);
    assert_eq!(client_state(&client_app), ClientState::Connected, "it has not heard yet");

    let mut messages = 0;
    update_until([&mut client_app, &mut server_app], |[client_app, _]| {
        messages = messages.max(client_app.world().resource::<Messages<Test>>().len());
        client_state(client_app) == ClientState::Disconnected
    });
    assert_eq!(messages, 1, "last message should be received");
    let mut remote = client_app.world_mut().query::<&Remote>();
    assert_eq!(remote.iter(client_app.world()).len(), 1, "last replication should be received");
}

#[test]
fn server_stop() {
    let (mut server_app, mut client_app) = connected(|app| {
        app.add_server_message::<Test>(Channel::Ordered);
    });

    server_app.world_mut().remove_resource::<WhitewaterServer>();
    server_app.world_mut().spawn(Replicated);
    server_app.world_mut().write_message(ToClients { targets: SendTargets::All, message: Test });
    server_app.update();
    server_app.update();

    let mut clients = server_app.world_mut().query::<&ConnectedClient>();
    assert_eq!(clients.iter(server_app.world()).len(), 0);
    assert_eq!(server_state(&server_app), ServerState::Stopped);

    update_until([&mut client_app], |[client_app]| client_state(client_app) == ClientState::Disconnected);
    assert!(
        client_app.world().resource::<Messages<Test>>().is_empty(),
        "message shouldn't be received after stop"
    );
    let mut remote = client_app.world_mut().query::<&Remote>();
    assert_eq!(remote.iter(client_app.world()).len(), 0, "replication after stop shouldn't be received");
}

#[test]
fn replication() {
    let (mut server_app, mut client_app) = connected(|_| {});

    server_app.world_mut().spawn(Replicated);
    server_app.update();
    client_app.update();

    let mut remote = client_app.world_mut().query::<&Remote>();
    assert_eq!(remote.iter(client_app.world()).len(), 1);
}

#[test]
fn server_message() {
    let (mut server_app, mut client_app) = connected(|app| {
        app.add_server_message::<Test>(Channel::Ordered);
    });

    server_app.world_mut().write_message(ToClients { targets: SendTargets::All, message: Test });
    server_app.update();
    client_app.update();

    assert_eq!(client_app.world().resource::<Messages<Test>>().len(), 1);
}

#[test]
fn client_message() {
    let (mut server_app, mut client_app) = connected(|app| {
        app.add_client_message::<Test>(Channel::Ordered);
    });

    client_app.world_mut().write_message(Test);
    client_app.update();
    server_app.update();

    assert_eq!(server_app.world().resource::<Messages<FromClient<Test>>>().len(), 1);
}

#[test]
fn a_world_of_megabytes_and_entities_larger_than_a_datagram_arrive_through_loss() {
    for seed in 1..=3 {
        let register = |app: &mut App| {
            app.replicate::<Level>().replicate::<Blob>();
        };
        let (mut server_app, mut client_app) = (app(register), app(register));
        let mut relay = Relay::new(host(&mut server_app), seed);
        join(&mut client_app, relay.addr(), None);
        let level = server_app.world_mut().spawn((Replicated, Level(3 << 20, vec![1; 3 << 20]))).id();
        let large = server_app.world_mut().spawn((Replicated, Blob(vec![0; 5000]))).id();
        update_until([&mut server_app, &mut client_app], |[_, client_app]| {
            relay.carry();
            let mut levels = client_app.world_mut().query::<(&Remote, &Level)>();
            levels.iter(client_app.world()).any(|(_, level)| level.1.len() == level.0)
        });
        // A mutation goes unreliably, and no datagram has room for this one.
        for round in 1..=20 {
            server_app.world_mut().get_mut::<Blob>(large).unwrap().0.fill(round);
            update_until([&mut server_app, &mut client_app], |[_, client_app]| {
                relay.carry();
                let mut blobs = client_app.world_mut().query::<&Blob>();
                blobs.iter(client_app.world()).any(|blob| blob.0.len() == 5000 && blob.0[4999] == round)
            });
        }
        assert!(relay.lost > 100, "seed {seed}: {}", relay.lost);
        server_app.world_mut().despawn(level);
        update_until([&mut server_app, &mut client_app], |[_, client_app]| {
            relay.carry();
            client_app.world_mut().query::<&Level>().iter(client_app.world()).len() == 0
        });
    }
}

/// Forty kinds of messages each way: more than a session has channels.
macro_rules! many {
    ($($number:literal)*) => {
        #[derive(Clone, Copy, Debug, Message, PartialEq, Serialize, Deserialize)]
        struct Numbered<const N: usize>(u32);

        fn register_many(app: &mut App) {
            $(app.add_client_message::<Numbered<$number>>(CHANNELS[$number % 2]);
              app.add_server_message::<Numbered<{ 100 + $number }>>(CHANNELS[$number % 2]);)*
        }

        fn write_many(server: &mut App, client: &mut App, value: u32) {
            $(client.world_mut().write_message(Numbered::<$number>(value));
              server.world_mut().write_message(ToClients { targets: SendTargets::All, message: Numbered::<{ 100 + $number }>(value) });)*
        }

        fn read_many(server: &mut App, client: &mut App, heard: &mut [Vec<u32>]) {
            $(let came = server.world_mut().resource_mut::<Messages<FromClient<Numbered<$number>>>>().drain().map(|from| from.message.0).collect::<Vec<_>>();
              heard[$number].extend(came);
              let came = client.world_mut().resource_mut::<Messages<Numbered<{ 100 + $number }>>>().drain().map(|message| message.0).collect::<Vec<_>>();
              heard[100 + $number].extend(came);)*
        }
    };
}

const CHANNELS: [Channel; 2] = [Channel::Ordered, Channel::Unordered];

many! { 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 }

#[test]
fn eighty_kinds_of_messages_arrive_each_once_and_in_order_through_loss() {
    let (mut server_app, mut client_app) = (app(register_many), app(register_many));
    let mut relay = Relay::new(host(&mut server_app), 4);
    join(&mut client_app, relay.addr(), None);
    update_until([&mut server_app, &mut client_app], |[_, client_app]| {
        relay.carry();
        client_state(client_app) == ClientState::Connected
    });
    let (mut heard, mut sent) = (vec![Vec::new(); 200], 0);
    update_until([&mut server_app, &mut client_app], |[server_app, client_app]| {
        relay.carry();
        if sent < 50 {
            write_many(server_app, client_app, sent);
            sent += 1;
        }
        read_many(server_app, client_app, &mut heard);
        heard.iter().filter(|heard| heard.len() == 50).count() == 80
    });
    for (number, mut heard) in heard.into_iter().enumerate().filter(|(_, heard)| !heard.is_empty()) {
        if number % 2 == 1 {
            heard.sort_unstable(); // unordered
        }
        assert!(heard.into_iter().eq(0..50), "kind {number}");
    }
    assert_eq!(**server_app.world().resource::<RefusedMessages>(), 0);
}

#[test]
fn a_message_that_can_never_be_sent_ends_the_session_and_says_why() {
    let (mut server_app, mut client_app) = connected(|app| {
        app.replicate::<Level>();
    });
    server_app.world_mut().spawn((Replicated, Level(0, vec![0; 17 << 20]))); // more than a message may have
    let mut reason = None;
    update_until([&mut server_app, &mut client_app], |[_, client_app]| {
        let mut events = client_app.world_mut().resource_mut::<Messages<SessionEvent>>();
        reason = reason.or(events.drain().find_map(|happened| match happened.event {
            Happened::Closed { reason, .. } => Some(reason),
            _ => None,
        }));
        reason.is_some()
    });
    assert_eq!(reason, Some(CloseReason::Peer(CANNOT_REPLICATE)));
    update_until([&mut server_app], |[server_app]| {
        server_app.world_mut().query::<&ConnectedClient>().iter(server_app.world()).len() == 0
    });
}

#[test]
fn a_crowd_of_messages_that_no_session_has_room_for_waits_and_arrives_in_order() {
    let (mut server_app, mut client_app) = connected(|app| {
        app.add_server_message::<Long>(Channel::Ordered);
    });
    for number in 0..200 {
        let message = Long(number, vec![7; 20_000]);
        server_app.world_mut().write_message(ToClients { targets: SendTargets::All, message });
    }
    let mut heard = Vec::new();
    update_until([&mut server_app, &mut client_app], |[_, client_app]| {
        heard
            .extend(client_app.world_mut().resource_mut::<Messages<Long>>().drain().map(|message| message.0));
        heard.len() == 200
    });
    assert!(heard.into_iter().eq(0..200));
}

#[test]
fn statistics_have_round_trip_and_bytes_a_second_at_both_ends() {
    let (mut server_app, mut client_app) = connected(|app| {
        app.add_client_message::<Numbered<0>>(Channel::Ordered);
    });
    let mut value = 0;
    update_until([&mut server_app, &mut client_app], |[server_app, client_app]| {
        client_app.world_mut().write_message(Numbered::<0>(value));
        value += 1;
        let there = *client_app.world().resource::<ClientStats>();
        let here =
            server_app.world_mut().query::<&ConnectedClientStats>().single(server_app.world()).unwrap().0;
        let is_measured =
            |stats: ClientStats| stats.rtt > 0.0 && stats.sent_bps > 100.0 && stats.received_bps > 100.0;
        is_measured(there) && is_measured(here) && there.packet_loss == 0.0
    });
}

#[test]
fn a_client_connects_again_when_the_server_comes_back_and_sees_the_new_world() {
    let (mut server_app, mut client_app) = (app(|_| {}), app(|_| {}));
    let at = host(&mut server_app);
    // As a game does.
    client_app.add_systems(
        OnExit(ClientState::Connected),
        |mut commands: Commands<'_, '_>, old: Query<'_, '_, Entity, With<Remote>>| {
            old.iter().for_each(|entity| commands.entity(entity).despawn());
        },
    );
    let policy = Reconnect {
        first: Duration::from_millis(20),
        longest: Duration::from_millis(40),
        codes: &[0],
        ..Reconnect::default()
    };
    join(&mut client_app, at, Some(policy));
    server_app.world_mut().spawn(Replicated);
    let remotes = |app: &mut App| app.world_mut().query::<&Remote>().iter(app.world()).len();
    update_until([&mut server_app, &mut client_app], |[_, client_app]| remotes(client_app) == 1);

    // The server is stopped and started again.
    server_app.world_mut().remove_resource::<WhitewaterServer>();
    server_app.update();
    let mut server_app = app(|_| {});
    host_at(&mut server_app, at);
    server_app.world_mut().spawn_batch([Replicated, Replicated]);
    let mut has_been_connecting = false;
    update_until([&mut server_app, &mut client_app], |[_, client_app]| {
        has_been_connecting |= client_state(client_app) == ClientState::Connecting;
        remotes(client_app) == 2 && client_state(client_app) == ClientState::Connected
    });
    assert!(has_been_connecting);
}

fn app(register: impl Fn(&mut App)) -> App {
    let mut app = App::new();
    app.add_plugins((
        MinimalPlugins,
        StatesPlugin,
        RepliconPlugins.set(ServerPlugin::new(PostUpdate)),
        WhitewaterPlugins,
        RepliconBackend,
    ));
    register(&mut app);
    app.finish();
    app
}

fn host(app: &mut App) -> SocketAddr {
    host_at(app, ([127, 0, 0, 1], 0).into())
}

fn host_at(app: &mut App, at: SocketAddr) -> SocketAddr {
    let session = app.world().resource::<RepliconChannels>().session();
    let server = WhitewaterServer::bind(at, &ServerConfig::secret(session, SECRET)).unwrap();
    let at = server.local_addr().unwrap();
    app.insert_resource(server);
    at
}

fn join(app: &mut App, at: SocketAddr, reconnect: Option<Reconnect>) {
    let session = app.world().resource::<RepliconChannels>().session();
    let mut client = WhitewaterClient::connect(at, &ClientConfig::secret(session, SECRET)).unwrap();
    if let Some(reconnect) = reconnect {
        client = client.reconnecting(reconnect);
    }
    app.insert_resource(client);
}

fn connected(register: impl Fn(&mut App)) -> (App, App) {
    let (mut server_app, mut client_app) = (app(&register), app(&register));
    let at = host(&mut server_app);
    join(&mut client_app, at, None);
    update_until([&mut client_app, &mut server_app], |[client_app, server_app]| {
        client_state(client_app) == ClientState::Connected
            && server_app.world_mut().query::<&AuthorizedClient>().iter(server_app.world()).len() == 1
    });
    (server_app, client_app)
}

fn server_state(app: &App) -> ServerState {
    *app.world().resource::<State<ServerState>>().get()
}

fn client_state(app: &App) -> ClientState {
    *app.world().resource::<State<ClientState>>().get()
}

#[derive(Message, Serialize, Deserialize)]
struct Test;

#[derive(Component, Serialize, Deserialize)]
struct Level(usize, Vec<u8>);

#[derive(Component, Serialize, Deserialize)]
struct Blob(Vec<u8>);

#[derive(Message, Serialize, Deserialize)]
struct Long(u32, Vec<u8>);
