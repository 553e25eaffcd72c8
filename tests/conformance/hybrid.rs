//! Handshakes of hybrid suites, from the secrets of both ends to one packet each way.

use crate::handshakes::{
    CLIENT_SID, PING, PONG, SERVER_SID, Secrets, initiator, name_of, payloads, responder, sealed,
};
use crate::line::{File, Line, bytes, count, variant};
use crate::{CID, PROTOCOL};
use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use serde_json::Value;
use whitewater::Time;
use whitewater::inside::session::exchange::Attempt;
use whitewater::inside::session::seal::Seal;
use whitewater::inside::session::wire::KemKey;
use whitewater::session::{Cipher, Pattern, Suite, public_key};

pub(crate) fn file() -> File {
    let suites = [
        Suite::Hybrid(Pattern::Nn, Cipher::ChaChaPoly),
        Suite::HYBRID_TOKEN,
        Suite::Hybrid(Pattern::Nk, Cipher::AesGcm),
        Suite::Hybrid(Pattern::NkPsk0, Cipher::AesGcm),
    ];
    File {
        name: "hybrid",
        about: "The handshake of hybrid suites, and the first packet of each end. The ephemeral private keys of X25519 are client_x25519 and server_x25519; d and z make the server's key pair, and m is what the client encapsulates with. Each of refused is a KEM_CIPHERTEXT that is not authentic.",
        lines: suites.into_iter().map(line).collect(),
    }
}

fn line(suite: Suite) -> Line {
    let psk = suite.needs_psk().then(|| count(0x60));
    let server_private = suite.needs_server_key().then(|| count(0x80));
    let (client_random, server_random) = (count(0x20), count(0x40));
    let secrets = Secrets { psk, server_private, client_random, server_random };
    let Made { msg1, msg2, key, ciphertext, to_server, to_client } = made(suite, &secrets);
    let mut line = Line::named(&format!("{} with ML-KEM-768", name_of(suite))).number("suite", suite.code());
    line = line.wide("protocol_id", PROTOCOL).wide("cid", CID).number("client_sid", CLIENT_SID);
    line = line.number("server_sid", SERVER_SID).hex("token", &[]);
    if let Some(psk) = &secrets.psk {
        line = line.hex("psk", psk);
    }
    if let Some(private) = &secrets.server_private {
        line = line.hex("server_private", private).hex("server_public", &public_key(private));
    }
    line = line.hex("client_random", &client_random).hex("server_random", &server_random);
    line = line.hex("client_x25519", &part(&client_random, "ww/1 x25519"));
    line = line.hex("m", &part(&client_random, "ww/1 kem m"));
    line = line.hex("server_x25519", &part(&server_random, "ww/1 x25519"));
    line = line.hex("d", &part(&server_random, "ww/1 kem d")).hex("z", &part(&server_random, "ww/1 kem z"));
    let [payload1, payload2] = payloads();
    line = line.hex("payload1", &payload1).hex("msg1", &msg1).hex("payload2", &payload2).hex("msg2", &msg2);
    line = line.hex("kem_key", &key).hex("kem_ciphertext", &ciphertext);
    line = line.hex("body_to_server", PING).hex("to_server", &to_server);
    line = line.hex("body_to_client", PONG).hex("to_client", &to_client);
    let broken = [("its session", 1), ("the ciphertext", 500), ("the tag", 1108)].map(|(name, at)| {
        let mut broken = ciphertext.clone();
        broken[at] ^= 1;
        Line::named(name).hex("kem_ciphertext", &broken)
    });
    line.list("refused", broken)
}

struct Made {
    msg1: Vec<u8>,
    msg2: Vec<u8>,
    key: Vec<u8>,
    ciphertext: Vec<u8>,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

fn made(suite: Suite, secrets: &Secrets) -> Made {
    let attempt = Attempt { suite, protocol_id: PROTOCOL, cid: CID, client_sid: CLIENT_SID, token: &[] };
    let (mut msg1, mut msg2, mut read) = (Vec::new(), Vec::new(), Vec::new());
    let [payload1, payload2] = payloads();
    let mut client = initiator(&attempt, secrets, &payload1, &mut msg1);
    let server = responder(&attempt, secrets, &msg1, &mut read).unwrap();
    assert_eq!(read, payload1);
    let mut server = Seal::new(Time::ZERO, server.write_msg2(&payload2, &mut msg2).unwrap());
    let mut keys = client.read_msg2(&msg2, &mut read).unwrap();
    assert_eq!(read, payload2);
    let key = server.kem_key().unwrap().to_vec();
    assert!(keys.encapsulate(SERVER_SID, KemKey::decode(&key).unwrap().key));
    let mut client = Seal::new(Time::ZERO, keys);
    let ciphertext = client.kem_ciphertext(Time::ZERO).unwrap().to_vec();
    assert!(server.decapsulate(Time::ZERO, &mut ciphertext.clone()));
    let to_server = sealed(&mut client, SERVER_SID, PING);
    let to_client = sealed(&mut server, CLIENT_SID, PONG);
    assert!(server.open(Time::ZERO, &mut to_server.clone()).is_ok());
    assert!(client.open(Time::ZERO, &mut to_client.clone()).is_ok());
    Made { msg1, msg2, key, ciphertext, to_server, to_client }
}

/// The reverse: from the fields to their content.
pub(crate) fn take(line: &Value) {
    let suite = Suite::from_code(u16::try_from(line["suite"].as_u64().unwrap()).unwrap()).unwrap();
    let key = |name: &str| line.get(name).map(|_| <[u8; 32]>::try_from(bytes(line, name)).unwrap());
    let (client_random, server_random) = (key("client_random").unwrap(), key("server_random").unwrap());
    let secrets =
        Secrets { psk: key("psk"), server_private: key("server_private"), client_random, server_random };
    let Made { msg1, msg2, key, ciphertext, to_server, to_client } = made(suite, &secrets);
    let names = ["msg1", "msg2", "kem_key", "kem_ciphertext", "to_server", "to_client"];
    assert_eq!([msg1, msg2, key, ciphertext, to_server, to_client], names.map(|name| bytes(line, name)));
    let attempt = Attempt { suite, protocol_id: PROTOCOL, cid: CID, client_sid: CLIENT_SID, token: &[] };
    let server = responder(&attempt, &secrets, &bytes(line, "msg1"), &mut Vec::new()).unwrap();
    let mut server = Seal::new(Time::ZERO, server.write_msg2(&payloads()[1], &mut Vec::new()).unwrap());
    for broken in line["refused"].as_array().unwrap() {
        assert!(!server.decapsulate(Time::ZERO, &mut bytes(broken, "kem_ciphertext")), "{broken}");
    }
    let early = server.open(Time::ZERO, &mut bytes(line, "to_server")).unwrap_err();
    assert_eq!(variant(&early), "Phase", "before the ciphertext nothing opens");
    assert!(server.decapsulate(Time::ZERO, &mut bytes(line, "kem_ciphertext")), "they have changed nothing");
}

/// What our ends make of their random bytes; others may draw each part.
fn part(random: &[u8; 32], label: &str) -> [u8; 32] {
    let mut mac = Blake2sMac256::new(random.into());
    mac.update(label.as_bytes());
    mac.finalize_fixed().into()
}
