//! The protection of a session is small, and sealing and opening a packet allocates nothing.

use allocation_counter::measure;
use whitewater::Time;
use whitewater::inside::session::seal::{Keys, Seal};

/// Both ends of each kind of session.
fn ends() -> Vec<(Keys, Keys)> {
    let checked = || Keys::checked([1; 8], [2; 8], 3);
    #[cfg_attr(not(feature = "crypto"), expect(unused_mut, reason = "there is one kind"))]
    let mut ends = vec![(checked(), checked())];
    #[cfg(feature = "crypto")]
    for cipher in [whitewater::session::Cipher::ChaChaPoly, whitewater::session::Cipher::AesGcm] {
        let server = Keys::of_server(cipher, [1; 32], [2; 32]);
        ends.push((Keys::of_client(cipher, [1; 32], [2; 32]), server));
    }
    ends
}

/// Part of the 4 KiB allowed for an idle session; AES-GCM in pure Rust has the largest keys.
const MOST: u64 = 2560;

#[test]
fn one_end_is_small_and_its_packets_allocate_nothing() {
    for (client, server) in ends() {
        let (mut client, mut server) = (Some(client), Some(server));
        let mut made = Vec::with_capacity(2);
        let new = measure(|| made.push(Seal::new(Time::ZERO, client.take().unwrap())));
        made.push(Seal::new(Time::ZERO, server.take().unwrap()));
        let held = u64::try_from(new.bytes_current).unwrap() + size_of::<Seal>() as u64;
        assert!(held <= MOST, "{held} bytes");
        let mut server = made.pop().unwrap();
        let mut client = made.pop().unwrap();
        let mut datagram = Vec::with_capacity(1200);
        let packets = measure(|| {
            for _ in 0..100 {
                datagram.clear();
                Seal::begin(&mut datagram);
                datagram.resize(1100, 7);
                client.seal(Time::ZERO, 1, &mut datagram, 0).unwrap();
                assert_eq!(server.open(Time::ZERO, &mut datagram).unwrap().body.len(), 1091);
            }
        });
        assert_eq!(packets.count_total, 0);
    }
}
