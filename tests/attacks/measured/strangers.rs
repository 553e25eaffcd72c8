//! What a server does for whoever has no session yet, and how two ends exchange keys.

use super::{count, count_after};
use crate::common::machine::Whole as _;
use crate::common::sessions::{World, client_address, connect_of};
use crate::handshake::kinds;
use whitewater::ServerConfig;
use whitewater::inside::session::wire::{Connect, Hello};

pub(super) fn all() {
    hellos();
    #[cfg(feature = "crypto")]
    early();
    for (name, config, client) in kinds() {
        let mut world = World::new(1, &ServerConfig { accepts_per_second: 1000, ..config });
        let from = |number| client_address(number, 9);
        for number in 0..4 {
            let connect = connect_of(&mut world, from(number), number.into(), client.clone());
            let mut garbage = connect.clone();
            *garbage.last_mut().unwrap() ^= 1;
            answered(
                &mut world,
                &format!("server, {name}: CONNECT with a wrong last byte"),
                number,
                &garbage,
            );
            let (read, mut stale) = (Connect::decode(&connect).unwrap(), Vec::new());
            let mut cookie = read.cookie;
            cookie[0] ^= 1;
            Connect { cookie, ..read }.encode(&mut stale).unwrap();
            answered(&mut world, &format!("server, {name}: CONNECT with a wrong cookie"), number, &stale);
            answered(&mut world, &format!("server, {name}: CONNECT"), number, &connect);
            answered(&mut world, &format!("server, {name}: CONNECT again"), number, &connect);
            world.run(2000);
        }
    }
}

/// CONNECTs without a proof, with connect tokens.
#[cfg(feature = "crypto")]
fn early() {
    let (_, config, client) = kinds().pop().unwrap();
    for number in 0..4 {
        let mut world = World::new(1, &config);
        let (early, mut forged) = (crate::common::sessions::first_of(client.clone()), Vec::new());
        let read = Connect::decode(&early).unwrap();
        let mut token = read.token.to_vec();
        *token.last_mut().unwrap() ^= 1;
        Connect { token: &token, ..read }.encode(&mut forged).unwrap();
        answered(&mut world, "server, tokens: CONNECT at once with a forged token", number, &forged);
        answered(&mut world, "server, tokens: CONNECT at once", number, &early);
        answered(&mut world, "server, tokens: CONNECT at once again", number, &early);
    }
}

fn answered(world: &mut World, what: &str, number: u8, datagram: &[u8]) {
    let mut out = Vec::with_capacity(9000);
    count(what, || world.server.give(world.now, client_address(number, 9), datagram));
    count_after(what, || while world.server.emit_to(world.now, &mut out).is_some() {});
    world.drain();
}

fn hellos() {
    let mut world = World::new(1, &ServerConfig::insecure(whitewater::SessionConfig::default()));
    for cid in 0..10 {
        let mut datagram = Vec::new();
        Hello { suite: 0, protocol_id: 0, cid, client_stamp: 1, size: 512 }.encode(&mut datagram).unwrap();
        answered(&mut world, "server: HELLO", 9, &datagram);
    }
}
