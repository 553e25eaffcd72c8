//! The transport of browsers beside the socket of a server.

mod browsers;
mod certificates;
mod config;
mod doors;
mod http3;
mod listener;
mod window;

pub use browsers::Browsers;
pub use config::{Certificate, WebConfig};
pub use doors::WebStats;

use browsers::Hall;
use doors::Doors;
use listener::Listener;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;

/// A listener for browsers, on a thread of its own. It ends when its [`Browsers`] are dropped, with the server that they are attached to.
#[derive(Clone)]
pub struct Web {
    hall: Arc<Hall>,
    local_addr: SocketAddr,
    certificate_hash: [u8; 32],
    path: Arc<str>,
}

/// Starts to listen for browsers. [Attach](whitewater::Server::attach) them to a server:
///
/// ```no_run
/// use whitewater::{Server, ServerConfig, SessionConfig};
/// use whitewater_web::WebConfig;
///
/// # fn main() -> std::io::Result<()> {
/// let mut server = Server::bind("0.0.0.0:4000", &ServerConfig::secret(SessionConfig::default(), [7; 32]))?;
/// let (web, browsers) = whitewater_web::listen(&WebConfig::self_signed(["localhost"]))?;
/// server.attach(browsers)?;
/// println!("browsers: {}, certificate {:x?}", web.url("localhost"), web.certificate_hash());
/// loop {
///     server.poll(None)?;
///     while let Some((id, event)) = server.poll_event() {
///         println!("{id:?} {event:?}"); // of browsers and of native clients
///     }
/// }
/// # }
/// ```
///
/// # Errors
///
/// The address is in use, the certificate cannot be read, or the system has no thread.
pub fn listen(config: &WebConfig) -> io::Result<(Web, Browsers)> {
    let (hall, browsers) = Hall::new(Doors::new(config), config.queue);
    let (give, begun) = mpsc::channel();
    let (config, own, path) = (config.clone(), Arc::clone(&hall), config.path.as_str().into());
    // All of it there: a caller that runs on tokio must not block on another runtime, or drop one.
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let bound = runtime.and_then(|runtime| {
            let listener = runtime.block_on(Listener::bind(config, own))?;
            Ok((listener.local_addr()?, listener.identity().hash(), runtime, listener))
        });
        match bound {
            Ok((local_addr, hash, runtime, listener)) => {
                let _ = give.send(Ok((local_addr, hash))); // it waits for that
                runtime.block_on(listener.run());
            }
            Err(error) => drop(give.send(Err(error))),
        }
    };
    thread::Builder::new().name("whitewater-web".to_owned()).spawn(run)?;
    let (local_addr, certificate_hash) = begun.recv().map_err(io::Error::other)??;
    Ok((Web { hall, local_addr, certificate_hash, path }, browsers))
}

impl Web {
    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The URL for clients, with a name or an IP address of this host.
    #[must_use]
    pub fn url(&self, host: &str) -> String {
        format!("https://{host}:{}{}", self.local_addr.port(), self.path)
    }

    /// SHA-256 of the certificate that it began with. A browser needs it if that is self-signed.
    #[must_use]
    pub const fn certificate_hash(&self) -> [u8; 32] {
        self.certificate_hash
    }

    /// Statistics: connections, and what was refused.
    #[must_use]
    pub fn stats(&self) -> WebStats {
        self.hall.doors.stats()
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web")
            .field("local_addr", &self.local_addr)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
