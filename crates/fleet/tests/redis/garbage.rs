//! An attack: CONNECTs from a proven address, with tokens that the matchmaker did not seal.

use crate::redis_server::RedisServer;
use crate::world::{Member, PATIENCE, join, mint, pair};
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;
use whitewater::inside::session::wire::{Challenge, Connect, Hello};
use whitewater::session::Suite;
use whitewater_fleet::WhenGone;

const COUNT: u32 = 10_000;

#[test]
fn garbage_never_reaches_redis() {
    let Some(redis) = RedisServer::start() else { return };
    let mut members = pair(&redis.url(), PATIENCE, WhenGone::Refuse);
    let good = mint(1);
    let server = members[0].addr();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let challenge = challenge(&mut members[0], &socket, server);
    let Challenge { epoch, cookie, .. } = Challenge::decode(&challenge).unwrap();
    let (start, mut sealed) = (Instant::now(), good.sealed);
    for index in 0..COUNT {
        let end = sealed.len();
        sealed[end - 4..].copy_from_slice(&index.to_le_bytes()); // of the tag
        let (suite, token, msg1) = (Suite::TOKEN.code(), &sealed[..], &[7; 200][..]);
        let connect = Connect { suite, protocol_id: 0, cid: 9, epoch, cookie, client_sid: 5, token, msg1 };
        let mut datagram = Vec::new();
        connect.encode(&mut datagram).unwrap();
        socket.send_to(&datagram, server).unwrap();
        if index % 32 == 0 {
            members[0].pump();
        }
    }
    members[0].pump();
    let (stats, used) = (members[0].server.stats(), members[0].used.stats());
    let taken = start.elapsed();
    println!("{} bad tokens opened in {taken:.2?}, {} SETs", stats.rejected.token, redis.sets());
    assert!(stats.rejected.token >= u64::from(COUNT) * 9 / 10, "{stats:?}"); // loopback may lose some
    assert_eq!((used.asked, redis.sets()), (0, 0));
    assert!(join(&mut members, 0, &good).client.is_connected(), "the token itself is still good");
    assert_eq!(redis.sets(), 1);
}

fn challenge(member: &mut Member, socket: &UdpSocket, server: SocketAddr) -> Vec<u8> {
    let hello = Hello { suite: Suite::TOKEN.code(), protocol_id: 0, cid: 9, client_stamp: 1, size: 512 };
    let (mut datagram, mut buf, end) = (Vec::new(), [0; 2048], Instant::now() + PATIENCE);
    hello.encode(&mut datagram).unwrap();
    socket.send_to(&datagram, server).unwrap();
    loop {
        assert!(Instant::now() < end, "no CHALLENGE");
        member.pump();
        if let Ok(len) = socket.recv(&mut buf) {
            return buf[..len].to_vec();
        }
    }
}
