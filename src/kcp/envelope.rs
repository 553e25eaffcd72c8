//! What is around the datagrams of KCP where other programs put something there: ciphers, checksums, parity.

use super::{Config, ConfigError, Kcp};
use crate::time::Time;
use crate::wire::DatagramQueue;
use rand_core::CryptoRng;
use std::any::Any;
use std::fmt::Debug;
use std::net::SocketAddr;

/// The settings of an [`Envelope`], which make one for each socket.
///
/// Both ends need the same. A listener has them in [`PeersConfig::envelope`](super::PeersConfig::envelope), a socket of one session is given
/// them, and [`Link::with_envelope`](super::Link::with_envelope) is for whoever brings a transport.
pub trait EnvelopeConfig: Debug + Send + Sync {
    /// The config of a control block that is to be inside: `config` has the mtu of whole datagrams, the result what is left for KCP.
    ///
    /// # Errors
    ///
    /// A field of either is out of range: see [`in_range`](super::in_range).
    fn inside(&self, config: &Config) -> Result<Config, ConfigError>;

    /// The envelope of one socket. What `rng` gives nobody may guess.
    fn envelope(&self, rng: &mut dyn CryptoRng) -> Box<dyn Envelope>;
}

/// Wraps each datagram of KCP that leaves a socket, and unwraps those that come. It may refuse what comes, and make more datagrams of what
/// leaves: those that rebuild others which are lost. All peers of the socket share it and have numbers there.
///
/// An empty message is never sent through it: some peers that have an envelope never get past one.
///
/// ```
/// use whitewater::{ConfigError, Time};
/// use whitewater::kcp::{self, Config, Conv, Envelope, EnvelopeConfig, Opened};
/// use whitewater::machine::{DatagramQueue, Machine, Output};
/// use whitewater::rand_core::{CryptoRng, UnwrapErr};
///
/// /// A byte before each datagram that has to be the right one.
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
pub trait Envelope: Any + Debug + Send {
    /// Bytes that are put around every datagram, at least.
    fn overhead(&self) -> u16;

    /// Whether what was sent is flushed at once instead of after the interval.
    fn flushes_sends(&self) -> bool {
        false
    }

    /// Whether what has come is acknowledged at once instead of after the interval.
    fn flushes_acks(&self) -> bool {
        false
    }

    /// Gives `out` what leaves instead of a datagram of KCP to the peer of that number. A peer that `is_proven` receives what is sent to its
    /// address; to another one no more than [`overhead`](Self::overhead) may be added, and no datagram.
    fn wrap(&mut self, now: Time, peer: u64, is_proven: bool, datagram: &[u8], out: &mut DatagramQueue);

    /// Takes off, in place, what is around a datagram that has come. `None`: it is refused, and counted.
    fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<Opened<'a>>;

    /// Takes a [shard](Opened::shard) that came from that address. `peer`: the number of the peer that has taken the KCP with it, `None` if
    /// there was none. Returns whose shard it is, and [`poll_rebuilt`](Self::poll_rebuilt) has what it makes possible to rebuild.
    /// It is asked only of a shard whose peer is proven, or has no KCP with it.
    fn handle_shard(&mut self, _from: SocketAddr, peer: Option<u64>, _shard: &[u8]) -> Option<u64> {
        peer
    }

    /// The next datagram of KCP that was rebuilt for a peer.
    fn poll_rebuilt(&mut self, _peer: u64) -> Option<&[u8]> {
        None
    }

    /// The control block has refused what was rebuilt last.
    fn count_refused(&mut self) {}

    /// Gives memory back that a peer does not need before there is traffic again.
    fn shrink(&mut self, _peer: u64) {}

    /// The peer is gone. Its number never comes again.
    fn forget(&mut self, _peer: u64) {}
}

/// What was in a datagram.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "envelopes of other crates make it")]
pub struct Opened<'a> {
    /// A datagram of KCP, or what may be one.
    pub kcp: Option<&'a [u8]>,
    /// What helps to rebuild others that are lost, for [`Envelope::handle_shard`]. It is dropped when the KCP with it is refused.
    pub shard: Option<&'a [u8]>,
}

impl dyn Envelope {
    /// Gives a control block what was rebuilt for its peer; whether it has taken any.
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
