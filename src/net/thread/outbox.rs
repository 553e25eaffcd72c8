//! What was sent to a session that the session has not accepted yet.

use super::shared::Budgets;
use super::{Incoming, Refused, Way};
use crate::message::Message;
use crate::session::{Connection, SendError};
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
pub(super) enum Outgoing<M> {
    Lane(usize, Vec<u8>),
    Datagram(Vec<u8>),
    /// `None`: the session has it.
    Message(usize, Option<M>),
    Block(usize, Vec<u8>),
}

impl<M: Message> Outgoing<M> {
    /// How much it counts for, bytes: what it holds, as far as that is known, plus overhead.
    pub(super) const fn cost(&self) -> usize {
        let bytes = match self {
            Self::Lane(_, bytes) | Self::Datagram(bytes) | Self::Block(_, bytes) => bytes.capacity(),
            Self::Message(..) => MESSAGE,
        };
        bytes + size_of::<Self>()
    }

    /// Things on the same way must not overtake each other.
    pub(super) const fn way(&self) -> Way {
        match self {
            Self::Lane(lane, _) => Way::Lane(*lane),
            Self::Datagram(_) => Way::Datagrams,
            Self::Message(channel, _) | Self::Block(channel, _) => Way::Channel(*channel),
        }
    }

    /// Offers it to the session. Returns whether all of it was accepted. An error means that the session
    /// never will accept it.
    fn send(&mut self, now: Time, connection: &mut Connection<M>) -> Result<bool, SendError> {
        let sent = match self {
            Self::Lane(lane, bytes) => connection.send(*lane, bytes).map(|taken| {
                bytes.drain(..taken); // a stream accepts what fits
                bytes.is_empty()
            }),
            Self::Datagram(bytes) => connection.send_datagram(bytes).map(|_| true),
            Self::Message(channel, message) => {
                let is_full = connection
                    .channels()
                    .is_some_and(|channels| channels.waiting(*channel) > 0 && !channels.has_room(*channel));
                if is_full && connection.is_up() {
                    return Ok(false);
                }
                let Some(message) = message.take() else { return Ok(true) };
                return connection.send_message(*channel, now, message).map(|_| true);
            }
            Self::Block(channel, block) => connection.send_block(*channel, block).map(|()| true),
        };
        sent.or_else(|error| if error.is_full() { Ok(false) } else { Err(error) })
    }

    const fn refused(&self, error: SendError) -> Incoming<M> {
        Incoming::Refused(match self {
            Self::Lane(..) => Refused::Lane(error),
            Self::Datagram(_) => Refused::Datagram(error),
            Self::Message(..) | Self::Block(..) => Refused::Channel(error),
        })
    }
}

/// What waits for one session. A full lane or channel holds up no other.
#[derive(Debug)]
pub(super) struct Outbox<M> {
    waiting: BTreeMap<Way, VecDeque<Outgoing<M>>>,
    budgets: Budgets,
    /// The code and the deadline of a close that waits until nothing else does.
    pub(super) close: Option<(u16, Time)>,
}

impl<M: Message> Outbox<M> {
    pub(super) const fn new(budgets: Budgets) -> Self {
        Self { waiting: BTreeMap::new(), budgets, close: None }
    }

    pub(super) fn push(&mut self, outgoing: Outgoing<M>) {
        self.waiting.entry(outgoing.way()).or_default().push_back(outgoing);
    }

    /// Passes as much to the session as it accepts. What it never will accept goes to `refused`. Returns
    /// whether anything moved.
    pub(super) fn send(
        &mut self,
        now: Time,
        connection: &mut Connection<M>,
        mut refused: impl FnMut(Incoming<M>),
    ) -> bool {
        let Self { waiting, budgets, .. } = self;
        let mut has_moved = false;
        waiting.retain(|way, queue| {
            while let Some(outgoing) = queue.front_mut() {
                let cost = outgoing.cost();
                match outgoing.send(now, connection) {
                    Ok(true) => {}
                    Ok(false) => return true,
                    Err(error) => refused(outgoing.refused(error)),
                }
                queue.pop_front();
                has_moved = true;
                budgets.take_away(*way, cost);
            }
            false
        });
        has_moved
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Everything that was left waiting when the session ended.
    pub(super) fn into_refused(self) -> impl Iterator<Item = Incoming<M>> {
        self.waiting.into_values().flatten().map(|outgoing| outgoing.refused(SendError::Closed))
    }
}

/// What a message of a channel counts for, bytes: it fits into a packet.
pub(super) const MESSAGE: usize = 1200;
