//! ikcp.c's interface on top of `Kcp`, as thin as possible. If a call cannot be translated, it reports the
//! rule in `deviations` that explains why.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use whitewater::Time;
use whitewater::kcp::wire::{HEADER_LEN, conv_of};
use whitewater::kcp::{
    self, Config, Congestion, Conv, InputError, Kcp, Millis, RecvError, Rejected, Sn, Stats,
};
use whitewater::machine::Output;

use super::deviations::Rule;
use super::rewrite::{bad_segment, believable, without_end};
use super::trace::Op;

/// Our time at which the trace's clock shows 0. Our wire time equals the trace's, and the trace's clock may
/// jump back before its start.
const EPOCH: Time = Time::from_millis(1 << 40);

/// Where the RTO of a segment stops growing, which becomes visible after a sleep of that length.
const BACK_OFF_MAX: Duration = Duration::from_millis(1 << 30);

/// A control block of a trace.
pub(crate) struct Block {
    kcp: Kcp<Emitted>,
    config: Config,
    conv: Conv,
    snd: Sn,
    rcv: Sn,
    /// The time of the last `update`.
    current: Time,
    updated: bool,
    /// Whether this call uses the variant that does not copy; every second one does.
    by_bytes: bool,
    /// Settings that ikcp.c keeps as given and the adapter had to limit.
    bounded: BTreeSet<&'static str>,
}

/// The result of a call in ikcp.c's terms, and the rules that applied on the way.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) ret: Option<i64>,
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) rules: Vec<Rule>,
    /// For `check`, whose answer is free: why it is wrong nevertheless.
    pub(crate) broken: Option<String>,
}

impl Block {
    pub(crate) fn create(conv: u32) -> Self {
        let config =
            Config { rcv_mtu: 65_507, snd_queue: 1 << 24, snd_queue_bytes: 1 << 30, ..Config::classic() };
        let kcp =
            Kcp::new(Conv(conv), &config, Emitted::default()).expect("ikcp_create's values are in range");
        Self {
            kcp,
            config,
            conv: Conv(conv),
            snd: Sn(0),
            rcv: Sn(0),
            current: EPOCH,
            updated: false,
            by_bytes: false,
            bounded: BTreeSet::new(),
        }
    }

    pub(crate) fn call(&mut self, op: &Op) -> Answer {
        self.by_bytes = !self.by_bytes;
        let before = self.counters();
        let mut answer = self.dispatch(op);
        let after = self.counters();
        let moved = before.into_iter().zip(after).filter(|(before, after)| before != after);
        answer.rules.extend(moved.map(|((rule, _), _)| rule));
        answer
    }

    /// The datagrams emitted since the previous call.
    pub(crate) fn take_emitted(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.kcp.output_mut().0)
    }

    /// A field of `struct IKCPCB`; `None` if it cannot be compared.
    pub(crate) fn state(&self, field: &str) -> Option<i64> {
        match field {
            _ if self.bounded.contains(field) => None,
            "current" => Some(i64::from(self.current.wire().0)),
            "state" => Some(if self.kcp.is_dead() { i64::from(u32::MAX) } else { 0 }),
            _ => self.kcp.trace_state(field),
        }
    }

    fn dispatch(&mut self, op: &Op) -> Answer {
        match op {
            Op::Create { .. } => Answer::default(), // the caller has created the block
            Op::Nodelay { nodelay, interval, resend, nc } => self.nodelay(*nodelay, *interval, *resend, *nc),
            Op::Wndsize { snd, rcv } => self.wndsize(*snd, *rcv),
            Op::Setmtu { mtu } => self.setmtu(*mtu),
            Op::Set { field, val } => self.set(field, *val),
            Op::Poke { field, val } => self.poke(field, *val),
            Op::Send { message } => self.send(message),
            Op::Input { datagram } => self.input(datagram),
            Op::InputNumber { .. } => unreachable!("the replay looks the datagram up"),
            Op::Update { now } => self.update(*now),
            Op::Flush => self.flush(),
            Op::Check { now } => self.check(*now),
            Op::Waitsnd => Answer::ret(int(self.kcp.wait_snd())),
            Op::Peeksize => Answer::ret(self.kcp.peek_size().map_or(-1, int)),
            Op::Recv { len } => self.recv(*len),
            Op::Getconv { bytes } => getconv(bytes),
        }
    }

    fn nodelay(&mut self, nodelay: i64, interval: i64, resend: i64, nc: i64) -> Answer {
        let mut config = self.config;
        let mut knobs = Knobs::new(&mut self.bounded);
        if nodelay >= 0 {
            config.nodelay = knobs.hold("nodelay", nodelay, 2);
            config.min_rto = None;
            knobs.bounded.remove("rx_minrto");
        }
        if interval >= 0 {
            config.interval = knobs.bound(interval, 10, 5000);
        }
        if resend >= 0 {
            config.fast_resend = knobs.hold("fastresend", resend, u16::MAX);
        }
        if nc >= 0 {
            let nc = knobs.hold("nocwnd", nc, 1) == 1;
            config.congestion = if nc { Congestion::None } else { Congestion::Kcp };
        }
        let negative = [nodelay, interval, resend, nc].into_iter().any(i64::is_negative);
        let rules = knobs.rules(negative);
        self.configure(config);
        Answer { ret: Some(0), rules, ..Answer::default() }
    }

    fn wndsize(&mut self, snd: i64, rcv: i64) -> Answer {
        let mut config = self.config;
        let mut knobs = Knobs::new(&mut self.bounded);
        if snd > 0 {
            config.snd_wnd = knobs.hold("snd_wnd", snd, u16::MAX);
        }
        if rcv > 65_535 {
            return Answer::met(Rule::ReceiveWindow16Bit);
        }
        if rcv > 0 {
            config.rcv_wnd = knobs.bound(rcv, 128, u16::MAX);
        }
        let rules = knobs.rules(snd <= 0 || rcv <= 0);
        self.configure(config);
        Answer { ret: Some(0), rules, ..Answer::default() }
    }

    fn setmtu(&mut self, mtu: i64) -> Answer {
        let config = Config { mtu: u16::try_from(mtu).unwrap_or(0), ..self.config };
        if self.kcp.configure(&config).is_err() {
            return Answer::ret(-1);
        }
        self.config = config;
        Answer::ret(0)
    }

    fn set(&mut self, field: &str, val: i64) -> Answer {
        let mut config = self.config;
        let mut knobs = Knobs::new(&mut self.bounded);
        match field {
            "stream" => config.stream = knobs.hold("stream", val, 1) == 1,
            "rx_minrto" => config.min_rto = Some(knobs.hold("rx_minrto", val, 60_000)),
            "fastlimit" => config.fast_limit = knobs.hold("fastlimit", val, u16::MAX),
            "dead_link" => config.dead_link = knobs.hold("dead_link", val, u16::MAX),
            other => panic!("no such knob: {other}"),
        }
        let rules = knobs.rules(false);
        self.configure(config);
        Answer { rules, ..Answer::default() }
    }

    /// # Panics
    ///
    /// If a setting within the documented range is refused.
    fn configure(&mut self, config: Config) {
        self.kcp.configure(&config).expect("the adapter bounds every knob");
        self.config = config;
    }

    /// Pokes come before any traffic, so a new control block with the same settings is equivalent.
    fn poke(&mut self, field: &str, val: u32) -> Answer {
        assert!(!self.updated && self.kcp.is_idle(), "poke {field} after traffic");
        match field {
            "snd_una" | "snd_nxt" => self.snd = Sn(val),
            "rcv_nxt" => self.rcv = Sn(val),
            other => panic!("no such number: {other}"),
        }
        self.kcp = Kcp::starting_at(self.conv, &self.config, Emitted::default(), self.snd, self.rcv)
            .expect("a config that was taken before");
        Answer::default()
    }

    /// A segment that was not copied cannot be filled up, so streams use the other variant.
    fn send(&mut self, message: &[u8]) -> Answer {
        let taken = if self.by_bytes && !self.config.stream {
            self.kcp.send_bytes(Bytes::copy_from_slice(message))
        } else {
            self.kcp.send(message)
        };
        Answer::ret(match taken {
            Ok(taken) => int(taken),
            Err(kcp::SendError::TooLong { .. }) => -2,
            Err(error) => panic!("send: {error}"),
        })
    }

    fn input(&mut self, datagram: &[u8]) -> Answer {
        let now = self.current.wire();
        let mut rules = Vec::new();
        let mut datagram = Cow::from(datagram);
        let mut result = self.offer(&datagram);
        let refused = match result {
            Err(InputError::Una { .. }) => Some(Rule::UnaAhead),
            Err(InputError::AckUnsent { .. }) => Some(Rule::AckUnsent),
            Err(InputError::Fragment { .. }) => Some(Rule::FragmentOfOld),
            _ => None,
        };
        if let Some(rule) = refused {
            rules.push(rule);
            datagram = believable(&datagram, &self.kcp.stats(), now).into();
            result = self.offer(&datagram);
        }
        let ret = match result {
            Ok(()) => 0,
            Err(InputError::TooShort { .. } | InputError::Conv { .. }) => -1,
            Err(InputError::Length { .. }) => -2,
            Err(InputError::Command { .. }) => -3,
            Err(InputError::Fragment { .. }) => return Answer::met(Rule::FragmentTooHigh),
            Err(error) => panic!("input: {error}"),
        };
        if let Some(at @ 1..) = bad_segment(&datagram, self.conv) {
            match without_end(&datagram[..at], self.kcp.stats().snd_una, now) {
                Some(good) => {
                    rules.push(Rule::LaterSegmentBad);
                    self.offer(&good).expect("segments that were found good");
                }
                None => rules.push(Rule::LaterSegmentBadAfterAck),
            }
        }
        Answer { ret: Some(ret), rules, ..Answer::default() }
    }

    /// Calls `Kcp::input`, and checks that nothing changes if it refuses.
    fn offer(&mut self, datagram: &[u8]) -> Result<(), InputError> {
        let before = self.all_but_rejected();
        let result = if self.by_bytes {
            self.kcp.input_bytes(self.current, &Bytes::copy_from_slice(datagram))
        } else {
            self.kcp.input(self.current, datagram)
        };
        assert!(result.is_ok() || self.all_but_rejected() == before, "{result:?}, and something changed");
        result
    }

    fn all_but_rejected(&self) -> (Stats, [Option<i64>; 3]) {
        let mut stats = self.kcp.stats();
        stats.rejected = Rejected::default();
        (stats, ["ackcount", "probe", "incr"].map(|field| self.kcp.trace_state(field)))
    }

    fn update(&mut self, now: u32) -> Answer {
        let (was, now) = (self.current, self.at(now));
        let (late, woken) = (self.kcp.check(was), self.kcp.check(now));
        let in_flight = self.kcp.stats().in_flight > 0;
        let probe_wait = self.kcp.trace_state("probe_wait");
        self.current = now;
        self.kcp.update(now);
        let emits = !self.kcp.output().0.is_empty();
        let works = emits || self.kcp.trace_state("probe_wait") > probe_wait;
        let rules = if emits && in_flight && now.since(was) >= BACK_OFF_MAX {
            vec![Rule::BackoffCap] // in ikcp.c the RTO keeps growing, and nothing is due yet
        } else {
            Vec::new()
        };
        let broken = if works && woken != Some(now) {
            Some(format!("update at {now} works, but check said {woken:?}"))
        } else if works && self.updated && now >= was && late.is_none_or(|at| at > now) {
            Some(format!("update at {now} works, but check at {was} said {late:?}"))
        } else if self.kcp.check(now).is_some_and(|at| at <= now) {
            Some(format!("check right after update at {now} wants another"))
        } else {
            None
        };
        self.updated = true;
        Answer { rules, broken, ..Answer::default() }
    }

    fn flush(&mut self) -> Answer {
        if !self.updated {
            return Answer::met(Rule::FlushBeforeUpdate);
        }
        self.kcp.flush(self.current);
        Answer::default()
    }

    /// Any answer that is not in the past is fine here: `update` checks whether it was early enough, and the
    /// replay whether it equals ikcp.c's.
    fn check(&self, now: u32) -> Answer {
        let now = self.at(now);
        let at = self.kcp.check(now);
        let broken = at.is_some_and(|at| at < now).then(|| format!("check at {now} said {at:?}"));
        let ret = at.map(|at| i64::from(at.wire().0));
        Answer { ret, broken, ..Answer::default() }
    }

    fn recv(&mut self, len: i64) -> Answer {
        let fits = self.kcp.peek_size().is_some_and(|size| int(size) <= len);
        if self.by_bytes && fits {
            let message = self.kcp.recv().expect("a message of the size peeked");
            return Answer { ret: Some(int(message.len())), data: Some(message.into()), ..Answer::default() };
        }
        let mut buf = vec![0; usize::try_from(len.unsigned_abs()).unwrap()];
        let taken = if len < 0 { self.kcp.peek(&mut buf) } else { self.kcp.recv_into(&mut buf) };
        let ret = match taken {
            Ok(taken) => {
                buf.truncate(taken);
                return Answer { ret: Some(int(taken)), data: Some(buf), ..Answer::default() };
            }
            Err(RecvError::NoMessage) if self.kcp.stats().rcv_queue == 0 => -1,
            Err(RecvError::NoMessage) => -2,
            Err(RecvError::BufferTooSmall { .. }) => -3,
            Err(error) => panic!("recv: {error}"),
        };
        Answer::ret(ret)
    }

    /// The trace's time on our clock, going the shorter way from the last one.
    fn at(&self, now: u32) -> Time {
        let step = match self.updated {
            true => i64::from(Millis(now).since(self.current.wire())),
            false => i64::from(now),
        };
        let millis = self.current.as_millis().checked_add_signed(step);
        Time::from_millis(millis.expect("the epoch leaves room"))
    }

    fn counters(&self) -> [(Rule, u32); 3] {
        let rejected = self.kcp.stats().rejected;
        [
            (Rule::FragmentChain, rejected.fragment_chain),
            (Rule::AckTooOld, rejected.ts_age),
            (Rule::AckOverflow, rejected.ack_overflow),
        ]
    }
}

impl Answer {
    fn met(rule: Rule) -> Self {
        Self { rules: vec![rule], ..Self::default() }
    }

    fn ret(ret: i64) -> Self {
        Self { ret: Some(ret), ..Self::default() }
    }
}

/// The datagrams of one call.
#[derive(Default)]
struct Emitted(Vec<Vec<u8>>);

impl Output for Emitted {
    fn output(&mut self, datagram: &[u8]) {
        self.0.push(datagram.to_vec());
    }
}

/// Limits settings as ikcp.c does (`bound`), or where ikcp.c keeps what it is given (`hold`).
struct Knobs<'a> {
    bounded: &'a mut BTreeSet<&'static str>,
    refused: bool,
}

impl<'a> Knobs<'a> {
    fn new(bounded: &'a mut BTreeSet<&'static str>) -> Self {
        Self { bounded, refused: false }
    }

    fn bound<T: Into<i64> + TryFrom<i64>>(&mut self, val: i64, min: T, max: T) -> T {
        let bounded = val.clamp(min.into(), max.into());
        self.refused |= bounded != val;
        T::try_from(bounded).ok().expect("between two of its type")
    }

    fn hold<T: Copy + Into<i64> + TryFrom<i64> + Default>(
        &mut self,
        field: &'static str,
        val: i64,
        max: T,
    ) -> T {
        let bounded = self.bound(val, T::default(), max);
        if bounded.into() == val {
            self.bounded.remove(field)
        } else {
            self.bounded.insert(field)
        };
        bounded
    }

    fn rules(self, negative: bool) -> Vec<Rule> {
        if self.refused || negative { vec![Rule::KnobRefused] } else { Vec::new() }
    }
}

/// `ikcp_getconv`, which reads four bytes and needs no more.
fn getconv(bytes: &[u8]) -> Answer {
    let mut header = bytes.to_vec();
    header.resize(bytes.len().max(HEADER_LEN), 0);
    let rules = if header.len() > bytes.len() { vec![Rule::ConvOfPart] } else { Vec::new() };
    Answer { ret: conv_of(&header).map(|conv| conv.0.into()), rules, ..Answer::default() }
}

fn int(size: usize) -> i64 {
    i64::try_from(size).unwrap()
}
