//! Messages without a byte: an end to some peers, the end of everything to others.

use super::{Kcp, KcpSendError};
use crate::wire::Output;

impl<O: Output> Kcp<O> {
    /// From now on no empty message is sent: for peers that acknowledge one and never get past it, as kcp-go and node-kcp.
    pub const fn refuse_empty(&mut self) {
        self.refuses_empty = true;
    }

    /// Queues an empty message, also in a stream, where [`send`](Self::send) of nothing adds nothing: an end, if both peers agree that it is
    /// one. What a stream sends afterwards may be put into it.
    ///
    /// # Errors
    ///
    /// [`KcpSendError::QueueFull`] when enough waits, [`KcpSendError::Empty`] after [`refuse_empty`](Self::refuse_empty).
    pub fn send_end(&mut self) -> Result<(), KcpSendError> {
        if self.refuses_empty {
            return Err(KcpSendError::Empty);
        }
        self.sender.send_end(&self.config)
    }
}
