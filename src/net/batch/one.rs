//! No calls for many datagrams: those of std, one a datagram, are all there is.

use super::inbox::Arrival;
use super::socket::Socket;
use crate::machine::Ecn;
use std::io;
use std::net::SocketAddr;

pub(super) const BATCH_SIZE: usize = usize::MAX;

/// There is none.
#[derive(Debug)]
pub(super) enum Many {}

impl Many {
    pub(super) const fn new(_: &impl Socket) -> Option<Self> {
        None
    }

    #[expect(clippy::needless_pass_by_ref_mut, reason = "as it is where there are such calls")]
    pub(super) const fn recv(
        &mut self,
        _: &impl Socket,
        _: &mut [u8],
        _: &mut [Arrival],
    ) -> io::Result<usize> {
        match *self {}
    }

    pub(super) const fn may_fragment(&self) -> bool {
        match *self {}
    }

    pub(super) const fn most_joined(&self) -> usize {
        match *self {}
    }

    pub(super) const fn send_joined(
        &self,
        _: &impl Socket,
        _: &[u8],
        _: usize,
        _: SocketAddr,
        _: Option<Ecn>,
    ) -> io::Result<()> {
        match *self {}
    }
}
