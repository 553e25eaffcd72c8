//! The same with servers of tokio, whose requests the application takes itself.

use crate::redis_server::RedisServer;
use crate::world::{PATIENCE, config, mint};
use tokio::task::spawn_blocking;
use whitewater::tokio::{Client, Request, Server};
use whitewater::{ClientConfig, SessionConfig};
use whitewater_fleet::{Redis, Refusal, UsedTokens, WhenGone};

#[tokio::test]
async fn servers_of_tokio_share_used_tokens() {
    let Some(redis) = RedisServer::start() else { return };
    let token = mint(1);
    let mut joined = Vec::new();
    for _ in 0..2 {
        let (config, store) = (config(), Redis::open(redis.url()).unwrap());
        let used = UsedTokens::new(&config, store, PATIENCE, WhenGone::Refuse).unwrap();
        let server = Server::bind("127.0.0.1:0", &config).unwrap();
        let client_config = ClientConfig::token(SessionConfig::default(), &token);
        let (client, answer) = tokio::join!(Client::connect(server.local_addr(), &client_config), async {
            let mut request = server.next_request().await.unwrap();
            decide(&used, &mut request).await
        });
        joined.push((client.is_ok(), answer));
    }
    assert_eq!(joined, [(true, Ok(())), (false, Err(Refusal::Used))]);
}

/// As an application does it for each request, in a task of its own.
async fn decide(used: &UsedTokens, request: &mut Request) -> Result<(), Refusal> {
    let Some(token) = request.token() else { return Err(Refusal::Unknown) };
    let question = used.ask(token);
    let answer = spawn_blocking(move || question.wait()).await.unwrap();
    match answer {
        Ok(()) => drop(request.admit(b"").await.unwrap()),
        Err(refusal) => request.reject(refusal.code(), refusal.text().as_bytes()).unwrap(),
    }
    answer
}
