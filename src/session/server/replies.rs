//! Answers that belong to no session, until they are sent: a few, each short.

use crate::session::seats::Name;
use crate::session::wire::CHALLENGE_LEN;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Answers in the order in which they were made. It does not grow.
#[derive(Debug)]
pub(super) struct Replies {
    waiting: VecDeque<Reply>,
}

/// What is sent, and where to.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// These bytes.
    Short { to: SocketAddr, len: usize, bytes: [u8; CHALLENGE_LEN] },
    /// The ACCEPT of a session that is not confirmed.
    Accept(u32, SocketAddr),
    /// The ACCEPT that says no to an attempt.
    Rejection(Name),
}

impl Replies {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::with_capacity(REPLIES_MAX) }
    }

    /// Whether there was room.
    pub(super) fn push(&mut self, reply: Reply) -> bool {
        let has_room = self.waiting.len() < REPLIES_MAX;
        if has_room {
            self.waiting.push_back(reply);
        }
        has_room
    }

    pub(super) fn pop(&mut self) -> Option<Reply> {
        self.waiting.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Reply {
    /// Where it goes.
    pub(super) const fn to(&self) -> SocketAddr {
        match self {
            Self::Short { to, .. } | Self::Accept(_, to) | Self::Rejection((to, _)) => *to,
        }
    }

    /// The bytes that `write` appends; `None`: too many.
    pub(super) fn short(
        to: SocketAddr,
        scratch: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Self> {
        scratch.clear();
        write(scratch);
        let mut bytes = [0; CHALLENGE_LEN];
        bytes.get_mut(..scratch.len())?.copy_from_slice(scratch);
        Some(Self::Short { to, len: scratch.len(), bytes })
    }
}

/// Answers that wait at most: who drains after each datagram has one.
const REPLIES_MAX: usize = 64;
