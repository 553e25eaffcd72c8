//! What kcp-go puts around KCP, on the one peer of a socket.

use super::{Config, Inner, PeerEnvelope, Stats};
use crate::arq::{self, Envelope, InputError, Kcp};
use crate::config::ConfigError;
use crate::time::Time;
use crate::wire::DatagramQueue;

/// What a socket with one peer has around it.
#[derive(Debug)]
pub(crate) struct SocketEnvelope {
    envelope: super::Envelope,
    peer_envelope: PeerEnvelope,
}

impl SocketEnvelope {
    /// With the config of the control block that it is to be around. `seed`: random, and different for every socket.
    pub(crate) fn new(
        wire: &Config,
        kcp: &arq::Config,
        seed: [u8; 16],
    ) -> Result<(Self, arq::Config), ConfigError> {
        let envelope = super::Envelope::new(wire, seed);
        let inside = envelope.inside(kcp)?;
        Ok((Self { peer_envelope: envelope.peer_envelope(&inside), envelope }, inside))
    }

    pub(crate) const fn stats(&self) -> Stats {
        self.envelope.stats()
    }
}

impl Envelope for SocketEnvelope {
    fn input(
        &mut self,
        now: Time,
        kcp: &mut Kcp<DatagramQueue>,
        datagram: &[u8],
    ) -> Option<Result<(), InputError>> {
        let mut buffer = self.envelope.buffer();
        let (mut taken, shard) = match self.envelope.open(datagram, &mut buffer) {
            None => (None, None),
            Some(Inner::Kcp(bytes)) => (Some(kcp.input(now, bytes)), None),
            Some(Inner::Data { kcp: bytes, shard }) => {
                let taken = kcp.input(now, bytes);
                let shard = taken.is_ok().then_some(shard);
                (Some(taken), shard)
            }
            Some(Inner::Parity(shard)) => (None, Some(shard)),
        };
        if let Some(shard) = shard {
            let has_taken = self.envelope.rebuild(&mut self.peer_envelope, &shard, |datagram| {
                let rebuilt = kcp.input_rebuilt(now, datagram);
                if let Err(error) = &rebuilt {
                    log::trace!("rejected what was rebuilt: {error}");
                }
                rebuilt.is_ok()
            });
            taken = taken.or(has_taken.then_some(Ok(())));
        }
        self.envelope.give_back(buffer);
        taken
    }

    fn wrap(&mut self, now: Time, kcp: &mut Kcp<DatagramQueue>) -> &mut DatagramQueue {
        while !self.peer_envelope.is_full()
            && let Some(datagram) = kcp.output_mut().pop()
        {
            self.envelope.wrap(now, &mut self.peer_envelope, datagram);
        }
        self.peer_envelope.out_mut()
    }

    fn flushes_sends(&self) -> bool {
        self.envelope.flushes().0
    }

    fn flushes_acks(&self) -> bool {
        self.envelope.flushes().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kcp_go::Shards;
    use crate::seq::Conv;

    #[test]
    fn a_parity_shard_is_heard_only_when_something_is_rebuilt_of_it() {
        let (shards, kcp) = (Some(Shards { data: 2, parity: 1 }), arq::Config::turbo());
        let wire = Config { shards, ..Config::plain() };
        let envelope = || SocketEnvelope::new(&wire, &kcp, [7; 16]).unwrap();
        let ((mut from, inside), (mut to, _), now) = (envelope(), envelope(), Time::from_millis(1));
        let block = || Kcp::new(Conv(1), &inside, inside.datagram_queue()).unwrap();
        let (mut sender, mut receiver, mut sent) = (block(), block(), Vec::new());
        for message in [b"one", b"two"] {
            sender.send(message).unwrap();
            sender.flush(now);
            let out = from.wrap(now, &mut sender);
            while let Some(datagram) = out.pop() {
                sent.push(datagram.to_vec());
            }
        }
        let [_, second, parity] = &sent[..] else { panic!("{} datagrams", sent.len()) };
        let mut forged = parity.clone();
        forged[0] = 5; // the parity of the next group
        assert!(to.input(now, &mut receiver, &forged).is_none(), "anybody can make one");
        assert_eq!(to.input(now, &mut receiver, second), Some(Ok(())));
        assert_eq!(to.input(now, &mut receiver, parity), Some(Ok(())));
        assert_eq!((receiver.peek_size(), to.stats().recovered), (Some(3), 1));
        assert!(to.input(now, &mut receiver, parity).is_none(), "it came before");
    }
}
