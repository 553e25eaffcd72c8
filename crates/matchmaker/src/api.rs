//! The routes, and what each does.

use crate::access::{Bearer, shown};
use crate::body::Body;
use crate::fleet::{NoPlace, SERVERS_MAX, Wanted};
use crate::messages::{Allocation, Id, Identity, Join, Lease, Listed, Move, Report};
use crate::metrics::Metrics;
use crate::rate::Rate;
use crate::settings::{Check, Limits};
use crate::store::{Store, StoreError};
use crate::tokens::{Mint, MintError};
use axum::extract::{Extension, MatchedPath, Path, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use std::error::Error;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The page makes text of what it shows. If it did not, this would keep it from loading and telling anything elsewhere.
const PAGE_POLICY: &str = "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) struct App {
    pub(crate) mint: Mint,
    pub(crate) store: Store,
    pub(crate) servers: Bearer,
    pub(crate) operator: Bearer,
    pub(crate) check: Check,
    pub(crate) limits: Limits,
    pub(crate) joins: Mutex<Rate>,
    pub(crate) metrics: Metrics,
    pub(crate) start: Instant,
}

/// Where a request comes from.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Why there is nothing to answer.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("show the bearer secret that this takes")]
    Unauthorized,
    #[error("{0}")]
    Malformed(String),
    #[error("there is no such server")]
    NoServer,
    #[error("there is no lease")]
    NoLease,
    #[error("a pass is of no player of this server, or too old")]
    NoPass,
    #[error("no server has room")]
    NoRoom,
    #[error("too many requests of this address")]
    TooMany,
    #[error("there are {SERVERS_MAX} servers")]
    TooManyServers,
    #[error("the store does not answer")]
    Store(#[from] StoreError),
    #[error("there are no tokens")]
    Mint(#[from] MintError),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::NoLease | Self::NoPass => StatusCode::FORBIDDEN,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::NoServer => StatusCode::NOT_FOUND,
            Self::NoRoom => StatusCode::CONFLICT,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::TooManyServers | Self::Store(_) | Self::Mint(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        match &self {
            Self::Store(error) => tell(error),
            Self::Mint(error) => tell(error),
            _ => {}
        }
        let body = Json(serde_json::json!({ "error": self.to_string() }));
        match status {
            StatusCode::TOO_MANY_REQUESTS => (status, [(RETRY_AFTER, "1")], body).into_response(),
            _ => (status, body).into_response(),
        }
    }
}

/// Says it once a second at most, as every request of a stranger may fail. It may be that nobody reads it.
fn tell(error: &dyn Error) {
    static NEXT: Mutex<Option<Instant>> = Mutex::new(None);
    let (now, mut next) = (Instant::now(), NEXT.lock().unwrap_or_else(PoisonError::into_inner));
    if next.is_none_or(|next| now >= next) {
        *next = Some(now + Duration::from_secs(1));
        drop(next); // a full pipe stops this thread alone
        let _ = writeln!(io::stderr(), "whitewater-matchmaker: {error}");
    }
}

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/health", get(health))
        .route("/join", post(join))
        .route("/metrics", get(metrics))
        .route("/servers", get(list).post(register))
        .route("/servers/{id}", put(report).delete(remove))
        .route("/servers/{id}/move", post(move_players))
        .route("/servers/{id}/drain", post(drain))
        .layer(middleware::from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

/// Ends what takes too long, and counts every answer.
async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = known(request.method());
    let route =
        request.extensions().get::<MatchedPath>().map_or("other".into(), |path| path.as_str().to_owned());
    let answer = timeout(app.limits.patience, next.run(request)).await;
    let answer = answer.unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response());
    if route == "/join" {
        app.metrics.join_took(begun.elapsed());
    }
    app.metrics.count(method, route, answer.status().as_u16());
    answer
}

/// Any method may be asked for, but only these are counted by name.
fn known(method: &Method) -> &'static str {
    let all =
        [(Method::GET, "GET"), (Method::POST, "POST"), (Method::PUT, "PUT"), (Method::DELETE, "DELETE")];
    all.iter().find(|(known, _)| known == method).map_or("other", |(_, name)| name)
}

async fn page() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, PAGE_POLICY)];
    (headers, include_str!("page.html"))
}

async fn health(State(app): State<Arc<App>>) -> Result<&'static str, Refusal> {
    app.store.ping().await?;
    Ok("ok")
}

async fn join(
    State(app): State<Arc<App>>,
    Extension(Peer(address)): Extension<Peer>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Refusal> {
    let now = u64::try_from(app.start.elapsed().as_micros()).unwrap_or(u64::MAX);
    if !app.joins.lock().unwrap_or_else(PoisonError::into_inner).admit(now, address) {
        return Err(Refusal::TooMany);
    }
    // Nothing of a stranger's body is read but its clients, and nothing is answered that depends on it.
    let join = parse::<Join>(&body);
    let clients = join.as_ref().map_or(&[][..], |join| &join.clients);
    if !(app.check)(shown(&headers), clients) {
        return Err(Refusal::Unauthorized);
    }
    allocate(&app, &join?, None).await
}

async fn move_players(
    State(app): State<Arc<App>>,
    Path(id): Path<u64>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Refusal> {
    of_server(&app, id, &headers)?;
    let Move { passes, regions, match_id } = parse(&body)?;
    let clients = passes.iter().map(|pass| app.mint.client(Id(id), &pass.0));
    let clients = clients.collect::<Option<_>>().ok_or(Refusal::NoPass)?;
    allocate(&app, &Join { clients, regions, match_id }, Some(Id(id))).await
}

async fn allocate(app: &App, join: &Join, from: Option<Id>) -> Result<Response, Refusal> {
    join.check().map_err(|wrong| Refusal::Malformed(wrong.into()))?;
    let wanted = Wanted { clients: &join.clients, regions: &join.regions, from };
    let (server, report) = app.store.join(&wanted).await?.map_err(|none| match none {
        NoPlace::NoLease => Refusal::NoLease,
        NoPlace::NoRoom => Refusal::NoRoom,
    })?;
    let tokens = app.mint.tokens(server, &report, join)?;
    app.metrics.tokens.fetch_add(join.clients.len() as u64, Relaxed);
    Ok(secret(Allocation { server, region: report.region, tokens }))
}

async fn register(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Refusal> {
    permit(app.servers.is(shown(&headers)))?;
    let identity: Identity = app.mint.identity()?;
    Ok(secret(identity))
}

async fn report(
    State(app): State<Arc<App>>,
    Path(id): Path<u64>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Json<Lease>, Refusal> {
    of_server(&app, id, &headers)?;
    let report: Report = parse(&body)?;
    report.check().map_err(|wrong| Refusal::Malformed(wrong.into()))?;
    let drain = app.store.report(Id(id), report).await?.ok_or(Refusal::TooManyServers)?;
    let lease_ms = u64::try_from(app.limits.lease.as_millis()).unwrap_or(u64::MAX);
    Ok(Json(Lease { lease_ms, drain }))
}

async fn remove(
    State(app): State<Arc<App>>,
    Path(id): Path<u64>,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    of_server(&app, id, &headers)?;
    app.store.remove(Id(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn drain(
    State(app): State<Arc<App>>,
    Path(id): Path<u64>,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    permit(app.operator.is(shown(&headers)))?;
    if app.store.drain(Id(id)).await? { Ok(StatusCode::NO_CONTENT) } else { Err(Refusal::NoServer) }
}

async fn list(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Json<Vec<Listed>>, Refusal> {
    permit(app.operator.is(shown(&headers)))?;
    Ok(Json(app.store.list().await?))
}

async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Refusal> {
    permit(app.operator.is(shown(&headers)))?;
    let text = app.metrics.render(&app.store.list().await?);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

fn permit(is_permitted: bool) -> Result<(), Refusal> {
    if is_permitted { Ok(()) } else { Err(Refusal::Unauthorized) }
}

fn of_server(app: &App, id: u64, headers: &HeaderMap) -> Result<(), Refusal> {
    permit(app.mint.is_secret(Id(id), shown(headers)))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::Malformed(error.to_string()))
}

/// An answer that nobody on the way may keep.
fn secret(body: impl serde::Serialize) -> Response {
    ([(CACHE_CONTROL, "no-store")], Json(body)).into_response()
}
