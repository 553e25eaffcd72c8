//! Reads event logs and compares them with the counters.

use serde_json::Value;
use std::io;
use whitewater::kcp::Stats;

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

/// Checks that the log agrees with the counters.
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
    // Everything that was sent has been acknowledged exactly once.
    assert_eq!(sum(lines, "ack", "n"), sum(lines, "send", "n"));
    assert_eq!(sum(lines, "ack", "bytes"), sum(lines, "send", "bytes"));
    // Only data, resends, repairs, acknowledgements and probes are sent.
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
