//! Latency, bytes and resends of every workload over every link in every mode of KCP, as checked-in tables,
//! so a change of any figure shows as a diff. All in virtual time: the same seeds give the same figures.
//!
//! Accept an intended change with `INSTA_UPDATE=always cargo test --release --test loss_table`.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use insta::assert_snapshot;
use std::time::Duration;
use whitewater::channel::Resend;
use whitewater::kcp::Modern;
use whitewater::{Channel, ChannelConfig, Repairs};
use whitewater_sim::scenario::{ChannelMode, Family, Latency, Mode, Report, Scenario, Workload};
use whitewater_sim::{Bottleneck, LinkConfig, Loss};

/// KCP's modes and ours.
fn modes() -> [Mode; 8] {
    let [default, normal, fast, turbo, flush] = Mode::baselines();
    let [by_time, auto, repairs] = [Repairs::Off, Repairs::Auto, Repairs::Budget(30)].map(ours);
    [default, normal, fast, turbo, flush, by_time, auto, repairs]
}

fn ours(repairs: Repairs) -> Mode {
    Mode::modern(Modern { repairs, ..Modern::default() })
}

/// A channel as the simulator has it: messages in packets, in order.
fn messages() -> ChannelConfig {
    Channel::<[u8]>::ordered(0).config()
}

/// The links of a game, worst last.
fn links() -> Vec<(&'static str, LinkConfig)> {
    let path = LinkConfig { jitter: ms(6), ..LinkConfig::with_rtt(ms(60)) };
    let lossy = |loss| LinkConfig { loss, ..path.clone() };
    let bursts = Loss::Bursts { good: ms(1900), bad: ms(100), in_good: 0.005, in_bad: 0.8 };
    vec![
        ("lan", LinkConfig::lan()),
        ("wifi", LinkConfig::wifi()),
        ("mobile", LinkConfig::mobile()),
        ("congested", LinkConfig::congested()),
        ("60 ms, 1 %", lossy(Loss::Random(0.01))),
        ("60 ms, 10 %", lossy(Loss::Random(0.1))),
        ("60 ms, bursts", lossy(bursts)),
        ("60 ms, reordered", LinkConfig { jitter: ms(24), in_order: false, duplicate: 0.02, ..path }),
        (
            "150 ms, 20 %",
            LinkConfig { loss: Loss::Random(0.2), jitter: ms(15), ..LinkConfig::with_rtt(ms(150)) },
        ),
    ]
}

#[test]
fn input_60_hz() {
    assert_snapshot!(table(Workload::input60(), &links(), modes()));
}

/// One message per frame over a reliable ordered channel, compared with KCP's presets. What is not presumed
/// lost is resent after 100 ms or after 1.25 round trips; `timer only` does not detect losses. Round trips of
/// packets include the wait for the peer's next packet. Packets leave at least 16 ms apart, or 5 ms where the
/// name says so: then a message need not wait after a packet of resends.
#[test]
fn messages_60_hz() {
    let channel = messages();
    let [.., fast, turbo, flush] = Mode::baselines();
    let modes = [
        fast,
        turbo,
        flush,
        ours(Repairs::Off),
        ours(Repairs::Auto),
        Mode::messages("timer only", ChannelConfig { resend_lost: false, ..channel }),
        Mode::messages("100 ms", channel),
        Mode::messages("125 % rtt", ChannelConfig { resend: Resend::Rtt(125), ..channel }),
        close_messages(),
    ];
    assert_snapshot!(table(Workload::input60(), &links(), modes));
}

/// Packets may follow each other after 5 ms.
fn close_messages() -> Mode {
    let mut mode = Mode::messages("5 ms apart", messages());
    for ChannelMode { spacing, .. } in mode.ends.iter_mut().flat_map(|end| &mut end.channel) {
        *spacing = ms(5);
    }
    mode
}

#[test]
fn the_book_compares_channels_with_kcp_by_these_figures() {
    let page = include_str!("../docs/LATENCY.md");
    let (_, link) = links().into_iter().find(|(name, _)| *name == "60 ms, 10 %").unwrap();
    let [.., fast, _, flush] = Mode::baselines();
    for (name, mode) in [
        ("KCP fast", fast),
        ("KCP turbo + flush", flush),
        ("KCP by time, without repairs", ours(Repairs::Off)),
        ("KCP by default", ours(Repairs::Auto)),
        ("a channel, packets 16 ms apart or more", Mode::messages("", messages())),
        ("a channel, packets 5 ms apart or more", close_messages()),
    ] {
        let report = Scenario::new(Workload::input60(), link.clone(), mode).run(SEEDS).unwrap();
        let Latency { mean, p50, p99, .. } = report.latency();
        let [mean, p50, p99] = [mean, p50, p99].map(|latency| latency.as_secs_f64() * 1e3);
        let kb = report.bytes() as f64 / 1e3 / report.runs.len() as f64;
        let row = format!("| {name} | {mean:.1} | {p50:.1} | {p99:.1} | {kb:.0} |");
        assert!(page.contains(&row), "docs/LATENCY.md has not {row}");
    }
}

#[test]
fn under_heavy_loss_a_channel_is_at_most_a_tenth_slower_than_kcp_fast_with_fewer_bytes() {
    let (_, link) = links().into_iter().find(|(name, _)| *name == "60 ms, 10 %").unwrap();
    let run = |mode| Scenario::new(Workload::input60(), link.clone(), mode).run(1..=10).unwrap();
    let [fast, timer, channel] = [
        Mode::fast(),
        Mode::messages("timer", ChannelConfig { resend_lost: false, ..messages() }),
        Mode::messages("channel", messages()),
    ]
    .map(run);
    let [kcp, by_timer, by_loss] =
        [&fast, &timer, &channel].map(|report| report.latency().mean.as_secs_f64() * 1e3);
    assert!(by_loss < 1.1 * kcp && by_loss < 0.9 * by_timer, "{by_loss} ms; KCP {kcp}, timer {by_timer}");
    let [kcp, by_timer, by_loss] = [&fast, &timer, &channel].map(|report| report.bytes() as f64);
    assert!(by_loss < 0.9 * kcp && by_loss < 1.01 * by_timer, "{by_loss} bytes; {kcp}, {by_timer}");
}

#[test]
fn tiny_60_hz() {
    assert_snapshot!(table(Workload::tiny60(), &links(), modes()));
}

#[test]
fn snapshots_20_hz() {
    assert_snapshot!(table(Workload::snap20(), &links(), modes()));
}

#[test]
fn chunks_of_32_kib() {
    assert_snapshot!(table(Workload::chunk32k(), &links(), modes()));
}

#[test]
fn sparse_1_hz() {
    assert_snapshot!(table(Workload::sparse1(), &links(), modes()));
}

#[test]
fn duplex() {
    assert_snapshot!(table(Workload::duplex(), &links(), modes()));
}

#[test]
fn reopened_window() {
    assert_snapshot!(table(Workload::reopen(), &links(), modes()));
}

/// 20 Mbit/s with a queue of one round trip of 60 ms, and of five; with windows larger than that.
#[test]
fn bulk() {
    let narrow = |queue, loss| LinkConfig {
        bottleneck: Some(Bottleneck { rate: 20_000_000, queue }),
        loss: Loss::Random(loss),
        ..LinkConfig::with_rtt(ms(60))
    };
    let links = [
        ("20 Mbit/s, 150 kB", narrow(150_000, 0.0)),
        ("20 Mbit/s, 150 kB, 1 %", narrow(150_000, 0.01)),
        ("20 Mbit/s, 750 kB", narrow(750_000, 0.0)),
        ("20 Mbit/s, 750 kB, 1 %", narrow(750_000, 0.01)),
    ];
    let modes = modes().map(|mode| mode.with_window(1024));
    assert_snapshot!(table(Workload::bulk(), &links, modes));
}

/// KCP's test.cpp. Its own README gives 156 and 571 ms for normal, 138 and 392 for fast.
#[test]
fn upstream_echo() {
    let mut table = String::from(HEAD);
    for mode in modes() {
        let report = Scenario::upstream(mode.clone()).run(1..=20).unwrap();
        table += &row("60 to 125 ms, 10 %", &mode, &report);
    }
    assert_snapshot!(table);
}

/// The most telling cells, with more seeds than elsewhere, and KCP's test.cpp with a hundred.
#[test]
fn cells_to_watch() {
    let cells: Vec<_> =
        [Family::grid72(), Family::ge()].into_iter().flat_map(|family| family.cells).collect();
    let mut table = String::from(HEAD);
    for name in WATCHED {
        let cell = cells.iter().find(|cell| cell.name == *name).unwrap();
        for mode in modes() {
            let report = cell.scenario(&mode).run(1..=10).unwrap();
            table += &row(name.split(" of ").next().unwrap_or(name), &mode, &report);
        }
    }
    for mode in modes() {
        let report = Scenario::upstream(mode.clone()).run(1..=100).unwrap();
        table += &row("upstream", &mode, &report);
    }
    assert_snapshot!(table);
}

fn table<const MODES: usize>(
    workload: Workload,
    links: &[(&str, LinkConfig)],
    modes: [Mode; MODES],
) -> String {
    let mut table = String::from(HEAD);
    for (name, link) in links {
        for mode in &modes {
            let report = Scenario::new(workload, link.clone(), mode.clone()).run(SEEDS).unwrap();
            table += &row(name, mode, &report);
        }
    }
    table
}

fn row(link: &str, mode: &Mode, report: &Report) -> String {
    let Latency { mean, p50, p95, p99, p999, mean_max, .. } = report.latency();
    let latencies = [mean, p50, p95, p99, p999, mean_max]
        .map(|latency| format!("{:>9.1}", latency.as_secs_f64() * 1e3))
        .join(" ");
    let kb = report.bytes() as f64 / 1e3 / report.runs.len() as f64;
    let lost = report.sent - report.delivered;
    format!("{link:22} {:13}{latencies} {kb:>8.1} {:>7} {lost:>7}\n", mode.name, report.resends)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Latencies in ms, pooled over the seeds; the mean over the seeds of the longest of each; kB on the wire per seed;
/// segments resent and messages that never arrived, over all seeds.
const HEAD: &str = "link                   mode              mean       p50       p95       p99     p99.9  mean max       kB resends undelivered\n";

const WATCHED: &[&str] = &[
    "input60, 60 ms, 5 %",
    "input60, 60 ms, 10 %",
    "input60, 150 ms, 10 %",
    "input60, 20 ms, 20 %",
    "input60, 60 ms, bursts of 100 ms",
    "snap20, 60 ms, 5 %",
    "snap20, 150 ms, 10 %",
    "chunk32k, 60 ms, 5 %",
    "chunk32k, 20 ms, 10 %",
    "chunk32k, 150 ms, 1 %",
    "sparse1, 60 ms, 10 %",
];

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;
