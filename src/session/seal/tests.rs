//! What a seal promises, whatever protects it.

use super::*;
#[cfg(feature = "crypto")]
use crate::session::Cipher;
use proptest::prelude::*;
#[cfg(feature = "crypto")]
use std::collections::BTreeMap;
#[cfg(feature = "crypto")]
use std::time::Duration;

const NOW: Time = Time::ZERO;
const SID: u32 = 0x0102_0304;

fn datagram(body: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    Seal::begin(&mut datagram);
    datagram.extend_from_slice(body);
    datagram
}

fn sealed(seal: &mut Seal, now: Time, body: &[u8]) -> Vec<u8> {
    let mut datagram = datagram(body);
    seal.seal(now, SID, &mut datagram).unwrap();
    datagram
}

/// Both ends of each kind of session, its overhead, the ends with other keys.
fn pairs() -> Vec<(Seal, Seal, usize)> {
    let checked = || Seal::new(NOW, Keys::checked([1; 8], [2; 8], 3));
    #[cfg_attr(not(feature = "crypto"), expect(unused_mut, reason = "there is one kind"))]
    let mut pairs = vec![(checked(), checked(), 13)];
    #[cfg(feature = "crypto")]
    for cipher in [Cipher::ChaChaPoly, Cipher::AesGcm] {
        let (client, server) = pair(cipher);
        pairs.push((client, server, 25));
    }
    pairs
}

#[cfg(feature = "crypto")]
fn pair(cipher: Cipher) -> (Seal, Seal) {
    let client = Seal::new(NOW, Keys::of_client(cipher, [1; 32], [2; 32]));
    (client, Seal::new(NOW, Keys::of_server(cipher, [1; 32], [2; 32])))
}

#[test]
fn what_is_sealed_is_opened_once_at_the_price_that_is_said() {
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
        assert_eq!((client.sealed(), server.newest(), server.forged()), (3, Some(2), 0));
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
        assert_eq!(server.forged(), wrong);
        assert!(wrong > 8 * (whole.len() - overhead) as u64);
        assert_eq!((server.window.clone(), server.updates()), before);
        assert_eq!(server.open(NOW, &mut whole.clone()).unwrap().body, b"a body");
    }
}

#[test]
fn a_checksum_is_of_one_session() {
    let mut sealed = sealed(&mut Seal::new(NOW, Keys::checked([1; 8], [2; 8], 3)), NOW, b"frames");
    for keys in [Keys::checked([1; 8], [9; 8], 3), Keys::checked([1; 8], [2; 8], 4)] {
        let mut other = Seal::new(NOW, keys);
        assert_eq!(other.open(NOW, &mut sealed), Err(OpenError::Forged));
    }
}

#[test]
fn packet_numbers_and_forgeries_end() {
    for (mut client, mut server, _) in pairs() {
        client.next_pn = PN_MAX - 1;
        server.window.mark(PN_MAX - 2).unwrap();
        let mut last = sealed(&mut client, NOW, b"last");
        assert_eq!(server.open(NOW, &mut last).unwrap().pn, PN_MAX - 1);
        assert_eq!(client.seal(NOW, SID, &mut datagram(b"one more")), Err(SealError::NumbersSpent));
        assert_eq!(client.seal(NOW, SID, &mut vec![0; 8]), Err(SealError::NumbersSpent));
        let beyond = Data { phase: false, sid: SID, pn: 0 }.encode();
        let mut beyond = [&beyond[..], &[0; 16]].concat();
        assert_eq!(server.open(NOW, &mut beyond), Err(OpenError::Number));
        server.forged = FORGED_MAX - 1;
        let forged = [&Data { phase: false, sid: SID, pn: u32::MAX - 9 }.encode()[..], &[0; 16]].concat();
        assert_eq!(server.open(NOW, &mut forged.clone()), Err(OpenError::Forged));
        assert_eq!(server.open(NOW, &mut forged.clone()), Err(OpenError::KeySpent));
    }
}

#[test]
fn what_was_not_begun_is_not_sealed() {
    for (mut client, ..) in pairs() {
        assert_eq!(client.seal(NOW, SID, &mut vec![0; 8]), Err(SealError::NoHeader));
        assert_eq!(client.sealed(), 0);
    }
}

#[test]
#[cfg(feature = "crypto")]
fn a_checked_packet_has_no_second_phase() {
    let (mut client, mut server, _) = pairs().remove(0);
    let mut whole = sealed(&mut client, NOW, b"");
    whole[0] |= 1;
    assert_eq!(server.open(NOW, &mut whole), Err(OpenError::Phase));
}

#[test]
#[cfg(feature = "crypto")]
fn each_direction_has_its_own_key() {
    let (mut client, mut server) = pair(Cipher::ChaChaPoly);
    let mut to_server = sealed(&mut client, NOW, b"same");
    let mut to_client = sealed(&mut server, NOW, b"same");
    assert_ne!(to_server, to_client);
    assert_eq!(client.open(NOW, &mut to_server.clone()), Err(OpenError::Forged), "not to be reflected");
    assert!(server.open(NOW, &mut to_server).is_ok());
    assert!(client.open(NOW, &mut to_client).is_ok());
}

/// The bytes are those of Noise: the nonce, the tag over the header, and the next key, as snow has them.
#[test]
#[cfg(feature = "crypto")]
fn packets_and_next_keys_are_those_of_noise() {
    use snow::params::CipherChoice;
    use snow::resolvers::{CryptoResolver, DefaultResolver};
    let ciphers = [(Cipher::ChaChaPoly, CipherChoice::ChaChaPoly), (Cipher::AesGcm, CipherChoice::AESGCM)];
    for (cipher, choice) in ciphers {
        let mut theirs = DefaultResolver.resolve_cipher(&choice).unwrap();
        theirs.set(&[1; 32]);
        let (mut client, mut server) = pair(cipher);
        client.set_update_after(3);
        client.next_pn = 0x0001_0203_0405;
        server.window.mark(0x0001_0203_0404).unwrap();
        for round in 0..9 {
            let pn = client.sealed();
            let mut ours = sealed(&mut client, NOW, b"frames");
            if round > 0 && round % 3 == 0 {
                theirs.rekey();
            }
            let mut expected = [0; 22];
            theirs.encrypt(pn, &ours[..DATA_HEADER_LEN], b"frames", &mut expected);
            assert_eq!(ours[DATA_HEADER_LEN..], expected, "{cipher:?}, packet {round}");
            server.open(NOW, &mut ours).unwrap();
            let mut answer = sealed(&mut server, NOW, b"");
            client.open(NOW, &mut answer).unwrap();
        }
        assert_eq!((client.updates(), server.updates()), ((2, 2), (2, 2)));
    }
}

#[test]
#[cfg(feature = "ring")]
fn ring_and_rust_alone_give_the_same_bytes() {
    use super::cipher::Aead;
    fn same<A: Aead, B: Aead>() {
        for len in [0, 1, 16, 63, 1191] {
            let body = vec![5; len];
            let (mut a, mut b) = (body.clone(), body.clone());
            let tag = A::new(&[7; 32]).seal(9, b"header", &mut a).unwrap();
            assert_eq!(Some(tag), B::new(&[7; 32]).seal(9, b"header", &mut b));
            assert_eq!(a, b);
            let sealed = [&a[..], &tag].concat();
            for header in [&b"header"[..], b"other"] {
                let (mut a, mut b) = (sealed.clone(), sealed.clone());
                let opened = A::new(&[7; 32]).open(9, header, &mut a);
                assert_eq!(opened, header == b"header");
                assert_eq!(opened, B::new(&[7; 32]).open(9, header, &mut b));
                assert!(!opened || (a[..len] == body && b[..len] == body));
            }
        }
    }
    same::<fast::ChaChaPoly, pure::ChaChaPoly>();
    same::<fast::AesGcm, pure::AesGcm>();
}

#[test]
#[cfg(feature = "crypto")]
fn a_key_is_updated_after_its_packets_or_its_time_and_not_before_it_was_answered() {
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
    assert_eq!(client.updates(), (1, 0), "once, until it is answered");
    let mut there = sealed(&mut client, NOW, b"");
    assert_eq!(there[0], 0xa7);
    server.open(NOW, &mut there).unwrap();
    assert_eq!(server.updates(), (1, 1));
    let mut back = sealed(&mut server, NOW, b"");
    client.open(NOW, &mut back).unwrap();
    assert_eq!(client.updates(), (1, 1));
    sealed(&mut client, NOW, b"");
    assert_eq!(client.updates(), (2, 1), "answered, and 4 packets were sealed long ago");

    let (mut client, _) = pair(Cipher::ChaChaPoly);
    let late = NOW + Duration::from_secs(15 * 60);
    sealed(&mut client, NOW + Duration::from_millis(15 * 60_000 - 1), b"");
    assert_eq!(client.updates(), (0, 0));
    sealed(&mut client, late, b"");
    assert_eq!(client.updates(), (1, 0));
}

#[test]
#[cfg(feature = "crypto")]
fn the_last_key_opens_what_is_late_for_two_seconds() {
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
        assert_eq!(server.forged(), 0);
    }
}

#[test]
#[cfg(feature = "crypto")]
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

#[cfg(feature = "crypto")]
#[derive(Clone, Copy, Debug)]
enum Step {
    /// One end seals a packet: the client, or the server.
    Seal(bool),
    /// The packet at this place of those under way arrives, and stays under way.
    Arrive(usize),
    /// The packet at this place is lost.
    Lose(usize),
    /// So many ms pass.
    Wait(u64),
}

#[cfg(feature = "crypto")]
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<bool>().prop_map(Step::Seal),
        4 => any::<usize>().prop_map(Step::Arrive),
        1 => any::<usize>().prop_map(Step::Lose),
        1 => (0..300_u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..300)
}

#[cfg(feature = "crypto")]
struct UnderWay {
    to_server: bool,
    pn: u64,
    generation: u64,
    sealed_at: Time,
    bytes: Vec<u8>,
}

proptest! {
    /// However packets are lost, doubled and reordered while keys are updated: none is opened twice, each that is not older than
    /// the last phase or 2 s is opened, and no nonce is used twice with a key.
    #[test]
    #[cfg(feature = "crypto")]
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

proptest! {
    #[test]
    fn what_nobody_sealed_changes_nothing(bytes in prop::collection::vec(any::<u8>(), 0..60), kind in 0xa5..0xa9_u8) {
        let mut bytes = bytes;
        bytes.iter_mut().take(1).for_each(|first| *first = kind);
        for (_, mut server, _) in pairs() {
            prop_assert!(server.open(NOW, &mut bytes.clone()).is_err());
            prop_assert_eq!(server.newest(), None);
        }
    }
}
