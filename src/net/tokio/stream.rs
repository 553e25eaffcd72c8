//! Streams of bytes and their halves, by tokio's traits.

/// Declares a stream over a lane, its halves, and what they are for tokio.
macro_rules! stream {
    ($(#[$docs:meta])* $whole:ident, $read:ident, $write:ident $(<$m:ident>)? of $core:ty) => {
        $(#[$docs])*
        #[derive(Debug)]
        pub struct $whole $(<$m: Message + Send + 'static = Blob>)? {
            reader: Reader<$core>,
            writer: Writer<$core>,
        }

        #[doc = concat!("The half of a [`", stringify!($whole), "`] that reads.")]
        #[derive(Debug)]
        pub struct $read $(<$m: Message + Send + 'static = Blob>)? {
            reader: Reader<$core>,
        }

        #[doc = concat!("The half of a [`", stringify!($whole), "`] that writes.")]
        #[derive(Debug)]
        pub struct $write $(<$m: Message + Send + 'static = Blob>)? {
            writer: Writer<$core>,
        }

        impl $(<$m: Message + Send + 'static>)? $whole $(<$m>)? {
            pub(super) fn new(lane: Lane<$core>) -> Self {
                Self { reader: Reader::new(lane.clone()), writer: Writer::new(lane) }
            }

            /// Two halves, for two tasks. When both are dropped, that is as if the whole were.
            #[must_use]
            pub fn into_split(self) -> ($read $(<$m>)?, $write $(<$m>)?) {
                ($read { reader: self.reader }, $write { writer: self.writer })
            }

            /// How long a shutdown goes on while nothing more is acknowledged; 5 s unless set.
            pub const fn set_shutdown_timeout(&mut self, timeout: Duration) {
                self.writer.patience = timeout;
            }
        }

        $crate::net::tokio::stream::stream!(@read $whole $(<$m>)?);
        $crate::net::tokio::stream::stream!(@read $read $(<$m>)?);
        $crate::net::tokio::stream::stream!(@write $whole $(<$m>)?);
        $crate::net::tokio::stream::stream!(@write $write $(<$m>)?);
    };
    (@read $type:ident $(<$m:ident>)?) => {
        impl $(<$m: Message + Send + 'static>)? ::tokio::io::AsyncRead for $type $(<$m>)? {
            fn poll_read(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ::tokio::io::ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.reader.poll_read(cx, buf)
            }
        }
    };
    (@write $type:ident $(<$m:ident>)?) => {
        impl $(<$m: Message + Send + 'static>)? ::tokio::io::AsyncWrite for $type $(<$m>)? {
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                self.writer.poll_write(cx, buf)
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.writer.poll_flush()
            }

            fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.writer.poll_shutdown(cx)
            }
        }
    };
}

pub(super) use stream;
