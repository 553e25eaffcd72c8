//! What a player can choose, the same on every screen.

use crate::client::View;
use crate::sim::{At, Board, Bonus, Cell, Colour, Improvements, Keys, Kind, Order, Phase, TurretId};

/// What role A does at a cell: raises the turret there, or builds one.
#[must_use]
pub fn build(view: &View, at: At, colour: Colour, kind: Kind) -> Order {
    turret(view, at).map_or(Order::Place { at, colour, kind }, |turret| Order::Upgrade { turret })
}

/// The price of [`build`]. `None`: it cannot be done, whatever the money.
#[must_use]
pub fn price(view: &View, at: At, kind: Kind) -> Option<u16> {
    match (turret(view, at), view.board.cell(at)) {
        (Some(id), _) => view.turrets.iter().find(|turret| turret.id == id)?.upgrade_cost,
        (None, Cell::Free) => {
            let is_near =
                [view.board.start(), view.board.exit()].into_iter().any(|end| at.distance(end) <= 1);
            (!is_near && !view.board.would_block(at, &[])).then_some(kind.cost())
        }
        (None, _) => None,
    }
}

/// Whether role A can buy a bonus now.
#[must_use]
pub fn can_buy(view: &View, bonus: Bonus) -> bool {
    view.purse.has_unlocked(bonus) && bonus.cost() <= view.purse.tokens
}

/// Whether role B can buy these improvements now.
#[must_use]
pub fn can_improve(view: &View, improvements: Improvements) -> bool {
    view.phase == Phase::Upgrading && improvements.bits() != 0 && improvements.cost() <= view.purse.money
}

/// The cell beside a cell in a direction, or the cell itself at the edge of the board.
#[must_use]
pub fn moved(board: &Board, at: At, keys: Keys) -> At {
    let (x, y) = keys.direction();
    let step = |place: u8, by: i32, size: u8| {
        u8::try_from((i32::from(place) + by).clamp(0, i32::from(size) - 1)).unwrap_or(place)
    };
    At { x: step(at.x, x, board.width()), y: step(at.y, y, board.height()) }
}

/// Adds an improvement or takes it away. At most one colour is among them.
#[must_use]
pub fn toggled(all: Improvements, one: Improvements) -> Improvements {
    let colours = Improvements::NO_RED.and(Improvements::NO_GREEN).and(Improvements::NO_BLUE);
    let others = if colours.has(one) { all.bits() & !colours.bits() } else { all.bits() & !one.bits() };
    Improvements::from_bits(if all.has(one) { others } else { others | one.bits() })
}

fn turret(view: &View, at: At) -> Option<TurretId> {
    match view.board.cell(at) {
        Cell::Turret(turret) => Some(turret),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Lab, LinkSpec, Transport};
    use crate::sim::rules::MONEY_START;
    use crate::wire::{Hello, Wish};
    use std::time::Duration;

    #[test]
    fn at_most_one_colour_is_given_up() {
        let red = toggled(Improvements::HEALTH, Improvements::NO_RED);
        assert!(red.has(Improvements::NO_RED.and(Improvements::HEALTH)));
        assert_eq!(toggled(red, Improvements::NO_BLUE), Improvements::NO_BLUE.and(Improvements::HEALTH));
        assert_eq!(toggled(red, Improvements::NO_RED), Improvements::HEALTH);
    }

    #[test]
    fn what_has_a_price_is_granted_and_nothing_else() {
        let mut lab = Lab::new(Transport::Sessions, &LinkSpec::default(), 7);
        lab.join(Hello { name: "Ada".to_owned(), wish: Wish::Build, ticket: 1 }, false);
        lab.run_for(Duration::from_secs(2));
        let view = lab.client(0).and_then(crate::client::Client::view).expect("a world");
        let world = lab.server().world().clone();
        let you = view.you.expect("a player");
        for at in view.board.places() {
            let order = build(&view, at, Colour::Red, Kind::Gun);
            let price = price(&view, at, Kind::Gun).filter(|price| *price <= MONEY_START);
            assert_eq!(world.clone().order(you, order).is_ok(), price.is_some(), "{at:?}");
        }
    }
}
