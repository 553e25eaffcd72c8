//! What is around the KCP of a socket with one peer: what kcp-go has, with the feature of that name, or nothing.

#[cfg(feature = "kcp-go")]
mod kcp_go;
#[cfg(not(feature = "kcp-go"))]
mod none;

#[cfg(feature = "kcp-go")]
pub(super) use kcp_go::SocketEnvelope;
#[cfg(not(feature = "kcp-go"))]
pub(super) use none::SocketEnvelope;
