//! The service's end: sessions in, TCP out.

use crate::rates::{Rates, join};
use crate::{BYTES, Done, Key, config};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::signal::ctrl_c;
use whitewater::ServerConfig;
use whitewater::tokio::{Server, Session};

pub(crate) async fn run(listen: SocketAddr, service: SocketAddr, key: Key, rates: Arc<Rates>) -> Done {
    let server = bind(listen, key)?;
    println!("from {} to {service}", server.local_addr());
    tokio::select! {
        done = serve(&server, service, rates) => done?,
        _ = ctrl_c() => server.shutdown(0).await?,
    }
    Ok(())
}

pub(crate) fn bind(listen: SocketAddr, key: Key) -> io::Result<Server> {
    let limits = ServerConfig {
        sessions_per_address: 1024,
        accept_burst: 256,
        accepts_per_second: 256,
        ..key.map_or_else(|| ServerConfig::insecure(config()), |key| ServerConfig::secret(config(), key))
    };
    Server::bind(listen, &limits)
}

/// Serves until the socket fails.
pub(crate) async fn serve(server: &Server, service: SocketAddr, rates: Arc<Rates>) -> io::Result<()> {
    loop {
        let (session, rates) = (server.accept().await?, Arc::clone(&rates));
        tokio::spawn(async move {
            if let Err(error) = through(&session, service, &rates).await {
                println!("a connection has ended: {error}");
                session.close(1); // so that the other end knows
            }
        });
    }
}

async fn through(session: &Session, service: SocketAddr, rates: &Rates) -> io::Result<()> {
    let tcp = TcpStream::connect(service).await?;
    tcp.set_nodelay(true)?;
    join(session.stream(BYTES).into_split(), tcp.into_split(), rates).await
}
