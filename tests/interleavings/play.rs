//! One run: what people do in order, what else may happen at any step, and what must hold after each.

use crate::common::ms;
use crate::explorer::Explorer;
use crate::world::{Deed, Step, World};
use std::collections::BTreeMap;
use std::time::Duration;
use whitewater::machine::Machine as _;
use whitewater::session::ClientState;
use whitewater::{ClientConfig, ServerConfig, Time};

/// A session from its beginning to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// What happens before there are choices, after a handshake. `None`: nothing, not even that.
    pub(crate) before: Option<&'static [Deed]>,
    /// What happens then, each when both ends agree. At last the client closes.
    pub(crate) deeds: &'static [Deed],
    /// What else may happen, once, at any step.
    pub(crate) may: &'static [Deed],
}

/// The steps of a run so far, and how long both ends may need.
struct Play<'a> {
    world: World<'a>,
    plan: Plan,
    done: usize,
    /// Which of the things that may happen did.
    used: u32,
    /// When somebody did something last, or something went wrong.
    since: Time,
    /// Since when one end is up without the other.
    alone: Option<Time>,
}

/// Runs a plan with the choices of the explorer.
pub(crate) fn run(
    plan: Plan,
    (server, client): (&ServerConfig, &ClientConfig),
    token: &[u8],
    explorer: &mut Explorer,
) -> BTreeMap<String, u64> {
    let world = World::new(server.clone(), client, token);
    let since = world.now;
    let mut play = Play { world, plan, done: 0, used: 0, since, alone: None };
    while !play.is_over() {
        let steps = play.steps();
        let taken = if play.has_choices() {
            let Some(taken) = explorer.choose(steps.len(), play.state()) else {
                return play.world.records.tally;
            };
            taken
        } else {
            0
        };
        play.take(steps[taken], taken > 0);
        play.check();
    }
    play.world.records.check_end();
    assert_eq!(play.world.server.stats().memory, 0, "memory of no session");
    play.world.records.tally
}

impl Play<'_> {
    /// What may happen now. The first is what happens if nothing goes wrong.
    fn steps(&self) -> Vec<Step> {
        let under_way = self.world.flight.len();
        let timer = self.world.next_timer().map(|_| Step::Timer);
        let mut steps = Vec::new();
        if under_way > 0 {
            steps.extend((0..under_way.min(OVERTAKING)).map(Step::Deliver));
            steps.extend([Step::Drop, Step::Double]);
            steps.extend(timer);
        } else {
            let deed = self.next_deed().map(Step::Deed);
            steps.push(deed.or(timer).unwrap_or_else(|| self.stuck("nothing will ever happen again")));
            steps.extend(deed.and(timer));
        }
        let unused = self.plan.may.iter().enumerate().filter(|(index, _)| self.used & (1 << index) == 0);
        steps.extend(unused.map(|(_, deed)| Step::Deed(*deed)));
        steps.extend((0..self.world.first.len()).map(Step::Again));
        steps
    }

    fn all_deeds(&self) -> impl Iterator<Item = Deed> {
        self.plan.before.into_iter().flatten().chain(self.plan.deeds).copied()
    }

    /// What somebody does next, if both ends agree.
    fn next_deed(&self) -> Option<Deed> {
        let last = Deed::CloseClient;
        let closes = || Some(last).filter(|_| self.world.client.state() == ClientState::Up);
        if self.agree() { self.all_deeds().nth(self.done).or_else(closes) } else { None }
    }

    /// Whether both are up and nothing is left to say, or both are over.
    fn agree(&self) -> bool {
        let records = &self.world.records;
        let is_quiet =
            self.world.are_up() == [true; 2] && records.is_through() && records.knows_where_to_go();
        is_quiet || self.world.are_over()
    }

    fn has_choices(&self) -> bool {
        self.plan.before.is_none_or(|before| {
            self.done > before.len()
                || self.done == before.len() && self.agree() && self.world.flight.is_empty()
        })
    }

    fn state(&self) -> u64 {
        self.world.state() ^ (self.done as u64).rotate_left(32) ^ u64::from(self.used).rotate_left(48)
    }

    fn take(&mut self, step: Step, is_fault: bool) {
        self.world.take(step);
        if is_fault || matches!(step, Step::Deed(_)) {
            self.since = self.world.now;
        }
        match step {
            Step::Deed(deed) if is_fault => {
                self.used |= self.plan.may.iter().position(|may| *may == deed).map_or(0, |index| 1 << index);
            }
            Step::Deed(_) => self.done += 1,
            _ => {}
        }
    }

    fn check(&mut self) {
        let now = self.world.now;
        let [client, server] = self.world.are_up();
        self.alone = (client != server).then(|| self.alone.unwrap_or(now));
        if let Some(alone) = self.alone {
            let time = now.since(alone.max(self.since));
            if time > TIMEOUT + SLACK {
                self.stuck("one end is up alone");
            }
        }
        let time = now.since(self.since);
        if !self.agree() && time > AGREED {
            self.stuck("no agreement");
        }
        if time > FORGOTTEN {
            self.stuck("a session is not forgotten");
        }
    }

    fn stuck(&self, why: &str) -> ! {
        let Self { world, done, .. } = self;
        let (client, up, sessions) = (world.client.state(), world.are_up(), world.server.len());
        let waited = world.now.since(self.since);
        panic!("{why} after {waited:?}: {client:?}, {up:?}, {sessions} sessions, {done} deeds");
    }

    fn is_over(&self) -> bool {
        let Self { world, .. } = self;
        self.done >= self.all_deeds().count()
            && world.flight.is_empty()
            && world.are_over()
            && world.server.is_empty()
            && world.client.poll_timeout().is_none()
    }
}

/// How many datagrams one may overtake.
const OVERTAKING: usize = 3;
/// As `main` sets them.
pub(crate) const TIMEOUT: Duration = ms(4000);
pub(crate) const DRAIN: Duration = ms(1000);
pub(crate) const DEADLINE: Duration = ms(3000);
const SLACK: Duration = ms(1000);
/// An attempt may be over just before the server learns of it, times out, and closes.
const AGREED: Duration = ms(3000 + 4000 + 1000 + 1000 + 1000);
/// An unconfirmed session is forgotten after 10 s.
const FORGOTTEN: Duration = ms(12_000);
