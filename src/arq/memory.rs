//! How much memory a control block owns, and how much of it the peer may fill.

use super::modern::Rebuild;
use super::{Kcp, Observer, Work};
use crate::wire::Output;

impl<O: Output> Kcp<O> {
    /// Bytes of the heap that the control block owns, used or not, to within a few hundred. Looks at no segment. Not counted are the
    /// output, buffers that are shared with their owner, and what repairs are rebuilt with, which is at most 96 KiB while some wait.
    #[must_use]
    pub fn memory(&self) -> usize {
        let work = self.work.as_deref().map_or(0, Work::memory);
        self.sender.memory() + self.receiver.memory() + work
    }

    /// Bytes of segments, headers included, that are held until they are read, and for which room is taken because what is held needs
    /// them to be read.
    pub(crate) fn receive_reserved(&self) -> u32 {
        self.receiver.reserved()
    }

    /// Of those, the bytes that are still to come.
    pub(crate) fn receive_promised(&self) -> u32 {
        self.receiver.promised()
    }

    /// Limits those bytes from now on. Segments beyond are neither stored nor acknowledged, and the window closes before that.
    pub(crate) fn set_receive_room(&mut self, limit: u32) {
        let (rcv_wnd, rcv_mtu) = (self.config.rcv_wnd, self.config.rcv_mtu);
        if self.receiver.has_limit(limit, rcv_mtu) {
            return;
        }
        let was_closed = self.receiver.window(rcv_wnd) == 0;
        self.receiver.set_room(limit, rcv_mtu);
        if was_closed && self.receiver.window(rcv_wnd) > 0 {
            self.probe.opened(self.config.parts().is_some_and(|modern| modern.early_probes));
        }
    }

    /// Bytes that messages take until they are acknowledged: theirs, and those of their segments.
    pub(crate) fn send_held(&self) -> usize {
        self.sender.held()
    }
}

impl Work {
    fn memory(&self) -> usize {
        let rebuild = self.rebuild.as_deref().map_or(0, Rebuild::memory);
        size_of::<Self>()
            + self.acks.memory()
            + self.by_time.flights.memory()
            + self.spare.capacity()
            + rebuild
            + self.observer.as_deref().map_or(0, Observer::memory)
    }
}
