//! What is known to have arrived: datagrams and messages by their numbers, lanes up to a segment.

use super::Connection;
use crate::message::Message;
use crate::seq::{Seq16, Sn};
use crate::session::event::DatagramId;

impl<M: Message> Connection<M> {
    /// Takes the number of an unreliable datagram that is known to have arrived. Those never given may have arrived all the same.
    /// Of those that nobody asks for the newest 1024 are kept.
    pub fn pop_delivered(&mut self) -> Option<DatagramId> {
        self.datagrams.pop_delivered()
    }

    /// The number after the last segment of what was sent on a lane: what was sent so far has arrived when
    /// [`acked_up_to`](Self::acked_up_to) is not [before](Sn::is_before) it any more.
    #[must_use]
    pub fn sent_up_to(&self, lane: usize) -> Option<Sn> {
        self.lanes.sent_up_to(lane)
    }

    /// The number before which all segments of a lane are known to have arrived.
    #[must_use]
    pub fn acked_up_to(&self, lane: usize) -> Option<Sn> {
        self.lanes.acked_up_to(lane)
    }

    /// Takes the number of a message of a channel with `receipts` that is known to have arrived, as
    /// [`Channels::pop_delivered`](crate::message::channel::Channels::pop_delivered).
    pub fn pop_delivered_message(&mut self, channel: usize) -> Option<Seq16> {
        self.channels.as_mut()?.pop_delivered(channel)
    }

    /// Takes the number of a message of a channel that was given up, as
    /// [`Channels::pop_expired`](crate::message::channel::Channels::pop_expired).
    pub fn pop_expired_message(&mut self, channel: usize) -> Option<Seq16> {
        self.channels.as_mut()?.pop_expired(channel)
    }
}
