//! Datagrams sent by kcp-go 5.6.1 and 5.6.72, recorded on loopback: a client's first PUSH, conv 0x11223344,
//! window 256, payload "hello kcp", the key string "interop key".

use super::config::Config;
use super::crypt::{Crypt, Gcm, gcm};
use super::datagram::Inner;
use super::key::Key;
use super::shield::{Shield, overhead};

/// The cipher, the `ts` in the datagram, the datagram.
const RECORDED: [(&str, u8, &str); 14] = [
    ("null", 3, "44332211510000010300000000000000000000000900000068656c6c6f206b6370"),
    (
        "none",
        7,
        "bbad4f277af1b9be4739247433dba7808fae725844332211510000010700000000000000000000000900000068656c6c6f206b6370",
    ),
    (
        "xor",
        8,
        "e473313430cd99f391160b8fecec0a7bf4a8f15a3a448555d1daba43de09a25d9ac25057b1ef2ff918e90c8b803b6408ba1b2b9163",
    ),
    (
        "aes",
        3,
        "7378899c945b3a0664c68ee79fabb554f2bec762f4de5cdc7db19381d95c7d29f9117ead47627f30d3f0307644c984048545ffeedb",
    ),
    (
        "aes-192",
        9,
        "b55f34580a0af306cb73b75cc172be977f804a39118ffcaf920c79a5fef5f98b8d7c1d60cf7f666ec491466ff4c9932af22ee1a01e",
    ),
    (
        "aes-128",
        4,
        "890846e86cefaa4ed46ab68ec18ab5f822fb952abd3e0ce503c59537ec8877a7bcc67c059e27e47f460da18baddebc003bf0fd3626",
    ),
    (
        "salsa20",
        7,
        "1755a7cec2dfd5ad2c3ddaf9551dee83ddf00d8ae525c3531f8c5ca50dba47c5644036a16479dbb7019f5b30a30eca64f0c050cbb2",
    ),
    (
        "sm4",
        8,
        "ed5358d20302dc550fbf56e2f1138de1afb6c9a0084f8d9c8cd40c816bf0a5dc444826785113e23053faea5996343b9f398ecc136f",
    ),
    (
        "xtea",
        6,
        "ebc7a4520a75898211ba0e9eecc11d07e43b2666b98bda5436996bb5c506d9005bee4022b92e9b1341f62877d620032c107d513d04",
    ),
    (
        "blowfish",
        4,
        "dee56b9cb3947bd6fe1609b4a08de48cf39ec4bb612dca24d267207d660ace3dd0df615536899d69e3d3227a404f4ce90e9a7d1f46",
    ),
    (
        "cast5",
        6,
        "0821b90c7e0bc3e0d06faf892039bed32aa96739e43e92119d5bfa1b9a5d61432bb022a07dfd37f520bd6e845216f55330d40aa191",
    ),
    (
        "3des",
        3,
        "ba0ea43c62965e4ce6df1798d27846583ad2b8f8475d5524e1eff2d0662e5205aec62657bfb401cf9052fe08b3f9689eeeb12da8b3",
    ),
    (
        "aes-128-gcm",
        3,
        "3bdfa6bc51904e503df828762e135e65d8654a71b343618dacc14c5574da2a37679d122780c93876a0967482dab49cdccc6dd569ad0ef7cb5c3998bef6",
    ),
    (
        "aes",
        6,
        "40831a391f4c41b945973f0529ddd54f4c5a9a86b3b346b3b9d5453d3cf62e0f26985e4692c2ea85d5cfe25ff2a44365ccc4d041e102aa6a1b03e7ae6c",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn key() -> Key {
    Key::kcptun("interop key")
}

fn shield(crypt: Crypt) -> Shield {
    Shield::new(&Config { crypt, key: key(), ..Config::plain() }, [7; 16])
}

#[test]
fn keys_match_kcptun() {
    for (phrase, expected) in [
        ("it's a secrect", "25d7d7bd51050742d8d791f2b653c6c8b2366b7e25a124cf7a2e12eaf4ffa444"),
        ("interop key", "45feeccf906209f99a86080afdc0f5c812636ab0fc819ea0c23d2b5d16f57627"),
    ] {
        assert_eq!(Key::kcptun(phrase).as_bytes().to_vec(), bytes(expected), "{phrase}");
    }
}

#[test]
fn datagrams_of_kcp_go_are_read_and_reproduced_byte_for_byte() {
    for (name, ts, hex) in RECORDED {
        let crypt: Crypt = name.parse().unwrap();
        let (recorded, mut datagram) = (bytes(hex), bytes(hex));
        let opened = shield(crypt).open(&mut datagram).map(<[u8]>::to_vec);
        let inner = opened.unwrap_or_else(|| panic!("{name}: refused"));
        let kcp = match Inner::of(&inner).unwrap() {
            Inner::Kcp(kcp) | Inner::Data { kcp, .. } => kcp.to_vec(),
            other => panic!("{name}: {other:?}"),
        };
        let mut expected = bytes("44332211510000010000000000000000000000000900000068656c6c6f206b6370");
        expected[8] = ts;
        assert_eq!(kcp, expected, "{name}");
        assert_eq!(recorded.len(), inner.len() + usize::from(overhead(crypt)), "{name}");
        if let Some(cipher) = crypt.cipher(&key()) {
            cipher.hide(&mut datagram); // includes the same random bytes
            assert_eq!(datagram, recorded, "{name}");
        } else if crypt == Crypt::Aes128Gcm {
            let (nonce, _) = recorded.split_first_chunk::<{ gcm::NONCE }>().unwrap();
            let mut hidden = inner.clone();
            let tag = Gcm::new(&key()).seal(*nonce, &mut hidden);
            assert_eq!([nonce.as_slice(), &hidden, &tag].concat(), recorded, "{name}");
        }
    }
}

#[test]
fn every_cipher_round_trips_any_length_and_never_repeats_a_datagram() {
    for crypt in Crypt::ALL {
        let (mut sender, receiver) = (shield(crypt), shield(crypt));
        let mut seen = std::collections::HashSet::new();
        for len in (0..90).chain([1399, 1400, 1472]) {
            let inner: Vec<u8> = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let mut datagram = Vec::new();
            sender.seal([&inner[..len / 3], &inner[len / 3..]], &mut datagram);
            assert_eq!(datagram.len(), len + usize::from(overhead(crypt)), "{crypt}");
            assert!(
                crypt == Crypt::Null || seen.insert(datagram[..12].to_vec()),
                "{crypt}: the same start twice"
            );
            assert_eq!(receiver.open(&mut datagram), Some(inner.as_slice()), "{crypt}, {len} bytes");
        }
    }
}

#[test]
fn a_changed_byte_truncation_and_another_key_are_rejected() {
    for crypt in Crypt::ALL.into_iter().filter(|crypt| *crypt != Crypt::Null) {
        let other = Shield::new(&Config { crypt, key: Key::kcptun("another"), ..Config::plain() }, [7; 16]);
        let mut datagram = Vec::new();
        shield(crypt).seal([b"44332211", b"some datagram of KCP"], &mut datagram);
        // Neither the random bytes before a checksum nor anything cut off after a whole block is checked.
        let first = if crypt == Crypt::Aes128Gcm { 0 } else { 16 };
        for at in first..datagram.len() {
            let mut changed = datagram.clone();
            changed[at] ^= 1;
            assert_eq!(shield(crypt).open(&mut changed), None, "{crypt}: byte {at}");
        }
        for len in 0..datagram.len() {
            assert_eq!(shield(crypt).open(&mut datagram[..len].to_vec()), None, "{crypt}: {len} bytes");
        }
        assert!(crypt == Crypt::None || other.open(&mut datagram.clone()).is_none(), "{crypt}: another key");
    }
}

#[test]
fn names_match_kcptun_and_an_unknown_one_is_an_error_that_lists_them() {
    for crypt in Crypt::ALL {
        assert_eq!(crypt.name().parse(), Ok(crypt));
    }
    let error = "tea".parse::<Crypt>().unwrap_err().to_string();
    assert!(error.contains("\"tea\"") && error.contains("aes-128-gcm"), "{error}");
}

#[test]
fn a_key_is_not_printed() {
    assert_eq!(format!("{:?}", Config::kcptun(key()).key), "Key(..)");
}
