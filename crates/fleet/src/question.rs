//! A question whether a token was used, and its answer.

use crate::used_tokens::{Counters, WhenGone};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};
use whitewater::net::Waker;
use whitewater::session::token::TokenId;

/// A token that the group is being asked about, for a limited time.
#[derive(Debug)]
pub struct Question {
    token: TokenId,
    pub(crate) until: Instant,
    answer: Receiver<bool>,
    when_gone: WhenGone,
    counters: Arc<Counters>,
}

/// The same for the thread that asks. If it is dropped, there is no answer.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) token: TokenId,
    pub(crate) until: Instant,
    /// Until it is dropped.
    tell: Option<SyncSender<bool>>,
    /// Wakes the loop of the asker, if it has one.
    waker: Option<Waker>,
}

/// Why a client is turned away, for [`Server::reject`](whitewater::Server::reject).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// Another server of the group has used its token.
    Used,
    /// Nobody could say in time whether its token was used.
    Unknown,
}

impl Refusal {
    /// The code that the client gets: 0xfe01 for [`Used`](Self::Used), 0xfe02 for [`Unknown`](Self::Unknown).
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Used => 0xfe01,
            Self::Unknown => 0xfe02,
        }
    }

    /// What the client's [`rejection`](whitewater::Client::rejection) says.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Used => "the token was used at another server",
            Self::Unknown => "the servers cannot check tokens now: get another token and try again",
        }
    }
}

impl Question {
    /// A question and its other end.
    pub(crate) fn new(
        token: TokenId,
        limit: Duration,
        when_gone: WhenGone,
        counters: Arc<Counters>,
        waker: Option<Waker>,
    ) -> (Self, Open) {
        let ((tell, answer), until) = (sync_channel(1), Instant::now() + limit);
        let open = Open { token, until, tell: Some(tell), waker };
        (Self { token, until, answer, when_gone, counters }, open)
    }

    /// The token.
    #[must_use]
    pub const fn token(&self) -> TokenId {
        self.token
    }

    /// The answer, if there is one, or the time is up. Then the question is over, and later calls are of no use.
    ///
    /// # Errors
    ///
    /// Why the client may not join.
    pub fn poll(&self) -> Option<Result<(), Refusal>> {
        let answer = match self.answer.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) if Instant::now() < self.until => return None,
            Err(_) => None,
        };
        Some(self.decide(answer))
    }

    /// Blocks until there is an answer, or the time is up.
    ///
    /// # Errors
    ///
    /// Why the client may not join.
    pub fn wait(self) -> Result<(), Refusal> {
        let left = self.until.saturating_duration_since(Instant::now());
        self.decide(self.answer.recv_timeout(left).ok())
    }

    fn decide(&self, is_unused: Option<bool>) -> Result<(), Refusal> {
        self.counters.count(is_unused, Instant::now() >= self.until);
        match (is_unused, self.when_gone) {
            (Some(true), _) | (None, WhenGone::Local) => Ok(()),
            (Some(false), _) => Err(Refusal::Used),
            (None, WhenGone::Refuse) => Err(Refusal::Unknown),
        }
    }
}

impl Open {
    pub(crate) fn answer(self, is_unused: bool) {
        if let Some(tell) = &self.tell {
            let _ = tell.try_send(is_unused); // fails if the time is up and nobody listens
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.tell = None; // so whoever wakes sees that there will be no other answer
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}
