//! What kcp-go puts around KCP, on the one peer of a socket.

use crate::arq::{self, InputError, Kcp};
use crate::config::ConfigError;
use crate::kcp_go::{Coat, Config, Inner, Lining, Stats};
use crate::session::Random;
use crate::time::Time;
use crate::wire::DatagramQueue;

/// What a socket with one peer has around it.
#[derive(Debug)]
pub(in crate::net) struct Suit {
    coat: Coat,
    lining: Lining,
}

impl Suit {
    /// With the config of the control block that it is to be around.
    pub(in crate::net) fn new(
        wire: &Config,
        kcp: &arq::Config,
        random: &mut Random,
    ) -> Result<(Self, arq::Config), ConfigError> {
        let coat = Coat::new(wire, random.array());
        let inside = coat.inside(kcp)?;
        Ok((Self { lining: coat.lining(&inside), coat }, inside))
    }

    /// Takes a datagram with what is around it. `None`: it is not for KCP.
    pub(in crate::net) fn input(
        &mut self,
        now: Time,
        kcp: &mut Kcp<DatagramQueue>,
        datagram: &[u8],
    ) -> Option<Result<(), InputError>> {
        let mut buffer = self.coat.buffer();
        let (taken, shard) = match self.coat.open(datagram, &mut buffer) {
            None => (None, None),
            Some(Inner::Kcp(bytes)) => (Some(kcp.input(now, bytes)), None),
            Some(Inner::Data { kcp: bytes, shard }) => {
                let taken = kcp.input(now, bytes);
                let shard = taken.is_ok().then_some(shard);
                (Some(taken), shard)
            }
            Some(Inner::Parity(shard)) => (Some(Ok(())), Some(shard)),
        };
        if let Some(shard) = shard {
            self.coat.rebuild(&mut self.lining, &shard, |datagram| {
                if let Err(error) = kcp.input_rebuilt(now, datagram) {
                    log::trace!("rejected what was rebuilt: {error}");
                }
            });
        }
        self.coat.give_back(buffer);
        taken
    }

    /// Puts on what is around the datagrams that are ready, and returns all that can leave.
    pub(in crate::net) fn wrap(&mut self, now: Time, kcp: &mut Kcp<DatagramQueue>) -> &mut DatagramQueue {
        while !self.lining.is_full()
            && let Some(datagram) = kcp.output_mut().pop()
        {
            self.coat.wrap(now, &mut self.lining, datagram);
        }
        self.lining.out_mut()
    }

    /// Whether what was sent, and what has come, is flushed at once.
    pub(in crate::net) const fn flushes(&self) -> (bool, bool) {
        self.coat.flushes()
    }

    pub(in crate::net) const fn stats(&self) -> Stats {
        self.coat.stats()
    }
}
