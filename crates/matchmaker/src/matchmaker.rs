//! The parts of a matchmaker put together.

use crate::api::{self, App};
use crate::fleet::Terms;
use crate::listen::Listener;
use crate::metrics::Metrics;
use crate::rate::Rate;
use crate::settings::Settings;
use crate::store::Store;
use crate::tokens::Mint;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// A matchmaker that listens.
pub struct Matchmaker(Listener);

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is not ours, or in use.
    #[error("cannot listen: {0}")]
    Listen(#[from] io::Error),
    /// Redis is not there.
    #[error("{0}")]
    Store(String),
}

impl Matchmaker {
    /// Connects to Redis, if it is to use one, and listens.
    ///
    /// # Errors
    ///
    /// The address cannot be had, or Redis does not answer.
    pub async fn bind(settings: Settings) -> Result<Self, StartError> {
        let Settings { listen, tls, fleet_key, protocol_id, servers, check, operator, redis, limits } =
            settings;
        let terms = Terms::new(limits.lease);
        let store = match redis {
            Some(redis) => {
                Store::redis(redis, terms).await.map_err(|error| StartError::Store(error.to_string()))?
            }
            None => Store::memory(terms),
        };
        let app = Arc::new(App {
            mint: Mint::new(fleet_key, protocol_id),
            store,
            servers,
            operator,
            check,
            limits,
            joins: Mutex::new(Rate::new(limits.joins_per_address)),
            metrics: Metrics::default(),
            start: Instant::now(),
        });
        let socket = TcpListener::bind(listen).await?;
        let router = api::router(Arc::clone(&app));
        Ok(Self(Listener { socket, tls: tls.map(TlsAcceptor::from), app, router }))
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// The system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.socket.local_addr()
    }

    /// Answers requests until `until`, and then ends those that have begun.
    pub async fn serve(self, until: impl Future<Output = ()>) {
        self.0.serve(until).await;
    }
}
