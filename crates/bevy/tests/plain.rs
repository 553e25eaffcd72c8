//! Sessions in an app without replication.

#![cfg(all(feature = "client", feature = "server"))]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

mod common;

use bevy::diagnostic::{DiagnosticPath, DiagnosticsStore};
use bevy::prelude::*;
use bevy_whitewater::*;
use common::{Kept, SECRET, keep, kept, update_until};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use whitewater::session::Suite;
use whitewater::session::token::{Order, PublicToken, ServerKey};
use whitewater::{Channel, ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId};

const CHAT: Channel = Channel::ordered(0);
const MOVES: Channel<Move> = Channel::unreliable(1);

#[derive(Clone, Debug, PartialEq, whitewater::Message)]
struct Move {
    #[bits(0..=1023)]
    x: u16,
}

#[derive(Debug, Default, Resource)]
struct Heard {
    chat: Vec<(Option<SessionId>, Vec<u8>)>,
    moves: Vec<(Option<SessionId>, u16)>,
}

fn hear(
    mut heard: ResMut<'_, Heard>,
    mut chat: MessageReader<'_, '_, Received>,
    mut moves: MessageReader<'_, '_, Received<Move>>,
) {
    heard.chat.extend(chat.read().map(|received| (received.client, received.message.to_vec())));
    heard.moves.extend(moves.read().map(|received| (received.client, received.message.x)));
}

fn session() -> SessionConfig {
    SessionConfig { channels: vec![CHAT.into(), MOVES.into()], ..SessionConfig::default() }
}

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((
        MinimalPlugins,
        bevy::diagnostic::DiagnosticsPlugin,
        WhitewaterPlugins,
        WhitewaterDiagnosticsPlugin,
    ))
    .receive(CHAT)
    .receive(MOVES)
    .init_resource::<Heard>()
    .add_systems(Update, hear);
    keep::<SessionEvent>(&mut app);
    app.finish();
    app
}

fn host(config: &ServerConfig) -> (App, SocketAddr) {
    let mut app = app();
    let server = WhitewaterServer::bind("127.0.0.1:0", config).unwrap();
    let at = server.local_addr().unwrap();
    app.insert_resource(server);
    (app, at)
}

fn connected() -> (App, App) {
    let (mut server, at) = host(&ServerConfig::secret(session(), SECRET));
    let mut client = app();
    client.insert_resource(WhitewaterClient::connect(at, &ClientConfig::secret(session(), SECRET)).unwrap());
    let is_up =
        |app: &App| kept::<SessionEvent>(app).iter().any(|happened| happened.event == Event::Connected);
    update_until([&mut server, &mut client], |[server, client]| is_up(server) && is_up(client));
    (server, client)
}

fn end_of(app: &App) -> Option<CloseReason> {
    kept::<SessionEvent>(app).iter().find_map(|happened| match happened.event {
        Event::Closed { reason, .. } => Some(reason),
        _ => None,
    })
}

fn text_of_end(app: &App) -> &str {
    let end =
        kept::<SessionEvent>(app).iter().find(|happened| matches!(happened.event, Event::Closed { .. }));
    &end.unwrap().text
}

fn only_client(app: &mut App) -> (Entity, SessionId) {
    let (entity, session) = app.world_mut().query::<(Entity, &ClientSession)>().single(app.world()).unwrap();
    (entity, session.id())
}

#[test]
fn messages_are_heard_in_the_frame_in_which_they_arrive_with_their_type_and_their_sender() {
    let (mut server, mut client) = connected();
    let (_, id) = only_client(&mut server);
    {
        let mut client = client.world_mut().resource_mut::<WhitewaterClient>();
        client.send(CHAT, b"hello").unwrap();
        client.send(MOVES, &Move { x: 7 }).unwrap();
    }
    client.update();
    server.update();
    let heard = server.world().resource::<Heard>();
    assert_eq!((&*heard.chat, &*heard.moves), (&[(Some(id), b"hello".to_vec())][..], &[(Some(id), 7)][..]));
    server.world_mut().resource_mut::<WhitewaterServer>().broadcast(CHAT, b"all");
    server.update();
    client.update();
    assert_eq!(client.world().resource::<Heard>().chat, [(None, b"all".to_vec())]);
}

#[test]
fn what_arrived_before_the_end_is_heard_and_the_end_has_its_reason() {
    let (mut server, mut client) = connected();
    let (entity, id) = only_client(&mut server);
    {
        let mut server = server.world_mut().resource_mut::<WhitewaterServer>();
        server.send(id, CHAT, b"last").unwrap();
        server.flush();
        server.kick(id, 7, "afk").unwrap();
    }
    update_until([&mut server, &mut client], |[_, client]| end_of(client).is_some());
    assert_eq!(end_of(&client), Some(CloseReason::Peer(7)));
    assert_eq!(text_of_end(&client), "afk");
    assert_eq!(client.world().resource::<Heard>().chat, [(None, b"last".to_vec())]);
    update_until([&mut server], |[server]| server.world().get_entity(entity).is_err());
    assert_eq!(end_of(&server), Some(CloseReason::Local(7)));
    assert!(server.world().resource::<ClientEntities>().is_empty());
}

#[test]
fn a_server_hears_the_last_words_of_a_client_and_why_it_left() {
    let (mut server, mut client) = connected();
    let (_, id) = only_client(&mut server);
    {
        let mut client = client.world_mut().resource_mut::<WhitewaterClient>();
        client.send(CHAT, b"bye").unwrap();
        client.flush();
        client.kick(8, "supper").unwrap();
        client.flush();
    }
    std::thread::sleep(Duration::from_millis(50)); // so that one frame of the server has all of it
    update_until([&mut server], |[server]| end_of(server).is_some());
    assert_eq!(end_of(&server), Some(CloseReason::Peer(8)));
    assert_eq!(text_of_end(&server), "supper");
    assert_eq!(server.world().resource::<Heard>().chat, [(Some(id), b"bye".to_vec())]);
}

#[test]
fn the_resources_are_added_once_and_not_in_each_frame() {
    #[derive(Default, Resource)]
    struct Added(u32);
    let (mut server, mut client) = connected();
    for app in [&mut server, &mut client] {
        app.init_resource::<Added>()
            .add_observer(
                |_: On<'_, '_, Add, (WhitewaterClient, WhitewaterServer)>, mut n: ResMut<'_, Added>| n.0 += 1,
            )
            .add_observer(
                |_: On<'_, '_, Remove, (WhitewaterClient, WhitewaterServer)>, mut n: ResMut<'_, Added>| {
                    n.0 += 1
                },
            );
        (0..3).for_each(|_| app.update());
        assert_eq!(app.world().resource::<Added>().0, 0);
    }
}

#[test]
fn despawning_a_client_closes_its_session_once_everything_has_arrived() {
    let (mut server, mut client) = connected();
    let (entity, id) = only_client(&mut server);
    server.world_mut().resource_mut::<WhitewaterServer>().send(id, CHAT, &vec![5; 100_000]).unwrap();
    server.world_mut().despawn(entity);
    update_until([&mut server, &mut client], |[server, client]| {
        end_of(client).is_some() && end_of(server).is_some()
    });
    assert_eq!(client.world().resource::<Heard>().chat[0].1.len(), 100_000);
    assert_eq!(end_of(&server), Some(CloseReason::Local(0)));
}

#[test]
fn removing_the_resource_tells_every_client_and_despawns_it() {
    let (mut server, mut client) = connected();
    server.world_mut().remove_resource::<WhitewaterServer>();
    update_until([&mut server, &mut client], |[server, client]| {
        end_of(client).is_some()
            && server.world_mut().query::<&ClientSession>().iter(server.world()).len() == 0
    });
    assert_eq!(end_of(&client), Some(CloseReason::Peer(0)), "and without a policy it stays away");
    assert!(!client.world().resource::<WhitewaterClient>().is_reconnecting());
}

fn key() -> ServerKey {
    ServerKey::new(1, 0, [9; 32])
}

fn token(client_id: u64, at: SocketAddr) -> PublicToken {
    static COUNT: AtomicU8 = AtomicU8::new(0); // each token is another
    let count = COUNT.fetch_add(1, Relaxed);
    let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let order = Order {
        protocol_id: 0,
        suite: Suite::TOKEN,
        client_id,
        match_id: [0; 16],
        created,
        expires: created + 45,
        addresses: &[at],
        server_key: None,
        routing_token: b"",
        user: b"",
    };
    key().mint(&order, [count; 32], [count; 24]).unwrap()
}

fn host_with_tokens() -> (App, SocketAddr) {
    host(&ServerConfig::tokens(session(), key()))
}

#[test]
fn a_client_that_lost_its_session_asks_for_a_token_and_connects_with_it() {
    let (mut first, at) = host_with_tokens();
    let mut client = app();
    keep::<TokenWanted>(&mut client);
    let policy = Reconnect { first: Duration::from_millis(10), codes: &[3], ..Reconnect::default() };
    let of_token = WhitewaterClient::with_token(&token(42, at), session()).unwrap();
    client.insert_resource(of_token.reconnecting(policy));
    let is_there = |server: &mut App| {
        server.world_mut().query::<&ClientPass>().iter(server.world()).any(|pass| pass.client_id == 42)
    };
    update_until([&mut first, &mut client], |[first, _]| is_there(first));

    let (_, id) = only_client(&mut first);
    first.world_mut().resource_mut::<WhitewaterServer>().kick(id, 3, "restart").unwrap();
    update_until([&mut first, &mut client], |[_, client]| !kept::<TokenWanted>(client).is_empty());
    (0..50).for_each(|_| client.update());
    assert_eq!(kept::<TokenWanted>(&client).len(), 1, "it asks once");

    let (mut second, at) = host_with_tokens(); // another address
    client.world_mut().resource_mut::<Tokens>().push_back(token(42, at));
    update_until([&mut second, &mut client], |[second, _]| is_there(second));
}

fn joined_by_token() -> (App, App, SessionId) {
    let (mut server, at) = host_with_tokens();
    let mut client = app();
    client.insert_resource(WhitewaterClient::with_token(&token(1, at), session()).unwrap());
    update_until([&mut server, &mut client], |[server, _]| {
        !server.world().resource::<ClientEntities>().is_empty()
    });
    let (_, id) = only_client(&mut server);
    (server, client, id)
}

#[test]
fn a_redirected_client_goes_to_the_other_server() {
    let (mut first, mut client, id) = joined_by_token();
    let (mut second, other) = host_with_tokens();
    first.world_mut().resource_mut::<WhitewaterServer>().redirect(id, &token(1, other).encode()).unwrap();
    update_until([&mut first, &mut second, &mut client], |[_, second, _]| {
        !second.world().resource::<ClientEntities>().is_empty()
    });
    assert_eq!(client.world().resource::<WhitewaterClient>().peer_addr(), Some(other));
}

#[test]
fn a_client_that_hears_of_a_redirect_and_of_the_end_at_once_goes_and_hears_the_last_words() {
    let (mut first, mut client, id) = joined_by_token();
    let (mut second, other) = host_with_tokens();
    {
        let mut server = first.world_mut().resource_mut::<WhitewaterServer>();
        server.send(id, CHAT, b"last").unwrap();
        server.redirect(id, &token(1, other).encode()).unwrap();
    }
    first.update();
    first.world_mut().remove_resource::<WhitewaterServer>(); // which says goodbye
    std::thread::sleep(Duration::from_millis(50)); // so that one frame of the client has all of it
    update_until([&mut second, &mut client], |[second, _]| {
        !second.world().resource::<ClientEntities>().is_empty()
    });
    assert_eq!(end_of(&client), None, "that is the end of a session that it has left");
    assert_eq!(client.world().resource::<Heard>().chat, [(None, b"last".to_vec())]);
}

#[test]
fn diagnostics_show_the_session_and_the_traffic_of_the_server() {
    let (mut server, mut client) = connected();
    update_until([&mut server, &mut client], |[server, client]| {
        let _ = client.world_mut().resource_mut::<WhitewaterClient>().send(CHAT, &[1; 100]); // full now and then
        let value = |app: &App, path: DiagnosticPath| {
            app.world().resource::<DiagnosticsStore>().get_measurement(&path).map(|found| found.value)
        };
        value(client, RTT) > Some(0.0)
            && value(client, BYTES_SENT) > Some(1000.0)
            && value(client, RESENT).is_some()
            && value(client, REPAIRED).is_some()
            && value(server, BYTES_RECEIVED) > Some(1000.0)
            && value(server, CLIENTS) == Some(1.0)
    });
    let _unread = server.world().resource::<Kept<SessionEvent>>();
}
