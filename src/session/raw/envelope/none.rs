//! There is never anything around KCP: what there is none of does nothing.

use super::super::{Config, PeerId, Peers};
use crate::arq;
use crate::config::ConfigError;
use crate::time::Time;
use crate::wire::DatagramQueue;
use rand_core::CryptoRng;
use std::net::SocketAddr;

/// What all peers of a socket have around them.
#[derive(Debug)]
pub(in super::super) enum SharedEnvelope {}

/// What one of them has.
#[derive(Debug)]
pub(in super::super) enum PeerEnvelope {}

#[expect(clippy::needless_pass_by_ref_mut, reason = "as it is where there is something")]
impl SharedEnvelope {
    pub(in super::super) const fn new(_: &Config, _: &mut dyn CryptoRng) -> Option<Box<Self>> {
        None
    }

    pub(in super::super) const fn inside(&self, _: &arq::Config) -> Result<arq::Config, ConfigError> {
        match *self {}
    }

    pub(in super::super) const fn peer_envelope(&self, _: &arq::Config) -> Box<PeerEnvelope> {
        match *self {}
    }

    pub(in super::super) const fn flushes(&self) -> (bool, bool) {
        match *self {}
    }

    pub(in super::super) const fn around(&self) -> u16 {
        match *self {}
    }

    pub(in super::super) const fn wrap(&mut self, _: Time, _: &mut PeerEnvelope, _: &[u8], _: bool) {
        match *self {}
    }

    pub(in super::super) const fn forget(&mut self, _: SocketAddr, _: PeerId) {
        match *self {}
    }
}

impl Peers {
    #[expect(
        clippy::unused_self,
        clippy::needless_pass_by_ref_mut,
        reason = "as it is where there is something"
    )]
    pub(in super::super) const fn input_wrapped(&mut self, _: Time, _: SocketAddr, _: &[u8]) {}
}

#[expect(clippy::needless_pass_by_ref_mut, reason = "as it is where there is something")]
impl PeerEnvelope {
    pub(in super::super) const fn out(&self) -> &DatagramQueue {
        match *self {}
    }

    pub(in super::super) const fn out_mut(&mut self) -> &mut DatagramQueue {
        match *self {}
    }

    pub(in super::super) const fn is_full(&mut self) -> bool {
        match *self {}
    }

    pub(in super::super) const fn shrink(&mut self) {
        match *self {}
    }
}
