//! What a seal promises when its keys are updated.

use super::*;
use crate::seq::Seq16;
use crate::session::Cipher;
use crate::session::crypto::noise::record;
use crate::session::tests::renew;
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

/// The time after `NOW`.
fn after(ms: u64) -> Time {
    NOW + Duration::from_millis(ms)
}

const RANDOM: [[u8; 32]; 2] = [[11; 32], [12; 32]];

#[test]
fn keys_are_renewed_by_count_or_age_but_not_before_the_last_ones_are_in_use() {
    let (mut client, mut server) = pair(Cipher::ChaChaPoly);
    client.set_update_after(4);
    server.set_update_after(4);
    for _ in 0..5 {
        sealed(&mut client, after(999), b"");
        sealed(&mut server, after(9000), b"");
    }
    assert!(!client.wants_random(), "at most once a second");
    sealed(&mut client, after(1000), b"");
    assert!(client.wants_random() && !server.wants_random(), "the server follows");
    renew(after(1000), &mut client, &mut server, &RANDOM);
    assert_eq!((client.updates(), server.updates()), ((1, 0), (0, 0)));
    let mut there = sealed(&mut client, after(1000), b"");
    assert_eq!(there[0], 0xa7);
    server.open(after(1000), &mut there).unwrap();
    assert_eq!(server.updates(), (1, 1));
    for _ in 0..9 {
        sealed(&mut client, after(9000), b"");
    }
    assert!(!client.wants_random(), "the server may not have them yet");
    let mut back = sealed(&mut server, after(9000), b"");
    client.open(after(9000), &mut back).unwrap();
    assert_eq!(client.updates(), (1, 1));
    sealed(&mut client, after(9000), b"");
    assert!(client.wants_random());

    let (mut client, _) = pair(Cipher::ChaChaPoly);
    sealed(&mut client, after(119_999), b"");
    assert!(!client.wants_random());
    sealed(&mut client, after(120_000), b"");
    assert!(client.wants_random());
}

#[test]
fn halves_are_repeated_until_they_are_answered_and_late_ones_change_nothing() {
    let (mut client, mut server) = pair(Cipher::ChaChaPoly);
    let now = after(1000);
    client.draw(now, &RANDOM[0]);
    let offer = client.half().unwrap();
    client.told(now);
    assert_eq!(client.half(), None);
    sealed(&mut client, after(1249), b"");
    assert_eq!(client.half(), None);
    sealed(&mut client, after(1250), b"");
    assert_eq!(client.half(), Some(offer));
    assert!(!server.on_half(NOW, &offer), "too soon after the last keys");
    assert!(server.on_half(now, &offer));
    server.draw(now, &RANDOM[1]);
    let answer = server.half().unwrap();
    server.told(now);
    let other = RekeyFrame { half: [9; 32], ..offer };
    assert!(!server.on_half(now, &other), "one exchange at a time");
    assert!(server.half().is_none() && !server.wants_random());
    assert!(server.on_half(now, &offer));
    assert_eq!(server.half(), Some(answer), "the answer was lost");
    assert!(client.on_half(now, &answer) && client.on_half(now, &answer));
    for end in [&mut client, &mut server] {
        assert!(end.on_half(now, &RekeyFrame { phase: Seq16(0), ..other }), "it is only late");
        assert!(!end.on_half(now, &RekeyFrame { phase: Seq16(2), ..other }));
    }
    let mut there = sealed(&mut client, now, b"new");
    assert_eq!(server.open(now, &mut there).unwrap().body, b"new");
    assert!(server.on_half(after(9000), &offer) && !server.wants_random(), "for a phase that is over");
    let mut back = sealed(&mut server, now, b"new");
    assert_eq!(client.open(now, &mut back).unwrap().body, b"new");
    assert_eq!((client.updates(), server.updates()), ((1, 1), (1, 1)));
}

/// A server that never answers, or whose answers never arrive.
#[test]
fn keys_are_updated_alone_if_the_client_hears_no_answer_for_a_minute() {
    for (cipher, answers) in [(Cipher::ChaChaPoly, false), (Cipher::AesGcm, false), (Cipher::AesGcm, true)] {
        let (mut client, mut server) = pair(cipher);
        let (begin, end) = (after(120_000), after(180_000));
        client.draw(begin, &RANDOM[0]);
        if answers {
            server.on_half(begin, &client.half().unwrap());
            server.draw(begin, &RANDOM[1]);
        }
        let mut there = sealed(&mut client, after(179_999), b"before");
        server.open(end, &mut there).unwrap();
        assert_eq!(client.updates(), (0, 0));
        let mut there = sealed(&mut client, end, b"alone");
        assert_eq!(server.open(end, &mut there).unwrap().body, b"alone");
        let mut back = sealed(&mut server, end, b"it follows");
        assert_eq!(client.open(end, &mut back).unwrap().body, b"it follows");
        assert_eq!((client.updates(), server.updates()), ((1, 1), (1, 1)));
        assert_eq!((server.forged, client.forged), (0, 0));
        sealed(&mut client, end, b"");
        assert!(client.wants_random(), "it asks again at once");
        renew(end, &mut client, &mut server, &RANDOM);
        assert_eq!(client.updates(), (2, 1));
    }
}

/// Whoever has the keys of before, and all that crosses the network.
#[test]
fn stolen_keys_do_not_open_what_comes_after_the_next_exchange() {
    for cipher in [Cipher::ChaChaPoly, Cipher::AesGcm] {
        let (mut client, mut server) = pair(cipher);
        let (mut thief, now) = (pair(cipher).1, after(1000));
        client.draw(now, &RANDOM[0]);
        let offer = client.half().unwrap();
        server.on_half(now, &offer);
        server.draw(now, &RANDOM[1]);
        client.on_half(now, &server.half().unwrap());
        thief.on_half(now, &offer);
        thief.draw(now, &[99; 32]); // not the server's
        let packet = sealed(&mut client, now, b"secret");
        assert_eq!(thief.open(now, &mut packet.clone()), Err(OpenError::Forged));
        assert!(server.open(now, &mut packet.clone()).is_ok());
    }
}

#[test]
fn the_previous_key_opens_late_packets_for_two_seconds() {
    for cipher in [Cipher::ChaChaPoly, Cipher::AesGcm] {
        let (mut client, mut server) = pair(cipher);
        let mut late: Vec<_> = (0..3).map(|_| sealed(&mut client, NOW, b"late")).collect();
        let ms = |ms: u64| after(1000 + ms);
        renew(ms(0), &mut client, &mut server, &RANDOM);
        let mut new = sealed(&mut client, ms(0), b"new");
        server.open(ms(0), &mut new).unwrap();
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
    assert_eq!(server.open(NOW, &mut phase.clone()), Err(OpenError::Forged));
    let later = after(1000);
    client.draw(later, &RANDOM[0]);
    server.on_half(later, &client.half().unwrap());
    server.draw(later, &RANDOM[1]);
    assert_eq!(server.open(later, &mut phase), Err(OpenError::Forged));
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
        2 => (0..900_u64).prop_map(Step::Wait),
        1 => Just(Step::Wait(60_000)),
    ];
    prop::collection::vec(step, 0..300)
}

struct UnderWay {
    to_server: bool,
    pn: u64,
    generation: u64,
    sealed_at: Time,
    bytes: Vec<u8>,
    half: Option<RekeyFrame>,
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
        let mut draws = 0u8;
        record::start();
        for step in steps {
            match step {
                Step::Wait(ms) => now = now + Duration::from_millis(ms),
                Step::Seal(to_server) => {
                    draws += 1;
                    let end = if to_server { &mut client } else { &mut server };
                    if end.wants_random() {
                        end.draw(now, &[draws; 32]);
                    }
                    let half = end.half();
                    end.told(now);
                    let bytes = sealed(end, now, b"frames");
                    let (pn, generation) = (end.next() - 1, end.updates().0);
                    under_way.push(UnderWay { to_server, pn, generation, sealed_at: now, bytes, half });
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
                    if let (Ok(_), Some(half)) = (&result, &packet.half) {
                        end.on_half(now, half);
                    }
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
        prop_assert!(pairs as u64 >= client.next() + server.next());
        let lag = client.updates().0 - server.updates().1;
        prop_assert!(lag <= 1, "the ends are {} phases apart", lag);
    }
}
