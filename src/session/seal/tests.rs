//! What a seal promises with every kind of protection.

#[cfg(feature = "crypto")]
mod noise;

use super::*;
use crate::session::Suite;
use crate::session::tests::{built_in, handshake};

const NOW: Time = Time::ZERO;
const SID: u32 = 0x0102_0304;

fn begun(body: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    Seal::begin(&mut datagram);
    datagram.extend_from_slice(body);
    datagram
}

fn sealed(seal: &mut Seal, now: Time, body: &[u8]) -> Vec<u8> {
    let mut datagram = begun(body);
    seal.seal(now, SID, &mut datagram, 0).unwrap();
    datagram
}

/// Both ends of each kind of session, with its overhead.
fn pairs() -> impl Iterator<Item = (Seal, Seal, usize)> {
    built_in().take(3).map(|suite| {
        let (client, server) = handshake(suite, 1, 2);
        let overhead = if suite == Suite::Checked { 13 } else { 25 };
        (Seal::new(NOW, client), Seal::new(NOW, server), overhead)
    })
}

#[test]
fn a_sealed_packet_opens_once_and_costs_the_stated_overhead() {
    for (mut client, mut server, overhead) in pairs() {
        assert_eq!((client.overhead(), server.overhead()), (overhead, overhead));
        for (pn, body) in [&b""[..], b"frames", &[7; 1175]].into_iter().enumerate() {
            let whole = sealed(&mut client, NOW, body);
            assert_eq!(whole.len(), body.len() + overhead);
            let (header, _) = Data::decode(&whole).unwrap();
            assert_eq!((header.sid, u64::from(header.pn)), (SID, pn as u64));
            let mut copy = whole.clone();
            let opened = server.open(NOW, &mut copy).unwrap();
            assert_eq!(opened, Opened { pn: pn as u64, newest: true, body });
            assert_eq!(server.open(NOW, &mut whole.clone()), Err(OpenError::Replayed(Replayed::Duplicate)));
        }
        assert_eq!((client.next(), server.newest(), server.forged), (3, Some(2), 0));
    }
}

#[test]
fn a_changed_or_shortened_packet_changes_nothing() {
    for (mut client, mut server, overhead) in pairs() {
        let first = sealed(&mut client, NOW, b"first");
        server.open(NOW, &mut first.clone()).unwrap();
        let whole = sealed(&mut client, NOW, b"a body");
        let before = (server.window.clone(), server.updates());
        let mut wrong = 0;
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let error = server.open(NOW, &mut changed).unwrap_err();
            wrong += u64::from(error == OpenError::Forged);
        }
        for len in 0..whole.len() {
            let error = server.open(NOW, &mut whole[..len].to_vec()).unwrap_err();
            wrong += u64::from(error == OpenError::Forged);
        }
        assert_eq!(server.forged, wrong);
        assert!(wrong > 8 * (whole.len() - overhead) as u64);
        assert_eq!((server.window.clone(), server.updates()), before);
        assert_eq!(server.open(NOW, &mut whole.clone()).unwrap().body, b"a body");
    }
}

#[test]
fn packet_numbers_and_forgeries_have_a_limit() {
    for (mut client, mut server, _) in pairs() {
        assert_eq!(client.seal(NOW, SID, &mut vec![0; 8], 0), Err(SealError::NoHeader));
        client.next_pn = PN_MAX - 1;
        server.window.mark(PN_MAX - 2).unwrap();
        let mut last = sealed(&mut client, NOW, b"last");
        assert_eq!(server.open(NOW, &mut last).unwrap().pn, PN_MAX - 1);
        assert_eq!(client.seal(NOW, SID, &mut begun(b"one more"), 0), Err(SealError::NumbersSpent));
        let beyond = Data { phase: false, sid: SID, pn: 0 }.encode();
        let mut beyond = [&beyond[..], &[0; 16]].concat();
        assert_eq!(server.open(NOW, &mut beyond), Err(OpenError::Number));
        server.forged = FORGED_MAX - 1;
        let forged = [&Data { phase: false, sid: SID, pn: u32::MAX - 9 }.encode()[..], &[0; 16]].concat();
        assert_eq!(server.open(NOW, &mut forged.clone()), Err(OpenError::Forged));
        assert_eq!(server.open(NOW, &mut forged.clone()), Err(OpenError::KeySpent));
    }
}
