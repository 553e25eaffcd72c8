//! The system's calls for many datagrams, by quinn-udp.

use super::SLOT;
use super::inbox::Arrival;
use super::socket::Socket;
use crate::machine::Ecn;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

/// Most arrivals of a call.
pub(super) use quinn_udp::BATCH_SIZE;

/// The calls for one socket, and what one tells of each arrival.
#[derive(Debug)]
pub(super) struct Many {
    calls: UdpSocketState,
    headers: Vec<RecvMeta>,
}

impl Many {
    /// Makes the socket non-blocking, and forbids fragments. `None`: there are no such calls for it.
    pub(super) fn new(socket: &impl Socket) -> Option<Self> {
        let calls = UdpSocketState::new(socket.handle().into()).inspect_err(|error| {
            log::debug!("datagrams are sent and received one by one: {error}");
        });
        Some(Self { calls: calls.ok()?, headers: Vec::new() })
    }

    /// Receives into the slots of `bytes`; returns how many arrivals there are.
    pub(super) fn recv(
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
            let ecn = ecn.map(|codepoint| match codepoint {
                EcnCodepoint::Ect0 => Ecn::Capable,
                EcnCodepoint::Ect1 => Ecn::Scalable,
                EcnCodepoint::Ce => Ecn::Congested,
            });
            *arrival = Arrival { from: addr, len: len.min(SLOT), stride, ecn };
        }
        Ok(filled)
    }

    pub(super) fn may_fragment(&self) -> bool {
        self.calls.may_fragment()
    }

    pub(super) fn most_joined(&self) -> usize {
        self.calls.max_gso_segments()
    }

    pub(super) fn send_joined(
        &self,
        socket: &impl Socket,
        datagrams: &[u8],
        size: usize,
        to: SocketAddr,
        ecn: Option<Ecn>,
    ) -> io::Result<()> {
        let ecn = ecn.map(|ecn| match ecn {
            Ecn::Capable => EcnCodepoint::Ect0,
            Ecn::Scalable => EcnCodepoint::Ect1,
            Ecn::Congested => EcnCodepoint::Ce,
        });
        let transmit =
            Transmit { destination: to, ecn, contents: datagrams, segment_size: Some(size), src_ip: None };
        self.calls.try_send(socket.handle().into(), &transmit)
    }
}
