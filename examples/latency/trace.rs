//! Reads an event log; see docs/EVENTS.md.

use serde_json::Value;

/// The parts of a log that a picture needs. Times are in seconds since its first line; segment numbers count from the
/// first.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Time, first number, count.
    pub(crate) sends: Vec<(f64, f64, f64)>,
    /// Time, number, cause (an index of [`CAUSES`]).
    pub(crate) resends: Vec<(f64, f64, usize)>,
    /// Time, oldest unacknowledged number.
    pub(crate) acks: Vec<(f64, f64)>,
    /// Time; round trip, smoothed round trip and timeout, ms.
    pub(crate) rtts: Vec<(f64, [f64; 3])>,
    /// Time, congestion window.
    pub(crate) cwnds: Vec<(f64, f64)>,
    /// Time; segments waiting, in flight, unread, and out of order.
    pub(crate) queues: Vec<(f64, [f64; 4])>,
    /// Number of missing events.
    pub(crate) lost: u64,
    /// Time of the last line.
    pub(crate) end: f64,
}

/// Why a segment is sent again.
pub(crate) const CAUSES: [&str; 4] = ["timeout", "silence", "fastack", "overtaken"];

impl Trace {
    /// Reads a log of bare KCP, or the lines of one channel of a session.
    pub(crate) fn parse(text: &str, channel: u64) -> Result<Self, String> {
        let (mut trace, mut zero, mut first) = (Self::default(), None, None);
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |what: &str| format!("line {number}: {what}");
            let line: Value = serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
            let at = line.get("t").and_then(Value::as_u64).ok_or_else(|| wrong("no time"))?;
            if let Some(version) = line.get("version").and_then(Value::as_u64)
                && version != u64::from(whitewater::events::VERSION)
            {
                return Err(wrong(&format!("version {version} is unknown")));
            }
            let at = at.saturating_sub(*zero.get_or_insert(at)) as f64 / 1e6;
            if line.get("channel").is_some_and(|value| value.as_u64() != Some(channel)) {
                continue;
            }
            trace.end = trace.end.max(at);
            let is_of_session = line.get("end").is_some() || line.get("messages").is_some();
            if !is_of_session {
                trace.take(at, &line, &mut first).ok_or_else(|| wrong("a field is missing"))?;
            }
        }
        if trace.sends.is_empty() && trace.acks.is_empty() {
            return Err(format!("the log has no segments of channel {channel}"));
        }
        Ok(trace)
    }

    /// `None`: a field is missing.
    fn take(&mut self, at: f64, line: &Value, first: &mut Option<u32>) -> Option<()> {
        let number = |field: &str| line.get(field)?.as_f64();
        let ms = |field: &str| Some(number(field)? / 1e3);
        // Numbers wrap: only their distance from the first counts.
        let mut segment = |field: &str| {
            let sn = u32::try_from(line.get(field)?.as_u64()?).ok()?;
            Some(f64::from(sn.wrapping_sub(*first.get_or_insert(sn)).cast_signed()))
        };
        match line.get("e")?.as_str()? {
            "start" if line.get("conv").is_some() => drop(segment("snd_una")?),
            "send" => self.sends.push((at, segment("sn")?, number("n")?)),
            "resend" => {
                let cause = line.get("cause")?.as_str()?;
                let cause = CAUSES.iter().position(|known| *known == cause)?;
                self.resends.push((at, segment("sn")?, cause));
            }
            "ack" => self.acks.push((at, segment("una")?)),
            // The line of a whole session has no sample.
            "rtt" if line.get("rtt").is_some() => {
                self.rtts.push((at, [ms("rtt")?, ms("srtt")?, ms("rto")?]));
            }
            "window" => self.cwnds.push((at, number("cwnd")?)),
            "queue" => {
                let queues = ["snd_queue", "in_flight", "rcv_queue", "rcv_buf"].map(number);
                let [Some(waiting), Some(in_flight), Some(unread), Some(parked)] = queues else {
                    return None;
                };
                self.queues.push((at, [waiting, in_flight, unread, parked]));
            }
            "lost" => self.lost += line.get("n")?.as_u64()?,
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_from_the_first_and_other_channels_are_left_out() {
        let log = r#"{"t":5,"e":"start","version":1,"end":"client","channels":2}
{"t":5,"channel":1,"e":"start","version":1,"conv":8,"snd_una":4294967295,"snd_nxt":4294967295,"rcv_nxt":0,"mss":1000}
{"t":1005,"channel":1,"e":"send","sn":4294967295,"n":3,"bytes":30}
{"t":1005,"channel":0,"e":"send","sn":7,"n":1,"bytes":30}
{"t":1005,"e":"rtt","srtt":5,"rttvar":1}
{"t":1005,"e":"queue","segments":5,"datagrams":1,"messages":1}
{"t":2005,"channel":1,"e":"resend","sn":1,"bytes":10,"xmit":2,"cause":"overtaken"}
{"t":3005,"channel":1,"e":"ack","una":2,"n":3,"bytes":30}
{"t":3005,"channel":1,"e":"something new"}"#;
        let trace = Trace::parse(log, 1).unwrap();
        assert_eq!(trace.sends, [(0.001, 0.0, 3.0)]);
        assert_eq!(trace.resends, [(0.002, 2.0, 3)]);
        assert_eq!((trace.acks, trace.end), (vec![(0.003, 3.0)], 0.003));
        assert!(trace.rtts.is_empty() && trace.queues.is_empty());
    }

    #[test]
    fn what_is_no_log_is_said_with_its_line() {
        for (log, wrong) in [
            ("", "no segments"),
            ("{\"t\":1,\"e\":\"x\"}\nno", "line 2: "),
            ("{\"e\":\"send\"}", "line 1: no time"),
            ("{\"t\":1,\"e\":\"send\",\"sn\":1}", "line 1: a field is missing"),
            ("{\"t\":1,\"e\":\"start\",\"version\":99}", "version 99 is unknown"),
        ] {
            let error = Trace::parse(log, 0).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
