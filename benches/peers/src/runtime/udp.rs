//! A bare UDP socket as a stream, for round trips: what the others are built on. Nothing makes sure that
//! anything arrives.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UdpSocket;

pub(super) struct Udp(UdpSocket);

/// Both ends, connected to each other.
pub(super) async fn pair(at: SocketAddr) -> (Udp, Udp) {
    let (near, far) =
        (UdpSocket::bind(at).await.expect("a port"), UdpSocket::bind(at).await.expect("a port"));
    near.connect(far.local_addr().expect("an address")).await.expect("a way");
    far.connect(near.local_addr().expect("an address")).await.expect("a way");
    (Udp(near), Udp(far))
}

impl AsyncRead for Udp {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.poll_recv(cx, buf)
    }
}

impl AsyncWrite for Udp {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_send(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
