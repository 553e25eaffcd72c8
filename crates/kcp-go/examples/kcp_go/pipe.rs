//! Connects standard input and output to a session.

use crate::args::Args;
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use whitewater::kcp;

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let mut socket = kcp::Socket::connect_with_envelope(args.address, args.conv, &args.config, &args.wire)?;
    let input = input();
    let mut out = io::stdout().lock();
    let (mut part, mut has_ended, mut buf) = (Vec::new(), false, vec![0; 1 << 16]);
    let mut active = Instant::now();
    loop {
        while !has_ended {
            if part.is_empty() {
                match input.try_recv() {
                    Ok(bytes) => part = bytes,
                    Err(TryRecvError::Disconnected) => has_ended = true,
                    Err(TryRecvError::Empty) => break,
                }
            }
            if part.is_empty() {
                continue; // never send an empty message: kcp-go gets stuck on it
            }
            match socket.send(&part) {
                Ok(taken) => drop(part.drain(..taken)),
                Err(error) if error.is_full() => break,
                Err(error) => return Err(error.into()),
            }
            active = Instant::now();
        }
        let wait = socket.pump()?;
        while let Ok(len) = socket.recv_into(&mut buf) {
            out.write_all(&buf[..len])?;
            active = Instant::now();
        }
        out.flush()?;
        if has_ended && socket.kcp().wait_snd() == 0 && active.elapsed() > args.linger {
            return Ok(());
        }
        thread::sleep(wait.unwrap_or(STEP).min(STEP));
    }
}

/// Reads standard input in a thread, since it cannot be polled.
fn input() -> Receiver<Vec<u8>> {
    let (to, from) = sync_channel(16);
    thread::spawn(move || {
        let mut buf = vec![0; 16 << 10];
        while let Ok(len @ 1..) = io::stdin().lock().read(&mut buf) {
            if to.send(buf[..len].to_vec()).is_err() {
                break;
            }
        }
    });
    from
}

const STEP: Duration = Duration::from_millis(1);
