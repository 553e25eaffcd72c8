//! What a seal promises when its keys are updated.

use super::*;
use crate::session::Cipher;
use crate::session::crypto::noise::record;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

fn pair(cipher: Cipher) -> (Seal, Seal) {
    let client = Seal::new(NOW, Keys::of_client(cipher, [1; 32], [2; 32]));
    (client, Seal::new(NOW, Keys::of_server(cipher, [1; 32], [2; 32])))
}

#[test]
fn each_direction_has_its_own_key() {
    let (mut client, mut server) = pair(Cipher::ChaChaPoly);
    let mut to_server = sealed(&mut client, NOW, b"same");
    let mut to_client = sealed(&mut server, NOW, b"same");
    assert_ne!(to_server, to_client);
    assert_eq!(client.open(NOW, &mut to_server.clone()), Err(OpenError::Forged), "a reflected packet");
    assert!(server.open(NOW, &mut to_server).is_ok());
    assert!(client.open(NOW, &mut to_client).is_ok());
}

#[test]
fn a_key_is_updated_by_count_or_age_but_not_before_the_last_update_is_answered() {
    let (mut client, mut server) = pair(Cipher::ChaChaPoly);
    client.set_update_after(4);
    server.set_update_after(4);
    for _ in 0..100 {
        sealed(&mut server, NOW, b"");
    }
    assert_eq!(server.updates(), (0, 0), "the server follows");
    for _ in 0..100 {
        sealed(&mut client, NOW, b"");
    }
    assert_eq!(client.updates(), (1, 0), "only once until it is answered");
    let mut there = sealed(&mut client, NOW, b"");
    assert_eq!(there[0], 0xa7);
    server.open(NOW, &mut there).unwrap();
    assert_eq!(server.updates(), (1, 1));
    let mut back = sealed(&mut server, NOW, b"");
    client.open(NOW, &mut back).unwrap();
    assert_eq!(client.updates(), (1, 1));
    sealed(&mut client, NOW, b"");
    assert_eq!(client.updates(), (2, 1), "answered, and more than 4 packets were sealed since");

    let (mut client, _) = pair(Cipher::ChaChaPoly);
    let late = NOW + Duration::from_secs(120);
    sealed(&mut client, NOW + Duration::from_millis(119_999), b"");
    assert_eq!(client.updates(), (0, 0));
    sealed(&mut client, late, b"");
    assert_eq!(client.updates(), (1, 0));
}

#[test]
fn the_previous_key_opens_late_packets_for_two_seconds() {
    for cipher in [Cipher::ChaChaPoly, Cipher::AesGcm] {
        let (mut client, mut server) = pair(cipher);
        let mut late: Vec<_> = (0..3).map(|_| sealed(&mut client, NOW, b"late")).collect();
        client.set_update_after(1);
        let mut new = sealed(&mut client, NOW, b"new");
        server.open(NOW, &mut new).unwrap();
        let ms = |ms| NOW + Duration::from_millis(ms);
        assert_eq!(server.open(ms(1999), &mut late.remove(0)).unwrap().body, b"late");
        assert_eq!(server.open(ms(2000), &mut late.remove(0)), Err(OpenError::Phase));
        assert_eq!(server.open(ms(9000), &mut late.remove(0)), Err(OpenError::Phase));
        assert_eq!(server.forged, 0);
    }
}

#[test]
fn a_forged_phase_updates_nothing() {
    let (mut client, mut server) = pair(Cipher::AesGcm);
    let mut first = sealed(&mut client, NOW, b"first");
    server.open(NOW, &mut first).unwrap();
    for pn in [1, 2, 1000, 1 << 31] {
        let forged = Data { phase: true, sid: SID, pn }.encode();
        let mut forged = [&forged[..], &[0; 16]].concat();
        assert_eq!(server.open(NOW, &mut forged), Err(OpenError::Forged));
    }
    let mut phase = sealed(&mut client, NOW, b"second");
    phase[0] |= 1;
    assert_eq!(server.open(NOW, &mut phase), Err(OpenError::Forged));
    assert_eq!((server.updates(), server.newest()), ((0, 0), Some(0)));
    let mut third = sealed(&mut client, NOW, b"third");
    assert!(server.open(NOW, &mut third).is_ok());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// One end seals a packet: the client (`true`) or the server.
    Seal(bool),
    /// The packet at this index of those in flight arrives, and stays in flight.
    Arrive(usize),
    /// The packet at this index is lost.
    Lose(usize),
    /// This many ms pass.
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<bool>().prop_map(Step::Seal),
        4 => any::<usize>().prop_map(Step::Arrive),
        1 => any::<usize>().prop_map(Step::Lose),
        1 => (0..300_u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..300)
}

struct UnderWay {
    to_server: bool,
    pn: u64,
    generation: u64,
    sealed_at: Time,
    bytes: Vec<u8>,
}

proptest! {
    /// However packets are lost, duplicated and reordered during key updates: no packet is opened twice,
    /// every packet no older than the previous phase or 2 s is opened, and no nonce is used twice with the
    /// same key.
    #[test]
    fn keys_are_updated_at_any_point_under_loss_and_reordering(after in 1..20_u64, steps in steps()) {
        let (mut client, mut server) = pair(Cipher::ChaChaPoly);
        client.set_update_after(after);
        let (mut now, mut under_way, mut opened) = (NOW, Vec::new(), BTreeMap::new());
        record::start();
        for step in steps {
            match step {
                Step::Wait(ms) => now = now + Duration::from_millis(ms),
                Step::Seal(to_server) => {
                    let end = if to_server { &mut client } else { &mut server };
                    let bytes = sealed(end, now, b"frames");
                    let (pn, generation) = (end.sealed() - 1, end.updates().0);
                    under_way.push(UnderWay { to_server, pn, generation, sealed_at: now, bytes });
                }
                Step::Lose(at) if !under_way.is_empty() => {
                    under_way.swap_remove(at % under_way.len());
                }
                Step::Arrive(at) if !under_way.is_empty() => {
                    let len = under_way.len();
                    let packet = &under_way[at % len];
                    let end = if packet.to_server { &mut server } else { &mut client };
                    let before = end.updates().1;
                    let result = end.open(now, &mut packet.bytes.clone()).map(|opened| opened.pn);
                    let new = opened.insert((packet.to_server, packet.pn), ()).is_none();
                    let young = now.since(packet.sealed_at) < Duration::from_secs(2);
                    match result {
                        Ok(pn) => prop_assert!(new && pn == packet.pn),
                        Err(OpenError::Replayed(Replayed::Duplicate)) => prop_assert!(!new),
                        Err(error) => {
                            let current = packet.generation >= before;
                            let last = packet.generation + 1 == before && young;
                            prop_assert!(!current && !last, "{error} of phase {} at {before}", packet.generation);
                            opened.remove(&(packet.to_server, packet.pn));
                        }
                    }
                    let (sends, receives) = end.updates();
                    prop_assert!(sends == receives || (packet.to_server, sends) == (false, receives + 1));
                }
                Step::Lose(_) | Step::Arrive(_) => {}
            }
        }
        let (pairs, _) = record::finish();
        prop_assert!(pairs as u64 >= client.sealed() + server.sealed());
        let lag = client.updates().0 - server.updates().1;
        prop_assert!(lag <= 1, "the ends are {} phases apart", lag);
    }
}
