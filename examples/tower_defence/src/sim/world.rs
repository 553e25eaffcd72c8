//! The whole state of the game. `step` advances it by one tick.

use super::board::{At, Board, Cell};
use super::event::{Event, EventKind};
use super::keys::Inputs;
use super::phase::Phase;
use super::player::{PlayerId, Purse, Role};
use super::push::push_apart;
use super::random::draw;
use super::rules::{
    BASE, COINS, KILLS_PER_TOKEN, LIVES, MONEY_COIN, MONEY_EXIT, MONEY_KILL, MONEY_LATE, MONEY_START, PAUSE,
    PLAYERS, RESPAWN, RETURN,
};
use super::runner::{Runner, has_arrived};
use super::turret::Turret;

/// The whole state. A client has the same, except for the purses of others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct World {
    /// Ticks since the start.
    pub tick: u32,
    /// All random numbers are derived from it.
    pub seed: u64,
    /// The cells.
    pub board: Board,
    /// The turrets, by number.
    pub turrets: Vec<Turret>,
    pub(crate) runners: [Option<Runner>; PLAYERS as usize],
    pub(crate) purses: [Option<Purse>; PLAYERS as usize],
    /// The cells with coins.
    pub coins: [Option<At>; COINS as usize],
    /// The current phase.
    pub phase: Phase,
    /// The tick in which the phase ends, unless it ends earlier.
    pub phase_ends: u32,
    /// Number of waves that have begun.
    pub wave: u16,
    /// Remaining health of the base.
    pub base: u16,
    /// Runners that have died since the last token.
    pub kills: u16,
    /// Until this tick, turrets fire twice as often.
    pub overcharge_until: u32,
    /// Until this tick, runners that die pay twice as much.
    pub bounty_until: u32,
    pub(crate) events: Vec<Event>,
}

impl World {
    /// A world without players, before its first wave.
    #[must_use]
    pub fn new(width: u8, height: u8, seed: u64) -> Self {
        Self::on(Board::new(width, height, seed), seed)
    }

    /// The same on an existing board.
    #[must_use]
    pub const fn on(board: Board, seed: u64) -> Self {
        Self {
            tick: 0,
            seed,
            board,
            turrets: Vec::new(),
            runners: [const { None }; PLAYERS as usize],
            purses: [const { None }; PLAYERS as usize],
            coins: [None; COINS as usize],
            phase: Phase::Upgrading,
            phase_ends: PAUSE / 2,
            wave: 0,
            base: BASE,
            kills: 0,
            overcharge_until: 0,
            bounty_until: 0,
            events: Vec::new(),
        }
    }

    /// Advances by one tick.
    pub fn step(&mut self, inputs: &Inputs) {
        self.tick += 1;
        self.turn_phase();
        if self.phase == Phase::Running {
            self.lay_coins();
            for player in PlayerId::all() {
                self.run(player, inputs);
            }
            push_apart(&mut self.runners, &self.board);
            self.fire();
        }
    }

    /// Returns what has happened since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// A player joins.
    pub fn join(&mut self, player: PlayerId, role: Role) {
        let money = MONEY_LATE * self.wave;
        let is_runner = role == Role::Runner;
        let purse = Purse {
            role,
            money: if is_runner { money } else { MONEY_START + money },
            life: if is_runner { LIVES.into() } else { self.base },
            // One bit for each bonus that was unlocked by a wave, four at most.
            unlocked: if is_runner { 0 } else { 15 >> (4 - self.wave.min(4)) },
            waits_until: if is_runner && self.phase == Phase::Upgrading { self.phase_ends } else { 0 },
            ..Purse::default()
        };
        let returns = if self.phase == Phase::Running { self.tick + RETURN } else { 0 };
        if let (Some(place), Some(seat)) =
            (self.runners.get_mut(player.index()), self.purses.get_mut(player.index()))
        {
            *place = is_runner.then(|| Runner::new(player, returns));
            *seat = Some(purse);
        }
        self.tell(EventKind::Joined, Some(player), 0, is_runner.into());
    }

    /// A player leaves. What they have built stays.
    pub fn leave(&mut self, player: PlayerId) {
        if let (Some(place), Some(seat)) =
            (self.runners.get_mut(player.index()), self.purses.get_mut(player.index()))
        {
            (*place, *seat) = (None, None);
        }
        self.tell(EventKind::Left, Some(player), 0, 0);
    }

    /// All runners, on the board or not.
    pub fn runners(&self) -> impl Iterator<Item = &Runner> {
        self.runners.iter().flatten()
    }

    /// A player's runner.
    #[must_use]
    pub fn runner(&self, player: PlayerId) -> Option<&Runner> {
        self.runners.get(player.index())?.as_ref()
    }

    /// What a player has. A client only knows its own.
    #[must_use]
    pub fn purse(&self, player: PlayerId) -> Option<&Purse> {
        self.purses.get(player.index())?.as_ref()
    }

    /// The inputs as far as can be seen: each runner continues in its direction.
    #[must_use]
    pub fn seen_inputs(&self) -> Inputs {
        let mut inputs = Inputs::default();
        for runner in self.runners() {
            inputs.set(runner.player, runner.keys());
        }
        inputs
    }

    /// Notes that an order of a player was decided.
    pub fn decide(&mut self, player: PlayerId, number: u16) {
        if let Some(purse) = self.purse_mut(player) {
            purse.decided = number;
        }
    }

    pub(super) fn runners_mut(&mut self) -> impl Iterator<Item = &mut Runner> {
        self.runners.iter_mut().flatten()
    }

    pub(super) fn purses_mut(&mut self) -> impl Iterator<Item = &mut Purse> {
        self.purses.iter_mut().flatten()
    }

    pub(super) fn runner_mut(&mut self, player: PlayerId) -> Option<&mut Runner> {
        self.runners.get_mut(player.index())?.as_mut()
    }

    pub(super) fn purse_mut(&mut self, player: PlayerId) -> Option<&mut Purse> {
        self.purses.get_mut(player.index())?.as_mut()
    }

    /// Records an event.
    pub(super) fn tell(&mut self, kind: EventKind, id: Option<PlayerId>, money: u16, data: u16) {
        let (tick, running) = (self.tick, self.phase == Phase::Running);
        self.events.push(Event { tick, kind, running, money, id: id.unwrap_or_default(), data });
    }

    pub(super) fn set_base(&mut self, base: u16) {
        self.base = base;
        for purse in self.purses_mut().filter(|purse| purse.role == Role::Builder) {
            purse.life = base;
        }
    }

    /// Removes everything that was built, and all coins.
    pub(super) fn clear(&mut self) {
        for turret in std::mem::take(&mut self.turrets) {
            self.board.set(turret.at, Cell::Free);
        }
        self.board.measure();
        self.coins = [None; COINS as usize];
        (self.kills, self.overcharge_until, self.bounty_until) = (0, 0, 0);
    }

    /// Lays a coin each second, on a free cell that somebody can reach.
    fn lay_coins(&mut self) {
        let Self { tick, seed, board, coins, .. } = self;
        if !tick.is_multiple_of(30) {
            return;
        }
        let Some(place) = coins.iter_mut().find(|coin| coin.is_none()) else { return };
        let below = |purpose, count: u8| u8::try_from(draw(*seed, *tick, purpose, count.into())).unwrap_or(0);
        let at = At { x: below(1, board.width()), y: below(2, board.height()) };
        if board.cell(at) == Cell::Free && board.distance(at).is_some() {
            *place = Some(at);
        }
    }

    /// Moves the runner of a player, if there is one.
    fn run(&mut self, player: PlayerId, inputs: &Inputs) {
        let Self { tick, board, wave, .. } = self;
        let Some(runner) = self.runners.get_mut(player.index()).and_then(Option::as_mut) else { return };
        if !runner.alive && runner.returns > 0 && *tick >= runner.returns {
            runner.enter(board, *wave);
        }
        if !runner.alive {
            return;
        }
        runner.walk(*tick, inputs.of(player), board);
        let cell = runner.at.cell();
        if has_arrived(runner, board) {
            runner.leave(*tick + RETURN);
            self.set_base(self.base.saturating_sub(1));
            self.pay_runner(player, EventKind::Exit, MONEY_EXIT, self.base);
        } else if let Some(coin) = self.coins.iter_mut().find(|coin| **coin == Some(cell)) {
            *coin = None;
            self.pay_runner(player, EventKind::Coin, MONEY_COIN, 0);
        }
    }

    fn pay_runner(&mut self, player: PlayerId, kind: EventKind, money: u16, data: u16) {
        let money = self.purse_mut(player).map_or(0, |purse| purse.gather(money));
        self.tell(kind, Some(player), money, data);
    }

    /// Every turret that is ready and sees a runner fires.
    fn fire(&mut self) {
        let Self { tick, board, turrets, runners, overcharge_until, .. } = self;
        for turret in turrets.iter_mut() {
            if !turret.is_ready(*tick, *tick < *overcharge_until) {
                continue;
            }
            let on_board = runners.iter().flatten().filter(|runner| runner.alive && runner.health > 0);
            let Some(player) = turret.aim(board, on_board) else { continue };
            let Some(target) = runners.get(player.index()).cloned().flatten() else { continue };
            (turret.fired, turret.target) = (*tick, player);
            for runner in runners.iter_mut().flatten().filter(|runner| runner.alive) {
                if turret.hits(&target, runner) {
                    turret.hit(*tick, runner);
                }
            }
        }
        for player in PlayerId::all() {
            if self.runner(player).is_some_and(|runner| runner.alive && runner.health == 0) {
                self.bury(player);
            }
        }
    }

    /// A runner has died.
    fn bury(&mut self, player: PlayerId) {
        let lives = self.purse_mut(player).map_or(0, |purse| {
            purse.life = purse.life.saturating_sub(1);
            purse.life
        });
        let returns = if lives > 0 { self.tick + RESPAWN } else { 0 };
        if let Some(runner) = self.runner_mut(player) {
            runner.leave(returns);
        }
        self.kills += 1;
        let is_token = self.kills >= KILLS_PER_TOKEN;
        self.kills = if is_token { 0 } else { self.kills };
        let money = if self.tick < self.bounty_until { 2 * MONEY_KILL } else { MONEY_KILL };
        for purse in self.purses_mut().filter(|purse| purse.role == Role::Builder) {
            purse.gather(money);
            if is_token {
                purse.gather_token();
            }
        }
        self.tell(EventKind::Death, Some(player), money, lives);
    }
}
