//! Sends bytes and checks that they come back.

use crate::args::Args;
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::kcp;
use whitewater_kcp_go::Stats;

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let mut socket = kcp::Socket::connect_with_envelope(args.address, args.conv, &args.config, &args.wire)?;
    let sent: Vec<u8> = (0..args.bytes as u64).map(noise).collect();
    let (mut queued, mut back, mut buf) = (0, 0, vec![0; 1 << 16]);
    let start = Instant::now();
    while back < sent.len() {
        if start.elapsed() > args.patience {
            let stats = Stats::of(socket.envelope()).unwrap_or_default();
            return Err(io::Error::other(format!("{back} of {} bytes came back, {stats:?}", sent.len())));
        }
        while queued < sent.len() {
            let part = &sent[queued..(queued + 1 + queued * 7919 % 5000).min(sent.len())]; // of varying length
            match socket.send(part) {
                Ok(taken) => queued += taken,
                Err(error) if error.is_full() => break,
                Err(error) => return Err(error.into()),
            }
        }
        let wait = socket.pump()?;
        while let Ok(len) = socket.recv_into(&mut buf) {
            if sent.get(back..back + len) != Some(&buf[..len]) {
                return Err(io::Error::other(format!("what came back is different after {back} bytes")));
            }
            back += len;
        }
        thread::sleep(wait.unwrap_or(STEP).min(STEP));
    }
    println!(
        "{back} bytes intact in {:?}, {:?}",
        start.elapsed(),
        Stats::of(socket.envelope()).unwrap_or_default()
    );
    socket.drain(Duration::from_secs(1))
}

/// Bytes that look random: the upper bits of Knuth's multiplicative hash.
const fn noise(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

const STEP: Duration = Duration::from_millis(1);
