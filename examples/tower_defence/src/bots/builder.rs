//! Role A: builds turrets where the longest part of the way is in reach, in the colour that most runners have.

use crate::sim::{At, Bonus, Colour, Kind, Order, Phase, PlayerId, Runner, TurretId, World};
use rand::{Rng, RngExt};
use whitewater_sim::SimRng;

#[derive(Debug, Default)]
pub(super) struct Builder {
    /// What it saves money for.
    wish: Option<Wish>,
}

#[derive(Clone, Copy, Debug)]
enum Wish {
    Build(Colour, Kind),
    Raise,
}

impl Builder {
    pub(super) fn think(&mut self, world: &World, you: PlayerId, rng: &mut SimRng) -> Option<Order> {
        let purse = world.purse(you)?;
        if world.phase == Phase::Running
            && let Some(bonus) = bonus(world, you)
        {
            return Some(Order::Buy { bonus });
        }
        let wish = *self.wish.get_or_insert_with(|| choose(world, rng));
        let order = match wish {
            Wish::Build(_, kind) if purse.money < kind.cost() => None,
            Wish::Build(colour, kind) => {
                self.wish = None;
                place(world, kind, rng).map(|at| Order::Place { at, colour, kind })
            }
            Wish::Raise => {
                let turret = raise(world, purse.money);
                if turret.is_some() || rng.random::<f64>() < 0.1 {
                    self.wish = None;
                }
                turret.map(|turret| Order::Upgrade { turret })
            }
        };
        order.filter(|order| world.clone().order(you, *order).is_ok())
    }
}

fn choose(world: &World, rng: &mut SimRng) -> Wish {
    let many = world.turrets.len();
    if many >= 40 || (many >= 6 && rng.random::<f64>() < 0.5) {
        return Wish::Raise;
    }
    let of = |colour: Colour| world.runners().filter(move |runner| runner.colours.has(colour)).count();
    let mut colours = Colour::ALL.map(|colour| (of(colour), rng.next_u64(), colour));
    colours.sort_by_key(|(count, random, _)| (*count, *random));
    let [.., (_, _, colour)] = colours;
    let kind = match rng.random::<f64>() {
        fraction if fraction < 0.55 => Kind::Gun,
        fraction if fraction < 0.75 => Kind::Frost,
        _ => Kind::Mortar,
    };
    Wish::Build(colour, kind)
}

/// The best of some cells: with the longest part of the way in reach. Only tries a few, so that two builders differ.
fn place(world: &World, kind: Kind, rng: &mut SimRng) -> Option<At> {
    let way = way(world);
    let free: Vec<At> =
        world.board.iter().filter(|(_, cell)| *cell == crate::sim::Cell::Free).map(|(at, _)| at).collect();
    let tried = (0..24).filter_map(|_| {
        let index = usize::try_from(rng.next_u64() % free.len().max(1) as u64).ok()?;
        free.get(index).copied()
    });
    let reach = |at: At| {
        let (middle, range) = (at.middle(), kind.range());
        way.iter().filter(|on| on.middle().distance_squared(middle) <= range * range).count()
    };
    let possible = tried.filter(|at| !world.board.would_block(*at, &[]));
    possible.map(|at| (reach(at), at)).max_by_key(|(reach, _)| *reach).map(|(_, at)| at)
}

/// The cells from the start to the exit.
fn way(world: &World) -> Vec<At> {
    let mut way = vec![world.board.start()];
    while let Some(last) = way.last().copied()
        && last != world.board.exit()
        && way.len() < 1000
    {
        let next = world.board.neighbours(last).filter_map(|at| Some((world.board.distance(at)?, at))).min();
        let Some((_, at)) = next else { break };
        way.push(at);
    }
    way
}

/// The turret that is cheapest to raise, if there is enough money.
fn raise(world: &World, money: u16) -> Option<TurretId> {
    let open =
        (0..).zip(&world.turrets).filter(|(_, turret)| turret.level < crate::sim::rules::TURRET_LEVELS);
    let (id, turret) = open.min_by_key(|(_, turret)| turret.upgrade_cost())?;
    (turret.upgrade_cost() <= money).then_some(TurretId(id))
}

/// A bonus that is worth its tokens now.
fn bonus(world: &World, you: PlayerId) -> Option<Bonus> {
    let purse = world.purse(you)?;
    let on_board: Vec<&Runner> = world.runners().filter(|runner| runner.alive).collect();
    let nearest = on_board.iter().filter_map(|runner| world.board.distance(runner.at.cell())).min()?;
    let is_worth = |bonus: &Bonus| match bonus {
        Bonus::Repair => world.base <= 15,
        Bonus::Overcharge => on_board.len() >= 3 && world.tick >= world.overcharge_until,
        Bonus::Blizzard => nearest < 6,
        Bonus::Bounty => on_board.len() >= 4 && world.tick >= world.bounty_until,
    };
    let all = [Bonus::Repair, Bonus::Overcharge, Bonus::Blizzard, Bonus::Bounty];
    all.into_iter()
        .find(|bonus| purse.has_unlocked(*bonus) && purse.tokens >= bonus.cost() && is_worth(bonus))
}
