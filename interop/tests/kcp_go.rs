//! kcp-go itself as bare KCP, through go/peer.go.

use interop::beat::{self, BEATS, LOAD, Sender};
use interop::cases;
use interop::exchange::{Case, WINDOW};
use interop::kcp_go::{self, Knobs};
use whitewater::kcp::{Config, Recovery};

#[test]
fn our_socket_has_its_bytes_echoed_by_kcp_go() {
    if !kcp_go::is_there() {
        return;
    }
    cases::run(&Case::all(&[true]), |case| {
        let knobs = Knobs::of(&Config { snd_wnd: WINDOW, ..Config::default() });
        let (_server, address) = kcp_go::echo(knobs);
        case.we_ask(address)
    });
}

/// At most 1 % of the segments are resent, or as many as classic recovery resends with the same settings. kcp-go
/// acknowledges at intervals, and only the last segment of an interval by number, so a segment that waits for the
/// interval looks lost.
///
/// Each conversation of ours runs four times, all at once, because the phase of the interval matters. A machine that
/// stalls for a while only adds resends, so one of the four may be worse, and one retry is enough.
#[test]
fn hardly_anything_is_sent_again_to_a_beat_of_kcp_go_without_losses() {
    if !kcp_go::is_there() {
        return;
    }
    let first = too_many();
    let second = if first.is_empty() { Vec::new() } else { too_many() };
    assert!(second.is_empty(), "(config, beat, resends, most) of both attempts: {first:#?} {second:#?}");
}

/// The cells above their bound.
fn too_many() -> Vec<String> {
    let turbo = Config::classic().nodelay(1, 10, 2, true);
    let configs = [("default", Config::classic()), ("turbo", turbo)];
    let mut senders = vec![Sender::KcpGo(turbo)];
    for (_, config) in configs {
        senders.push(Sender::Ours(config));
        senders.extend([Sender::Ours(Config { recovery: Recovery::default(), ..config }); RUNS]);
    }
    let resends = beat::resends(&senders);
    println!("beats {BEATS:?}: kcp-go's own {:?}", resends[0]);
    let mut failed = Vec::new();
    let mut classics = Vec::new();
    for ((name, _), runs) in configs.iter().zip(resends[1..].chunks(1 + RUNS)) {
        let (classic, runs) = runs.split_first().unwrap();
        println!("{name}: classic {classic:?}, by time {runs:?}");
        for (at, beat) in BEATS.iter().enumerate() {
            let mut counts: Vec<_> = runs.iter().map(|beats| beats[at]).collect();
            counts.sort_unstable();
            let (most, count) = (classic[at].max(LOAD.count as usize / 100), counts[RUNS - 2]);
            if count > most {
                failed.push(format!("{name}, {beat} ms, {count}, {most}"));
            }
        }
        classics.push(*classic);
    }
    assert!(classics[1][2] > LOAD.count as usize / 4, "this measures nothing: {classics:?}");
    failed
}

const RUNS: usize = 4;
