//! What is around the KCP of a socket with one peer: what kcp-go has, with the feature of that name, or nothing.

#[cfg(not(feature = "kcp-go"))]
mod bare;
#[cfg(feature = "kcp-go")]
mod worn;

#[cfg(not(feature = "kcp-go"))]
pub(super) use bare::Suit;
#[cfg(feature = "kcp-go")]
pub(super) use worn::Suit;
