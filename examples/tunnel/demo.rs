//! Both ends, a service and its user in one program.

use crate::rates::Rates;
use crate::{Done, Key, SUITE, entry, exit};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use whitewater::session::Suite;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

const KEY: Key = match SUITE {
    Suite::Checked => None,
    _ => Some([7; 32]), // both ends are here
};

/// Sends this many MiB through the tunnel to a service that echoes them.
pub(crate) async fn run(mib: usize, rates: Arc<Rates>) -> Done {
    let service = TcpListener::bind(ANY).await?;
    let service_at = service.local_addr()?;
    tokio::spawn(async move {
        while let Ok((tcp, _)) = service.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = tcp.into_split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    let server = exit::bind(ANY, KEY)?;
    let exit_at = server.local_addr();
    tokio::spawn(async move { exit::serve(&server, service_at, Arc::default()).await });
    let listener = TcpListener::bind(ANY).await?;
    let entry_at = listener.local_addr()?;
    tokio::spawn(async move { entry::serve(&listener, exit_at, KEY, rates).await });

    let (start, data) = (Instant::now(), vec![7; mib << 20]);
    let (mut from, mut to) = TcpStream::connect(entry_at).await?.into_split();
    let send = tokio::spawn(async move {
        to.write_all(&data).await?;
        to.shutdown().await
    });
    let mut back = Vec::with_capacity(mib << 20);
    from.read_to_end(&mut back).await?;
    send.await??;
    assert!(back.len() == mib << 20 && back.iter().all(|byte| *byte == 7), "{} bytes came back", back.len());
    let seconds = start.elapsed().as_secs_f64();
    println!("{mib} MiB there and back in {seconds:.2} s, {:.1} MiB/s each way", mib as f64 / seconds);
    Ok(())
}
