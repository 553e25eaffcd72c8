//! Browsers on the servers of tokio and of threads.
#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

mod players;

use players::{CHAT, PSK, Player, Way, client, play, session, web};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::runtime::Runtime;
use whitewater::thread::ThreadConfig;
use whitewater::{ClientConfig, Event, ServerConfig, SessionConfig};
use whitewater_web::{Web, listen};

fn config() -> ServerConfig {
    ServerConfig::secret(SessionConfig::default(), PSK)
}

/// A browser by each transport and a native client play. Then their connections are idle.
async fn all_play(web: &Web, native: SocketAddr) -> [Player; 2] {
    let own = client(ClientConfig::secret(session(), PSK));
    let by_quic = Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.unwrap();
    let by_tcp = Way::web_socket(web.local_addr(), "/").await.unwrap();
    let mut players = [by_quic, by_tcp].map(|way| Player::new(way, &own));
    for player in &mut players {
        let (messages, datagrams) = play(player, 90).await;
        assert!(messages == 100 && datagrams >= 90, "{messages}, {datagrams}");
    }
    let config = ClientConfig::secret(SessionConfig::default(), PSK);
    let native = whitewater::tokio::Client::connect(native, &config).await.unwrap();
    native.send(CHAT, b"native").await.unwrap();
    assert_eq!(native.recv(CHAT).await.unwrap()[..], b"native"[..]);
    native.close(0);
    players
}

/// The connections end, whatever was the last word of their sessions.
async fn all_end(players: [Player; 2]) {
    for mut player in players {
        let end = async { while player.way.recv().await.is_ok() {} };
        tokio::time::timeout(Duration::from_secs(20), end).await.unwrap();
    }
}

async fn echo(session: whitewater::tokio::Session) {
    loop {
        let sent = tokio::select! {
            Ok(message) = session.recv(CHAT) => session.send(CHAT, &message).await.is_ok(),
            Ok(datagram) = session.recv_datagram() => {
                let _ = session.send_datagram(&datagram); // it may be lost
                true
            }
            else => false,
        };
        if !sent {
            return;
        }
    }
}

#[test]
fn a_server_of_tokio_serves_browsers_beside_native_clients() {
    Runtime::new().unwrap().block_on(async {
        let server = whitewater::tokio::Server::bind("127.0.0.1:0", &config()).unwrap();
        let (web, browsers) = listen(&web()).unwrap();
        server.attach(browsers);
        let at = server.local_addr();
        let accepting = tokio::spawn(async move {
            for _ in 0..3 {
                tokio::spawn(echo(server.accept().await.unwrap()));
            }
            server
        });
        let players = all_play(&web, at).await;
        let server = accepting.await.unwrap();
        assert_eq!((web.stats().web_transports, web.stats().web_sockets), (1, 1));
        server.shutdown(7).await.unwrap();
        drop(server);
        all_end(players).await;
    });
}

#[test]
fn a_server_of_threads_serves_browsers_beside_native_clients() {
    let mut server = whitewater::Server::bind("127.0.0.1:0", &config()).unwrap();
    let (web, browsers) = listen(&web()).unwrap();
    server.attach(browsers).unwrap();
    let at = server.local_addr().unwrap();
    let mut server = whitewater::thread::Server::spawn(vec![server], &ThreadConfig::default()).unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let echo = std::thread::spawn(move || {
        while stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
            server.poll(Some(Duration::from_millis(20)));
            while let Some((id, event)) = server.poll_event() {
                if event != Event::Readable {
                    continue;
                }
                while let Some(message) = server.recv(id, CHAT) {
                    server.send(id, CHAT, &message).unwrap();
                }
                while let Some(datagram) = server.recv_datagram(id) {
                    let _ = server.send_datagram(id, &datagram); // it may be lost
                }
            }
        }
        server
    });
    let runtime = Runtime::new().unwrap();
    let players = runtime.block_on(all_play(&web, at));
    drop(stop);
    echo.join().unwrap().shutdown(7).unwrap();
    runtime.block_on(all_end(players));
    assert_eq!((web.stats().web_transports, web.stats().web_sockets), (1, 1));
}
