//! The traffic over a pair of streams.

use super::Load;
use super::pairs::Stream;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Runs the load. Returns the median round trip in seconds, if it has round trips.
pub(super) async fn run(near: Box<dyn Stream>, far: Box<dyn Stream>, load: Load) -> f64 {
    match load {
        Load::Bulk(bytes) => one_way(near, far, bytes, 64 << 10).await,
        Load::Messages(count) => one_way(near, far, count * 64, 64).await,
        Load::Unspawned(count) | Load::UnspawnedBeside(count) => {
            let far = tokio::spawn(pong(far, count));
            let p50 = ping(near, count, Duration::ZERO).await;
            drop(far.await.expect("no panic"));
            p50
        }
        Load::PingPong(count) | Load::Echo(count) => ping_pong(near, far, count, load.pause()).await,
    }
}

async fn one_way(mut near: Box<dyn Stream>, mut far: Box<dyn Stream>, bytes: usize, each: usize) -> f64 {
    let reader = tokio::spawn(async move {
        let (mut left, mut buf) = (bytes, vec![0; 256 << 10]);
        while left > 0 {
            left -= far.read(&mut buf).await.expect("a peer that is there");
        }
        far // what is acknowledged later does not count
    });
    let data = vec![7; each];
    for _ in 0..bytes / each {
        near.write_all(&data).await.expect("a peer that is there");
    }
    near.flush().await.expect("a peer that is there");
    drop(reader.await.expect("no panic"));
    0.0
}

/// Both ends run in tasks of their own, as in a program. The future that is not spawned waits for them.
async fn ping_pong(near: Box<dyn Stream>, far: Box<dyn Stream>, count: usize, pause: Duration) -> f64 {
    let far = tokio::spawn(pong(far, count));
    tokio::spawn(async move {
        let p50 = ping(near, count, pause).await;
        drop(far.await.expect("no panic"));
        p50
    })
    .await
    .expect("no panic")
}

async fn pong(mut far: Box<dyn Stream>, count: usize) -> Box<dyn Stream> {
    let mut buf = [0; 64];
    for _ in 0..count {
        far.read_exact(&mut buf).await.expect("a peer that is there");
        far.write_all(&buf).await.expect("a peer that is there");
        far.flush().await.expect("a peer that is there");
    }
    far
}

async fn ping(mut near: Box<dyn Stream>, count: usize, pause: Duration) -> f64 {
    let mut times = Vec::with_capacity(count);
    let mut buf = [0; 64];
    for _ in 0..count {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let start = Instant::now();
        near.write_all(&buf).await.expect("a peer that is there");
        near.flush().await.expect("a peer that is there");
        near.read_exact(&mut buf).await.expect("a peer that is there");
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[count / 2]
}
