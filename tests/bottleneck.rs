//! What a download, a game beside a download, and two downloads get of a narrow path, with each controller.
//!
//! `cargo run --release --example bottleneck` prints the whole table.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::configs;
use std::time::Duration;
use whitewater::Repairs;
use whitewater::Time;
use whitewater::kcp::{Config, Congestion, Conv, Modern, Recovery};
use whitewater_sim::scenario::{Downloads, Flow, Mode, Scenario, Sharing, Workload};
use whitewater_sim::{
    Bottleneck, Discipline, Drive, KcpEnd, Link, LinkConfig, Loss, OPPORTUNITY, Pair, Playback, Trace,
};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// 20 Mbit/s, 60 ms, with a queue of one bandwidth-delay product.
fn narrow(loss: f64) -> LinkConfig {
    LinkConfig {
        bottleneck: Some(Bottleneck { rate: 20_000_000, queue: 150_000 }),
        loss: Loss::Random(loss),
        ..LinkConfig::with_rtt(ms(60))
    }
}

fn modern(name: &str, congestion: Congestion) -> Mode {
    // Without repairs, to see the controller alone.
    let modern = Modern { repairs: Repairs::Off, ..Modern::default() };
    Mode::modern(modern).with_window(1024).with_congestion(name, congestion)
}

fn delay() -> Mode {
    modern("delay", Congestion::Delay)
}

/// By delay, with at most `repairs` % of repairs.
fn repairing(repairs: u8) -> Mode {
    Mode::modern(Modern { repairs: Repairs::Budget(repairs), ..Modern::default() })
        .with_congestion("delay", Congestion::Delay)
}

fn cubic() -> Mode {
    modern("cubic", Congestion::Cubic)
}

#[test]
fn loss_does_not_keep_a_controller_by_delay_from_using_the_path() {
    let mut game = Vec::new();
    for seed in SEEDS {
        let sharing = Sharing::measure(&delay(), &narrow(0.01), [seed]).unwrap();
        assert!(sharing.goodput >= 17.2e6, "seed {seed}: {sharing:?}");
        assert!(sharing.wire_per_payload <= 1.11, "seed {seed}: {sharing:?}");
        assert!(sharing.queue_delay <= ms(6), "seed {seed}: {sharing:?}");
        game.push(sharing.game.p99);
    }
    let all = Sharing::measure(&delay(), &narrow(0.01), SEEDS).unwrap();
    // One in a hundred packets is lost, which takes a round trip more: the percentile is on the edge.
    assert!(all.game.p99 <= ms(100), "{:?}, by seed {game:?}", all.game);
    assert!(all.goodput >= 17.6e6 && all.wire_per_payload <= 1.10, "{all:?}");
}

#[test]
fn two_flows_by_delay_share_evenly_with_a_short_queue() {
    for seed in SEEDS {
        for loss in [0.0, 0.01] {
            let sharing = Sharing::measure(&delay(), &narrow(loss), [seed]).unwrap();
            let least = if loss > 0.0 { 17.5e6 } else { 18.5e6 };
            assert!(sharing.together >= least, "seed {seed}: {sharing:?}");
            assert!(sharing.fairness >= 0.97, "seed {seed}: {sharing:?}");
            assert!(sharing.together_delay <= ms(10), "seed {seed}: {sharing:?}");
        }
    }
}

#[test]
fn loss_of_any_kind_does_not_collapse_delay() {
    for seed in SEEDS {
        for (loss, least) in [(0.02, 16.5e6), (0.05, 14.5e6), (0.1, 12.5e6)] {
            let sharing = Scenario::new(Workload::bulk(), narrow(loss), delay()).run([seed]).unwrap();
            assert!(sharing.goodput() >= least, "seed {seed}, {loss}: {}", sharing.goodput());
        }
    }
}

/// Varying round trips on an empty path look like a queue. 50, 10 and 20 Mbit/s.
#[test]
fn jitter_does_not_collapse_delay() {
    let jitter = LinkConfig { jitter: ms(6), ..narrow(0.01) };
    for (link, least) in [(LinkConfig::wifi(), 20e6), (LinkConfig::mobile(), 5e6), (jitter, 9e6)] {
        let report = Scenario::new(Workload::bulk(), link, delay()).run(SEEDS).unwrap();
        let lasted: Vec<_> = report.runs.iter().map(|run| (run.seed, run.lasted)).collect();
        assert!(report.goodput() >= least, "{} of {lasted:?}", report.goodput());
    }
}

/// A packet each ms, with a pause of 250 ms each second.
#[test]
fn a_path_that_pauses_costs_a_download_few_resends() {
    let trace: String =
        (0..=1000).filter(|ms| !(700..950).contains(ms)).map(|ms| format!("{ms}\n")).collect();
    let playback = Some(Playback { trace: trace.parse().unwrap(), queue: Discipline::DropTail(1000) });
    let links = [LinkConfig { playback, ..LinkConfig::with_rtt(ms(60)) }, LinkConfig::with_rtt(ms(60))];
    let download = Downloads::measure(&[delay()], None, links, Duration::from_secs(30), 1).unwrap();
    let wire = download.wire[0] as f64 / download.payload[0] as f64;
    assert!(wire <= 1.085, "{wire}");
}

#[test]
fn a_game_alone_is_no_slower_with_a_controller() {
    let link = LinkConfig { jitter: ms(6), loss: Loss::Random(0.05), ..LinkConfig::with_rtt(ms(60)) };
    for workload in [Workload::input60(), Workload::tiny60(), Workload::snap20()] {
        let run = |mode: Mode| Scenario::new(workload, link.clone(), mode).run(1..=3).unwrap().latency();
        let (free, controlled) = (run(modern("none", Congestion::None)), run(delay()));
        assert!(controlled.mean <= free.mean.mul_f64(1.01), "{}: {controlled:?}", workload.name);
        assert!(controlled.p99 <= free.p99.mul_f64(1.03), "{}: {controlled:?}", workload.name);
    }
}

/// Data that a controller holds back benefits more from the room on the path, so a download gets no repairs.
#[test]
fn repairs_cost_a_download_no_rate_and_no_queue() {
    for (loss, least, wire) in [(0.0, 17.5e6, 1.1), (0.01, 17e6, 1.11), (0.05, 15.5e6, 1.2)] {
        let mode = repairing(100).with_window(1024);
        let sharing = Sharing::measure(&mode, &narrow(loss), 1..=4).unwrap();
        assert!(sharing.goodput >= least && sharing.wire_per_payload <= wire, "{loss}: {sharing:?}");
        assert!(sharing.queue_delay <= ms(10) && sharing.together_delay <= ms(12), "{loss}: {sharing:?}");
        assert!(sharing.together >= least && sharing.fairness >= 0.9, "{loss}: {sharing:?}");
        assert!(sharing.game.p99 <= ms(130), "{loss}: {sharing:?}");
    }
}

/// Ratio of the bytes that a game sends with repairs to those without: alone, and beside an upload that fills
/// a queue of 300 ms.
#[test]
fn a_queue_filled_by_another_flow_stops_repairs() {
    let game = Workload::new("game", 900, 100, Duration::from_micros(16_667));
    let upload = Workload::new("upload", 5000, 11_008, ms(3)); // half more than the path can carry
    let bottleneck = Some(Bottleneck { rate: 20_000_000, queue: 750_000 });
    let link = LinkConfig { bottleneck, ..narrow(0.05) };
    let sent = |repairs, uploads| {
        let mut flows = vec![Flow { workload: game, mode: repairing(repairs) }];
        let upload = Flow { workload: upload, mode: Mode::fast().with_window(1024) };
        flows.extend(std::iter::repeat_n(upload, uploads));
        let reports = Scenario { flows, links: [link.clone(), link.clone()] }.run_flows(1..=3).unwrap();
        reports[0].runs.iter().map(|run| run.bytes[0]).sum::<u64>() as f64
    };
    let [alone, beside] = [0, 1].map(|uploads| sent(100, uploads) / sent(0, uploads));
    assert!(alone > 1.25 && beside < 1.12, "{alone} alone, {beside} beside an upload");
}

#[test]
fn cubic_fills_the_path_and_its_queue_and_mistakes_loss_for_congestion() {
    for seed in 1..=3 {
        let clean = Sharing::measure(&cubic(), &narrow(0.0), [seed]).unwrap();
        assert!(clean.goodput >= 18e6 && clean.wire_per_payload <= 1.15, "seed {seed}: {clean:?}");
        assert!(clean.queue_delay >= ms(15) && clean.fairness >= 0.8, "seed {seed}: {clean:?}");
        let lossy = Scenario::new(Workload::bulk(), narrow(0.01), cubic()).run([seed]).unwrap();
        assert!((1.5e6..4e6).contains(&lossy.goodput()), "seed {seed}: {}", lossy.goodput());
    }
}

#[test]
fn kcp_with_and_without_its_window_is_as_bad_as_known() {
    let fast = Mode::fast().with_window(1024);
    let mut cwnd = fast.clone();
    for end in &mut cwnd.ends {
        end.config.congestion = Congestion::Kcp;
    }
    let run = |mode: &Mode| Scenario::new(Workload::bulk(), narrow(0.01), mode.clone()).run(1..=2).unwrap();
    let (without, with) = (run(&fast), run(&cwnd));
    assert!(without.goodput() < 7e6 && without.wire_per_payload() > 3.5, "{}", without.goodput());
    assert!(with.goodput() < 1.5e6, "{}", with.goodput());
}

/// One end that sends to another over a path that may change.
fn pair_over(link: &LinkConfig, congestion: Congestion) -> Pair<KcpEnd, KcpEnd> {
    let config = Config { congestion, snd_wnd: 1024, rcv_wnd: 1024, ..configs::fast() };
    let [alice, bob] = [(); 2].map(|()| KcpEnd::new(Conv(1), &config, Drive::CHECK, Time::ZERO).unwrap());
    Pair::new(alice, bob, [1, 2].map(|stream| Link::new(link.clone(), 7, stream).unwrap()))
}

/// Sends this many bytes every 10 ms, or as many as the queue accepts. Returns the bits per second that
/// arrived.
fn run(pair: &mut Pair<KcpEnd, KcpEnd>, seconds: u64, app: Option<usize>) -> f64 {
    let (mut arrived, mut message) = (0, Vec::new());
    for _ in 0..100 * seconds {
        let now = pair.now();
        match app {
            Some(len) => drop(pair.alice.send(now, &vec![0; len])),
            None => while pair.alice.kcp().wait_snd() < 3000 && pair.alice.send(now, &[0; 1376]).is_ok() {},
        }
        pair.run_for(ms(10));
        while pair.bob.recv(&mut message) {
            arrived += 8 * message.len();
        }
    }
    arrived as f64 / seconds as f64
}

#[test]
fn the_rate_follows_a_path_that_narrows_widens_and_gets_longer() {
    let link = |rate, rtt| LinkConfig {
        bottleneck: Some(Bottleneck { rate, queue: 150_000 }),
        ..LinkConfig::with_rtt(ms(rtt))
    };
    let mut pair = pair_over(&link(20_000_000, 60), Congestion::Delay);
    run(&mut pair, 5, None);
    for (rate, rtt, settles) in [(4_000_000, 60, 5), (20_000_000, 60, 5), (20_000_000, 75, 10)] {
        pair.links[0].set(link(rate, rtt)).unwrap();
        run(&mut pair, settles, None);
        let goodput = run(&mut pair, 3, None) / rate as f64;
        assert!((0.75..=1.0).contains(&goodput), "{goodput} of {rate} at {rtt} ms");
    }
}

/// A listener that asks for a proof of the address first keeps only the first datagram until it has the proof.
#[test]
fn a_peer_that_is_not_ready_for_the_first_window_does_not_end_slow_start() {
    let (path, recovery) = (LinkConfig::with_rtt(ms(60)), Recovery::Modern(Modern::default()));
    let config = Config { congestion: Congestion::Cubic, recovery, ..Config::bulk() };
    let [alice, bob] = [(); 2].map(|()| KcpEnd::new(Conv(1), &config, Drive::CHECK, Time::ZERO).unwrap());
    let links = [1, 2].map(|stream| Link::new(path.clone(), 7, stream).unwrap());
    let mut pair = Pair::new(alice, bob, links);
    for (loss, segments) in [(0.0, 1), (1.0, 9), (0.0, 1)] {
        pair.links[0].set(LinkConfig { loss: Loss::Random(loss), ..path.clone() }).unwrap();
        (0..segments).for_each(|_| assert!(pair.alice.send(pair.now(), &[0; 1376]).is_ok()));
        pair.run_for(ms(1));
    }
    let mbit = run(&mut pair, 1, None) / 1e6;
    assert!(mbit >= 15.0, "{mbit} Mbit/s, {:?}", pair.alice.kcp().stats());
}

#[test]
fn an_application_that_sends_little_does_not_change_the_window() {
    for congestion in [Congestion::Delay, Congestion::Cubic] {
        let mut pair = pair_over(&narrow(0.0), congestion);
        run(&mut pair, 30, Some(1000));
        let cwnd = pair.alice.kcp().stats().cwnd;
        assert!((8..=24).contains(&cwnd), "{cwnd} segments");
    }
    let mut pair = pair_over(&narrow(0.0), Congestion::Delay);
    run(&mut pair, 5, None);
    run(&mut pair, 3, Some(1000)); // drain what is waiting
    let before = pair.alice.kcp().stats().cwnd;
    run(&mut pair, 30, Some(1000));
    let after = pair.alice.kcp().stats().cwnd;
    assert!(after.abs_diff(before) <= before / 10, "{before}, then {after}");
}

/// Shares of the path that a download by delay gets in a minute beside one with `other`, at 20, 10 and 8 Mbit/s, with a
/// queue of one round trip, and at 20 Mbit/s with one of two.
fn shares_beside(other: Congestion) -> Vec<f64> {
    let share = |(rate, queue)| {
        let link =
            LinkConfig { bottleneck: Some(Bottleneck { rate, queue }), ..LinkConfig::with_rtt(ms(60)) };
        let (modes, lasts) = ([delay(), modern("other", other)], Duration::from_secs(60));
        let payload = Downloads::measure(&modes, None, [link.clone(), link], lasts, 1).unwrap().payload;
        payload.first().map_or(0.0, |&own| own as f64 / payload.iter().sum::<u64>() as f64)
    };
    let paths = [(20_000_000, 150_000), (10_000_000, 75_000), (8_000_000, 60_000), (20_000_000, 300_000)];
    paths.map(share).to_vec()
}

#[test]
fn beside_cubic_a_download_by_delay_gets_about_half_of_the_path() {
    let shares = shares_beside(Congestion::Cubic);
    assert!(shares.iter().all(|share| (0.4..=0.6).contains(share)), "{shares:?}");
}

/// Traces that wander and stop: see [`Trace::wandering`].
#[test]
fn a_path_whose_rate_varies_is_used_with_a_short_queue() {
    for seed in 1..=3 {
        let trace = Trace::wandering(seed, 60, 1000);
        let carries = trace.opportunities(Time::from_millis(60_000)) * OPPORTUNITY as u64;
        for queue in [Discipline::DropTail(100), Discipline::CoDel(1000)] {
            let playback = Some(Playback { trace: trace.clone(), queue });
            let links =
                [LinkConfig { playback, ..LinkConfig::with_rtt(ms(60)) }, LinkConfig::with_rtt(ms(60))];
            let game = Mode::modern(Modern::default());
            let run = Downloads::measure(&[delay()], Some(&game), links, Duration::from_secs(60), 1).unwrap();
            let used = run.payload[0] as f64 / carries as f64;
            let wire = run.wire[0] as f64 / run.payload[0] as f64;
            assert!(used >= 0.85 && wire <= 1.12, "seed {seed}, {queue:?}: {used}, {wire}");
            assert!(run.game.p50 <= ms(80), "seed {seed}, {queue:?}: {:?}", run.game);
        }
    }
}
