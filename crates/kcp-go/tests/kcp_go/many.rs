//! Many sessions from one host, as kcptun opens them.

use crate::machine::Whole as _;
use crate::world::*;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{Conv, PeerEvent, PeersConfig};
use whitewater::machine::Machine as _;
use whitewater_kcp_go::Crypt;

/// How many of 300 sessions of one host that start together are served within two seconds, over a path of 20
/// ms.
fn served_of_300(server: &PeersConfig) -> usize {
    let mut server = peers(server, 1);
    let client_limits = limits(turbo(), wire(Crypt::Salsa20, Some((10, 3))));
    let (mut now, mut there, mut back) = (Time::from_millis(1), VecDeque::new(), VecDeque::new());
    let mut clients: Vec<_> = (0..300u16)
        .map(|number| {
            let mut client = peers(&client_limits, 2 + u64::from(number));
            let to = client.register(now, server_address(), Conv(1 + 256 * u32::from(number))).unwrap();
            client.peer(to).unwrap().send(b"hello").unwrap();
            (client, to, SocketAddr::from(([10, 0, 0, 1], 1000 + number)), false)
        })
        .collect();
    while now < Time::from_millis(2000) {
        for (client, to, address, served) in &mut clients {
            client.handle_timeout(now);
            while let Some((datagram, _)) = client.emit(now) {
                there.push_back((now, *address, datagram.to_vec()));
            }
            *served |= client.peer(*to).unwrap().recv_into(&mut [0; 16]) == Ok(5);
        }
        while there.front().is_some_and(|(sent, ..)| now.since(*sent) >= DELAY) {
            let (_, from, datagram) = there.pop_front().unwrap();
            server.give(now, from, &datagram);
        }
        while let Some(event) = server.poll_event() {
            if let PeerEvent::Readable(id) = event
                && let Some(peer) = server.peer(id)
            {
                let mut buf = [0; 16];
                let len = peer.recv_into(&mut buf).unwrap();
                peer.send(&buf[..len]).unwrap();
            }
        }
        server.handle_timeout(now);
        while let Some((datagram, to)) = server.emit(now) {
            back.push_back((now, to, datagram.to_vec()));
        }
        while back.front().is_some_and(|(sent, ..)| now.since(*sent) >= DELAY) {
            let (_, to, datagram) = back.pop_front().unwrap();
            let (client, ..) = &mut clients[usize::from(to.port() - 1000)];
            client.give(now, server_address(), &datagram);
        }
        now = now + Duration::from_millis(1);
    }
    clients.iter().filter(|(.., served)| *served).count()
}

/// Delay in one direction.
const DELAY: Duration = Duration::from_millis(20);

#[test]
fn a_server_of_kcptun_serves_300_sessions_of_one_host_within_two_seconds() {
    let (kcp, wire) = (turbo(), wire(Crypt::Salsa20, Some((10, 3))));
    assert_eq!(
        served_of_300(&crate::example::limits(kcp, wire.clone())),
        300,
        "with the limits of the example"
    );
    assert_eq!(served_of_300(&limits(kcp, wire)), 16, "limits for players");
}

#[test]
fn the_guide_has_the_limits_of_the_example() {
    let example = include_str!("../../examples/kcp_go/limits.rs");
    let knobs = example.lines().map(str::trim).filter(|line| line.ends_with("1024,"));
    let knobs: Vec<_> = knobs.collect();
    assert_eq!(knobs.len(), 4);
    let guide = include_str!("../../../../docs/migrate/kcp-go.md");
    assert!(knobs.iter().all(|knob| guide.contains(knob)), "{knobs:?}");
}
