//! Wakes a thread that waits for its socket. A datagram to the port would do, if only one socket were on it.

#[cfg(all(feature = "batch", target_os = "linux"))]
pub(in crate::net) use by_event::Bell;
#[cfg(not(all(feature = "batch", target_os = "linux")))]
pub(in crate::net) use none::Bell;

#[cfg(all(feature = "batch", target_os = "linux"))]
mod by_event {
    use rustix::event::{EventfdFlags, eventfd};
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    /// A descriptor that is readable when it has been rung.
    #[derive(Debug)]
    pub(in crate::net) struct Bell(OwnedFd);

    impl Bell {
        pub(in crate::net) fn new() -> io::Result<Self> {
            Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
        }

        pub(in crate::net) fn ring(&self) {
            let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes()); // full, and it rings anyway
        }

        /// It was heard.
        pub(in crate::net) fn hush(&self) {
            let _ = rustix::io::read(&self.0, &mut [0; 8]); // or it was silent
        }
    }

    impl AsFd for Bell {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

#[cfg(not(all(feature = "batch", target_os = "linux")))]
mod none {
    use std::io;

    /// There is one socket on a port here, and nobody to ring.
    #[derive(Debug)]
    pub(in crate::net) struct Bell;

    impl Bell {
        #[expect(clippy::unnecessary_wraps, reason = "as where there is one")]
        pub(in crate::net) const fn new() -> io::Result<Self> {
            Ok(Self)
        }

        #[expect(clippy::unused_self, reason = "as where there is one")]
        pub(in crate::net) const fn ring(&self) {}
    }
}
