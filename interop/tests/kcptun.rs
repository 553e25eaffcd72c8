//! kcptun, which is kcp-go with TCP at both ends.

use interop::exchange::CONV;
use interop::kcptun::{self, CIPHERS, Case};
use interop::ours::Echo;
use interop::{PATIENCE, cases, smux, tcp};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use whitewater::kcp::{self, Config, Conv};
use whitewater_kcp_go::{self as kcp_go, Key};

/// Checks the harness itself: the other tests can only be as good.
#[test]
fn they_have_a_stream_echoed_through_each_other() {
    if !kcptun::is_there() {
        return;
    }
    cases::run(&Case::all(&["aes-128"]), |case| {
        let target = tcp::Echo::start();
        let (mut server, address) = kcptun::server(target.address, case);
        let relay = case.relay(address);
        let (mut client, address) = kcptun::client(relay.address, case);
        let sent = case.random();
        assert!(tcp::ask(address, &sent) == sent, "something else came back");
        format!("client {}; server {}", case.theirs(&mut client), case.theirs(&mut server))
    });
}

/// A plain echo of bytes is also an echo of smux.
#[test]
fn tcp_through_their_client_is_echoed_by_our_listener() {
    if !kcptun::is_there() {
        return;
    }
    cases::run(&Case::all(&CIPHERS), |case| {
        let server = Echo::start(&case.limits());
        let relay = case.relay(server.address);
        let (mut client, address) = kcptun::client(relay.address, case);
        let sent = case.random();
        assert!(tcp::ask(address, &sent) == sent, "something else came back");
        let theirs = case.theirs(&mut client);
        let counted = server.stop();
        assert_eq!((counted.all.accepted, counted.peers.len()), (1, 1), "{counted:?}");
        format!("{}; theirs {theirs}", case.ours(&counted.peers[0], counted.kcp_go.unwrap()))
    });
}

#[test]
fn a_stream_of_smux_from_our_socket_is_echoed_through_their_server() {
    if !kcptun::is_there() {
        return;
    }
    cases::run(&Case::all(&CIPHERS), |case| {
        let target = tcp::Echo::start();
        let (mut server, address) = kcptun::server(target.address, case);
        let relay = case.relay(address);
        let mut socket =
            kcp::Socket::connect_with_envelope(relay.address, Conv(CONV), &case.config(), &case.wire())
                .unwrap();
        let sent = case.random();
        let back = ask(&mut socket, &sent);
        assert!(back == sent, "something else came back");
        let ours = case.ours(&socket.stats(), kcp_go::Stats::of(socket.envelope()).unwrap());
        format!("{ours}; theirs {}", case.theirs(&mut server))
    });
}

/// Both ways in which kcptun has many connections: streams of one session, and sessions from ports of their own. Those
/// share a cipher, and in kcp-go of that time every cipher except `xor` and `none` has a buffer that all of them write
/// to at once, which corrupts a datagram now and then.
#[test]
fn many_connections_through_their_client_are_echoed_by_our_listener() {
    if !kcptun::is_there() {
        return;
    }
    let [case, ..] = Case::all(&["xor"])[..] else { panic!("no case") };
    let server = Echo::start(&case.limits());
    let (mut client, address) = kcptun::client_of(server.address, &case, 4);
    thread::scope(|scope| {
        for number in 0..16 {
            let sent: Vec<_> = case.random().into_iter().skip(number).take(50_000).collect();
            scope.spawn(move || assert!(tcp::ask(address, &sent) == sent, "something else came back"));
        }
    });
    println!("theirs {}", case.theirs(&mut client));
    let counted = server.stop();
    assert_eq!((counted.all.accepted, counted.all.garbage, counted.peers.len()), (4, 0, 4), "{counted:?}");
}

/// Parity is as long as the longest datagram that it protects, whatever the mtu of its receiver.
#[test]
fn each_end_has_an_mtu_of_its_own() {
    if !kcptun::is_there() {
        return;
    }
    let all = Case::all(&["aes-128"]).into_iter().flat_map(|case| [576, 1500].map(|mtu| (mtu, case)));
    cases::run(&all.collect::<Vec<_>>(), |(mtu, case)| {
        let kcp = Config { mtu: *mtu, ..case.config() };
        let server = Echo::start(&kcp::PeersConfig { kcp, ..case.limits() });
        let relay = case.relay(server.address);
        let (mut client, address) = kcptun::client(relay.address, case);
        let sent = case.random();
        assert!(tcp::ask(address, &sent) == sent, "something else came back");
        let (theirs, counted) = (case.theirs(&mut client), server.stop());
        format!("{}; theirs {theirs}", case.ours(&counted.peers[0], counted.kcp_go.unwrap()))
    });
}

/// kcp-go sends none itself, but joins what it receives.
#[test]
fn their_server_takes_messages_of_several_segments() {
    if !kcptun::is_there() {
        return;
    }
    cases::run(&Case::all(&["aes-128"]), |case| {
        let target = tcp::Echo::start();
        let (mut server, address) = kcptun::server(target.address, case);
        let (relay, kcp) = (case.relay(address), Config { stream: false, ..case.config() });
        let mut socket =
            kcp::Socket::connect_with_envelope(relay.address, Conv(CONV), &kcp, &case.wire()).unwrap();
        let sent = case.random();
        assert!(ask(&mut socket, &sent) == sent, "something else came back");
        let ours = case.ours(&socket.stats(), kcp_go::Stats::of(socket.envelope()).unwrap());
        format!("{ours}; theirs {}", case.theirs(&mut server))
    });
}

/// The reverse would fail: without shards, kcptun 20210922 takes ours to be 1 + 1, and parity for data.
#[test]
fn shards_of_their_client_come_through_to_a_listener_that_has_none() {
    if !kcptun::is_there() {
        return;
    }
    cases::run(&Case::all(&["xor"])[2..], |case| {
        let wire = kcp_go::Config { shards: None, ..case.wire() };
        let server = Echo::start(&kcp::PeersConfig { envelope: Some(Arc::new(wire)), ..case.limits() });
        let relay = case.relay(server.address);
        let (_client, address) = kcptun::client(relay.address, case);
        let sent = case.random();
        assert!(tcp::ask(address, &sent) == sent, "something else came back");
        let wire = server.stop().kcp_go.unwrap();
        let kcp_go::Stats { parity_received, parity_unused, recovered, .. } = wire;
        assert!(parity_received > 0 && parity_unused == parity_received && recovered == 0, "{wire:?}");
        format!("{parity_received} shards of parity unused")
    });
}

#[test]
fn their_client_with_another_key_is_nobody() {
    if !kcptun::is_there() {
        return;
    }
    cases::run(&Case::all(&["xor", "aes-128", "salsa20"]), |case| {
        let wire = kcp_go::Config { key: Key::kcptun("another key"), ..case.wire() };
        let server = Echo::start(&kcp::PeersConfig { envelope: Some(Arc::new(wire)), ..case.limits() });
        let (_client, address) = kcptun::client(server.address, case);
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"hello").unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        assert!(stream.read(&mut [0; 16]).is_err(), "an answer");
        let counted = server.stop();
        let unreadable = counted.kcp_go.unwrap().unreadable;
        assert!(unreadable > 0 && counted.all.accepted == 0, "{counted:?}");
        format!("{unreadable} unreadable")
    });
}

/// Sends these bytes in a smux stream, in pieces of any length, and returns as many bytes of the echo.
fn ask(socket: &mut kcp::Socket, sent: &[u8]) -> Vec<u8> {
    socket.set_read_timeout(Some(PATIENCE));
    socket.set_write_timeout(Some(PATIENCE));
    let (mut reader, mut buf, mut rest) = (smux::Reader::default(), vec![0; 1 << 16], sent);
    send(socket, &smux::syn());
    for piece in (1..).map(|number: usize| number * 7919 % 5000) {
        let (now, later) = rest.split_at(piece.min(rest.len()));
        if now.is_empty() {
            break;
        }
        send(socket, &smux::psh(now));
        rest = later;
        while let Ok(len) = socket.recv_into(&mut buf) {
            reader.take(&buf[..len]);
        }
    }
    while reader.payload.len() < sent.len() {
        let received = socket.recv_blocking(&mut buf);
        let len = received.unwrap_or_else(|error| {
            panic!("{error} after {} bytes: {:?}", reader.payload.len(), socket.stats())
        });
        reader.take(&buf[..len]);
    }
    send(socket, &smux::fin());
    socket.drain(PATIENCE).unwrap();
    reader.payload
}

fn send(socket: &mut kcp::Socket, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let len = socket.send_blocking(bytes).unwrap();
        bytes = &bytes[len..];
    }
}
