//! Prints the throughput once a second.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes that went to the service, and back.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    there: AtomicU64,
    back: AtomicU64,
}

/// Copies in both directions until both have ended, and counts. `copy_bidirectional` would only count at its end.
pub(crate) async fn join(
    near: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    far: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    rates: &Rates,
) -> io::Result<()> {
    tokio::try_join!(copy(near.0, far.1, &rates.there), copy(far.0, near.1, &rates.back))?;
    Ok(())
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &AtomicU64,
) -> io::Result<()> {
    let mut buf = vec![0; 64 << 10];
    loop {
        let len = from.read(&mut buf).await?;
        if len == 0 {
            return to.shutdown().await;
        }
        to.write_all(buf.get(..len).unwrap_or_default()).await?;
        count.fetch_add(len as u64, Ordering::Relaxed);
    }
}

/// Prints the rates of each second with any traffic.
pub(crate) async fn print(rates: Arc<Rates>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    let mut before = (0, 0);
    loop {
        ticks.tick().await;
        let now = (rates.there.load(Ordering::Relaxed), rates.back.load(Ordering::Relaxed));
        let mib = |now: u64, before: u64| (now - before) as f64 / f64::from(1 << 20);
        if now != before {
            println!("{:8.1} MiB/s there {:8.1} MiB/s back", mib(now.0, before.0), mib(now.1, before.1));
        }
        before = now;
    }
}
