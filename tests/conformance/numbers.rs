//! Values computed from numbers: packet numbers, which of them are accepted, cookies, reset tokens.

use crate::line::{File, Line, bytes, count};
use crate::{CID, PROTOCOL};
use serde_json::Value;
use std::net::SocketAddr;
use whitewater::inside::session::cookie::{Claim, CookieKey, ResetKey};
use whitewater::inside::session::replay::{ReplayWindow, expand};

pub(crate) fn file() -> File {
    let turn = 1_u64 << 32;
    let cases = [
        ("the first packet", None, 0),
        ("the first that comes is not the first", None, 70),
        ("the first that comes has all bits", None, u32::MAX),
        ("the next", Some(7), 8),
        ("one before", Some(7), 3),
        ("across the end of the low half", Some(turn - 1), 0),
        ("behind the end of the low half", Some(turn + 1), u32::MAX),
        ("as near ahead as behind: ahead", Some(turn + 9), 0x8000_000a),
        ("a little nearer behind", Some(turn + 9), 0x8000_000b),
        ("behind, where there is nothing below 0", Some(5), u32::MAX),
    ];
    let mut lines: Vec<_> = cases
        .into_iter()
        .map(|(name, highest, low)| {
            let line = Line::named(name).text("is", "number");
            let line = if let Some(highest) = highest { line.wide("highest", highest) } else { line };
            line.number("low", low).wide("number", expand(highest, low))
        })
        .collect();
    let far = 1 << 20;
    for (name, numbers) in [
        ("each once", vec![0, 1, 1, 0, 2, 2]),
        ("out of order", vec![5, 3, 4, 5, 3, 0, 1]),
        ("1023 behind the highest, and 1024", vec![far, far - 1023, far - 1024, far - 1023]),
        ("a jump forgets what is too far behind", vec![0, 1, 2000, 1, 977, 976, 2000, 2001]),
    ] {
        let mut window = ReplayWindow::default();
        let taken: Vec<_> = numbers
            .iter()
            .map(|number| window.check(*number).and_then(|()| window.mark(*number)).is_ok())
            .collect();
        let numbers = numbers.iter().map(|number| format!("\"{number:#018x}\""));
        lines.push(Line::named(name).text("is", "replay").list("numbers", numbers).list("taken", taken));
    }
    File {
        name: "numbers",
        about: "is number: the packet number with these low 32 bits, by the highest that was authentic. is replay: which of the numbers, one after the other and all of them authentic, are taken by an end that has data all the time.",
        lines,
    }
}

pub(crate) fn take(line: &Value) {
    if line["is"] == "number" {
        let highest = line.get("highest").map(|_| wide(&line["highest"]));
        let low = u32::try_from(line["low"].as_u64().unwrap()).unwrap();
        assert_eq!(expand(highest, low), wide(&line["number"]), "{line}");
        return;
    }
    let mut window = ReplayWindow::default();
    for (number, taken) in line["numbers"].as_array().unwrap().iter().zip(line["taken"].as_array().unwrap()) {
        let number = wide(number);
        let is_new = window.check(number).and_then(|()| window.mark(number)).is_ok();
        assert_eq!(Some(is_new), taken.as_bool(), "{number} of {line}");
    }
}

pub(crate) fn cookies() -> File {
    let mut lines = Vec::new();
    for (name, address, suite, epoch) in [
        ("IPv4", "192.0.2.1:4000", 0x0201, 7),
        ("IPv6", "[2001:db8::1]:4000", 0x0201, 7),
        ("another port, suite, epoch", "192.0.2.1:4001", 0, 0xffff_ffff),
    ] {
        let claim = Claim { address: address.parse().unwrap(), suite, protocol_id: PROTOCOL, cid: CID };
        let cookie = CookieKey::new(count(0)).mint(epoch, &claim);
        let line = Line::named(name).text("is", "cookie").hex("key", &count::<16>(0)).number("epoch", epoch);
        let line = line
            .text("address", address)
            .number("suite", suite)
            .wide("protocol_id", PROTOCOL)
            .wide("cid", CID);
        lines.push(line.hex("cookie", &cookie));
    }
    let clients = [("reset token, IPv4", "192.0.2.1:4000"), ("reset token, IPv6", "[2001:db8::1]:4000")];
    for (name, address) in clients {
        let token = ResetKey::new(count(0x10)).token(0x0e0f_1011, address.parse().unwrap());
        let line = Line::named(name)
            .text("is", "reset")
            .hex("key", &count::<16>(0x10))
            .number("sid", 0x0e0f_1011_u32);
        lines.push(line.text("address", address).hex("token", &token));
    }
    File {
        name: "cookies",
        about: "How our servers make cookies and reset tokens. Nobody else reads them, so another server may make its own otherwise.",
        lines,
    }
}

pub(crate) fn take_cookie(line: &Value) {
    let key: [u8; 16] = bytes(line, "key").try_into().unwrap();
    let number = |name: &str| u32::try_from(line[name].as_u64().unwrap()).unwrap();
    if line["is"] == "reset" {
        let token =
            ResetKey::new(key).token(number("sid"), line["address"].as_str().unwrap().parse().unwrap());
        assert_eq!(token.to_vec(), bytes(line, "token"), "{line}");
        return;
    }
    let address: SocketAddr = line["address"].as_str().unwrap().parse().unwrap();
    let suite = u16::try_from(number("suite")).unwrap();
    let claim = Claim { address, suite, protocol_id: wide(&line["protocol_id"]), cid: wide(&line["cid"]) };
    assert_eq!(CookieKey::new(key).mint(number("epoch"), &claim).to_vec(), bytes(line, "cookie"), "{line}");
}

fn wide(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}
