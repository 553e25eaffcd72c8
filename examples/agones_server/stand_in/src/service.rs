//! The services of the SDK, generated from its .proto files.

#![expect(clippy::result_large_err, reason = "it is the error of tonic")]

use crate::game_server::{GameServer, State};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::{TcpListenerStream, WatchStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

#[allow(dead_code, reason = "generated, and not all of it is used")]
mod sdk {
    tonic::include_proto!("agones.dev.sdk");

    pub mod beta {
        tonic::include_proto!("agones.dev.sdk.beta");
    }
}

use sdk::Empty;
use sdk::beta::sdk_server::{Sdk as Beta, SdkServer as BetaServer};
use sdk::game_server::spec::Health;
use sdk::game_server::status::{CounterStatus, Port};
use sdk::game_server::{ObjectMeta, Spec, Status as GameServerStatus};
use sdk::sdk_server::{Sdk, SdkServer};

/// What the name of a label begins with that the SDK sets.
const LABEL: &str = "agones.dev/sdk-";
const PLAYERS: &str = "players";

type Answer<T> = Result<Response<T>, Status>;

#[derive(Clone)]
pub(crate) struct Service(pub(crate) Arc<watch::Sender<GameServer>>);

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, service: Service) {
    let server = tonic::transport::Server::builder()
        .add_service(SdkServer::new(service.clone()))
        .add_service(BetaServer::new(service));
    if let Err(error) = server.serve_with_incoming(TcpListenerStream::new(listener)).await {
        eprintln!("the stand-in ends: {error}");
    }
}

/// Checks once a period whether the server is alive.
pub(crate) async fn check_health(game_server: Arc<watch::Sender<GameServer>>) {
    loop {
        let period = game_server.borrow().health.period;
        tokio::time::sleep(period).await;
        game_server.send_if_modified(|game_server| game_server.check(Instant::now()));
    }
}

/// Changes the `GameServer`, and tells whoever watches it.
pub(crate) fn change<T>(
    game_server: &watch::Sender<GameServer>,
    change: impl FnOnce(&mut GameServer) -> Result<T, String>,
) -> Result<T, String> {
    let mut result = Err(String::new());
    game_server.send_modify(|game_server| result = change(game_server));
    result
}

impl Service {
    fn change(&self, how: impl FnOnce(&mut GameServer) -> Result<(), String>) -> Answer<Empty> {
        change(&self.0, how).map_err(Status::failed_precondition)?;
        Ok(Response::new(Empty {}))
    }
}

#[tonic::async_trait]
impl Sdk for Service {
    async fn ready(&self, _: Request<Empty>) -> Answer<Empty> {
        self.change(GameServer::ready)
    }

    async fn allocate(&self, _: Request<Empty>) -> Answer<Empty> {
        self.change(GameServer::allocate)
    }

    async fn shutdown(&self, _: Request<Empty>) -> Answer<Empty> {
        self.change(GameServer::shut_down)
    }

    async fn health(&self, beats: Request<Streaming<Empty>>) -> Answer<Empty> {
        let mut beats = beats.into_inner();
        while beats.message().await?.is_some() {
            self.0.send_if_modified(|game_server| {
                game_server.health.beat(Instant::now());
                false // nobody watches beats
            });
        }
        Ok(Response::new(Empty {}))
    }

    async fn get_game_server(&self, _: Request<Empty>) -> Answer<sdk::GameServer> {
        Ok(Response::new(message(&self.0.borrow())))
    }

    type WatchGameServerStream =
        std::pin::Pin<Box<dyn Stream<Item = Result<sdk::GameServer, Status>> + Send>>;

    async fn watch_game_server(&self, _: Request<Empty>) -> Answer<Self::WatchGameServerStream> {
        let changes = WatchStream::new(self.0.subscribe());
        Ok(Response::new(Box::pin(changes.map(|game_server| Ok(message(&game_server))))))
    }

    async fn set_label(&self, label: Request<sdk::KeyValue>) -> Answer<Empty> {
        let sdk::KeyValue { key, value } = label.into_inner();
        self.change(|game_server| {
            game_server.labels.insert(format!("{LABEL}{key}"), value);
            Ok(())
        })
    }

    async fn set_annotation(&self, _: Request<sdk::KeyValue>) -> Answer<Empty> {
        Err(absent())
    }

    async fn reserve(&self, _: Request<sdk::Duration>) -> Answer<Empty> {
        Err(absent())
    }
}

#[tonic::async_trait]
impl Beta for Service {
    async fn get_counter(&self, wanted: Request<sdk::beta::GetCounterRequest>) -> Answer<sdk::beta::Counter> {
        let name = wanted.into_inner().name;
        let counter = self.0.borrow().players.filter(|_| name == PLAYERS);
        let counter = counter.ok_or_else(|| Status::unknown(format!("counter not found: {name}")))?;
        Ok(Response::new(sdk::beta::Counter { name, count: counter.count, capacity: counter.capacity }))
    }

    async fn update_counter(
        &self,
        wanted: Request<sdk::beta::UpdateCounterRequest>,
    ) -> Answer<sdk::beta::Counter> {
        let update = wanted.into_inner().counter_update_request;
        let update = update.ok_or_else(|| Status::unknown("invalid argument"))?;
        if update.name != PLAYERS || update.count_diff != 0 {
            return Err(absent());
        }
        let counter = change(&self.0, |game_server| game_server.count(update.count, update.capacity));
        let counter = counter.map_err(Status::unknown)?;
        let (count, capacity) = (counter.count, counter.capacity);
        Ok(Response::new(sdk::beta::Counter { name: update.name, count, capacity }))
    }

    async fn get_list(&self, _: Request<sdk::beta::GetListRequest>) -> Answer<sdk::beta::List> {
        Err(absent())
    }

    async fn update_list(&self, _: Request<sdk::beta::UpdateListRequest>) -> Answer<sdk::beta::List> {
        Err(absent())
    }

    async fn add_list_value(&self, _: Request<sdk::beta::AddListValueRequest>) -> Answer<sdk::beta::List> {
        Err(absent())
    }

    async fn remove_list_value(
        &self,
        _: Request<sdk::beta::RemoveListValueRequest>,
    ) -> Answer<sdk::beta::List> {
        Err(absent())
    }
}

fn absent() -> Status {
    Status::unimplemented("the stand-in does not have this")
}

/// A `GameServer` as the SDK shows it.
fn message(game_server: &GameServer) -> sdk::GameServer {
    let GameServer { name, uid, port, state, health, players, labels, calls: _ } = game_server.clone();
    let counters = players.map(|players| {
        (PLAYERS.to_owned(), CounterStatus { count: players.count, capacity: players.capacity })
    });
    let health = Health {
        disabled: false,
        period_seconds: seconds(health.period),
        failure_threshold: i32::try_from(health.failure_threshold).unwrap_or(i32::MAX),
        initial_delay_seconds: seconds(health.initial_delay),
    };
    sdk::GameServer {
        object_meta: Some(ObjectMeta {
            name,
            uid,
            namespace: "default".to_owned(),
            labels: labels.into_iter().collect(),
            ..ObjectMeta::default()
        }),
        spec: Some(Spec { health: Some(health) }),
        status: Some(GameServerStatus {
            state: state_name(state),
            address: "127.0.0.1".to_owned(),
            ports: vec![Port { name: "game".to_owned(), port: port.into() }],
            counters: counters.into_iter().collect(),
            ..GameServerStatus::default()
        }),
    }
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

/// Agones' names of the states are those of the variants.
fn state_name(state: State) -> String {
    format!("{state:?}")
}
