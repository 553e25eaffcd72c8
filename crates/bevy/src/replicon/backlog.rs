//! Reliable messages for which a session has no room yet.

use super::routes::Direction;
use bevy::prelude::*;
use bytes::Bytes;
use std::collections::VecDeque;
use whitewater::channel::SendError;
use whitewater::session::Connection;

/// What waits for room in a session, in the order of sending.
#[derive(Component, Debug, Default)]
pub(super) struct Backlog {
    messages: VecDeque<(usize, Bytes)>,
    bytes: usize,
}

/// Replication cannot go on: a message that has to arrive never will.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("{0} bytes wait for a peer that takes too little")]
    Slow(usize),
}

impl Backlog {
    /// Sends a message, or keeps it if it has to arrive and there is no room.
    pub(super) fn send(
        &mut self,
        direction: &Direction,
        connection: &mut Connection,
        number: usize,
        message: Bytes,
    ) -> Result<(), Broken> {
        let is_reliable = direction.is_reliable(number);
        let sent = if is_reliable && !self.is_empty() {
            None // not before what waits
        } else {
            Some(direction.send(connection, number, &message))
        };
        match sent {
            Some(Ok(())) | Some(Err(SendError::Closed | SendError::NotConnected)) => Ok(()),
            Some(Err(_)) if !is_reliable => Ok(()), // as if it were lost
            None | Some(Err(SendError::Full { .. })) => {
                self.bytes += message.len();
                self.messages.push_back((number, message));
                if self.bytes > BYTES_MAX { Err(Broken::Slow(self.bytes)) } else { Ok(()) }
            }
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Sends what waits, as far as there is room.
    pub(super) fn flush(&mut self, direction: &Direction, connection: &mut Connection) -> Result<(), Broken> {
        while let Some((number, message)) = self.messages.front() {
            match direction.send(connection, *number, message) {
                Err(SendError::Full { .. }) => break,
                Ok(()) | Err(SendError::Closed | SendError::NotConnected) => {}
                Err(error) => return Err(error.into()),
            }
            self.bytes -= message.len();
            self.messages.pop_front();
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A few worlds of the longest kind.
const BYTES_MAX: usize = 64 << 20;
