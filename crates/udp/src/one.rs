//! Used where there are no calls for many datagrams: std's calls, one per datagram, are all there is.

use crate::Socket;
use crate::inbox::Arrival;
use std::io;
use std::net::SocketAddr;

pub(crate) const BATCH_SIZE: usize = usize::MAX;

#[derive(Debug)]
pub(crate) enum Many {}

impl Many {
    pub(crate) const fn new(_: &impl Socket) -> Option<Self> {
        None
    }

    #[expect(clippy::needless_pass_by_ref_mut, reason = "same signature as with such calls")]
    pub(crate) const fn recv(
        &mut self,
        _: &impl Socket,
        _: &mut [u8],
        _: &mut [Arrival],
    ) -> io::Result<usize> {
        match *self {}
    }

    pub(crate) const fn may_fragment(&self) -> bool {
        match *self {}
    }

    pub(crate) const fn most_joined(&self) -> usize {
        match *self {}
    }

    pub(crate) const fn send_joined(
        &self,
        _: &impl Socket,
        _: &[u8],
        _: usize,
        _: SocketAddr,
        _: u8,
    ) -> io::Result<()> {
        match *self {}
    }
}
