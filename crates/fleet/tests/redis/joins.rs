//! What the shared memory costs: joins per second, and how long one takes. Prints the figures of docs/FLEET.md.

use crate::redis_server::RedisServer;
use crate::world::{PATIENCE, Player, config, mint, pair};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use whitewater::{Event, Server};
use whitewater_fleet::{LIMIT, WhenGone};

/// Clients that join one after another, and as many in groups.
const JOINS: u64 = 500;
const GROUP: usize = 50;

#[test]
fn every_client_with_a_token_of_its_own_joins() {
    let Some(redis) = RedisServer::start() else { return };
    let mut server = Server::bind("127.0.0.1:0", &config()).unwrap();
    let addr = server.local_addr().unwrap();
    report("without", addr, &mut || {
        server.pump().unwrap();
        while let Some((id, event)) = server.poll_event() {
            if event == Event::Requested {
                server.admit(id, b"").unwrap();
            }
        }
    });
    let [mut member, _] = pair(&redis.url(), LIMIT, WhenGone::Refuse);
    report("with Redis", member.addr(), &mut || member.pump());
    let stats = member.used.stats();
    assert_eq!((stats.asked, stats.used), (2 * JOINS, 0));
    assert!(redis.sets() <= 2 * JOINS, "a token is asked about once");
    let admitted = member.server.stats().accepted;
    assert_eq!(admitted + stats.refused, 2 * JOINS, "all but those whose answer was late on a busy machine");
}

fn report(how: &str, addr: SocketAddr, pump: &mut dyn FnMut()) {
    let mut each: Vec<_> = (0..JOINS).map(|client| join(addr, pump, &[client])).collect();
    each.sort_unstable();
    let clients: Vec<_> = (JOINS..2 * JOINS).collect();
    let together: Duration = clients.chunks(GROUP).map(|group| join(addr, pump, group)).sum();
    let [median, p99] = [50, 99].map(|percent| each[each.len() * percent / 100]);
    let per_second = JOINS as f64 / together.as_secs_f64();
    println!("{how}: {per_second:.0} joins/s; one takes {median:.2?}, of a hundred the slowest {p99:.2?}");
}

/// Lets clients join at once, and returns how long that takes for all of them.
fn join(addr: SocketAddr, pump: &mut dyn FnMut(), clients: &[u64]) -> Duration {
    let tokens: Vec<_> = clients.iter().map(|client| mint(*client)).collect();
    let start = Instant::now();
    let mut players: Vec<_> = tokens.iter().map(|token| Player::connect(addr, token)).collect();
    while !players.iter().all(Player::is_decided) {
        assert!(start.elapsed() < PATIENCE, "waited for too long");
        pump();
        players.iter_mut().for_each(Player::pump);
    }
    let taken = start.elapsed();
    pump(); // takes the last confirmation
    taken
}
