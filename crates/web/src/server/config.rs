//! Where browsers arrive, by which certificate, and limits.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How browsers are served. Start with [`new`](Self::new) or [`self_signed`](Self::self_signed).
///
/// Each limit bounds what strangers can cause before they have a session: then those of `ServerConfig` apply.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct WebConfig {
    /// Where to listen, by UDP for WebTransport and by TCP for WebSockets. Port 0: one that the system chooses, the same for both. It has to be another port than
    /// that of native clients. Default: `[::]:4433`.
    pub addr: SocketAddr,
    /// The certificate of both.
    pub certificate: Certificate,
    /// Whether to accept WebSockets, for browsers without WebTransport and networks without UDP. With a self-signed certificate they come without TLS, because
    /// browsers accept none of those there. Default: yes.
    pub websockets: bool,
    /// The path of the URL. Default: `/`.
    pub path: String,
    /// Pages that may connect, such as `https://game.example.org`. Empty, the default: any. A program that is no browser can claim what it likes.
    pub origins: Vec<String>,
    /// Most connections at a time. Default: 4096.
    pub connections: usize,
    /// Most connections at a time from one IP address, or IPv6 network of 64 bits. Default: 16.
    pub connections_per_address: usize,
    /// Most handshakes at a time, which is where a stranger costs most. From half of that on, an address has to be proven first. Default: 256.
    pub handshakes: usize,
    /// The same from one address. Default: 8.
    pub handshakes_per_address: usize,
    /// How long a handshake may take. Default: 5 s.
    pub handshake_timeout: Duration,
    /// How long a connection may be without a session, before and after it had one. Default: 15 s.
    pub idle_timeout: Duration,
    /// Most bytes of datagrams that a connection may send before it has a session. Default: 64 KiB.
    pub bytes_without_session: u64,
    /// With the same key as before, a server that was started again tells browsers that their connections are gone, so that they
    /// open new ones at once instead of after 5 s (QUIC's stateless reset). It is as secret as `ServerConfig::reset_key`, which
    /// tells their sessions; one key can serve as both. `None`, the default: one that is lost when the server stops.
    pub reset_key: Option<[u8; 16]>,
    /// Most datagrams that wait for the server, from all browsers. Default: 4096.
    pub queue: usize,
}

impl WebConfig {
    /// For a certificate that browsers accept.
    #[must_use]
    pub fn new(certificate: Certificate) -> Self {
        Self {
            addr: SocketAddr::from((Ipv6Addr::UNSPECIFIED, 4433)),
            certificate,
            websockets: true,
            path: "/".to_owned(),
            origins: Vec::new(),
            connections: 4096,
            connections_per_address: 16,
            handshakes: 256,
            handshakes_per_address: 8,
            handshake_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(15),
            bytes_without_session: 64 << 10,
            reset_key: None,
            queue: 4096,
        }
    }

    /// For development: a certificate for these names that is made now and valid for 14 days, the longest for which a browser accepts it by its hash.
    #[must_use]
    pub fn self_signed(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::new(Certificate::SelfSigned { names: names.into_iter().map(Into::into).collect() })
    }
}

/// The certificate of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Certificate {
    /// Made at the start, for these names or IP addresses.
    SelfSigned {
        /// Host names and IP addresses.
        names: Vec<String>,
    },
    /// Of files in PEM. They are read again when they change.
    Files {
        /// The certificate, and those between it and its root.
        chain: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}

impl Certificate {
    /// What an ACME client such as certbot keeps in the folder of a name: `fullchain.pem` and `privkey.pem`.
    #[must_use]
    pub fn folder(folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        Self::Files { chain: folder.join("fullchain.pem"), key: folder.join("privkey.pem") }
    }
}
