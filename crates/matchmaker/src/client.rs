//! A client for game servers and backends in Rust: one connection, opened again when it is lost.

use crate::access::Bearer;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, HOST};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

pub use hyper::{Method, StatusCode};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of an answer: a list of 10,000 servers has some 4 MB.
const ANSWER_MAX: usize = 16 << 20;

/// A matchmaker, as a game server or a backend sees it.
pub struct Client {
    address: SocketAddr,
    /// The host for `Host`, and TLS if it is to be used.
    host: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A status other than 2xx, and what the matchmaker says.
    #[error("{0}: {1}")]
    Refused(StatusCode, String),
    /// The matchmaker cannot be reached, or its certificate is not valid.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It does not speak HTTP, or the connection was lost.
    #[error("{0}")]
    Http(#[from] hyper::Error),
    /// It did not answer in time.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Timeout,
    /// It is not what was expected.
    #[error("an answer that cannot be read: {0}")]
    Answer(String),
}

impl Client {
    /// Plain HTTP, for a matchmaker on this machine.
    #[must_use]
    pub fn plain(address: SocketAddr) -> Self {
        Self { address, host: address.to_string(), tls: None, connection: None }
    }

    /// HTTPS to this address; the certificate has to be for `name`, and from one of `roots`, in PEM.
    ///
    /// # Errors
    ///
    /// There is no certificate in `roots`, or `name` cannot be the name of a server.
    pub fn tls(address: SocketAddr, name: &str, roots: &[u8]) -> Result<Self, TlsError> {
        let mut store = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(roots) {
            store.add(root?)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(store)
            .with_no_client_auth();
        let server = ServerName::try_from(name.to_owned())?;
        let tls = Some((TlsConnector::from(Arc::new(config)), server));
        Ok(Self { address, host: name.to_owned(), tls, connection: None })
    }

    /// Asks, and reads the JSON of the answer.
    ///
    /// # Errors
    ///
    /// There is no answer, or a refusal.
    pub async fn ask<T: DeserializeOwned>(
        &mut self,
        (method, path): (Method, &str),
        secret: &Bearer,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let answer = self.text((method, path), secret, body).await?;
        let answer = if answer.is_empty() { &b"null"[..] } else { &answer };
        serde_json::from_slice(answer).map_err(|error| ClientError::Answer(error.to_string()))
    }

    /// Asks, and returns the bytes of the answer.
    ///
    /// # Errors
    ///
    /// There is no answer, or a refusal.
    pub async fn text(
        &mut self,
        (method, path): (Method, &str),
        secret: &Bearer,
        body: &impl Serialize,
    ) -> Result<Bytes, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| ClientError::Answer(error.to_string()))?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.host)
            .header(AUTHORIZATION, format!("Bearer {}", secret.secret()))
            .body(Full::new(body.into()))
            .map_err(|error| ClientError::Answer(error.to_string()))?;
        timeout(PATIENCE, self.send(request)).await.unwrap_or(Err(ClientError::Timeout))
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Bytes, ClientError> {
        // Taken out meanwhile: a connection with half an answer is of no more use.
        let kept = match self.connection.take() {
            Some(mut connection) => connection.ready().await.is_ok().then_some(connection),
            None => None,
        };
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let answer = connection.send_request(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
        let body = body.map_err(|error| ClientError::Answer(error.to_string()))?.to_bytes();
        self.connection = Some(connection);
        if status.is_success() {
            return Ok(body);
        }
        Err(ClientError::Refused(status, String::from_utf8_lossy(&body).into_owned()))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => started(stream).await,
            Some((tls, name)) => started(tls.connect(name.clone(), stream).await?).await,
        }
    }
}

async fn started(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<SendRequest<Full<Bytes>>, ClientError> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection); // ends with the sender, or with an error that the sender reports
    Ok(sender)
}

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The roots are not PEM.
    #[error("{0}")]
    Pem(#[from] pem::Error),
    /// A root is not a certificate.
    #[error("{0}")]
    Rustls(#[from] rustls::Error),
    /// This cannot be the name of a server.
    #[error("{0}")]
    Name(#[from] InvalidDnsNameError),
}
