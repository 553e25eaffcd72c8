//! A stand-in for the sidecar of Agones, for tests and for running the example without a cluster. It speaks the published gRPC API of the
//! SDK, keeps the state of one `GameServer` in memory, and enforces the order of calls and the period of health.
//!
//! It is not Agones. Nothing is scaled, restarted or deleted, calls take effect at once, and of the API it has what the example needs: no
//! HTTP, lists, annotations, reservations.

mod game_server;
mod service;

pub use game_server::{Counter, GameServer, Health, State};

use service::Service;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// How long its tasks may take to end.
const END: Duration = Duration::from_secs(10);

/// A sidecar that can be started and killed. The `GameServer` outlives it, as in Kubernetes.
#[derive(Debug)]
pub struct StandIn {
    game_server: Arc<watch::Sender<GameServer>>,
    port: u16,
    running: Option<Runtime>,
}

impl StandIn {
    /// One that is not started yet, on a free port if `port` is 0.
    ///
    /// # Errors
    ///
    /// The port is not free.
    pub fn new(port: u16, game_server: GameServer) -> io::Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.local_addr()?.port();
        Ok(Self { game_server: Arc::new(watch::Sender::new(game_server)), port, running: None })
    }

    /// For `AGONES_SDK_GRPC_PORT`.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Listens, and checks the health from now on. It must not run already.
    ///
    /// # Errors
    ///
    /// The port is taken, or there is no thread for it.
    pub fn start(&mut self) -> io::Result<()> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)))?;
        self.game_server.send_modify(|game_server| game_server.health.start(Instant::now()));
        runtime.spawn(service::check_health(self.game_server.clone()));
        runtime.spawn(service::serve(listener, Service(self.game_server.clone())));
        self.running = Some(runtime);
        Ok(())
    }

    /// Ends without a goodbye: connections break.
    pub fn kill(&mut self) {
        if let Some(runtime) = self.running.take() {
            runtime.shutdown_timeout(END);
        }
    }

    /// Ends before it has passed on who plays: Agones' sidecar collects changes of counters for half a second.
    pub fn kill_and_forget(&mut self) {
        self.kill();
        self.game_server.send_modify(|game_server| {
            if let Some(players) = &mut game_server.players {
                players.count = 0;
            }
        });
    }

    /// The `GameServer` as it is now.
    #[must_use]
    pub fn game_server(&self) -> GameServer {
        self.game_server.borrow().clone()
    }

    /// Its changes, from now on.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<GameServer> {
        self.game_server.subscribe()
    }

    /// What a `GameServerAllocation` does.
    ///
    /// # Errors
    ///
    /// It is not `Ready`.
    pub fn allocate(&self) -> Result<(), String> {
        service::change(&self.game_server, GameServer::allocate)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.kill();
    }
}
