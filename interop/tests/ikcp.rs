//! ikcp.c 1.7.1 through the crate `kcp-sys`, whose wrapper always uses stream mode.

#[cfg(not(feature = "c"))]
#[test]
fn ikcp_is_a_peer() {
    interop::skip("the feature `c` is missing, which needs a C compiler and libclang");
}

#[cfg(feature = "c")]
mod with_c {
    use bytes::{Bytes, BytesMut};
    use interop::cases;
    use interop::exchange::{CONV, Case, RECEIVE_WINDOW, WINDOW};
    use interop::theirs::{Control, Echo, ask};
    use kcp_sys::ffi_safe::{Kcp, KcpConfig};
    use std::net::UdpSocket;

    #[test]
    fn our_socket_has_its_stream_echoed_by_ikcp() {
        cases::run(&Case::all(&[true]), |case| {
            let server = Echo::start(ikcp);
            case.we_ask(server.address)
        });
    }

    #[test]
    fn our_listener_echoes_the_stream_of_ikcp() {
        cases::run(&Case::all(&[true]), |case| case.they_ask(|server, sent| ask(server, ikcp, sent)));
    }

    struct Ikcp(Box<Kcp>);

    fn ikcp(socket: UdpSocket) -> Ikcp {
        let windows = KcpConfig {
            sndwnd: Some(WINDOW.into()),
            rcvwnd: Some(RECEIVE_WINDOW.into()),
            ..KcpConfig::new_turbo(CONV)
        };
        let mut kcp = Kcp::new(KcpConfig { mtu: Some(1400), ..windows }).unwrap();
        kcp.set_output_cb(Box::new(move |_, datagram| {
            let _ = socket.send(&datagram); // a datagram that cannot be sent is lost
            Ok(())
        }));
        Ikcp(kcp)
    }

    impl Control for Ikcp {
        fn send(&mut self, message: &[u8]) {
            self.0.send(Bytes::copy_from_slice(message)).unwrap();
        }

        fn recv(&mut self) -> Option<Vec<u8>> {
            let len = usize::try_from(self.0.peeksize()).ok()?;
            let mut message = BytesMut::with_capacity(len);
            self.0.recv(&mut message).unwrap();
            Some(message.to_vec())
        }

        fn input(&mut self, datagram: &[u8]) {
            self.0.handle_input(datagram).unwrap();
        }

        /// It has a clock of its own.
        fn update(&mut self, _now: u32) {
            self.0.update();
        }
    }
}
