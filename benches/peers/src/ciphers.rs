//! What the ciphers of packets cost alone, by ring, which sessions use, and with the feature `aws-lc-rs` by that, which knows
//! wider instructions. A packet is sealed and opened in place, under keys that are prepared, like those of a session. With one
//! key, all packets are a batch of it; with many, each packet has another than the last, as at a server.

use crate::runs::cpu_time;
use crate::table::{Spread, spreads};

/// Each cipher and size `rounds` times. The libraries take turns.
pub(crate) fn table(rounds: usize) {
    for aes in [true, false] {
        for size in [60, 64, 1195, 1200] {
            for keys in [1, KEYS] {
                let name = if aes { "AES-256-GCM" } else { "ChaCha20-Poly1305" };
                let mut found: Vec<_> = LIBRARIES.iter().map(|(name, _)| (*name, Vec::new())).collect();
                for _ in 0..rounds {
                    for ((_, run), (_, nanos)) in LIBRARIES.iter().zip(&mut found) {
                        nanos.push(run(aes, size, keys));
                    }
                }
                let row: Vec<_> = found.into_iter().map(|(name, nanos)| (name, Spread::of(nanos))).collect();
                println!("{name}, {size} B, {keys} keys: {}", spreads("ns", &row));
            }
        }
    }
}

type RunFn = fn(bool, usize, usize) -> f64;

const LIBRARIES: &[(&str, RunFn)] = &[
    ("ring", by_ring::seal_and_open),
    #[cfg(feature = "aws-lc-rs")]
    ("aws-lc-rs", by_aws_lc::seal_and_open),
];

/// As many as do not fit into the first-level cache.
const KEYS: usize = 300;
const PACKETS: usize = 300_000;
const HEADER: &[u8] = b"ten bytes.";

/// The same code for both, as both have the same interface.
macro_rules! by {
    ($name:ident, $library:ident) => {
        mod $name {
            use super::{HEADER, PACKETS, cpu_time};
            use $library::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

            /// ns for each packet.
            pub(super) fn seal_and_open(aes: bool, size: usize, keys: usize) -> f64 {
                let algorithm = if aes { &AES_256_GCM } else { &CHACHA20_POLY1305 };
                let key = |index: usize| UnboundKey::new(algorithm, &[index as u8; 32]).expect("32 bytes");
                let keys: Vec<_> = (0..keys).map(|index| LessSafeKey::new(key(index))).collect();
                let mut packet = vec![7; size];
                let start = cpu_time();
                for (pn, key) in (0..PACKETS as u64).zip(keys.iter().cycle()) {
                    let [a, b, c, d, e, f, g, h] = pn.to_be_bytes();
                    let nonce = || Nonce::assume_unique_for_key([0, 0, 0, 0, a, b, c, d, e, f, g, h]);
                    let tag = key
                        .seal_in_place_separate_tag(nonce(), Aad::from(HEADER), &mut packet)
                        .expect("it is short");
                    packet.extend_from_slice(tag.as_ref());
                    key.open_in_place(nonce(), Aad::from(HEADER), &mut packet).expect("it is authentic");
                    packet.truncate(size);
                }
                assert_eq!(packet, vec![7; size]);
                (cpu_time() - start).as_secs_f64() * 1e9 / PACKETS as f64
            }
        }
    };
}

by!(by_ring, ring);
#[cfg(feature = "aws-lc-rs")]
by!(by_aws_lc, aws_lc_rs);
