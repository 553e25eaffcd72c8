//! Logs of events, read back and held against what was counted.

use crate::common::{CONV, numbered};
use serde_json::Value;
use std::io;
use std::time::Duration;
use whitewater::sim::{Drive, KcpEnd, Link, LinkConfig, Pair};
use whitewater::{Config, Conv, Stats, Time};

pub(crate) type Kcps = Pair<KcpEnd, KcpEnd>;

/// Two control blocks that log so many events each.
pub(crate) fn logging_pair(config: &Config, link: &LinkConfig, seed: u64, most: usize) -> Kcps {
    let end = || {
        let mut end = KcpEnd::new(Conv(CONV), config, Drive::CHECK, Time::ZERO).unwrap();
        end.kcp_mut().log_events(Time::ZERO, most);
        end
    };
    let links = [1, 2].map(|stream| Link::new(link.clone(), seed, stream).unwrap());
    Pair::new(end(), end(), links)
}

/// `count` messages from alice to bob, 60 a second, and as much again at once at the end.
pub(crate) fn talk(pair: &mut Kcps, count: usize) {
    let mut message = Vec::new();
    for number in 0..2 * count {
        while pair.alice.send(pair.now(), &numbered(number, 100)).is_err() {
            pair.run_for(Duration::from_millis(10));
        }
        if number < count {
            pair.run_for(Duration::from_micros(16_667));
        }
        while pair.bob.recv(&mut message) {}
    }
    for _ in 0..3000 {
        pair.run_for(Duration::from_millis(10));
        while pair.bob.recv(&mut message) {}
    }
    assert_eq!(pair.alice.kcp().wait_snd(), 0, "all has arrived");
}

/// The lines of a log.
pub(crate) fn lines(write: impl FnOnce(&mut Vec<u8>) -> io::Result<usize>) -> Vec<Value> {
    let mut text = Vec::new();
    let count = write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert_eq!(lines.len(), count);
    lines
}

pub(crate) fn number(line: &Value, field: &str) -> u64 {
    line[field].as_u64().unwrap_or_else(|| panic!("no {field} in {line}"))
}

pub(crate) fn of<'a>(lines: &'a [Value], kind: &str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["e"] == kind)
}

pub(crate) fn sum(lines: &[Value], kind: &str, field: &str) -> u64 {
    of(lines, kind).map(|line| number(line, field)).sum()
}

/// What a log says has to be what was counted.
pub(crate) fn check(lines: &[Value], stats: &Stats) {
    assert_eq!(lines[0]["e"], "start");
    assert_eq!(number(&lines[0], "version"), u64::from(whitewater::events::VERSION));
    assert!(lines.windows(2).all(|two| number(&two[0], "t") <= number(&two[1], "t")), "in order of time");
    let resends = |causes: [&str; 2]| {
        let is_one = |line: &&Value| causes.contains(&line["cause"].as_str().unwrap());
        u32::try_from(of(lines, "resend").filter(is_one).count()).unwrap()
    };
    assert_eq!(resends(["timeout", "silence"]), stats.resends_timeout);
    assert_eq!(resends(["fastack", "overtaken"]), stats.resends_fast);
    assert_eq!(of(lines, "resend").count() as u64, u64::from(stats.resends_timeout + stats.resends_fast));
    assert_eq!(sum(lines, "send", "n"), u64::from(stats.snd_nxt.0));
    assert_eq!(sum(lines, "out", "bytes"), stats.bytes_sent);
    assert_eq!(sum(lines, "out", "segments"), stats.segments_sent);
    assert_eq!(sum(lines, "in", "bytes"), stats.bytes_received);
    assert_eq!(sum(lines, "in", "segments"), stats.segments_received);
    assert_eq!(sum(lines, "recv", "n"), u64::from(stats.rcv_nxt.0));
    assert_eq!(sum(lines, "duplicate", "n"), u64::from(stats.duplicates));
    assert_eq!(sum(lines, "rebuilt", "n"), u64::from(stats.rebuilt));
    assert_eq!(sum(lines, "repair", "n"), u64::from(stats.repairs_sent));
    assert_eq!(sum(lines, "reject", "n"), stats.rejected.total());
    // All that was sent has been acknowledged, once.
    assert_eq!(sum(lines, "ack", "n"), sum(lines, "send", "n"));
    assert_eq!(sum(lines, "ack", "bytes"), sum(lines, "send", "bytes"));
    // What leaves is data, resends, repairs, acknowledgements and probes, and nothing else.
    let probes = of(lines, "probe")
        .map(|line| u64::from(line["ask"].as_bool().unwrap()) + u64::from(line["tell"].as_bool().unwrap()));
    let parts = sum(lines, "send", "n")
        + of(lines, "resend").count() as u64
        + sum(lines, "repair", "n")
        + sum(lines, "acks", "n")
        + probes.sum::<u64>();
    assert_eq!(parts, stats.segments_sent);
    if let Some(last) = of(lines, "rtt").last() {
        assert_eq!(u128::from(number(last, "srtt")), stats.srtt.as_micros());
        assert_eq!(u128::from(number(last, "rttvar")), stats.rttvar.as_micros());
        assert_eq!(u128::from(number(last, "rto")), stats.rto.as_micros());
    }
    let window = of(lines, "window").last().unwrap();
    assert_eq!(number(window, "cwnd"), u64::from(stats.cwnd));
    assert_eq!(number(window, "rmt_wnd"), u64::from(stats.rmt_wnd));
    let queue = of(lines, "queue").last().unwrap();
    assert_eq!((number(queue, "snd_queue"), number(queue, "in_flight")), (0, 0));
}
