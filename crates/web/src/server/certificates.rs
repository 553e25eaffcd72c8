//! The certificate: made, or read from files that may change.

use super::config::{Certificate, WebConfig};
use super::window::Open;
use quinn_proto::HashedConnectionIdGenerator;
use ring::hmac;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{self, SupportedProtocolVersion};
use wtransport::Identity;
use wtransport::quinn::crypto::rustls::QuicServerConfig;
use wtransport::quinn::{EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use wtransport::tls::{Certificate as Parsed, WEBTRANSPORT_ALPN};

/// A certificate and its key.
#[derive(Debug)]
pub(super) struct Identified {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// When its files were written.
    written: [Option<SystemTime>; 2],
}

impl Identified {
    pub(super) fn load(certificate: &Certificate) -> io::Result<Self> {
        let written = written(certificate); // first, so that a change while they are read is seen afterwards
        let (chain, key) = match certificate {
            Certificate::SelfSigned { names } => {
                let identity = Identity::self_signed(names).map_err(io::Error::other)?;
                let chain = identity.certificate_chain().as_slice().iter();
                let key = PrivatePkcs8KeyDer::from(identity.private_key().secret_der().to_vec());
                (chain.map(|one| CertificateDer::from(one.der().to_vec())).collect(), key.into())
            }
            Certificate::Files { chain, key } => {
                let certificates = CertificateDer::pem_file_iter(chain).and_then(Iterator::collect);
                let certificates = certificates.map_err(|error| wrong(chain, &error))?;
                (certificates, PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?)
            }
        };
        Ok(Self { chain, key, written })
    }

    /// Whether its files are others now.
    pub(super) fn is_outdated(&self, certificate: &Certificate) -> bool {
        self.written != written(certificate)
    }

    /// The hash of the certificate, by which a browser accepts one that is self-signed.
    pub(super) fn hash(&self) -> [u8; 32] {
        let first = self.chain.first().and_then(|first| Parsed::from_der(first.to_vec()).ok());
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
        let mut tls = self.rustls(&[&TLS13])?;
        tls.alpn_protocols = vec![WEBTRANSPORT_ALPN.to_vec()];
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
        Ok(TlsAcceptor::from(Arc::new(self.rustls(&[&TLS13, &TLS12])?)))
    }

    /// An error if the key is not that of the certificate.
    fn rustls(&self, versions: &[&'static SupportedProtocolVersion]) -> io::Result<rustls::ServerConfig> {
        rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(versions)
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(io::Error::other)
    }
}

/// What outlasts connections: with a key of its own, whoever has it can recognize them, and reset them. Source: RFC 9000 (10.3.2).
pub(super) fn endpoint(config: &WebConfig) -> EndpointConfig {
    let mut endpoint = EndpointConfig::default();
    if let Some(key) = &config.reset_key {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let of_numbers = hmac::sign(&key, b"ww/1 web connections");
        let of_numbers = of_numbers.as_ref().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, b"ww/1 web resets").as_ref());
        endpoint
            .reset_key(Arc::new(key))
            .cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(of_numbers)));
    }
    endpoint
}

/// A file that cannot be read.
fn wrong(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

/// When the files of a certificate were written.
fn written(certificate: &Certificate) -> [Option<SystemTime>; 2] {
    let at = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    match certificate {
        Certificate::SelfSigned { .. } => [None; 2],
        Certificate::Files { chain, key } => [at(chain), at(key)],
    }
}

/// How often to look whether the files have changed.
pub(super) const LOOK_EACH: Duration =
    if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(10) };
/// A connection without a word from the browser ends. The session in it ends by its own timeout.
const IDLE: Duration = Duration::from_secs(30);
/// Bytes of a stream that wait.
const STREAM: u32 = 16 << 10;
/// Bytes of datagrams that wait, each way. The oldest ones go.
const DATAGRAMS: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Web, listen};
    use std::path::PathBuf;
    use std::time::Instant;
    use tokio::io::{AsyncRead, AsyncReadExt as _};
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::RootCertStore;
    use wtransport::tls::Sha256Digest;
    use wtransport::tls::client::{ServerHashVerification, build_default_tls_config};
    use wtransport::{ClientConfig, Connection, Endpoint};

    /// A folder with a certificate in it, as certbot keeps one.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("whitewater-web-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn write(&self, file: &str, text: impl AsRef<[u8]>) {
            std::fs::write(self.0.join(file), text).unwrap();
        }

        fn put(&self, identity: &Identity) {
            self.write("privkey.pem", identity.private_key().to_secret_pem());
            self.write("fullchain.pem", pem(identity));
        }

        fn config(&self) -> WebConfig {
            let mut config = WebConfig::new(Certificate::folder(&self.0));
            config.addr = ([127, 0, 0, 1], 0).into();
            config
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn identity() -> Identity {
        Identity::self_signed(["localhost", "127.0.0.1"]).unwrap()
    }

    fn pem(identity: &Identity) -> String {
        identity.certificate_chain().as_slice()[0].to_pem()
    }

    fn hash(identity: &Identity) -> Sha256Digest {
        identity.certificate_chain().as_slice()[0].hash()
    }

    async fn connect(web: &Web, hash: Sha256Digest) -> Option<Connection> {
        let config = ClientConfig::builder().with_bind_default().with_server_certificate_hashes([hash]);
        Endpoint::client(config.build()).unwrap().connect(web.url("127.0.0.1")).await.ok()
    }

    /// Whether the server has that certificate for WebSockets.
    async fn has_tls(web: &Web, hash: Sha256Digest) -> bool {
        tls(web, hash).await.is_some()
    }

    async fn tls(web: &Web, hash: Sha256Digest) -> Option<TlsStream<TcpStream>> {
        let hash = Arc::new(ServerHashVerification::new([hash]));
        let mut tls = build_default_tls_config(Arc::new(RootCertStore::empty()), Some(hash));
        tls.alpn_protocols.clear();
        let stream = TcpStream::connect(web.local_addr()).await.unwrap();
        TlsConnector::from(Arc::new(tls)).connect("localhost".try_into().unwrap(), stream).await.ok()
    }

    /// Waits until the server has ended what never says anything.
    async fn ended(mut stream: impl AsyncRead + Unpin) {
        let mut bytes = [0; 100];
        let read = async { while stream.read(&mut bytes).await.is_ok_and(|len| len > 0) {} };
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("it is ended in time");
    }

    /// Tries until the server has that certificate.
    async fn renewed(web: &Web, hash: Sha256Digest) -> Connection {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(connection) = connect(web, hash.clone()).await {
                return connection;
            }
            assert!(Instant::now() < until, "it is not renewed");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[tokio::test]
    async fn new_connections_get_the_certificate_that_was_renewed_and_old_ones_go_on() {
        let (folder, [old, new]) = (Folder::new("renewed"), [identity(), identity()]);
        folder.put(&old);
        let (web, browsers) = listen(&folder.config()).unwrap();
        assert_eq!(&web.certificate_hash(), hash(&old).as_ref());
        let before = connect(&web, hash(&old)).await.expect("the first");
        assert!(has_tls(&web, hash(&old)).await);
        folder.put(&new);
        let after = renewed(&web, hash(&new)).await;
        assert!(has_tls(&web, hash(&new)).await && !has_tls(&web, hash(&old)).await);
        assert!(connect(&web, hash(&old)).await.is_none());
        for connection in [&before, &after] {
            let received = web.stats().received;
            connection.send_datagram(b"still there").unwrap();
            while web.stats().received == received {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        drop(browsers);
    }

    #[tokio::test]
    async fn a_certificate_that_is_half_written_is_not_taken_and_ends_nothing() {
        let (folder, [old, new]) = (Folder::new("half"), [identity(), identity()]);
        folder.put(&old);
        let (web, browsers) = listen(&folder.config()).unwrap();
        let half = pem(&new);
        for chain in ["", &half[..half.len() / 2], &half] {
            folder.write("fullchain.pem", chain); // the last is whole, with the key of another
            tokio::time::sleep(4 * LOOK_EACH).await;
            assert!(connect(&web, hash(&old)).await.is_some());
            assert!(connect(&web, hash(&new)).await.is_none());
        }
        std::fs::remove_file(folder.0.join("privkey.pem")).unwrap();
        tokio::time::sleep(4 * LOOK_EACH).await;
        assert!(connect(&web, hash(&old)).await.is_some());
        folder.put(&new);
        renewed(&web, hash(&new)).await;
        drop(browsers);
    }

    #[tokio::test]
    async fn a_handshake_by_tls_and_the_request_in_it_have_one_time_limit() {
        let (folder, one) = (Folder::new("slow"), identity());
        folder.put(&one);
        let mut config = folder.config();
        config.handshake_timeout = Duration::from_millis(300);
        let (web, browsers) = listen(&config).unwrap();
        ended(TcpStream::connect(web.local_addr()).await.unwrap()).await;
        ended(tls(&web, hash(&one)).await.expect("the certificate is known")).await;
        let until = Instant::now() + Duration::from_secs(20);
        while (web.stats().failed, web.stats().connections) != (2, 0) {
            assert!(Instant::now() < until, "{:?}", web.stats());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(browsers);
    }

    #[test]
    fn what_is_wrong_with_files_is_an_error_at_the_start() {
        let (folder, [one, other]) = (Folder::new("wrong"), [identity(), identity()]);
        let error = listen(&folder.config()).unwrap_err().to_string();
        assert!(error.contains("fullchain.pem"), "{error}");
        folder.put(&one);
        folder.write("privkey.pem", other.private_key().to_secret_pem());
        listen(&folder.config()).expect_err("the key of another certificate");
        folder.write("fullchain.pem", "");
        listen(&folder.config()).expect_err("none");
    }

    #[test]
    fn a_key_in_the_form_of_sec1_serves_both_transports() {
        let folder = Folder::new("sec1");
        let one = identity();
        folder.put(&one);
        let key = &one.private_key().secret_der()[PKCS8_OF_P256..];
        folder.write("privkey.pem", format!("{SEC1}\n{}\n{}", base64(key), SEC1.replace("BEGIN", "END")));
        listen(&folder.config()).unwrap();
    }

    fn base64(bytes: &[u8]) -> String {
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let of = |three: &[u8]| -> String {
            let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*three.get(at).unwrap_or(&0)));
            let digit = |at: usize| char::from(digits[(bits >> (18 - 6 * at)) as usize & 63]);
            (0..4).map(|at| if at > three.len() { '=' } else { digit(at) }).collect()
        };
        bytes.chunks(3).map(of).collect()
    }

    /// Bytes before the key itself, which is what SEC1 has.
    const PKCS8_OF_P256: usize = 29;
    const SEC1: &str = concat!("-----BEGIN EC ", "PRIVATE KEY-----");
}
