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

/// The calls for one socket.
#[derive(Debug)]
pub(super) struct Many(UdpSocketState);

/// What a call tells of each arrival.
#[derive(Debug)]
pub(super) struct Headers(Box<[RecvMeta]>);

impl Headers {
    pub(super) fn new(slots: usize) -> Self {
        Self(vec![RecvMeta::default(); slots].into_boxed_slice())
    }
}

impl Many {
    /// Makes the socket non-blocking, and forbids fragments. `None`: there are no such calls for it.
    pub(super) fn new(socket: &impl Socket) -> Option<Self> {
        let state = UdpSocketState::new(socket.handle().into()).inspect_err(|error| {
            log::debug!("datagrams are sent and received one by one: {error}");
        });
        state.ok().map(Self)
    }

    /// Receives into the slots of `bytes`; returns how many arrivals there are.
    pub(super) fn recv(
        &self,
        socket: &impl Socket,
        bytes: &mut [u8],
        arrivals: &mut [Arrival],
        headers: &mut Headers,
    ) -> io::Result<usize> {
        let mut slots = bytes.chunks_exact_mut(SLOT);
        let mut bufs: [_; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(slots.next().unwrap_or_default()));
        let bufs = bufs.get_mut(..arrivals.len()).unwrap_or_default();
        let filled = self.0.recv(socket.handle().into(), bufs, &mut headers.0)?;
        for (arrival, meta) in arrivals.iter_mut().zip(&headers.0).take(filled) {
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
        self.0.may_fragment()
    }

    pub(super) fn most_joined(&self) -> usize {
        self.0.max_gso_segments()
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
        self.0.try_send(socket.handle().into(), &transmit)
    }
}
