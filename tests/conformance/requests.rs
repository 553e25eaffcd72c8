//! Well-formed datagrams that a server refuses nevertheless.

use crate::line::{File, Line, bytes, count};
use crate::{CID, PROTOCOL, counted_by_a_server};
use serde_json::Value;
use whitewater::inside::session::wire::{Connect, Data, Hello};

/// For the server in `counted_by_a_server`: suite 0, this protocol, and no session.
pub(crate) fn refused() -> File {
    let hello = |suite, protocol_id| {
        let hello = Hello { suite, protocol_id, cid: CID, client_stamp: 1000, size: 512 };
        encoded(|datagram| hello.encode(datagram).unwrap())
    };
    let connect = |suite, protocol_id, epoch| {
        let connect = Connect {
            suite,
            protocol_id,
            cid: CID,
            epoch,
            cookie: count(0x10),
            client_sid: 1,
            token: b"",
            msg1: &[7; 28],
        };
        encoded(|datagram| connect.encode(datagram).unwrap())
    };
    let data = [&Data { phase: false, sid: 0x0e0f_1011, pn: 0 }.encode(), &[0; 20][..]].concat();
    let cases = [
        ("HELLO for a suite that there is not", hello(0x0501, PROTOCOL)),
        ("HELLO for a suite that the server does not have", hello(0x0201, PROTOCOL)),
        ("HELLO for another application", hello(0, PROTOCOL + 1)),
        ("CONNECT for another suite", connect(0x0201, PROTOCOL, 0)),
        ("CONNECT for another application", connect(0, PROTOCOL + 1, 0)),
        ("CONNECT with a cookie that nobody made", connect(0, PROTOCOL, 0)),
        ("CONNECT with a cookie of a time to come", connect(0, PROTOCOL, 1)),
        ("DATA of no session", data),
    ];
    let lines = cases.into_iter().map(|(name, datagram)| {
        let counted = counted_by_a_server(&datagram);
        let [counter] = counted[..] else { panic!("{name}: {counted:?}") };
        Line::named(name).text("counter", counter).hex("bytes", &datagram)
    });
    File {
        name: "refused-requests",
        about: "Datagrams that are whole, to a server that has suite 0, the protocol_id 0x1122334455667788 and no session: no answer, and the named counter.",
        lines: lines.collect(),
    }
}

pub(crate) fn take_refused(line: &Value) {
    assert_eq!(counted_by_a_server(&bytes(line, "bytes")), [line["counter"].as_str().unwrap()], "{line}");
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut datagram = Vec::new();
    encode(&mut datagram);
    datagram
}
