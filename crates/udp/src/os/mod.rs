//! Abstracts over what systems can do: `linux`, with the feature `batch`, and `other` have the same items.

#[cfg(any(test, not(all(feature = "batch", target_os = "linux"))))]
mod by_std;
#[cfg_attr(all(feature = "batch", target_os = "linux"), path = "linux.rs")]
mod other;

pub use other::Bell;
pub(crate) use other::{
    SENDS_EACH, Waiter, allow_fragments, can_allow_fragments, forbid_fragments, send_each, shared,
    was_batched,
};

/// What ends a wait for a socket, beside its timeout and the bell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    pub(crate) there_is_data: bool,
    pub(crate) there_is_room: bool,
}

/// The trait of handles for system calls.
#[cfg(not(windows))]
pub(crate) use std::os::fd::AsFd as AsHandle;
#[cfg(windows)]
pub(crate) use std::os::windows::io::AsSocket as AsHandle;

/// ENOBUFS, EMSGSIZE, and ENETRESET, by which Windows reports a datagram that took too many hops. Source: the errno tables of
/// Linux, of the BSDs with macOS, and of Winsock.
const ERRORS: (i32, i32, i32) = if cfg!(windows) {
    (10_055, 10_040, 10_052)
} else if cfg!(any(target_os = "linux", target_os = "android")) {
    (105, 90, 102)
} else {
    (55, 40, 52)
};
pub(crate) const NO_BUFFERS: i32 = ERRORS.0;
pub(crate) const TOO_LONG: i32 = ERRORS.1;
pub(crate) const EXPIRED: i32 = ERRORS.2;

#[cfg(test)]
mod tests {
    use super::by_std::Waiter as ByStd;
    use super::{Until, Waiter};
    use std::net::UdpSocket;
    use std::time::Duration;

    const LONG: Option<Duration> = Some(Duration::from_secs(20));

    #[test]
    fn a_datagram_ends_every_wait_and_stays() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let to = socket.local_addr().unwrap();
        let mut scratch = [0; 100];
        let until = Until { there_is_data: true, there_is_room: false };
        for timeout in [LONG, None] {
            socket.send_to(b"here", to).unwrap();
            Waiter::new(&socket).unwrap().wait((&socket, None), timeout, until, None, &mut scratch).unwrap();
            ByStd::new(&socket).unwrap().wait((&socket, None), timeout, until, None, &mut scratch).unwrap();
            assert_eq!(socket.recv(&mut scratch).unwrap(), 4);
        }
    }
}
