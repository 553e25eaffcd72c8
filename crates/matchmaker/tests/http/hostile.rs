//! What strangers, servers and clients that misbehave may not do.

use crate::setup::{PATIENCE, Running, bearer, one, report, status};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use whitewater_matchmaker::Bearer;
use whitewater_matchmaker::messages::{Allocation, Hex, Id, Lease, Move, Report};
use whitewater_matchmaker::settings::Limits;

#[tokio::test]
async fn nobody_gets_anything_with_a_secret_that_is_for_something_else() {
    let running = Running::start(Limits::default()).await;
    let mut client = running.client();
    let (one, other) = (running.register(&mut client).await, running.register(&mut client).await);
    running.report(&mut client, &one, &report("eu", 10)).await.unwrap();
    let key = bearer(&one.key.to_string());
    let own = format!("/servers/{}", one.server.0);
    let (moved, drained) = (format!("{own}/move"), format!("{own}/drain"));
    let Running { servers, backend, operator, .. } = &running;
    let (secret, wrong) = (&bearer(&one.secret), &bearer(&other.secret));
    let requests: [(Method, &str, [&Bearer; 5]); 8] = [
        (Method::POST, "/join", [servers, operator, secret, wrong, &key]),
        (Method::POST, "/servers", [backend, operator, secret, wrong, &key]),
        (Method::GET, "/servers", [servers, backend, secret, wrong, &key]),
        (Method::GET, "/metrics", [servers, backend, secret, wrong, &key]),
        (Method::PUT, &own, [servers, backend, operator, wrong, &key]),
        (Method::DELETE, &own, [servers, backend, operator, wrong, &key]),
        (Method::POST, &moved, [servers, backend, operator, wrong, &key]),
        (Method::POST, &drained, [servers, backend, secret, wrong, &key]),
    ];
    for (method, path, shown) in requests {
        for shown in shown {
            let answer = client.text((method.clone(), path), shown, &crate::one(1, &[])).await;
            assert_eq!(status(answer), StatusCode::UNAUTHORIZED, "{method} {path}");
        }
    }
    let metrics = running.metrics(&mut client).await;
    assert!(metrics.contains("route=\"/join\",status=\"401\"} 5"), "{metrics}");
    assert!(metrics.contains("servers{region=\"eu\"} 1"), "{metrics}");
}

#[tokio::test]
async fn a_server_gets_tokens_only_for_players_who_came_to_it_and_while_it_has_a_lease() {
    let running = Running::start(Limits::default()).await;
    let mut client = running.client();
    let (one, other) = (running.register(&mut client).await, running.register(&mut client).await);
    running.report(&mut client, &one, &report("eu", 10)).await.unwrap();
    let players = running.admitted(&mut client, &one, 7).await;
    running.report(&mut client, &other, &report("eu", 10)).await.unwrap();
    let mut forged = players.clone();
    forged.passes[0].0[..8].copy_from_slice(&8_u64.to_le_bytes()); // another player
    let none = players.passes[0].0[..8].to_vec();
    for (server, passes, status) in [
        (&one, players.passes.clone(), StatusCode::OK),
        (&other, players.passes.clone(), StatusCode::FORBIDDEN),
        (&one, forged.passes, StatusCode::FORBIDDEN),
        (&one, vec![Hex(none)], StatusCode::FORBIDDEN),
        (&one, vec![Hex::default()], StatusCode::FORBIDDEN),
        (&one, vec![players.passes[0].clone(); 2], StatusCode::BAD_REQUEST),
        (&one, Vec::new(), StatusCode::BAD_REQUEST),
    ] {
        let path = format!("/servers/{}/move", server.server.0);
        let body = Move { passes, ..players.clone() };
        let answer = client.ask::<Allocation>((Method::POST, &path), &bearer(&server.secret), &body).await;
        match status {
            StatusCode::OK => assert_eq!(answer.unwrap().server, other.server),
            _ => assert_eq!(crate::setup::status(answer), status, "{body:?}"),
        }
    }
    let path = format!("/servers/{}/move", one.server.0);
    let join = json!({ "clients": ["7"] });
    let answer = client.ask::<Allocation>((Method::POST, &path), &bearer(&one.secret), &join).await;
    assert_eq!(status(answer), StatusCode::BAD_REQUEST, "a number is no pass");
    let end = format!("/servers/{}", one.server.0);
    client.ask::<()>((Method::DELETE, &end), &bearer(&one.secret), &()).await.unwrap();
    let answer = client.ask::<Allocation>((Method::POST, &path), &bearer(&one.secret), &players).await;
    assert_eq!(status(answer), StatusCode::FORBIDDEN, "it has no lease");
}

#[tokio::test]
async fn a_body_that_is_wrong_in_one_place_changes_nothing() {
    let running = Running::start(Limits::default()).await;
    let mut client = running.client();
    let server = running.register(&mut client).await;
    let path = format!("/servers/{}", server.server.0);
    let good = serde_json::to_value(report("eu", 10)).unwrap();
    let many = |count: u64| (0..count).map(|id| json!(id.to_string())).collect::<Vec<_>>();
    let wrong = [
        ("name", json!("")),
        ("name", json!("x".repeat(65))),
        ("name", json!("a\nb")),
        ("addresses", json!([])),
        ("addresses", json!(["192.0.2.1:0"])),
        ("addresses", json!(["0.0.0.0:1"])),
        ("addresses", json!(["localhost:1"])),
        ("addresses", json!(vec!["192.0.2.1:1"; 5])),
        ("region", json!("EU")),
        ("region", json!("a\"} 1")),
        ("region", json!("")),
        ("capacity", json!(0)),
        ("capacity", json!(65_536)),
        ("capacity", json!(-1)),
        ("players", json!(4_294_967_296_u64)),
        ("arrived", json!([7])),
        ("arrived", Value::Array(many(1025))),
        ("rtt_ms", json!(-1)),
        ("rtt_ms", json!(1e300)),
        ("loss", json!(1.5)),
        ("routing_token", json!("0")),
        ("routing_token", json!("00".repeat(21))),
        ("unknown", json!(1)),
    ];
    for (field, value) in wrong {
        let mut body = good.clone();
        body[field] = value.clone();
        let answer = client.ask::<Lease>((Method::PUT, &path), &bearer(&server.secret), &body).await;
        assert_eq!(status(answer), StatusCode::BAD_REQUEST, "{field}: {value}");
    }
    let metrics = running.metrics(&mut client).await;
    assert!(!metrics.contains("servers{"), "{metrics}");
    running.report(&mut client, &server, &report("eu", 10)).await.unwrap();
    let wrong = [
        json!(null),
        json!({}),
        json!({ "clients": [] }),
        json!({ "clients": [1] }),
        json!({ "clients": ["1", "1"] }),
        json!({ "clients": ["18446744073709551616"] }),
        json!({ "clients": many(65) }),
        json!({ "clients": ["1"], "regions": ["A"] }),
        json!({ "clients": ["1"], "regions": vec!["eu"; 17] }),
        json!({ "clients": ["1"], "match_id": "00" }),
    ];
    for body in wrong {
        let answer = client.ask::<Allocation>((Method::POST, "/join"), &running.backend, &body).await;
        assert_eq!(status(answer), StatusCode::BAD_REQUEST, "{body}");
    }
    let metrics = running.metrics(&mut client).await;
    assert!(metrics.contains("reserved{region=\"eu\"} 0"), "{metrics}");
}

#[tokio::test]
async fn a_body_that_is_too_long_is_not_read_and_a_report_of_any_length_is() {
    let running = Running::start(Limits::default()).await;
    let mut client = running.client();
    let long = json!({ "clients": ["1"], "x": "x".repeat(40_000) });
    let answer = client.ask::<Allocation>((Method::POST, "/join"), &running.backend, &long).await;
    assert_eq!(status(answer), StatusCode::PAYLOAD_TOO_LARGE);
    let mut client = running.client(); // the other may be closed
    let server = running.register(&mut client).await;
    let arrived = (0..1024).map(|id| Id(u64::MAX - id)).collect();
    let longest = Report { arrived, name: "\u{10348}".repeat(64), ..report(&"r".repeat(32), 65_535) };
    running.report(&mut client, &server, &longest).await.unwrap();
}

#[tokio::test]
async fn an_address_joins_so_often_and_no_more() {
    let running = Running::start(Limits { joins_per_address: 1, ..Limits::default() }).await;
    let mut client = running.client();
    let mut statuses = Vec::new();
    for _ in 0..20 {
        let answer = client.ask::<Allocation>((Method::POST, "/join"), &running.servers, &one(1, &[])).await;
        statuses.push(status(answer));
    }
    assert_eq!(statuses[0], StatusCode::UNAUTHORIZED);
    let limited = statuses.iter().filter(|status| **status == StatusCode::TOO_MANY_REQUESTS).count();
    assert!(limited > 0, "{statuses:?}");
    let metrics = running.metrics(&mut client).await;
    let line = format!("route=\"/join\",status=\"429\"}} {limited}\n");
    assert!(metrics.contains(&line), "{metrics}");
}

#[tokio::test]
async fn an_address_opens_so_many_connections_and_no_more() {
    let running = Running::start(Limits { connections_per_address: 1, ..Limits::default() }).await;
    let mut kept = running.client();
    running.register(&mut kept).await;
    let mut refused = 0;
    for _ in 0..10 {
        let answer = running.client().text((Method::GET, "/health"), &running.backend, &()).await;
        refused += u32::from(answer.is_err());
    }
    assert!(refused > 0);
    let metrics = running.metrics(&mut kept).await;
    let line = format!("connections_total{{outcome=\"limited\"}} {refused}\n");
    assert!(metrics.contains(&line), "{metrics}");
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_gets_another_for_one_that_ends() {
    let running = Running::start(Limits {
        connections_of_address: 2,
        connections_per_address: 1000,
        ..Limits::default()
    })
    .await;
    let (mut kept, mut other) = (running.client(), running.client());
    running.register(&mut kept).await;
    running.register(&mut other).await;
    assert!(running.client().text((Method::GET, "/health"), &running.backend, &()).await.is_err());
    let metrics = running.metrics(&mut kept).await;
    assert!(metrics.contains("connections_total{outcome=\"limited\"} 1\n"), "{metrics}");
    drop(other);
    let again = async {
        while running.client().text((Method::GET, "/health"), &running.backend, &()).await.is_err() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, again).await.expect("its place is never free");
}

#[tokio::test]
async fn whoever_is_slow_loses_the_connection_and_its_place() {
    let limits = Limits { connections: 2, patience: Duration::from_secs(2), ..Limits::default() };
    let running = Running::start(limits).await;
    let mut silent = TcpStream::connect(running.at).await.unwrap();
    let mut half = TcpStream::connect(running.at).await.unwrap();
    half.write_all(&[22, 3, 1]).await.unwrap(); // the start of a handshake
    for stream in [&mut silent, &mut half] {
        let read = timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
        assert!(read.is_ok(), "it still waits");
    }
    let mut client = running.client();
    let metrics = running.metrics(&mut client).await;
    assert!(metrics.contains("connections_total{outcome=\"no_tls\"} 2\n"), "{metrics}");
}

#[tokio::test]
async fn a_request_that_does_not_go_on_ends_at_any_place() {
    let limits = Limits { patience: Duration::from_secs(1), ..Limits::default() };
    let running = Running::start_plain(limits).await;
    let whole = "GET /health HTTP/1.1\r\nhost: x\r\n\r\n";
    let cut_body = "POST /join HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{";
    for (sent, status) in [
        ("", None),
        ("POST /jo", None),
        (cut_body, Some("408")),
        (whole, Some("200")),
        ("\0\0 / \r\n\r\n", Some("400")),
    ] {
        let mut stream = TcpStream::connect(running.at).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it still waits").unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(answer.split(' ').nth(1), status, "{sent:?}: {answer}");
    }
}

#[tokio::test]
async fn connections_over_the_limit_are_refused_and_counted() {
    let running = Running::start(Limits { connections: 1, ..Limits::default() }).await;
    let mut kept = running.client();
    running.register(&mut kept).await;
    for _ in 0..3 {
        assert!(running.client().text((Method::GET, "/health"), &running.backend, &()).await.is_err());
    }
    let metrics = running.metrics(&mut kept).await;
    assert!(metrics.contains("connections_total{outcome=\"full\"} 3\n"), "{metrics}");
}

#[tokio::test]
async fn a_route_or_method_that_is_not_there_makes_no_new_metric() {
    let running = Running::start(Limits::default()).await;
    let mut client = running.client();
    for path in ["/a", "/b", "/servers/x", "/servers/99999999999999999999", "/join/1"] {
        let method = Method::from_bytes(b"BREW").unwrap();
        assert!(client.text((method, path), &running.backend, &()).await.is_err());
    }
    let metrics = running.metrics(&mut client).await;
    let lines: Vec<_> = metrics.lines().filter(|line| line.contains("requests_total{")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("method=\"other\"")), "{lines:?}");
}
