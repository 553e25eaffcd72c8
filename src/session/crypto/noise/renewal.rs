//! New keys during a session, by another Diffie-Hellman exchange. Whoever stole the old keys cannot compute
//! the new ones from what they see, and nobody can compute the old keys from the new ones.
//!
//! The client sends its half in a REKEY until the server has answered with its own. From then on the client seals with
//! the new key. The server follows when it opens a packet in the next phase.

use super::primitives::{Blake, X25519};
use super::{Key, STACK};
use crate::session::crypto::Renewal;
use crate::time::Time;
use snow::types::{Dh as _, Hash as _};
use std::time::Duration;
use zeroize::{Zeroizing, zeroize_stack};

/// What is under way until both directions have new keys.
pub(super) enum Exchange {
    /// A client that has made its half then, and when it last sent it.
    Offered {
        pair: X25519,
        since: Time,
        told: Option<Time>,
    },
    /// A server that has the client's half, and needs random bytes for its own.
    Asked([u8; 32]),
    Agreed(Agreed),
    /// A client whose server may not have the first keys yet: the datagram with the KEM ciphertext, and when it was
    /// last sent.
    #[cfg(feature = "pq")]
    Joining {
        datagram: Box<[u8]>,
        told: Option<Time>,
    },
}

/// The new keys of one end.
pub(super) struct Agreed {
    pub(super) send: Key,
    pub(super) receive: Key,
    ours: [u8; 32],
    theirs: [u8; 32],
    /// Whether the peer wants to hear our half.
    is_asked: bool,
}

impl Exchange {
    /// The client's half.
    pub(super) fn offer(now: Time, random: &[u8; 32]) -> Box<Self> {
        let mut offer = Box::new(Self::Offered { pair: X25519::default(), since: now, told: None });
        if let Self::Offered { pair, .. } = &mut *offer {
            pair.set(random);
            zeroize_stack::<STACK>();
        }
        offer
    }

    /// Makes the server's half, if it is asked for. `keys`: those for sending and receiving now.
    pub(super) fn answer(&mut self, random: &[u8; 32], keys: (&Key, &Key)) {
        if let Self::Asked(theirs) = *self {
            self.agree(Agreed::of_server(random, theirs, keys));
        }
    }

    /// Takes the server's half. Returns the client's new key for sending, the first time.
    pub(super) fn on_answer(&mut self, half: [u8; 32], keys: (&Key, &Key)) -> Option<Key> {
        let Self::Offered { pair, .. } = self else { return None };
        let agreed = Agreed::of_client(pair, half, keys);
        let key = agreed.send.clone();
        self.agree(agreed);
        Some(key)
    }

    fn agree(&mut self, agreed: Agreed) {
        *self = Self::Agreed(agreed);
        zeroize_stack::<STACK>();
    }

    /// Takes a repeated half from the client, since the answer may have been lost. Returns whether it is the
    /// same as before.
    pub(super) fn on_repeated(&mut self, half: [u8; 32]) -> bool {
        match self {
            Self::Asked(theirs) => *theirs == half,
            Self::Agreed(agreed) => {
                agreed.is_asked |= agreed.theirs == half;
                agreed.theirs == half
            }
            _ => false,
        }
    }

    /// The public half of this end, if there is one.
    pub(super) const fn half(&self) -> Option<[u8; 32]> {
        match self {
            Self::Offered { pair, .. } => Some(pair.public),
            Self::Agreed(agreed) => Some(agreed.ours),
            _ => None,
        }
    }

    pub(super) fn renewal(&self, now: Time) -> Renewal {
        let tells = match self {
            Self::Offered { told: Some(at), .. } if now.since(*at) < REPEAT => return Renewal::Wait,
            Self::Offered { .. } => true,
            Self::Asked(_) => return Renewal::Draw,
            Self::Agreed(agreed) => agreed.is_asked,
            #[cfg(feature = "pq")]
            Self::Joining { .. } => false,
        };
        if tells { Renewal::Tell } else { Renewal::Nothing }
    }

    /// Bytes of heap memory.
    pub(super) const fn memory(&self) -> usize {
        let owned = match self {
            #[cfg(feature = "pq")]
            Self::Joining { datagram, .. } => datagram.len(),
            _ => 0,
        };
        size_of::<Self>() + owned
    }

    /// The half of this end is in a packet.
    pub(super) const fn told(&mut self, now: Time) {
        match self {
            Self::Offered { told, .. } => *told = Some(now),
            Self::Agreed(agreed) => agreed.is_asked = false,
            _ => {}
        }
    }
}

impl Agreed {
    /// The client's new keys. The last argument: those for sending and receiving now.
    fn of_client(pair: &X25519, theirs: [u8; 32], (send, receive): (&Key, &Key)) -> Self {
        let [send, receive] = agree([send, receive], pair, &theirs, [&pair.public, &theirs]);
        Self { send, receive, ours: pair.public, theirs, is_asked: false }
    }

    /// The server's.
    fn of_server(random: &[u8; 32], theirs: [u8; 32], (send, receive): (&Key, &Key)) -> Self {
        let mut pair = X25519::default();
        pair.set(random);
        let [receive, send] = agree([receive, send], &pair, &theirs, [&theirs, &pair.public]);
        Self { send, receive, ours: pair.public, theirs, is_asked: true }
    }
}

#[inline(never)]
fn agree(keys: [&Key; 2], pair: &X25519, theirs: &[u8; 32], halves: [&[u8; 32]; 2]) -> [Key; 2] {
    let mut shared = Key::default();
    let _ = pair.dh(theirs, &mut *shared);
    derive(keys, &shared, halves.map(|half| &half[..]))
}

/// The new keys of packets to the server and to the client, from those before, a secret that both ends share, and what
/// the client and the server said of it, by HKDF with BLAKE2s. Source: Noise revision 34, section 4.3.
#[inline(never)]
pub(super) fn derive(
    [to_server, to_client]: [&Key; 2],
    shared: &Key,
    [client, server]: [&[u8]; 2],
) -> [Key; 2] {
    let mut input = Zeroizing::new(Vec::with_capacity(2 * 32 + client.len() + server.len()));
    for part in [&**to_client, &**shared, client, server] {
        input.extend_from_slice(part);
    }
    let mut keys = [Key::default(), Key::default()];
    let [first, second] = &mut keys;
    Blake::default().hkdf(&**to_server, &input, 2, &mut **first, &mut **second, &mut []);
    keys
}

/// How long the client waits for an answer before it sends its half again.
const REPEAT: Duration = Duration::from_millis(250);
