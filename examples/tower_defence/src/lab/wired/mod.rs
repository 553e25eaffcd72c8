//! The same game over real sockets between two machines or network namespaces, to compare transports. All of them work
//! alike: a server on one side, and bots on the other, each with its own socket. Only for measurements among friends: a
//! stranger who connects and says nothing blocks the TCP server. To play for real, use `play`.

mod door;
mod player;
mod stream;

use super::{TICK, Transport};
use crate::headless::{Samples, Traffic, sample};
use crate::server::Server;
use door::{Datagrams, Door, Streams};
use player::Player;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::Time;

/// Serves for this long.
///
/// # Errors
///
/// A socket has failed.
pub fn serve(at: SocketAddr, transport: Transport, seconds: u32, seed: u64) -> io::Result<()> {
    let mut end = transport.server(seed, Server::new(seed));
    let mut door: Box<dyn Door> = match transport {
        Transport::Tcp => Box::new(Streams::bind(at)?),
        _ => Box::new(Datagrams::bind(at)?),
    };
    let (start, mut next_tick, mut bytes) = (Instant::now(), Time::ZERO, Vec::new());
    while start.elapsed() < Duration::from_secs(seconds.into()) {
        let now = now(start);
        door.receive(now, end.as_mut())?;
        if end.wake(now).is_some_and(|at| at <= now) {
            end.poll(now);
        }
        if now >= next_tick {
            end.tick(now);
            next_tick = next_tick + TICK;
        }
        while let Some(guest) = end.pop(now, &mut bytes) {
            door.send(guest, &bytes)?;
        }
        door.flush()?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Plays with this many bots for this long, and measures.
///
/// # Errors
///
/// A socket has failed, or nobody answers.
pub fn play(at: SocketAddr, transport: Transport, bots: u8, seconds: u32, seed: u64) -> io::Result<Samples> {
    let start = Instant::now();
    let player = |number: u8| Player::connect(at, transport, number, start, seed);
    let mut players = (0..bots).map(player).collect::<io::Result<Vec<_>>>()?;
    let title = format!("{bots} bots, {seconds} s, {transport:?}");
    let mut samples = Samples { title, ..Samples::default() };
    let (mut second, mut before) = (1, (0, 0));
    while start.elapsed() < Duration::from_secs(seconds.into()) {
        let now = now(start);
        for player in &mut players {
            player.go_on(now)?;
            sample(player.end.game_mut(), start.elapsed(), &mut samples);
        }
        if start.elapsed() >= Duration::from_secs(second) {
            let total =
                players.iter().fold((0, 0), |(up, down), player| (up + player.up, down + player.down));
            let each = |now: u32, before: u32| f64::from(now.wrapping_sub(before)) / f64::from(bots.max(1));
            let at = Duration::from_secs(second);
            samples.traffic.push(Traffic { at, up: each(total.0, before.0), down: each(total.1, before.1) });
            (before, second) = (total, second + 1);
        }
        thread::sleep(PAUSE);
    }
    Ok(samples)
}

/// `None`: there is nothing yet, or nobody is there.
fn would_block<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused => Ok(None),
            // The other side has left: the run ends soon.
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(None),
            _ => Err(error),
        },
    }
}

fn now(start: Instant) -> Time {
    Time::from_millis(1000) + start.elapsed()
}

/// Datagrams that start with this belong to the comparison, not to a transport.
const KNOCK: [u8; 4] = [0xff; 4];
/// Time between two checks of the sockets.
const PAUSE: Duration = Duration::from_micros(500);
