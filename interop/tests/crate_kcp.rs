//! The crate `kcp`, in its current version and in the one that tokio_kcp uses: a port of ikcp.c to Rust.

use interop::cases;
use interop::exchange::{CONV, Case, RECEIVE_WINDOW, WINDOW};
use interop::theirs::{Control, Echo, Out, ask};
use std::net::UdpSocket;

/// The initial time of their clock, as tokio_kcp's clock shows these years. With overflow checks, they panic when it
/// wraps.
const START: u32 = 0xd000_0000;

#[test]
fn our_socket_has_its_messages_echoed_by_the_crate_kcp() {
    cases::run(&Case::all(&[false, true]), |case| {
        let stream = case.stream;
        let server = Echo::start(move |socket| v0_6(socket, stream));
        case.we_ask(server.address)
    });
}

#[test]
fn our_listener_echoes_the_messages_of_the_crate_kcp() {
    cases::run(&Case::all(&[false, true]), |case| {
        case.they_ask(|server, sent| ask(server, |socket| v0_6(socket, case.stream), sent))
    });
}

#[test]
fn the_older_crate_kcp_is_no_worse() {
    cases::run(&Case::all(&[false, true])[..8], |case| {
        let stream = case.stream;
        let server = Echo::start(move |socket| v0_5(socket, stream));
        let theirs = case.they_ask(|server, sent| ask(server, |socket| v0_5(socket, stream), sent));
        format!("we ask: {}; they ask: {theirs}", case.we_ask(server.address))
    });
}

/// Both versions have the same methods.
macro_rules! control {
    ($make:ident, $name:ident, $kcp:ident) => {
        struct $name($kcp::Kcp<Out>);

        fn $make(socket: UdpSocket, stream: bool) -> $name {
            let new = if stream { $kcp::Kcp::new_stream } else { $kcp::Kcp::new };
            let mut kcp = new(CONV, Out(socket));
            kcp.set_nodelay(true, 10, 2, true);
            kcp.set_wndsize(WINDOW, RECEIVE_WINDOW);
            $name(kcp)
        }

        impl Control for $name {
            fn send(&mut self, message: &[u8]) {
                assert_eq!(self.0.send(message).unwrap(), message.len());
            }

            fn recv(&mut self) -> Option<Vec<u8>> {
                let mut message = vec![0; self.0.peeksize().ok()?];
                let len = self.0.recv(&mut message).unwrap();
                assert_eq!(len, message.len());
                Some(message)
            }

            fn input(&mut self, datagram: &[u8]) {
                assert_eq!(self.0.input(datagram).unwrap(), datagram.len());
            }

            fn update(&mut self, now: u32) {
                self.0.update(START.wrapping_add(now)).unwrap();
            }
        }
    };
}

control!(v0_5, V0_5, kcp_0_5);
control!(v0_6, V0_6, kcp);
