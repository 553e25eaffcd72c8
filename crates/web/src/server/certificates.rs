//! The certificate: made, or read from files that may change.

use super::config::{Certificate, WebConfig};
use super::window::Open;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use wtransport::Identity;
use wtransport::quinn::crypto::rustls::QuicServerConfig;
use wtransport::quinn::{IdleTimeout, ServerConfig, TransportConfig, VarInt};
use wtransport::tls::server::build_default_tls_config;

/// A certificate with what was made of it.
#[derive(Debug)]
pub(super) struct Identified {
    identity: Identity,
    /// When its files were written.
    written: [Option<SystemTime>; 2],
}

impl Identified {
    pub(super) async fn load(certificate: &Certificate) -> io::Result<Self> {
        let identity = match certificate {
            Certificate::SelfSigned { names } => Identity::self_signed(names).map_err(io::Error::other)?,
            Certificate::Files { chain, key } => {
                Identity::load_pemfiles(chain, key).await.map_err(io::Error::other)?
            }
        };
        Ok(Self { identity, written: written(certificate) })
    }

    /// Whether its files are others now.
    pub(super) fn is_outdated(&self, certificate: &Certificate) -> bool {
        self.written != written(certificate)
    }

    /// The hash of the certificate, by which a browser accepts one that is self-signed.
    pub(super) fn hash(&self) -> [u8; 32] {
        let first = self.identity.certificate_chain().as_slice().first();
        first.map_or([0; 32], |certificate| *certificate.hash().as_ref())
    }

    /// The settings of WebTransport.
    pub(super) fn quic(&self, config: &WebConfig) -> io::Result<ServerConfig> {
        let mut transport = TransportConfig::default();
        let idle = IdleTimeout::try_from(IDLE).ok();
        transport
            .congestion_controller_factory(Arc::new(Open))
            .max_idle_timeout(idle)
            // HTTP/3 has three streams of its own each way, and a session has one.
            .max_concurrent_bidi_streams(VarInt::from_u32(2))
            .max_concurrent_uni_streams(VarInt::from_u32(4))
            // Nothing but the headers of a request comes on streams.
            .stream_receive_window(VarInt::from_u32(STREAM))
            .receive_window(VarInt::from_u32(4 * STREAM))
            .send_window(u64::from(4 * STREAM))
            .datagram_receive_buffer_size(Some(DATAGRAMS))
            .datagram_send_buffer_size(DATAGRAMS);
        let tls = build_default_tls_config(self.identity.clone_identity());
        let tls = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
        let mut quic = ServerConfig::with_crypto(Arc::new(tls));
        quic.transport_config(Arc::new(transport))
            .max_incoming(config.handshakes)
            .incoming_buffer_size(64 << 10)
            .incoming_buffer_size_total(16 << 20);
        Ok(quic)
    }

    /// The TLS of WebSockets.
    pub(super) fn tls(&self) -> io::Result<TlsAcceptor> {
        let chain = self.identity.certificate_chain().as_slice().iter();
        let chain = chain.map(|certificate| CertificateDer::from(certificate.der().to_vec())).collect();
        let key = PrivatePkcs8KeyDer::from(self.identity.private_key().secret_der().to_vec());
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = tokio_rustls::rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::Pkcs8(key))
            .map_err(io::Error::other)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// When the files of a certificate were written.
fn written(certificate: &Certificate) -> [Option<SystemTime>; 2] {
    let at = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    match certificate {
        Certificate::SelfSigned { .. } => [None; 2],
        Certificate::Files { chain, key } => [at(chain), at(key)],
    }
}

/// A connection without a word from the browser ends. The session in it ends by its own timeout.
const IDLE: Duration = Duration::from_secs(30);
/// Bytes of a stream that wait.
const STREAM: u32 = 16 << 10;
/// Bytes of datagrams that wait, each way. The oldest ones go.
const DATAGRAMS: usize = 256 << 10;
