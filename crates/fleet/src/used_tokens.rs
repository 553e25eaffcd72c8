//! A server's view of the memory that it shares with others.

use crate::question::{Question, Refusal};
use crate::store::Store;
use crate::worker::Line;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use whitewater::net::Waker;
use whitewater::session::token::TokenId;
use whitewater::{Event, Server, ServerConfig, SessionId};

/// Lets a client join only if its connect token was used at no other server of the group. One for each server.
#[derive(Debug)]
pub struct UsedTokens {
    line: Arc<Line>,
    limit: Duration,
    when_gone: WhenGone,
    counters: Arc<Counters>,
    /// Clients whose tokens are asked about, the oldest question first.
    asked: VecDeque<(SessionId, Question)>,
    /// Wakes the server's loop, from the first question on.
    waker: Option<Waker>,
}

/// What happens to clients while the store does not answer in time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third way")]
pub enum WhenGone {
    /// They are rejected, with [`Refusal::Unknown`]. No token works twice.
    Refuse,
    /// They join. A token works once at each server, as without a store, because a server also remembers by itself what was used there.
    Local,
}

/// Why the memory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The server would let clients join without asking.
    #[error("`ask` of the server's config must be true")]
    Ask,
    /// The server does not require tokens.
    #[error("`tokens` of the server's config must be set")]
    Tokens,
    /// The system has no thread.
    #[error("no thread: {0}")]
    Thread(#[from] io::Error),
}

/// How many tokens were asked about, and the answers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct UsedTokensStats {
    /// Tokens that were asked about.
    pub asked: u64,
    /// They were used nowhere.
    pub unused: u64,
    /// They were used at another server.
    pub used: u64,
    /// There was no answer because there was no connection.
    pub gone: u64,
    /// There was no answer in time.
    pub late: u64,
    /// Of `gone` and `late`: rejected, because of [`WhenGone::Refuse`].
    pub refused: u64,
    /// Of `gone` and `late`: allowed, because of [`WhenGone::Local`].
    pub local: u64,
}

impl UsedTokens {
    /// The memory of a server that is bound with `config`, whose `ask` has to be true. A question may take `limit`, as a rule
    /// [`LIMIT`](crate::LIMIT). Tries to connect before it returns, for 2 s at most; if
    /// that fails it goes on trying, with 10 ms to 2 s between attempts.
    ///
    /// # Errors
    ///
    /// A server with `config` would let clients in without asking, or the system has no thread.
    pub fn new(
        config: &ServerConfig,
        store: impl Store,
        limit: Duration,
        when_gone: WhenGone,
    ) -> Result<Self, ConfigError> {
        if !config.ask {
            return Err(ConfigError::Ask);
        }
        if config.tokens.is_none() {
            return Err(ConfigError::Tokens);
        }
        let (line, counters) = (Line::start(store, limit)?, Arc::default());
        Ok(Self { line, limit, when_gone, counters, asked: VecDeque::new(), waker: None })
    }

    /// Waits as [`Server::poll`] does, and is to be called in its place: it also ends, and returns `true`, when there is an answer, and when the
    /// time for one is up.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn poll(&mut self, server: &mut Server, timeout: Option<Duration>) -> io::Result<bool> {
        let left =
            self.asked.front().map(|(_, question)| question.until.saturating_duration_since(Instant::now()));
        let is_first = left.is_some_and(|left| timeout.is_none_or(|timeout| left <= timeout));
        Ok(server.poll(if is_first { left } else { timeout })? || is_first)
    }

    /// The server's next event, to be called in place of [`Server::poll_event`] after each pump. It never waits for the store.
    ///
    /// [`Event::Requested`] comes when the client's token was used at no other server: then admit the client, or reject it for a reason of
    /// your own. Clients whose token was used are rejected, and no event tells of them.
    pub fn poll_event(&mut self, server: &mut Server) -> Option<(SessionId, Event)> {
        loop {
            if let Some(id) = self.next_allowed(server) {
                return Some((id, Event::Requested));
            }
            match server.poll_event()? {
                (id, Event::Requested) => {
                    // Without a token there is nobody to ask for, and the request ends after 10 s.
                    if let Some(token) = server.request(id).and_then(|request| request.token) {
                        let waker = self.waker_of(server);
                        self.asked.push_back((id, self.ask_and_wake(token, waker)));
                    }
                }
                (id, Event::Closed { .. }) if self.forget(id) => {}
                event => return Some(event),
            }
        }
    }

    /// Asks about the token of one client, for servers other than [`Server`]: a tokio server hands a [`Question::wait`] to `spawn_blocking`.
    #[must_use]
    pub fn ask(&self, token: TokenId) -> Question {
        self.ask_and_wake(token, None)
    }

    fn ask_and_wake(&self, token: TokenId, waker: Option<Waker>) -> Question {
        self.counters.asked.fetch_add(1, Ordering::Relaxed);
        let counters = Arc::clone(&self.counters);
        let (question, open) = Question::new(token, self.limit, self.when_gone, counters, waker);
        self.line.ask(open);
        question
    }

    /// Whether there is a connection to the store.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.line.is_up()
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> UsedTokensStats {
        let Counters { asked, unused, used, gone, late } = &*self.counters;
        let [asked, unused, used, gone, late] =
            [asked, unused, used, gone, late].map(|counter| counter.load(Ordering::Relaxed));
        let (refused, local) = match self.when_gone {
            WhenGone::Refuse => (gone + late, 0),
            WhenGone::Local => (0, gone + late),
        };
        UsedTokensStats { asked, unused, used, gone, late, refused, local }
    }

    fn waker_of(&mut self, server: &mut Server) -> Option<Waker> {
        if self.waker.is_none() {
            let waker = server.waker().inspect_err(|error| log::warn!("answers wake no loop: {error}"));
            self.waker = waker.ok();
        }
        self.waker.clone()
    }

    /// The next client that may join. Rejects those before it that may not.
    fn next_allowed(&mut self, server: &mut Server) -> Option<SessionId> {
        loop {
            let (id, question) = self.asked.front()?;
            let (id, token, answer) = (*id, question.token(), question.poll()?);
            self.asked.pop_front();
            if server.request(id).and_then(|request| request.token) != Some(token) {
                continue; // it has given up, or somebody else has its place
            }
            match answer {
                Ok(()) => return Some(id),
                Err(refusal) => reject(server, id, refusal),
            }
        }
    }

    /// A request is over before its answer. Returns whether the application has not heard of it.
    fn forget(&mut self, id: SessionId) -> bool {
        let before = self.asked.len();
        self.asked.retain(|(asked, _)| *asked != id);
        self.asked.len() < before
    }
}

fn reject(server: &mut Server, id: SessionId, refusal: Refusal) {
    if let Err(error) = server.reject(id, refusal.code(), refusal.text().as_bytes()) {
        log::debug!("{id:?} is gone before its rejection: {error}");
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    asked: AtomicU64,
    unused: AtomicU64,
    used: AtomicU64,
    gone: AtomicU64,
    late: AtomicU64,
}

impl Counters {
    pub(crate) fn count(&self, is_unused: Option<bool>, is_late: bool) {
        let counter = match is_unused {
            Some(true) => &self.unused,
            Some(false) => &self.used,
            None if is_late => &self.late,
            None => &self.gone,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
