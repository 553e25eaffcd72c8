//! The end of a server: its players are sent to others if the matchmaker has places for them, and may stay for a while if not.

use crate::matchmaker::{Matchmaker, Request};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use whitewater::{Server, SessionId};
use whitewater_matchmaker::messages::{Hex, Move};

/// Before it asks again for those for whom there was no place: other servers start meanwhile.
const RETRY: Duration = Duration::from_secs(1);
/// Most players who can ask together.
const MOVE_MAX: usize = 64;

pub(crate) struct Drain {
    until: Instant,
    /// When to ask again. `None`: it has not been answered.
    next: Option<Instant>,
    sent: BTreeSet<SessionId>,
}

impl Drain {
    pub(crate) fn start(now: Instant, patience: Duration) -> Self {
        Self { until: now + patience, next: Some(now), sent: BTreeSet::new() }
    }

    /// Asks for places for one match that is still here: its players stay together.
    pub(crate) fn ask(&mut self, now: Instant, server: &Server, region: &str, matchmaker: &Matchmaker) {
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        let is_left = |id: &SessionId| !self.sent.contains(id);
        let left = server.clients().filter(is_left).filter_map(|id| Some((id, server.pass(id)?)));
        let left: Vec<_> = left.collect();
        let Some(match_id) = left.first().map(|(_, pass)| pass.match_id) else { return };
        let together = left.into_iter().filter(|(_, pass)| pass.match_id == match_id).take(MOVE_MAX);
        let (players, passes) = together.map(|(id, pass)| (id, Hex(pass.user.clone()))).unzip();
        let regions = vec![region.to_owned()];
        self.next = None;
        matchmaker.ask(Request::Move(players, Move { passes, regions, match_id: Hex(match_id.to_vec()) }));
    }

    /// Sends them away with these tokens.
    pub(crate) fn send(&mut self, now: Instant, server: &mut Server, tokens: Vec<(SessionId, Vec<u8>)>) {
        self.next = Some(if tokens.is_empty() { now + RETRY } else { now });
        for (id, token) in tokens {
            match server.redirect(id, &token) {
                Ok(()) => println!("player {} is sent to another server", crate::server::player(server, id)),
                Err(error) => eprintln!("a player stays: {error}"),
            }
            self.sent.insert(id);
        }
    }

    /// Whoever is still here is closed.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        now >= self.until
    }
}
