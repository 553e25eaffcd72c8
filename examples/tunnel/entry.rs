//! The user's end: TCP in, sessions out.

use crate::rates::{Rates, join};
use crate::{BYTES, Done, Key, config};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::ctrl_c;
use tokio::task::JoinSet;
use tokio::time::timeout;
use whitewater::ClientConfig;
use whitewater::tokio::Client;

pub(crate) async fn run(listen: SocketAddr, exit: SocketAddr, key: Key, rates: Arc<Rates>) -> Done {
    let listener = TcpListener::bind(listen).await?;
    println!("from {} to {exit}", listener.local_addr()?);
    tokio::select! {
        done = serve(&listener, exit, key, rates) => done?,
        _ = ctrl_c() => {}
    }
    Ok(())
}

/// Serves until the socket fails. Dropping it ends everything that goes through it.
pub(crate) async fn serve(
    listener: &TcpListener,
    exit: SocketAddr,
    key: Key,
    rates: Arc<Rates>,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (tcp, rates) = (listener.accept().await?.0, Arc::clone(&rates));
        connections.spawn(async move {
            if let Err(error) = through(tcp, exit, key, &rates).await {
                println!("a connection has ended: {error}");
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn through(tcp: TcpStream, exit: SocketAddr, key: Key, rates: &Rates) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let config =
        key.map_or_else(|| ClientConfig::insecure(config()), |key| ClientConfig::secret(config(), key));
    let session = Client::connect(exit, &config).await?;
    let done = join(tcp.into_split(), session.stream(BYTES).into_split(), rates).await;
    if done.is_err() {
        session.close(1);
    }
    // The exit closes the session when it knows that its last data has arrived here. Closing from here could keep it
    // from learning that.
    if timeout(PATIENCE, session.closed()).await.is_err() {
        session.close(0);
    }
    done
}

/// How long the exit may take to close.
const PATIENCE: Duration = Duration::from_secs(10);
