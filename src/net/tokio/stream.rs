//! Implements tokio's traits for streams.

/// `AsyncRead` by the reader in a field.
macro_rules! async_read {
    ($type:ident $(<$m:ident: $bound:ident>)?, $($field:ident).+) => {
        impl $(<$m: $bound + Send + 'static>)? ::tokio::io::AsyncRead for $type $(<$m>)? {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &mut ::tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.$($field).+.poll_read(cx, buf)
            }
        }
    };
}

/// `AsyncWrite` by the writer in a field.
macro_rules! async_write {
    ($type:ident $(<$m:ident: $bound:ident>)?, $($field:ident).+) => {
        impl $(<$m: $bound + Send + 'static>)? ::tokio::io::AsyncWrite for $type $(<$m>)? {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.$($field).+.poll_write(cx, buf)
            }

            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.$($field).+.poll_flush()
            }

            fn poll_shutdown(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.$($field).+.poll_shutdown(cx)
            }
        }
    };
}

pub(super) use {async_read, async_write};
