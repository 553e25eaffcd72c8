//! What was sent to a session and is not yet taken by it.

use super::shared::Budgets;
use super::{Incoming, Refused, Way};
use crate::message::Message;
use crate::session::{Connection, SendError};
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};

/// Something that is sent.
#[derive(Debug)]
pub(super) enum Outgoing<M> {
    Lane(usize, Vec<u8>),
    Datagram(Vec<u8>),
    Message(usize, M),
    Block(usize, Vec<u8>),
}

impl<M> Outgoing<M> {
    /// What it counts for, bytes: what it holds, as far as can be told, and what holds it.
    pub(super) const fn cost(&self) -> usize {
        let bytes = match self {
            Self::Lane(_, bytes) | Self::Datagram(bytes) | Self::Block(_, bytes) => bytes.capacity(),
            Self::Message(..) => MESSAGE,
        };
        bytes + size_of::<Self>()
    }

    /// What must not overtake each other.
    pub(super) const fn way(&self) -> Way {
        match self {
            Self::Lane(lane, _) => Way::Lane(*lane),
            Self::Datagram(_) => Way::Datagrams,
            Self::Message(channel, _) | Self::Block(channel, _) => Way::Channel(*channel),
        }
    }

    const fn refused(&self, error: SendError) -> Refused {
        match self {
            Self::Lane(..) => Refused::Lane(error),
            Self::Datagram(_) => Refused::Datagram(error),
            Self::Message(..) | Self::Block(..) => Refused::Channel(error),
        }
    }
}

/// What waits for one session. A lane or channel that is full holds up no other.
#[derive(Debug)]
pub(super) struct Outbox<M> {
    waiting: BTreeMap<Way, VecDeque<(Outgoing<M>, usize)>>,
    budgets: Budgets,
    /// To be closed with this code when nothing waits, or then at the latest.
    pub(super) close: Option<(u16, Time)>,
}

impl<M: Message> Outbox<M> {
    pub(super) const fn new(budgets: Budgets) -> Self {
        Self { waiting: BTreeMap::new(), budgets, close: None }
    }

    pub(super) fn push(&mut self, outgoing: Outgoing<M>) {
        let cost = outgoing.cost();
        self.waiting.entry(outgoing.way()).or_default().push_back((outgoing, cost));
    }

    /// Gives to the session what it takes; hands what it never will to `refused`. Returns whether something has moved.
    pub(super) fn send(
        &mut self,
        now: Time,
        connection: &mut Connection<M>,
        mut refused: impl FnMut(Incoming<M>),
    ) -> bool {
        let Self { waiting, budgets, .. } = self;
        let mut has_moved = false;
        waiting.retain(|way, queue| {
            while let Some((outgoing, cost)) = queue.pop_front() {
                match send(now, connection, outgoing) {
                    Ok(()) => {}
                    Err(NotTaken::Later(outgoing)) => {
                        queue.push_front((outgoing, cost));
                        return true;
                    }
                    Err(NotTaken::Never(error)) => refused(Incoming::Refused(error)),
                }
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

    /// What waits in vain, for the session is over.
    pub(super) fn into_refused(self) -> impl Iterator<Item = Incoming<M>> {
        let refused = |outgoing: Outgoing<M>| outgoing.refused(SendError::Closed);
        self.waiting.into_values().flatten().map(move |(outgoing, _)| Incoming::Refused(refused(outgoing)))
    }
}

enum NotTaken<M> {
    Later(Outgoing<M>),
    Never(Refused),
}

fn send<M: Message>(
    now: Time,
    connection: &mut Connection<M>,
    outgoing: Outgoing<M>,
) -> Result<(), NotTaken<M>> {
    let (sent, outgoing) = match outgoing {
        Outgoing::Lane(lane, mut bytes) => match connection.send(lane, &bytes) {
            Ok(taken) if taken < bytes.len() => {
                bytes.drain(..taken); // a stream takes what fits
                return Err(NotTaken::Later(Outgoing::Lane(lane, bytes)));
            }
            sent => (sent.map(drop), Outgoing::Lane(lane, bytes)),
        },
        Outgoing::Datagram(bytes) => (connection.send_datagram(&bytes).map(drop), Outgoing::Datagram(bytes)),
        Outgoing::Message(channel, message) => {
            let waiting = connection.channels().map_or(0, |channels| channels.waiting(channel));
            let has_room = connection.channels().is_none_or(|channels| channels.has_room(channel));
            if waiting > 0 && !has_room && connection.is_up() {
                return Err(NotTaken::Later(Outgoing::Message(channel, message)));
            }
            let sent = connection.send_message(channel, now, message);
            return sent.map(drop).map_err(|error| NotTaken::Never(Refused::Channel(error)));
        }
        Outgoing::Block(channel, block) => {
            (connection.send_block(channel, &block), Outgoing::Block(channel, block))
        }
    };
    sent.map_err(|error| {
        if error.is_for_now() { NotTaken::Later(outgoing) } else { NotTaken::Never(outgoing.refused(error)) }
    })
}

/// What a message of a channel counts for, bytes: it fits into a packet.
pub(super) const MESSAGE: usize = 1200;
