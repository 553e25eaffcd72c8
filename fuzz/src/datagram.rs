//! Every packet of a session, and the payloads of its handshake, encode to the bytes they were decoded from. What a proxy puts before them ends where
//! it says.

use whitewater::inside::session::wire::{
    Accept, Challenge, Connect, DATA_MAX, DATAGRAM_MAX, Data, Deny, DenyReason, HELLO_MIN, Hello,
    KEM_KEY_LEN, KEM_SEALED_LEN, KemCiphertext, KemKey, Msg1, Msg2, Packet, ProxyHeader, Reset,
};

/// Decodes `datagram` as the packet that it claims to be, and as a payload of the handshake.
///
/// # Panics
///
/// If it encodes to other bytes, or something longer than a datagram is accepted.
pub fn dgram_decode(datagram: &[u8]) {
    if let Ok(packet) = Packet::decode(datagram) {
        let most = if let Packet::Data(..) = packet { DATA_MAX } else { DATAGRAM_MAX };
        assert!(datagram.len() <= most);
        assert_eq!(encoded(&packet), datagram);
        if let Packet::Hello(hello) = packet {
            assert_eq!(Packet::cid_of_any_version(datagram), Some(hello.cid));
        }
    }
    if let Some(header) = ProxyHeader::decode(datagram) {
        assert!(Packet::decode(datagram).is_err());
        assert!(header.client.is_none_or(|client| client.port() > 0));
        let (own, _) = datagram.split_at(header.len); // it is no longer than the datagram
        assert_eq!(ProxyHeader::decode(own), Some(header));
    }
    assert!(Packet::cid_of_any_version(datagram).is_none() || datagram.len() >= HELLO_MIN);
    let mut again = Vec::new();
    if let Ok(msg1) = Msg1::decode(datagram) {
        msg1.encode(&mut again).expect("it was decoded");
        assert_eq!(again, datagram);
    }
    again.clear();
    if let Ok(msg2) = Msg2::decode(datagram) {
        msg2.encode(&mut again).expect("it was decoded");
        assert_eq!(again, datagram);
    }
}

fn encoded(packet: &Packet<'_>) -> Vec<u8> {
    let mut datagram = Vec::new();
    let done = match packet {
        Packet::Hello(packet) => packet.encode(&mut datagram),
        Packet::Challenge(packet) => packet.encode(&mut datagram),
        Packet::Connect(packet) => packet.encode(&mut datagram),
        Packet::Accept(packet) => packet.encode(&mut datagram),
        Packet::Deny(packet) => packet.encode(&mut datagram),
        Packet::Data(data, sealed) => {
            datagram.extend_from_slice(&data.encode());
            datagram.extend_from_slice(sealed);
            Ok(())
        }
        Packet::Reset(packet) => packet.encode(&mut datagram),
        Packet::KemKey(packet) => {
            packet.encode(&mut datagram);
            Ok(())
        }
        Packet::KemCiphertext(packet) => {
            packet.encode(&mut datagram);
            Ok(())
        }
        _ => unreachable!("there are nine kinds"),
    };
    done.expect("it was decoded");
    datagram
}

/// One of each, at minimum length and longer.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut add = |name: &str, bytes| seeds.push((name.to_owned(), bytes));
    for size in [HELLO_MIN, DATAGRAM_MAX] {
        let size = u16::try_from(size).unwrap_or_default();
        let hello = Hello { suite: 0x201, protocol_id: 1, cid: 2, client_stamp: 3, size };
        add(&format!("hello-{size}"), encoded(&Packet::Hello(hello)));
    }
    let challenge = Challenge { suite: 0, cid: 2, client_stamp: 3, epoch: 4, cookie: [5; 16] };
    add("challenge", encoded(&Packet::Challenge(challenge)));
    for (token, message) in [(0, 28), (384, 64), (512, 338)] {
        let (token, msg1) = (vec![6; token], vec![7; message]);
        let connect = Connect {
            suite: 0x201,
            protocol_id: 1,
            cid: 2,
            epoch: 4,
            cookie: [5; 16],
            client_sid: 8,
            token: &token,
            msg1: &msg1,
        };
        add(&format!("connect-{message}"), encoded(&Packet::Connect(connect)));
        let accept = Accept { suite: 0x201, cid: 2, msg2: &msg1 };
        add(&format!("accept-{message}"), encoded(&Packet::Accept(accept)));
    }
    for (number, reason) in (1..).zip(DenyReason::ALL) {
        let deny = Deny { lowest: 1, highest: 2, reason, cid: 2, retry_after_ms: 9 };
        add(&format!("deny-{number}"), encoded(&Packet::Deny(deny)));
    }
    for phase in [false, true] {
        let data = Data { phase, sid: 8, pn: 10 };
        add(&format!("data-{phase}"), encoded(&Packet::Data(data, &[11; 25])));
    }
    for (family, len) in [(0x12, 12), (0x22, 36), (0x12, 20)] {
        let start = [b"\r\n\r\n\0\r\nQUIT\n".as_slice(), &[0x21, family, 0, len]].concat();
        add(&format!("proxied-{family}-{len}"), [start, vec![9; len.into()], vec![0xa7; 30]].concat());
    }
    add("reset", encoded(&Packet::Reset(Reset { sid: 8, token: [12; 16] })));
    add("kem-key", encoded(&Packet::KemKey(KemKey { cid: 13, key: &[14; KEM_KEY_LEN] })));
    let ciphertext = KemCiphertext { sid: 15, sealed: &[16; KEM_SEALED_LEN] };
    add("kem-ciphertext", encoded(&Packet::KemCiphertext(ciphertext)));
    for (user, shape) in [(&b""[..], &b""[..]), (b"user", &[7; 14])] {
        let mut payload = Vec::new();
        let msg1 = Msg1 { features: 1, max_datagram: 1200, rcv_wnd: 128, keepalive_ms: 500, user, shape };
        msg1.encode(&mut payload).expect("it is short");
        add(&format!("msg1-{}", user.len()), payload);
        for rejected in [None, Some(3)] {
            let mut payload = Vec::new();
            let msg2 = Msg2 {
                server_sid: u32::from(rejected.is_none()),
                said: msg1,
                rejected,
                reset_token: [9; 16],
                ticket: rejected.is_none().then_some([0x87; 20]),
            };
            msg2.encode(&mut payload).expect("it is short");
            add(&format!("msg2-{}-{}", user.len(), rejected.unwrap_or_default()), payload);
        }
    }
    seeds
}
