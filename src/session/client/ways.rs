//! The ways to the server while a session is up, each an address and a network that leads there: which one is used, and when the others are asked.
//!
//! They are asked as before the session: by a HELLO to each, and a CHALLENGE is the answer. A relay passes the HELLO on, and then the host opens its NAT for
//! what this end sends directly. So a session that began by the relay moves to a shorter way once there is one, and one whose way has died moves to any that
//! answers. Nobody but an observer can forge an answer. Whether a way carries the session shows once the server is heard there: until it is, a
//! better one is only tried, and one on which the server was not heard is not tried again soon.

use super::network::{Hop, SecondNetwork};
use crate::session::wire::Challenge;
use crate::time::Time;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Ways {
    all: Vec<Way>,
    /// The network of the way in use.
    pub(super) network: u8,
    /// What the other network is for, if there is one.
    pub(super) second: Option<SecondNetwork>,
    /// How many rounds in a row the other network has won, and whether it has won this one.
    wins: u8,
    has_won: bool,
    /// How many rounds in a row only the other network has answered, whether the one in use has answered this one, and whether the other had before.
    misses: u8,
    has_answered: bool,
    is_missed: bool,
    /// How many of them were there when the session began.
    told: usize,
    /// Whether the server may have others: it may be behind a NAT or a proxy.
    meets: bool,
    /// Of all others: whoever forges answers has any number of addresses.
    met: Bar,
    /// When the server was last heard by the way in use, or began to be.
    heard: Time,
    /// What waits for an answer there.
    waits: Option<Waits>,
    /// What it has not answered there, although it may be heard: the way may have died in one direction.
    unanswered: Option<Waits>,
    /// When the way in use was chosen.
    chosen: Time,
    /// How long its answer to a HELLO took: so long the server may be silent at least.
    took: Duration,
    /// How often an answer there has ended its silence since it was heard.
    excuses: u8,
    /// Whether the server was heard there at all.
    is_proven: bool,
    round: Option<Round>,
    /// The numbers of the one before it, and when that began: its answers may still be on their way.
    before: Option<([u64; 2], Time)>,
    /// How many rounds there were since the way in use was chosen.
    rounds: usize,
    next_round: Time,
}

#[derive(Debug)]
struct Way {
    hop: Hop,
    bar: Bar,
}

#[derive(Debug, Default)]
struct Bar {
    /// A way is not used until then, because it did not carry the session.
    until: Time,
    /// How often it did not.
    failures: u32,
}

/// Packets that the server has to answer, and has not.
#[derive(Clone, Copy, Debug)]
struct Waits {
    /// When the first one left, and the last one.
    since: Time,
    last: Time,
    count: u32,
}

/// A HELLO to each way.
#[derive(Debug)]
struct Round {
    /// By each network another one: nobody can tell by it that both lead to the same client.
    cids: [u64; 2],
    began: Time,
    asks: Range<usize>,
    /// Whether the way in use is asked as well, because it may be dead.
    asks_all: bool,
}

/// What follows from an answer by a way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WayAnswer {
    Stay,
    /// It is better than the way in use.
    Move,
    /// The server does not answer by the way in use.
    Flee,
}

/// What is known of the way in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Present {
    pub(super) address: SocketAddr,
    /// When a packet last left that the server has to answer.
    pub(super) asked: Time,
    /// When the newest one left that it has answered.
    pub(super) answered: Time,
    /// How long an answer takes, or 0 while that is unknown; and how long it may take.
    pub(super) rtt: Duration,
    pub(super) patience: Duration,
}

impl Way {
    fn new(hop: Hop) -> Self {
        Self { hop, bar: Bar::default() }
    }
}

impl Ways {
    /// By the first network.
    pub(super) fn new(now: Time, addresses: impl Iterator<Item = SocketAddr>, meets: bool) -> Self {
        let all: Vec<_> = addresses.map(|address| Way::new(Hop { network: 0, address })).collect();
        let next_round = now + Duration::from_millis(PLANNED[0]);
        Self {
            told: all.len(),
            all,
            meets,
            network: 0,
            second: None,
            wins: 0,
            has_won: false,
            misses: 0,
            has_answered: true,
            is_missed: false,
            met: Bar::default(),
            heard: now,
            waits: None,
            unanswered: None,
            chosen: now,
            took: Duration::ZERO,
            excuses: 0,
            is_proven: true,
            round: None,
            before: None,
            rounds: 0,
            next_round,
        }
    }

    /// Another network leads to all of their addresses, or no longer does.
    pub(super) fn set_second(&mut self, now: Time, second: Option<SecondNetwork>) {
        self.all.truncate(self.told);
        self.all.retain(|way| way.hop.network == 0);
        if second.is_some() {
            let others: Vec<_> = self.all.iter().map(|way| Way::new(Hop { network: 1, ..way.hop })).collect();
            self.all.extend(others);
        }
        (self.told, self.second) = (self.all.len(), second);
        self.plan(now);
    }

    /// Whether there is any choice.
    pub(super) fn is_choice(&self) -> bool {
        self.all.len() > 1
    }

    pub(super) fn has(&self, hop: Hop) -> bool {
        self.all.iter().any(|way| way.hop == hop)
    }

    /// The way in use, by the address of the session.
    pub(super) const fn here(&self, address: SocketAddr) -> Hop {
        Hop { network: self.network, address }
    }

    /// An authentic packet has come by the way in use.
    pub(super) fn on_heard(&mut self, now: Time, here: Hop) {
        (self.heard, self.waits, self.excuses) = (now, None, 0);
        if !std::mem::replace(&mut self.is_proven, true) {
            self.bar(here).failures = 0;
        }
    }

    /// Takes an answer. Returns what follows, and how long the answer took; `None`: it is none.
    pub(super) fn on_challenge(
        &mut self,
        now: Time,
        from: Hop,
        challenge: &Challenge,
        present: Present,
    ) -> Option<(WayAnswer, Duration)> {
        let took = now.since(self.asked_at(now, from.network, challenge.cid)?);
        if from == self.here(present.address) {
            (self.has_answered, self.misses) = (true, 0);
            if self.is_proven && self.excuses < EXCUSES {
                (self.waits, self.unanswered, self.excuses) = (None, None, self.excuses + 1);
            }
            return Some((WayAnswer::Stay, took));
        }
        if !self.has(from) {
            if !self.meets {
                return None;
            }
            self.meet(from);
        }
        let asks_here = self.round.as_ref().is_some_and(|round| round.asks_all);
        self.is_missed |= asks_here && from.network != self.network && !self.has_answered;
        let is_barred = self.bar(from).until > now;
        let is_shorter = took + LEAST_GAIN < present.rtt - present.rtt / SHORTER_BY;
        let answer = match self.is_silent(now, present) {
            _ if is_barred => WayAnswer::Stay,
            true => WayAnswer::Flee,
            false if self.is_proven && self.is_better(now, from, is_shorter) => WayAnswer::Move,
            false => WayAnswer::Stay,
        };
        Some((answer, took))
    }

    /// When the round with this number began. The one before does not count while something has waited for a short time only: whoever answers so late is no good way until there is no other.
    fn asked_at(&self, now: Time, network: u8, cid: u64) -> Option<Time> {
        let is_long =
            self.misses >= MISSES || self.waits_since().is_none_or(|since| now.since(since) >= LONG);
        let last = self.round.as_ref().map(|round| (round.cids, round.began));
        last.into_iter()
            .chain(self.before.filter(|_| is_long))
            .find(|(of, _)| of.get(usize::from(network)) == Some(&cid))
            .map(|(_, began)| began)
    }

    /// Since when something has waited for an answer.
    fn waits_since(&self) -> Option<Time> {
        self.waits.iter().chain(&self.unanswered).map(|waits| waits.since).min()
    }

    /// Whether an answer speaks for another way: by another network it takes a few in a row.
    fn is_better(&mut self, now: Time, from: Hop, is_shorter: bool) -> bool {
        if from.network == self.network {
            return is_shorter;
        }
        let wins = match self.second {
            Some(SecondNetwork::Spare) => from.network == 0,
            _ => is_shorter,
        };
        if wins && !std::mem::replace(&mut self.has_won, true) {
            self.wins = self.wins.saturating_add(1);
            self.next_round = self.next_round.min(now + CONFIRM);
        }
        wins && self.wins >= WINS
    }

    fn bar(&mut self, hop: Hop) -> &mut Bar {
        let told = self.all.iter_mut().take(self.told);
        told.map(|way| (way.hop, &mut way.bar))
            .find(|(at, _)| *at == hop)
            .map_or(&mut self.met, |(_, bar)| bar)
    }

    /// The server answers from another address, because the NAT before it gives it another port for this end.
    fn meet(&mut self, hop: Hop) {
        self.all.truncate(self.told + MET - 1); // the last one may be out of date, or forged
        self.all.push(Way::new(hop));
    }

    /// The session uses this way from now on, whose answer took so long, and has used the one to `old`.
    pub(super) fn moved(&mut self, now: Time, old: SocketAddr, to: Hop, took: Duration) {
        let old = self.here(old);
        (self.network, self.took) = (to.network, took);
        if !self.is_proven {
            let bar = self.bar(old);
            bar.until = now + BARRED * (1 << bar.failures);
            bar.failures = (bar.failures + 1).min(BARRED_MOST - 1);
        }
        (self.heard, self.waits, self.excuses, self.is_proven) = (now, None, 0, false);
        (self.unanswered, self.chosen) = (None, now);
        self.plan(now);
    }

    /// Asks again soon: another network leads to the server.
    pub(super) fn plan(&mut self, now: Time) {
        (self.rounds, self.round, self.before, self.wins, self.has_won) = (0, None, None, 0, false);
        (self.misses, self.has_answered, self.is_missed) = (0, true, false);
        self.next_round = now + Duration::from_millis(PLANNED[0]);
    }

    /// Whether the server does not answer by the way in use.
    fn is_silent(&self, now: Time, present: Present) -> bool {
        let patience = self.patience(present);
        self.waits.is_some_and(|waits| waits.until(patience) <= now)
            || self.unanswered.is_some_and(|waits| waits.until(DEAF_TAKES * patience) <= now)
            || self.misses >= MISSES
    }

    /// How long an answer may take.
    fn patience(&self, present: Present) -> Duration {
        present.patience.max(2 * self.took).max(SILENCE)
    }

    /// Notes that time has passed, and that packets may have left.
    pub(super) fn update(&mut self, now: Time, present: Present, mut cid: impl FnMut() -> u64) {
        if present.asked > self.heard {
            self.waits = Some(Waits::next(self.waits, present.asked));
        }
        self.note_answer(present);
        let asks_all = self.next_silent() <= now && self.is_silent(now, present);
        if self.next_round <= now || asks_all {
            self.rounds += 1;
            if !std::mem::take(&mut self.has_won) {
                self.wins = 0;
            }
            let is_missed = std::mem::take(&mut self.is_missed) && !std::mem::take(&mut self.has_answered);
            self.misses = self.misses.saturating_add(is_missed.into());
            self.has_answered = false;
            let is_doubled = self.second == Some(SecondNetwork::Double);
            let asks_all = asks_all || is_doubled;
            let later = match self.second {
                None => PLANNED_LATER,
                Some(SecondNetwork::Spare) => PLANNED_SPARE,
                Some(SecondNetwork::Best | SecondNetwork::Double) => PLANNED_BEST,
            };
            let ms = PLANNED.get(self.rounds).copied().unwrap_or(later).min(later);
            self.next_round = now + Duration::from_millis(ms);
            self.before = self.round.take().map(|round| (round.cids, round.began));
            let first = cid();
            let cids = [first, if self.second.is_some() { cid() } else { first }];
            self.round = Some(Round { cids, began: now, asks: 0..self.all.len(), asks_all });
        }
    }

    /// Notes what the server has answered.
    fn note_answer(&mut self, present: Present) {
        self.unanswered.take_if(|waits| waits.since <= present.answered);
        let is_doubled = self.second == Some(SecondNetwork::Double); // then the answer may come from the other network
        if present.asked > present.answered.max(self.chosen) && !is_doubled {
            self.unanswered = Some(Waits::next(self.unanswered, present.asked));
        }
    }

    /// When another round may begin because the server is silent.
    fn next_silent(&self) -> Time {
        let Some(round) = &self.round else { return Time::ZERO };
        let is_new = self.waits_since().is_some_and(|since| round.began.since(since) < FAST_FOR);
        let is_new = is_new && self.misses < MISSES;
        round.began + if is_new { FAST } else { SLOW }
    }

    /// Where the next HELLO goes, and its number.
    pub(super) fn poll(&mut self, present: SocketAddr) -> Option<(Hop, u64)> {
        let here = self.here(present);
        let round = self.round.as_mut()?;
        loop {
            let hop = self.all.get(round.asks.next()?)?.hop;
            if hop != here || round.asks_all {
                return Some((hop, *round.cids.get(usize::from(hop.network))?));
            }
        }
    }

    /// When [`poll`](Self::poll) has something next.
    pub(super) fn check(&self, present: Present) -> Time {
        if let Some(round) = self.round.as_ref().filter(|round| !round.asks.is_empty()) {
            return round.began;
        }
        let waits = (present.asked > self.heard).then(|| Waits::next(self.waits, present.asked));
        let silent =
            waits.map_or(Time::NEVER, |waits| waits.until(self.patience(present)).max(self.next_silent()));
        let deaf = self.unanswered.map_or(Time::NEVER, |waits| {
            waits.until(DEAF_TAKES * self.patience(present)).max(self.next_silent())
        });
        let missed = if self.misses >= MISSES { self.next_silent() } else { Time::NEVER };
        self.next_round.min(silent).min(deaf).min(missed)
    }
}

impl Waits {
    /// Another one may have left.
    fn next(before: Option<Self>, last: Time) -> Self {
        let Self { since, last: earlier, count } = before.unwrap_or(Self { since: last, last, count: 1 });
        Self { since, last, count: count + u32::from(last > earlier) }
    }

    /// Until when the server may be silent: a single packet may be lost.
    fn until(self, patience: Duration) -> Time {
        self.since + if self.count < FEW { FEW_TAKE * patience } else { patience }
    }
}

/// When the other ways are asked after one was chosen, ms after each other.
const PLANNED: [u64; 6] = [100, 300, 700, 1500, 3000, 6000];
/// The same later: a relay forgets a link after 120 s.
const PLANNED_LATER: u64 = 50_000;
/// The same with a spare network, and with two of which the better one changes while a player walks.
const PLANNED_SPARE: u64 = 5000;
const PLANNED_BEST: u64 = 1000;
/// A way that is used answers within this time, or within the time that an answer may take. Fewer packets than that may all be lost.
const SILENCE: Duration = Duration::from_millis(150);
const FEW: u32 = 4;
const FEW_TAKE: u32 = 6;
/// Rounds in a row that only the other network has answered: what this end sends by the one in use does not arrive.
const MISSES: u8 = 4;
/// How long the server is silent before an answer to the round before the last counts.
const LONG: Duration = Duration::from_secs(1);
/// So much longer it takes while the server is heard.
const DEAF_TAKES: u32 = 4;
/// Time between two rounds while the server does not answer at first; how long that lasts; and the time after that.
const FAST: Duration = Duration::from_millis(150);
const FAST_FOR: Duration = Duration::from_secs(2);
const SLOW: Duration = Duration::from_secs(1);
/// A way is better whose answer took an eighth less, and that much less.
const SHORTER_BY: u32 = 8;
const LEAST_GAIN: Duration = Duration::from_millis(1);
/// Rounds in a row that another network has to win, and the time between them.
const WINS: u8 = 3;
const CONFIRM: Duration = Duration::from_millis(300);
/// An answer may be forged, so that many at most stand in for the server.
const EXCUSES: u8 = 2;
/// Ways that are added.
const MET: usize = 2;
/// How long a way is not used again that did not carry the session; twice as long after each further time.
const BARRED: Duration = Duration::from_secs(10);
const BARRED_MOST: u32 = 6;
