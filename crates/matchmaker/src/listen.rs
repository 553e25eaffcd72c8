//! Connections with HTTP/1.1 over TLS: their number, their rate and their time are limited.

use crate::api::{App, Peer};
use crate::open::{Counted, Open};
use crate::rate::Rate;
use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

/// A connection ends when it is this old; clients open another. Nobody can keep a place for ever.
const AGE_MAX: Duration = Duration::from_secs(600);
/// Most bytes of the head of a request, and of a part of its body or of an answer. Clients can make us keep that much for each connection.
const BUFFER_MAX: usize = 16_384;
/// How long to wait when the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) app: Arc<App>,
    pub(crate) router: Router,
}

impl Listener {
    /// Serves until told to end, and then until all answers are out.
    pub(crate) async fn serve(self, until: impl Future<Output = ()>) {
        let limits = self.app.limits;
        let most = Arc::new(Semaphore::new(limits.connections));
        let (mut rate, open) = (Rate::new(limits.connections_per_address), Open::default());
        let (end, ends) = watch::channel(());
        let mut until = pin!(until);
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                () = &mut until => break,
            };
            let Some((stream, from)) = self.admitted(accepted, &mut rate).await else { continue };
            let counts = &self.app.metrics.connections;
            let Some(counted) = open.count(from.ip(), limits.connections_of_address) else {
                counts.limited.fetch_add(1, Relaxed);
                continue;
            };
            let Ok(permit) = Arc::clone(&most).try_acquire_owned() else {
                counts.full.fetch_add(1, Relaxed);
                continue;
            };
            counts.accepted.fetch_add(1, Relaxed);
            let (app, router) = (Arc::clone(&self.app), self.router.clone());
            let connection = Connection { app, router, from, place: (counted, permit) };
            tokio::spawn(connection.run(stream, self.tls.clone(), ends.clone()));
        }
        drop(end);
        let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
        let _ = timeout(limits.patience, most.acquire_many(all)).await; // or some did not end in time
    }

    async fn admitted(
        &self,
        accepted: io::Result<(TcpStream, SocketAddr)>,
        rate: &mut Rate,
    ) -> Option<(TcpStream, SocketAddr)> {
        let Ok((stream, from)) = accepted else {
            sleep(PAUSE).await; // it has left already, or there are too many open files
            return None;
        };
        let now = u64::try_from(self.app.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        if !rate.admit(now, from.ip()) {
            self.app.metrics.connections.limited.fetch_add(1, Relaxed);
            return None;
        }
        let _ = stream.set_nodelay(true); // slower without it, but not wrong
        Some((stream, from))
    }
}

struct Connection {
    app: Arc<App>,
    router: Router,
    from: SocketAddr,
    /// In the numbers of connections; free when this is dropped.
    place: (Counted, OwnedSemaphorePermit),
}

impl Connection {
    async fn run(self, stream: TcpStream, tls: Option<TlsAcceptor>, ends: watch::Receiver<()>) {
        let Some(tls) = tls else { return self.answer(stream, ends).await };
        match timeout(self.app.limits.patience, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.answer(stream, ends).await,
            _ => _ = self.app.metrics.connections.no_tls.fetch_add(1, Relaxed),
        }
    }

    async fn answer(self, stream: impl AsyncRead + AsyncWrite + Unpin, mut ends: watch::Receiver<()>) {
        let Self { app, router, from, place } = self;
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(from.ip()));
            router.clone().call(request)
        });
        let mut http = Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(app.limits.patience).max_buf_size(BUFFER_MAX);
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            _ = &mut connection => return drop(place), // ended, also by an error: that is the client's business
            _ = ends.changed() => {}
            () = sleep(AGE_MAX) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = timeout(app.limits.patience, connection).await; // or it is cut off
        drop(place);
    }
}
