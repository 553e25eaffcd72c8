use super::*;
use std::time::Duration;
use tower_defence::lab::{Lab, LinkSpec, Transport};
use tower_defence::wire::{Hello, Wish};

fn game(wish: Wish) -> (View, Layout) {
    let mut lab = Lab::new(Transport::Sessions, &LinkSpec::default(), 7);
    lab.join(Hello { name: "Ada".to_owned(), wish, ticket: 1 }, false);
    lab.run_for(Duration::from_secs(3));
    let view = lab.client(0).and_then(|client| client.view()).expect("a world");
    let layout = Layout::fit(960.0, 620.0, (view.board.width(), view.board.height()));
    (view, layout)
}

fn steer(keys: Keys) -> Said {
    Said::Command(Command::Steer(keys))
}

#[test]
fn a_runner_follows_keys_until_they_are_released_and_a_finger_before_them() {
    let ((view, layout), mut controls) = (game(Wish::Run), Controls::default());
    assert_eq!(controls.key("d", true, &view, &layout), steer(Keys::RIGHT));
    assert_eq!(controls.key("d", true, &view, &layout), Said::Chosen); // it repeats itself
    assert_eq!(controls.key("ArrowUp", true, &view, &layout), steer(Keys::RIGHT.and(Keys::UP)));
    assert_eq!(controls.key("d", false, &view, &layout), steer(Keys::UP));
    controls.down(5, 100.0, 100.0, &view, &layout);
    assert_eq!(controls.moved(5, 140.0, 100.0, &layout), steer(Keys::RIGHT));
    assert_eq!(controls.moved(6, 0.0, 0.0, &layout), Said::Nothing); // another finger
    assert_eq!(controls.up(5, &view, &layout), steer(Keys::UP));
    assert_eq!(controls.blurred(&layout), steer(Keys::default()));
}

#[test]
fn one_tap_chooses_a_cell_and_the_next_builds_there() {
    let ((view, layout), mut controls) = (game(Wish::Build), Controls::default());
    let at = At { x: 6, y: 4 };
    let (x, y) = layout.middle(at);
    let mut tap = || {
        controls.down(1, x, y, &view, &layout);
        controls.up(1, &view, &layout)
    };
    assert_eq!(tap(), Said::Nothing);
    let order = Order::Place { at, colour: Colour::Red, kind: Kind::Gun };
    assert_eq!(tap(), Said::Command(Command::Order(order)));
    // A finger that slides chooses another cell, and builds nothing.
    controls.down(1, x, y, &view, &layout);
    controls.moved(1, x + 2.0 * layout.cell, y, &layout);
    assert_eq!(controls.up(1, &view, &layout), Said::Nothing);
    assert_eq!(controls.at, Some(At { x: 8, y: 4 }));
}

#[test]
fn keys_do_what_they_do_in_a_terminal() {
    let ((view, layout), mut controls) = (game(Wish::Build), Controls::default());
    let start = controls.cursor(&view);
    controls.key("ArrowLeft", true, &view, &layout);
    controls.key("b", true, &view, &layout);
    controls.key("Tab", true, &view, &layout);
    let at = At { x: start.x - 1, y: start.y };
    let order = Order::Place { at, colour: Colour::Blue, kind: Kind::Frost };
    assert_eq!(controls.key(" ", true, &view, &layout), Said::Command(Command::Order(order)));
    let buy = Order::Buy { bonus: Bonus::Overcharge };
    assert_eq!(controls.key("2", true, &view, &layout), Said::Command(Command::Order(buy)));
    assert_eq!(controls.key("q", true, &view, &layout), Said::Leave);
    assert_eq!(controls.key("t", true, &view, &layout), Said::Talk);
    assert_eq!(controls.key("F5", true, &view, &layout), Said::Nothing);
}

#[test]
fn who_watches_commands_nothing() {
    let ((view, layout), mut controls) = (game(Wish::Watch), Controls::default());
    for key in ["d", " ", "Enter", "1", "r"] {
        assert_eq!(controls.key(key, true, &view, &layout), Said::Nothing, "{key}");
    }
    assert_eq!(controls.down(1, 50.0, 50.0, &view, &layout), Said::Nothing);
}
