//! A matchmaker with TLS on loopback, in this process.

use axum::http::{Method, StatusCode};
use rcgen::CertifiedKey;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use whitewater::session::Suite;
use whitewater::session::token::{FleetKey, Grant, PublicToken, ServerKey, TokenError, Verifier};
use whitewater_matchmaker::client::{Client, ClientError};
use whitewater_matchmaker::messages::{Allocation, Hex, Id, Identity, Join, Lease, Move, Report};
use whitewater_matchmaker::settings::{Limits, Redis, Settings};
use whitewater_matchmaker::{Bearer, Matchmaker};

pub(crate) const PROTOCOL_ID: u64 = 77;
/// For what has to happen at some time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Running {
    pub(crate) at: SocketAddr,
    pub(crate) servers: Bearer,
    pub(crate) backend: Bearer,
    pub(crate) operator: Bearer,
    root: String,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::start_with(limits, None).await
    }

    /// With a Redis, or in memory.
    pub(crate) async fn start_with(limits: Limits, redis: Option<String>) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        Self::run(limits, Some(Arc::new(tls)), cert.pem(), redis).await
    }

    /// Without TLS, for tests that write requests by hand.
    pub(crate) async fn start_plain(limits: Limits) -> Self {
        Self::run(limits, None, String::new(), None).await
    }

    async fn run(
        limits: Limits,
        tls: Option<Arc<ServerConfig>>,
        root: String,
        redis: Option<String>,
    ) -> Self {
        let [servers, backend, operator] = ["servers", "backend", "operator"].map(secret);
        let admits = backend.clone();
        let settings = Settings {
            listen: "127.0.0.1:0".parse().unwrap(),
            tls,
            fleet_key: FleetKey::new([5; 32]),
            protocol_id: PROTOCOL_ID,
            servers: servers.clone(),
            check: Box::new(move |shown, _| admits.is(shown)),
            operator: operator.clone(),
            redis: redis.map(|url| Redis { url, fleet: "one".into() }),
            limits,
        };
        let matchmaker = Matchmaker::bind(settings).await.unwrap();
        let at = matchmaker.local_addr().unwrap();
        let (end, ends) = oneshot::channel();
        let task = tokio::spawn(matchmaker.serve(async { _ = ends.await }));
        Self { at, servers, backend, operator, root, end: Some(end), task }
    }

    pub(crate) fn client(&self) -> Client {
        Client::tls(self.at, "localhost", self.root.as_bytes()).unwrap()
    }

    pub(crate) async fn register(&self, client: &mut Client) -> Identity {
        client.ask((Method::POST, "/servers"), &self.servers, &()).await.unwrap()
    }

    pub(crate) async fn report(
        &self,
        client: &mut Client,
        server: &Identity,
        report: &Report,
    ) -> Result<Lease, ClientError> {
        let path = format!("/servers/{}", server.server.0);
        client.ask((Method::PUT, &path), &bearer(&server.secret), report).await
    }

    /// Sends a player to the only server that has room, which this is. Returns what it then may move them by.
    pub(crate) async fn admitted(&self, client: &mut Client, server: &Identity, player: u64) -> Move {
        let join = one(player, &[]);
        let place: Allocation = client.ask((Method::POST, "/join"), &self.backend, &join).await.unwrap();
        assert_eq!(place.server, server.server);
        let token = PublicToken::decode(&place.tokens.first().unwrap().0).unwrap();
        let passes = vec![Hex(open(server, &token).unwrap().user)];
        Move { passes, regions: Vec::new(), match_id: Hex::default() }
    }

    pub(crate) async fn metrics(&self, client: &mut Client) -> String {
        let text = client.text((Method::GET, "/metrics"), &self.operator, &()).await.unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }

    pub(crate) async fn end(&mut self) {
        self.end.take().unwrap().send(()).unwrap();
        timeout(PATIENCE, &mut self.task).await.unwrap().unwrap();
    }
}

/// Opens a token as this server does.
pub(crate) fn open(server: &Identity, token: &PublicToken) -> Result<Grant, TokenError> {
    let key = server.key.0.clone().try_into().unwrap();
    let verifier = Verifier::new(ServerKey::new(server.server.0, server.key_id, key));
    verifier.set_age(token.created, 60);
    verifier.open(token.created, PROTOCOL_ID, Suite::TOKEN, &token.sealed)
}

pub(crate) fn bearer(text: &str) -> Bearer {
    Bearer::new(text).unwrap()
}

fn secret(whose: &str) -> Bearer {
    bearer(&format!("a secret of the {whose}").replace(' ', "-"))
}

pub(crate) fn report(region: &str, capacity: u32) -> Report {
    Report {
        name: "one".into(),
        addresses: vec!["192.0.2.1:4000".parse().unwrap(), "[2001:db8::1]:4000".parse().unwrap()],
        region: region.into(),
        capacity,
        players: 0,
        arrived: Vec::new(),
        rtt_ms: 31.5,
        loss: 0.25,
        routing_token: Hex(vec![1, 2]),
        draining: false,
    }
}

/// One client who joins.
pub(crate) fn one(client: u64, regions: &[&str]) -> Join {
    let regions = regions.iter().map(|region| (*region).to_owned()).collect();
    Join { clients: vec![Id(client)], regions, match_id: Hex::default() }
}

/// The status of a refusal.
pub(crate) fn status<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> StatusCode {
    match answer {
        Err(ClientError::Refused(status, _)) => status,
        other => panic!("not refused: {other:?}"),
    }
}
