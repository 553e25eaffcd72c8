//! The system calls for many datagrams, by quinn-udp.

use crate::inbox::Arrival;
use crate::{SLOT, Socket};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

pub(crate) use quinn_udp::BATCH_SIZE;

/// The state of these calls for one socket, and what one call reports about each arrival.
#[derive(Debug)]
pub(crate) struct Many {
    calls: UdpSocketState,
    headers: Vec<RecvMeta>,
}

impl Many {
    /// Makes the socket non-blocking and forbids fragments. Returns `None` if the system has no such calls
    /// for it.
    pub(crate) fn new(socket: &impl Socket) -> Option<Self> {
        let calls = UdpSocketState::new(socket.handle().into()).inspect_err(|error| {
            log::debug!("sending and receiving datagrams one by one: {error}");
        });
        Some(Self { calls: calls.ok()?, headers: Vec::new() })
    }

    pub(crate) fn recv(
        &mut self,
        socket: &impl Socket,
        bytes: &mut [u8],
        arrivals: &mut [Arrival],
    ) -> io::Result<usize> {
        self.headers.resize(arrivals.len(), RecvMeta::default());
        let mut slots = bytes.chunks_exact_mut(SLOT);
        let mut bufs: [_; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(slots.next().unwrap_or_default()));
        let bufs = bufs.get_mut(..arrivals.len()).unwrap_or_default();
        let filled = self.calls.recv(socket.handle().into(), bufs, &mut self.headers)?;
        for (arrival, meta) in arrivals.iter_mut().zip(&self.headers).take(filled) {
            let RecvMeta { addr, len, stride, ecn, .. } = *meta;
            let ecn = ecn.map_or(0, |codepoint| codepoint as u8);
            *arrival = Arrival { from: addr, len: len.min(SLOT), stride, ecn };
        }
        Ok(filled)
    }

    pub(crate) fn may_fragment(&self) -> bool {
        self.calls.may_fragment()
    }

    pub(crate) fn most_joined(&self) -> usize {
        self.calls.max_gso_segments()
    }

    pub(crate) fn send_joined(
        &self,
        socket: &impl Socket,
        datagrams: &[u8],
        size: usize,
        to: SocketAddr,
        ecn: u8,
    ) -> io::Result<()> {
        let (ecn, segment_size) = (EcnCodepoint::from_bits(ecn), Some(size));
        let transmit = Transmit { destination: to, ecn, contents: datagrams, segment_size, src_ip: None };
        self.calls.try_send(socket.handle().into(), &transmit)
    }
}
