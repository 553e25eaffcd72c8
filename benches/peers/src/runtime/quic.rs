//! A QUIC stream by quinn, encrypted by ring.

use super::pairs::WINDOW;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::rustls::{self, RootCertStore};
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig, VarInt,
};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream, and what must live as long.
pub(crate) struct Quic {
    send: SendStream,
    receive: RecvStream,
    _connection: Connection,
    _endpoint: Endpoint,
}

impl Quic {
    pub(crate) const fn new(
        send: SendStream,
        receive: RecvStream,
        connection: Connection,
        endpoint: Endpoint,
    ) -> Self {
        Self { send, receive, _connection: connection, _endpoint: endpoint }
    }
}

/// Both ends; the second one accepts its stream once there is data in it.
pub(super) async fn pair(at: SocketAddr) -> (Quic, impl Future<Output = Quic>) {
    let (server, config) = configs(&transport());
    let server = Endpoint::server(server, at).expect("a port");
    let endpoint = Endpoint::client(at).expect("a port");
    let to = server.local_addr().expect("an address");
    let connecting = endpoint.connect_with(config, to, "localhost").expect("a config");
    let accepting = async { server.accept().await.expect("a client").await.expect("a connection") };
    let (near, far) = tokio::join!(connecting, accepting);
    let near = near.expect("a connection");
    let (send, receive) = near.open_bi().await.expect("a stream");
    let near = Quic::new(send, receive, near, endpoint);
    let far = async move {
        let (send, receive) = far.accept_bi().await.expect("a stream");
        Quic::new(send, receive, far, server)
    };
    (near, far)
}

/// Of both ends, with a certificate for `localhost` that only they know.
pub(crate) fn configs(transport: &Arc<TransportConfig>) -> (ServerConfig, ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls13 = &[&rustls::version::TLS13];
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(tls13)
        .expect("ring has it")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they belong together");
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(tls13)
        .expect("ring has it")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut server =
        ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).expect("it has AES")));
    server.transport_config(Arc::clone(transport));
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).expect("it has AES")));
    client.transport_config(Arc::clone(transport));
    (server, client)
}

/// Allows as much data in flight as the others.
fn transport() -> Arc<TransportConfig> {
    let bytes = u32::from(WINDOW) * 1400;
    let mut config = TransportConfig::default();
    config.stream_receive_window(VarInt::from_u32(bytes));
    config.receive_window(VarInt::from_u32(bytes));
    config.send_window(bytes.into());
    Arc::new(config)
}

impl AsyncRead for Quic {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut self.receive), cx, buf)
    }
}

impl AsyncWrite for Quic {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.send), cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.send), cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(&mut self.send), cx)
    }
}
