//! The matchmaker over real connections on loopback: what it answers, and what it refuses and counts.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has found something")]

mod hostile;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod program;
mod redis;
mod setup;

use axum::http::{Method, StatusCode};
use serde_json::Value;
use setup::{Running, bearer, one, report};
use std::time::Duration;
use tokio::time::timeout;
use whitewater::session::token::PublicToken;
use whitewater_matchmaker::messages::{Allocation, Hex, Id, Join, Lease, Listed};
use whitewater_matchmaker::settings::Limits;

#[tokio::test]
async fn a_token_is_for_the_client_the_match_and_the_server_and_opens_with_its_key_only() {
    let running = Running::start(Limits::default()).await;
    let mut client = running.client();
    let (server, other) = (running.register(&mut client).await, running.register(&mut client).await);
    assert_ne!(server.server, other.server);
    running.report(&mut client, &server, &report("eu", 10)).await.unwrap();
    let join =
        Join { clients: vec![Id(u64::MAX), Id(7)], match_id: Hex(vec![9; 16]), ..one(0, &["us", "eu"]) };
    let place: Allocation = client.ask((Method::POST, "/join"), &running.backend, &join).await.unwrap();
    assert_eq!((place.server, place.region.as_str(), place.tokens.len()), (server.server, "eu", 2));
    for (client, token) in join.clients.iter().zip(&place.tokens) {
        let token = PublicToken::decode(&token.0).unwrap();
        let said = report("eu", 10);
        assert_eq!((&token.addresses, &token.routing_token), (&said.addresses, &said.routing_token.0));
        assert_eq!(token.expires - token.created, 45);
        let grant = setup::open(&server, &token).unwrap();
        assert_eq!((grant.client_id, grant.match_id), (client.0, [9; 16]));
        assert!(setup::open(&other, &token).is_err());
    }
}

#[tokio::test]
async fn a_server_moves_its_players_to_another_one_and_ends() {
    let running = Running::start(Limits::default()).await;
    let mut client = running.client();
    let (first, second) = (running.register(&mut client).await, running.register(&mut client).await);
    let secret = bearer(&first.secret);
    let path = format!("/servers/{}/move", first.server.0);
    running.report(&mut client, &first, &report("eu", 10)).await.unwrap();
    let players = running.admitted(&mut client, &first, 7).await;
    let alone = client.ask::<Allocation>((Method::POST, &path), &secret, &players).await;
    assert_eq!(setup::status(alone), StatusCode::CONFLICT);
    running.report(&mut client, &second, &report("us", 10)).await.unwrap();
    let drain = format!("/servers/{}/drain", first.server.0);
    client.ask::<()>((Method::POST, &drain), &running.operator, &()).await.unwrap();
    let told: Lease = running.report(&mut client, &first, &report("eu", 10)).await.unwrap();
    assert_eq!(told, Lease { lease_ms: 15_000, drain: true });
    let place: Allocation = client.ask((Method::POST, &path), &secret, &players).await.unwrap();
    assert_eq!(place.server, second.server);
    let token = PublicToken::decode(&place.tokens[0].0).unwrap();
    assert_eq!(setup::open(&second, &token).unwrap().client_id, 7);
    let end = format!("/servers/{}", first.server.0);
    client.ask::<()>((Method::DELETE, &end), &secret, &()).await.unwrap();
    let list: Vec<Listed> = client.ask((Method::GET, "/servers"), &running.operator, &()).await.unwrap();
    assert_eq!(list.iter().map(|listed| listed.server).collect::<Vec<_>>(), [second.server]);
    assert_eq!((list[0].reserved, list[0].report.rtt_ms), (1, 31.5));
}

#[tokio::test]
async fn a_server_that_stops_reporting_gets_no_more_players() {
    let limits = Limits { lease: Duration::from_secs(2), joins_per_address: 1_000_000, ..Limits::default() };
    let running = Running::start(limits).await;
    let mut client = running.client();
    let server = running.register(&mut client).await;
    running.report(&mut client, &server, &report("eu", 60_000)).await.unwrap();
    let mut joined = 0;
    let end = tokio::time::Instant::now() + setup::PATIENCE;
    loop {
        let join = one(joined, &[]);
        match client.ask::<Allocation>((Method::POST, "/join"), &running.backend, &join).await {
            Ok(_) => joined += 1,
            refused => break assert_eq!(setup::status(refused), StatusCode::CONFLICT),
        }
        assert!(tokio::time::Instant::now() < end, "the lease never lapses");
    }
    assert!(joined > 0, "it had a lease");
    let list: Value = client.ask((Method::GET, "/servers"), &running.operator, &()).await.unwrap();
    assert_eq!(list, Value::Array(Vec::new()));
}

#[tokio::test]
async fn a_thousand_joins_at_once_fill_the_servers_and_no_more() {
    let running = Running::start(Limits { lease: setup::PATIENCE, ..Limits::default() }).await;
    let mut client = running.client();
    for capacity in [400, 250, 50] {
        let server = running.register(&mut client).await;
        running.report(&mut client, &server, &report("eu", capacity)).await.unwrap();
    }
    let connections = (0..20).map(|connection| {
        let (mut client, backend) = (running.client(), running.backend.clone());
        tokio::spawn(async move {
            let mut joined = 0;
            for player in 0..50 {
                let join = one(connection * 50 + player, &["eu"]);
                let answer = client.ask::<Allocation>((Method::POST, "/join"), &backend, &join).await;
                joined += u32::from(answer.is_ok());
            }
            joined
        })
    });
    let mut joined = 0;
    for connection in connections.collect::<Vec<_>>() {
        joined += connection.await.unwrap();
    }
    assert_eq!(joined, 700);
    let metrics = running.metrics(&mut client).await;
    for line in [
        "requests_total{method=\"POST\",route=\"/join\",status=\"200\"} 700",
        "requests_total{method=\"POST\",route=\"/join\",status=\"409\"} 300",
        "tokens_total 700",
        "join_seconds_count 1000",
        "servers{region=\"eu\"} 3",
        "reserved{region=\"eu\"} 700",
        "capacity{region=\"eu\"} 700",
        "connections_total{outcome=\"accepted\"} 21",
    ] {
        assert!(metrics.contains(&format!("whitewater_matchmaker_{line}\n")), "{line}: {metrics}");
    }
}

#[tokio::test]
async fn a_matchmaker_that_was_started_again_knows_a_server_by_its_next_report() {
    let mut before = Running::start(Limits::default()).await;
    let server = before.register(&mut before.client()).await;
    before.end().await;
    let after = Running::start(Limits::default()).await; // with the same fleet key
    let mut client = after.client();
    let none = client.ask::<Allocation>((Method::POST, "/join"), &after.backend, &one(1, &[])).await;
    assert_eq!(setup::status(none), StatusCode::CONFLICT);
    after.report(&mut client, &server, &report("eu", 10)).await.unwrap();
    let place: Allocation = client.ask((Method::POST, "/join"), &after.backend, &one(1, &[])).await.unwrap();
    assert_eq!(place.server, server.server);
}

#[tokio::test]
async fn it_ends_when_told_to_after_its_last_answer() {
    let mut running = Running::start(Limits::default()).await;
    let mut client = running.client();
    running.register(&mut client).await;
    running.end().await;
    assert!(client.text((Method::GET, "/health"), &running.backend, &()).await.is_err());
}

#[tokio::test]
async fn joins_are_refused_while_redis_is_silent_and_go_on_after_that() {
    let Some(redis) = redis::Server::start("stopped").await else { return };
    let running = Running::start_with(Limits::default(), Some(redis.url())).await;
    let mut client = running.client();
    let server = running.register(&mut client).await;
    running.report(&mut client, &server, &report("eu", 10)).await.unwrap();
    redis.signal("STOP");
    for _ in 0..2 {
        let answer = client.ask::<Allocation>((Method::POST, "/join"), &running.backend, &one(1, &[])).await;
        assert_eq!(setup::status(answer), StatusCode::SERVICE_UNAVAILABLE); // and not 408, which is ours for what takes too long
    }
    let answer = client.text((Method::GET, "/health"), &running.backend, &()).await;
    assert_eq!(setup::status(answer), StatusCode::SERVICE_UNAVAILABLE);
    redis.signal("CONT");
    let again = async {
        let join = one(1, &[]);
        while client.ask::<Allocation>((Method::POST, "/join"), &running.backend, &join).await.is_err() {
            running.report(&mut client, &server, &report("eu", 10)).await.ok();
        }
    };
    timeout(setup::PATIENCE, again).await.expect("it never joins again");
}
