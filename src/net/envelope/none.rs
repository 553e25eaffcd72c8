//! There is never anything around KCP: what there is none of does nothing.

use crate::arq::{InputError, Kcp};
use crate::time::Time;
use crate::wire::DatagramQueue;

/// What a socket with one peer has around it.
#[derive(Debug)]
pub(in crate::net) enum SocketEnvelope {}

#[expect(clippy::needless_pass_by_ref_mut, reason = "as it is where there is something")]
impl SocketEnvelope {
    pub(in crate::net) const fn input(
        &mut self,
        _: Time,
        _: &mut Kcp<DatagramQueue>,
        _: &[u8],
    ) -> Option<Result<(), InputError>> {
        match *self {}
    }

    pub(in crate::net) const fn wrap(&mut self, _: Time, _: &mut Kcp<DatagramQueue>) -> &mut DatagramQueue {
        match *self {}
    }

    pub(in crate::net) const fn flushes(&self) -> (bool, bool) {
        match *self {}
    }
}
