//! A client predicts itself correctly, and where it cannot, it is right again as soon as the server's state arrives.

#![allow(clippy::unwrap_used, reason = "a test that panics has found something")]

mod common;

use std::time::Duration;
use tower_defence::client::{Command, RunnerView, Sample};
use tower_defence::lab::{Lab, Transport};
use tower_defence::server::PeerId;
use tower_defence::sim::{At, Bonus, Colour, Keys, Kind, Order, Phase};
use tower_defence::wire::{Message, Wish};
use whitewater_sim::SimRng;

const TICK: Duration = Duration::from_millis(34);

/// A runner of ours, and a builder at the server whose orders no client can predict.
fn lab(seed: u64, rtt: u64) -> (Lab, PeerId) {
    let mut lab = Lab::new(Transport::Sessions, &common::link(&format!("rtt={rtt}ms")), seed);
    lab.join(common::hello(1, Wish::Run), false);
    let builder = lab.server_mut().connect(&common::hello(2, Wish::Build).encode().unwrap()).unwrap();
    lab.run_for(Duration::from_secs(4));
    (lab, builder)
}

fn run_until_running(lab: &mut Lab) {
    while lab.server().world().phase != Phase::Running
        || !lab.server().world().runners().all(|runner| runner.alive)
    {
        lab.run_tick();
    }
}

/// Whether the client's current prediction is what the server has at that tick, if nobody does anything else.
fn is_right(lab: &mut Lab) -> bool {
    let client = lab.client(0).unwrap();
    let (you, predicted) = (client.you(), client.predicted().unwrap());
    let (tick, hash) = (predicted.tick, predicted.hash_for(you));
    while lab.server().world().tick < tick {
        lab.run_tick();
    }
    lab.server().world_at(tick).unwrap().hash_for(you) == hash
}

#[test]
fn prediction_is_right_within_a_round_trip_and_a_tick_after_what_it_could_not_foresee() {
    let (mut wrong, mut tried) = (0, 0);
    for seed in 1..=60 {
        let mut rng = SimRng::new(seed, 5);
        let rtt = 20 + u64::from(common::below(&mut rng, 180));
        let (mut lab, builder) = lab(seed, rtt);
        run_until_running(&mut lab);
        lab.command(0, Command::Steer(Keys::from_bits(8 | common::below(&mut rng, 4))));
        lab.run_for(Duration::from_millis(500 + 10 * u64::from(common::below(&mut rng, 100))));
        // In front of the runner, and it slows: neither could be predicted.
        let mut number = 0;
        let you = lab.client(0).unwrap().you().unwrap();
        let here = lab.server().world().runner(you).unwrap().at.cell();
        for (x, y) in [(1, 0), (2, 0), (1, 1), (2, 1), (3, 0)] {
            number += 1;
            let at = At { x: here.x + x, y: here.y + y };
            let order = Order::Place { at, colour: Colour::Green, kind: Kind::Frost };
            lab.server_mut().take(builder, Message::Order { number, order });
        }
        let order = Order::Buy { bonus: Bonus::Blizzard };
        lab.server_mut().take(builder, Message::Order { number: number + 1, order });
        let before = lab.server().world().turrets.len();
        tried += u32::from(before > 0);
        let client = lab.client(0).unwrap();
        wrong += u32::from(client.predicted().unwrap().turrets.len() != before);
        lab.run_for(Duration::from_millis(rtt) + TICK);
        assert!(is_right(&mut lab), "seed {seed}: not right after {rtt} ms and a tick");
    }
    assert!(tried > 40 && wrong > 40, "{tried} events, {wrong} of them not foreseen: too few");
}

#[test]
fn an_order_that_is_refused_is_shown_and_taken_back_within_a_round_trip_and_a_tick() {
    for seed in 1..=20 {
        let rtt = 40 + 8 * seed;
        let mut lab = Lab::new(Transport::Sessions, &common::link(&format!("rtt={rtt}ms")), seed);
        lab.join(common::hello(1, Wish::Build), false);
        let rival = lab.server_mut().connect(&common::hello(2, Wish::Build).encode().unwrap()).unwrap();
        lab.run_for(Duration::from_secs(2));
        let board = &lab.server().world().board;
        let free = |at: &At| {
            board.cell(*at) == tower_defence::sim::Cell::Free && at.x > 4 && !board.would_block(*at, &[])
        };
        let at = board.places().find(free).unwrap();
        let [ours, theirs] =
            [Colour::Red, Colour::Blue].map(|colour| Order::Place { at, colour, kind: Kind::Gun });
        lab.command(0, Command::Order(ours));
        // Shown at once, before anybody can have heard of it.
        let shown = lab.client(0).unwrap().view().unwrap();
        assert!(shown.turrets.iter().any(|turret| turret.at == at && turret.is_guess), "seed {seed}");
        // The rival's order arrives first.
        lab.server_mut().take(rival, Message::Order { number: 1, order: theirs });
        lab.run_for(Duration::from_millis(rtt) + 2 * TICK);
        let seen = lab.client(0).unwrap().view().unwrap();
        let turret = seen.turrets.iter().find(|turret| turret.at == at).unwrap();
        assert_eq!((turret.colour, turret.is_guess), (Colour::Blue, false), "seed {seed}");
        assert_eq!(seen.purse.money, shown.purse.money + Kind::Gun.cost(), "seed {seed}: paid for nothing");
        assert!(is_right(&mut lab), "seed {seed}");
    }
}

#[test]
fn without_others_and_loss_nothing_is_ever_mispredicted() {
    for seed in 1..=5 {
        let mut lab = Lab::new(Transport::Sessions, &common::link("rtt=120ms,jitter=10ms"), seed);
        lab.join(common::hello(1, Wish::Run), true);
        lab.run_for(Duration::from_secs(8));
        lab.client_mut(0).unwrap().take_samples();
        lab.run_for(Duration::from_secs(60));
        let samples = lab.client_mut(0).unwrap().take_samples();
        let errors: Vec<f32> = samples
            .iter()
            .filter_map(|sample| if let Sample::Error(error) = sample { Some(*error) } else { None })
            .collect();
        assert!(
            errors.len() > 200 && errors.iter().all(|error| *error == 0.0),
            "seed {seed}: {} errors",
            errors.len()
        );
    }
}

/// Runners push each other, and nobody foresees where others turn: so predictions are wrong, but by little.
#[test]
fn who_is_pushed_is_mispredicted_now_and_then_by_less_than_half_a_cell() {
    let (mut errors, mut wrong) = (0_u32, 0);
    for seed in 1..=4 {
        let mut lab = Lab::new(Transport::Sessions, &common::link("rtt=60ms,loss=5%"), seed);
        for number in 0..8 {
            lab.join(common::hello(number, Wish::Run), true);
        }
        lab.run_for(Duration::from_secs(40));
        for guest in 0..8 {
            for sample in lab.client_mut(guest).unwrap().take_samples() {
                let Sample::Error(error) = sample else { continue };
                assert!(error < 0.5, "seed {seed}: {error} cells");
                (errors, wrong) = (errors + 1, wrong + u32::from(error > 0.0));
            }
        }
    }
    assert!(errors > 4 * 8 * 100, "{errors} snapshots: too few");
    let percent = wrong * 100 / errors;
    assert!((2..50).contains(&percent), "{percent} % were not as predicted");
}

/// A runner that dies returns to the start, and a client hears of that later: such frames do not count.
#[test]
fn what_is_drawn_of_a_runner_does_not_jump_when_the_server_contradicts() {
    for seed in 1..=16 {
        let (mut lab, _) = lab(seed, 100);
        lab.join(common::hello(3, Wish::Run), true);
        lab.join(common::hello(4, Wish::Build), true);
        run_until_running(&mut lab);
        lab.command(0, Command::Steer(Keys::RIGHT));
        lab.set_link(&common::link("rtt=100ms,loss=20%,jitter=30ms"));
        let (mut before, mut died) = (Vec::<RunnerView>::new(), Vec::new());
        let (mut most, mut frames) = (0.0_f32, 0);
        for frame in 0..600 {
            lab.run_for(Duration::from_millis(16));
            let dead = lab.server().world().runners().filter(|runner| !runner.alive);
            died.extend(dead.map(|runner| (runner.player, frame)));
            let Some(view) = lab.client(0).unwrap().view() else { continue };
            for runner in &view.runners {
                let is_put_back =
                    died.iter().any(|(player, died)| *player == runner.player && frame - died < HEARD);
                if let Some(was) = before.iter().find(|was| was.player == runner.player)
                    && !is_put_back
                {
                    most = most.max((runner.x - was.x).hypot(runner.y - was.y));
                    frames += 1;
                }
            }
            before = view.runners;
        }
        // 2.8 cells a second are 0.045 per frame; a wrong extrapolation is corrected within some frames.
        assert!(frames > 200 && most < 0.75, "seed {seed}: {frames} frames, {most} cells in one");
    }
}

/// Frames after which a client has heard that a runner has died, whatever gets lost.
const HEARD: i32 = 60;
