//! Wraps KCP datagrams as other programs do: with ciphers, checksums or parity.

use super::{Config, ConfigError, Kcp};
use crate::time::Time;
use crate::wire::DatagramQueue;
use rand_core::CryptoRng;
use std::any::Any;
use std::fmt::Debug;
use std::net::SocketAddr;

/// The settings of an [`Envelope`]. They make one envelope per socket.
///
/// Both ends need the same settings. A listener has them in [`PeersConfig::envelope`](super::PeersConfig::envelope); a
/// socket of one session takes them as an argument. [`Link::with_envelope`](super::Link::with_envelope) is for other
/// transports.
pub trait EnvelopeConfig: Debug + Send + Sync {
    /// The config of the control block inside the envelope. `config` has the mtu of whole datagrams; the result has
    /// what is left for KCP.
    ///
    /// # Errors
    ///
    /// A field of either is out of range; see [`in_range`](super::in_range).
    fn inside(&self, config: &Config) -> Result<Config, ConfigError>;

    /// Makes the envelope of one socket. Nobody may be able to predict `rng`.
    fn envelope(&self, rng: &mut dyn CryptoRng) -> Box<dyn Envelope>;
}

/// Wraps each KCP datagram that a socket sends, and unwraps those that it receives. It may refuse a received datagram,
/// and may send additional datagrams from which the receiver rebuilds lost ones. All peers of a socket share one
/// envelope, which tells them apart by number.
///
/// Empty messages are never sent through it: some peers with an envelope never read past one.
///
/// ```
/// use whitewater::{ConfigError, Time};
/// use whitewater::kcp::{self, Config, Conv, Envelope, EnvelopeConfig, Opened};
/// use whitewater::machine::{DatagramQueue, Machine, Output};
/// use whitewater::rand_core::{CryptoRng, UnwrapErr};
///
/// /// Puts a byte before each datagram, and checks it.
/// #[derive(Debug)]
/// struct Marked(u8);
///
/// impl EnvelopeConfig for Marked {
///     fn inside(&self, config: &Config) -> Result<Config, ConfigError> {
///         config.check()?;
///         Ok(Config { mtu: config.mtu - 1, ..*config })
///     }
///
///     fn envelope(&self, _: &mut dyn CryptoRng) -> Box<dyn Envelope> {
///         Box::new(Self(self.0))
///     }
/// }
///
/// impl Envelope for Marked {
///     fn overhead(&self) -> u16 {
///         1
///     }
///
///     fn wrap(&mut self, _: Time, _: u64, _: bool, datagram: &[u8], out: &mut DatagramQueue) {
///         out.output(&[&[self.0], datagram].concat());
///     }
///
///     fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<Opened<'a>> {
///         let (mark, kcp) = datagram.split_first()?;
///         (*mark == self.0).then_some(Opened { kcp: Some(kcp), shard: None })
///     }
/// }
///
/// let (a, b) = ("10.0.0.1:1000".parse()?, "10.0.0.2:4000".parse()?);
/// let (mut rng, now) = (UnwrapErr(getrandom::SysRng), Time::from_millis(1));
/// let mut alice = kcp::Link::with_envelope(b, Conv(7), &Config::default(), &Marked(9), &mut rng)?;
/// let mut bob = kcp::Link::with_envelope(a, Conv(7), &Config::default(), &Marked(9), &mut rng)?;
/// alice.send(b"hello")?;
/// alice.kcp_mut().flush(now);
/// let mut datagram = Vec::new();
/// while alice.poll_transmit(now, &mut datagram).is_some() {
///     assert_eq!(datagram[0], 9);
///     bob.handle_datagram(now, a.into(), &mut datagram);
///     datagram.clear();
/// }
/// assert_eq!(bob.kcp().peek_size(), Some(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Envelope: Any + Debug + Send + Sync {
    /// Bytes added to every datagram, at least.
    fn overhead(&self) -> u16;

    /// Whether to flush at once after a send, instead of after the interval.
    fn flushes_sends(&self) -> bool {
        false
    }

    /// Whether to acknowledge at once, instead of after the interval.
    fn flushes_acks(&self) -> bool {
        false
    }

    /// Puts into `out` what to send to the peer with this number instead of a KCP datagram. `is_proven`: it is a peer. For
    /// a stranger, who may be a victim of a forger, add at most [`overhead`](Self::overhead) bytes and no datagram.
    fn wrap(&mut self, now: Time, peer: u64, is_proven: bool, datagram: &[u8], out: &mut DatagramQueue);

    /// Unwraps a received datagram in place. `None`: it is refused, and counted.
    fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<Opened<'a>>;

    /// Takes a [shard](Opened::shard) that came from this address. `peer`: the number of the peer that accepted the KCP
    /// datagram with it, `None` if there was none. Returns whose shard it is; [`poll_rebuilt`](Self::poll_rebuilt) then
    /// has what can be rebuilt with it. Not called for a KCP datagram of a stranger.
    fn handle_shard(&mut self, _from: SocketAddr, peer: Option<u64>, _shard: &[u8]) -> Option<u64> {
        peer
    }

    /// The next rebuilt KCP datagram for a peer.
    fn poll_rebuilt(&mut self, _peer: u64) -> Option<&[u8]> {
        None
    }

    /// Called when the control block has refused the last rebuilt datagram.
    fn count_refused(&mut self) {}

    /// Bytes of the heap that it holds for a peer. They count for [`PeersConfig::memory`](super::PeersConfig::memory), so it
    /// is asked after each shard and each flush.
    fn memory(&self, _peer: u64) -> usize {
        0
    }

    /// Frees memory that a peer can do without: there is no traffic, or little memory is left for all peers. Then it is
    /// called after each shard.
    fn shrink(&mut self, _peer: u64) {}

    /// The peer is gone. Its number is never used again.
    fn forget(&mut self, _peer: u64) {}
}

/// The contents of a datagram.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "envelopes of other crates make it")]
pub struct Opened<'a> {
    /// A KCP datagram, or what may be one.
    pub kcp: Option<&'a [u8]>,
    /// Helps to rebuild lost datagrams; see [`Envelope::handle_shard`]. It is dropped if the KCP with it is refused.
    pub shard: Option<&'a [u8]>,
}

impl dyn Envelope {
    /// Gives a control block what was rebuilt for its peer. Returns whether it accepted any of it.
    pub(crate) fn rebuild(&mut self, now: Time, peer: u64, kcp: &mut Kcp<DatagramQueue>) -> bool {
        let mut has_taken = false;
        while let Some(datagram) = self.poll_rebuilt(peer) {
            match kcp.input_rebuilt(now, datagram) {
                Ok(()) => has_taken = true,
                Err(error) => {
                    self.count_refused();
                    log::trace!("rejected what was rebuilt of peer {peer}: {error}");
                }
            }
        }
        has_taken
    }
}
