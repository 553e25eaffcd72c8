//! An echo server with a client under tokio: a stream in a session, and the same over bare KCP.
//!
//! ```text
//! cargo run --release --features tokio --example tokio_echo
//! ```

#![expect(clippy::indexing_slicing, reason = "`len` is what was written")]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whitewater::kcp::{self, Config, Conv};
use whitewater::tokio::{Client, KcpListener, KcpStream, Server};
use whitewater::{Channel, ClientConfig, ServerConfig, SessionConfig};

type Done = Result<(), Box<dyn Error + Send + Sync>>;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const ECHO: Channel = Channel::stream(0);
const ROUNDS: u32 = 1000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done {
    tokio::select! {
        done = tokio::spawn(both()) => done?, // a spawned task is as fast as the others
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn both() -> Done {
    session().await?;
    bare_kcp().await
}

/// One task per session. The socket has a task of its own inside the library.
async fn session() -> Done {
    let config = SessionConfig { channels: vec![ECHO.into()], ..SessionConfig::default() };
    // Without encryption, as on a local network.
    let server = Server::bind(ANY, &ServerConfig::insecure(config.clone()))?;
    let target = server.local_addr();
    tokio::spawn(async move {
        while let Ok(session) = server.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = session.stream(ECHO).into_split();
                tokio::io::copy(&mut from, &mut to).await?;
                to.shutdown().await // after the client's stream has ended
            });
        }
    });
    let session = Client::connect(target, &ClientConfig::insecure(config)).await?;
    let mut stream = session.stream(ECHO);
    let (start, mut back) = (Instant::now(), [0; 64]);
    for round in 0..ROUNDS {
        let sent = round.to_le_bytes().repeat(16);
        stream.write_all(&sent).await?;
        stream.read_exact(&mut back).await?;
        assert_eq!(back, *sent);
    }
    println!("a session: {:?} a round trip of 64 bytes", start.elapsed() / ROUNDS);
    stream.shutdown().await?;
    assert_eq!(stream.read(&mut back).await?, 0, "the server's end");
    Ok(())
}

/// The same with messages. The peer can be any KCP program.
async fn bare_kcp() -> Done {
    let limits = kcp::PeersConfig { kcp: Config::default(), ..kcp::PeersConfig::default() };
    let listener = KcpListener::bind(ANY, &limits)?;
    let addr = listener.local_addr();
    tokio::spawn(async move {
        while let Ok((peer, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut message = [0; 1 << 16];
                while let Ok(len) = peer.recv(&mut message).await {
                    peer.send(&message[..len]).await?;
                }
                Ok::<_, std::io::Error>(())
            });
        }
    });
    let peer = KcpStream::connect(addr, Conv(7), &Config::default())?;
    let (start, mut back) = (Instant::now(), [0; 64]);
    for round in 0..ROUNDS {
        let sent = round.to_le_bytes().repeat(16);
        peer.send(&sent).await?;
        let len = peer.recv(&mut back).await?;
        assert_eq!(back[..len], *sent);
    }
    println!("bare KCP: {:?} a round trip of 64 bytes", start.elapsed() / ROUNDS);
    Ok(())
}
