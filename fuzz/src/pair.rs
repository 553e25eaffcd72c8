//! Two control blocks over a bad link in virtual time. Once the link is good, everything arrives, once and in
//! order, and then both ends have nothing left to do.

use super::script::{Script, payload};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use whitewater::Repairs;
use whitewater::Time;
use whitewater::kcp::{Config, Congestion, Conv, Kcp, Modern, Recovery, Sn};
use whitewater::machine::DatagramQueue;

/// Runs a script: [`flag`]s, then first number, clock and config of both ends, then operations [`op`].
///
/// # Panics
///
/// If a message is lost, duplicated, altered or out of order, does not arrive in time over the good link, or
/// an end is not idle at the end.
pub fn kcp_pair(script: &[u8]) {
    let mut script = Script::new(script);
    let flags = script.u8();
    let starts = [START[usize::from(script.u8() % 4)], START[usize::from(script.u8() % 4)]];
    let mut pair = Pair {
        ends: [0, 1].map(|end| {
            let clock = CLOCK[usize::from(script.u8() % 4)];
            End::new(clock, &config(&mut script, flags & flag::STREAM != 0), starts[end], starts[1 - end])
        }),
        now: Duration::ZERO,
        streams: flags & flag::STREAM != 0,
        flushes: flags & flag::FLUSHES != 0,
        ticks: flags & flag::TICKS != 0,
        shares: flags & flag::SHARES != 0,
    };
    while !script.is_done() {
        pair.step(&mut script);
    }
    pair.drain();
}

/// Bits of the first byte of a script.
pub mod flag {
    /// A stream of bytes in both directions.
    pub const STREAM: u8 = 1;
    /// Flush after each input and send.
    pub const FLUSHES: u8 = 2;
    /// Update every 10 ms, whatever `check` says.
    pub const TICKS: u8 = 4;
    /// Use the calls that share buffers.
    pub const SHARES: u8 = 8;
}

/// Operation bytes of a script, each with its arguments. The high bit selects the end.
pub mod op {
    /// Length u16, how many u8.
    pub const SEND: u8 = 0;
    /// ms u16.
    pub const WAIT: u8 = 1;
    /// One bit for each of 32 datagrams, used cyclically: lost u32, duplicated u32, late u32; delay u8 and
    /// lateness u8 in units of 8 ms.
    pub const LINK: u8 = 2;
    /// How many more messages to read u8, then none; 255: all, as at the start.
    pub const READ: u8 = 3;
    /// A config; `config`.
    pub const CONFIGURE: u8 = 4;
    /// No argument.
    pub const FLUSH: u8 = 5;
    /// Number of operations.
    pub const COUNT: u8 = 6;
    /// The other end does it.
    pub const OTHER: u8 = 0x80;
}

struct Pair {
    ends: [End; 2],
    /// Time since the start.
    now: Duration,
    streams: bool,
    flushes: bool,
    ticks: bool,
    shares: bool,
}

struct End {
    kcp: Kcp<DatagramQueue>,
    clock: Time,
    next_tick: Duration,
    /// The link to the other end.
    link: Link,
    /// What the other end sent and this one has not read: length and first byte of each message.
    messages: VecDeque<(usize, u8)>,
    stream: VecDeque<u8>,
    /// Messages that may still be read; `None`: all.
    may_read: Option<u32>,
    sent: u8,
}

/// What happens to datagrams: each has a bit in every mask, cyclically over 32.
#[derive(Default)]
struct Link {
    lost: u32,
    doubled: u32,
    late: u32,
    delay: Duration,
    lateness: Duration,
    count: u64,
    /// In flight, by arrival.
    air: BTreeMap<(Duration, u64), Vec<u8>>,
}

impl Pair {
    fn step(&mut self, script: &mut Script<'_>) {
        let operation = script.u8();
        let end = usize::from(operation / op::OTHER);
        match operation % op::OTHER % op::COUNT {
            op::SEND => {
                let len = script.u16().into();
                for _ in 0..=script.u8() % 16 {
                    self.send(end, len);
                }
            }
            op::WAIT => {
                let until = self.now + Duration::from_millis(script.u16().into());
                self.run(until.min(SCRIPT_MAX));
            }
            op::LINK => self.ends[end].link.read(script),
            op::READ => {
                let more = script.u8();
                let may_read = &mut self.ends[end].may_read;
                *may_read = (more != 255).then(|| may_read.unwrap_or_default() + u32::from(more));
                self.read(end);
            }
            op::CONFIGURE => {
                let kcp = &mut self.ends[end].kcp;
                let recovery = kcp.config().recovery; // cannot change while anything is in flight
                let config = Config { recovery, ..config(script, self.streams) };
                assert_eq!(kcp.configure(&config), Ok(()));
            }
            _ => self.flush(end),
        }
    }

    /// Sends a message, and records that the other end must read it.
    fn send(&mut self, end: usize, len: usize) {
        let sender = &mut self.ends[end];
        if sender.kcp.wait_snd() > WAITING_MAX {
            return;
        }
        sender.sent = sender.sent.wrapping_add(1);
        let start = sender.sent;
        let data = payload(len, start);
        let taken = if self.shares {
            sender.kcp.send_bytes(Bytes::from(data.clone()))
        } else {
            sender.kcp.send(&data)
        };
        let Ok(taken) = taken else { return };
        let reader = &mut self.ends[1 - end];
        if self.streams {
            reader.stream.extend(&data[..taken]);
        } else {
            assert_eq!(taken, len);
            reader.messages.push_back((len, start));
        }
        if self.flushes {
            self.flush(end);
        }
    }

    /// Reads what has arrived and compares it with what was sent.
    fn read(&mut self, end: usize) {
        let reader = &mut self.ends[end];
        while reader.may_read != Some(0)
            && let Some(len) = reader.kcp.peek_size()
        {
            let message = if self.shares {
                reader.kcp.recv().expect("there is one").to_vec()
            } else {
                let mut buf = vec![0; len];
                assert_eq!(reader.kcp.recv_into(&mut buf), Ok(len));
                buf
            };
            assert_eq!(message.len(), len);
            if self.streams {
                assert!(len > 0, "a stream has no empty message");
                assert!(reader.stream.make_contiguous().starts_with(&message), "the stream is damaged");
                reader.stream.drain(..len);
            } else {
                let (len, start) = reader.messages.pop_front().expect("no more messages than were sent");
                assert!(message == payload(len, start), "message {start} of {len} bytes is not the one sent");
            }
            reader.may_read = reader.may_read.map(|count| count - 1);
        }
    }

    fn flush(&mut self, end: usize) {
        let at = self.ends[end].time(self.now);
        self.ends[end].kcp.flush(at);
        self.transmit(end);
    }

    fn transmit(&mut self, end: usize) {
        let End { kcp, link, .. } = &mut self.ends[end];
        while let Some(datagram) = kcp.output_mut().pop() {
            link.send(self.now, datagram);
        }
        assert_eq!(kcp.output().dropped(), 0);
    }

    fn deliver(&mut self, end: usize, datagram: Vec<u8>) {
        let receiver = &mut self.ends[end];
        let at = receiver.time(self.now);
        let taken = if self.shares {
            receiver.kcp.input_bytes(at, &Bytes::from(datagram))
        } else {
            receiver.kcp.input(at, &datagram)
        };
        assert_eq!(taken, Ok(()), "an honest datagram");
        self.read(end);
        if self.flushes {
            self.flush(end);
        }
    }

    /// Runs in virtual time up to `until`. Returns whether something is left to do then.
    fn run(&mut self, until: Duration) -> bool {
        let mut at_once = 0;
        loop {
            let Some(next) = [0, 1].into_iter().filter_map(|end| self.next_event(end)).min() else {
                self.now = until.max(self.now);
                return false;
            };
            if next > until {
                self.now = until.max(self.now);
                return true;
            }
            at_once = if next > self.now { 0 } else { at_once + 1 };
            assert!(at_once < AT_ONCE_MAX, "awake all the time at {:?}", self.now);
            self.now = self.now.max(next);
            for end in [0, 1] {
                while let Some(datagram) = self.ends[end].link.arrived(self.now) {
                    self.deliver(1 - end, datagram);
                }
            }
            for end in [0, 1] {
                if self.ends[end].wake(self.now, self.ticks).is_some_and(|wake| wake <= self.now) {
                    let at = self.ends[end].time(self.now);
                    self.ends[end].kcp.update(at);
                    self.ends[end].next_tick = self.now + TICK;
                    self.transmit(end);
                }
            }
        }
    }

    fn next_event(&self, end: usize) -> Option<Duration> {
        let end = &self.ends[end];
        [end.link.next_arrival(), end.wake(self.now, self.ticks)].into_iter().flatten().min()
    }

    /// Makes the link good: in bounded time everything arrives and both ends fall silent.
    fn drain(&mut self) {
        self.ticks = false;
        for end in [0, 1] {
            let link = &mut self.ends[end].link;
            *link = Link { delay: GOOD_DELAY, air: std::mem::take(&mut link.air), ..Link::default() };
            self.ends[end].may_read = None;
            self.read(end);
        }
        let waiting = u32::try_from(self.ends.iter().map(|end| end.kcp.wait_snd()).sum::<usize>());
        let until = self.now + DRAIN_MAX + DRAIN_MAX_EACH * waiting.expect("waiting segments are capped");
        assert!(!self.run(until), "still busy: {:?}", self.ends.each_ref().map(|end| end.kcp.stats()));
        for end in &mut self.ends {
            let stats = end.kcp.stats();
            assert!(end.messages.is_empty() && end.stream.is_empty(), "not everything arrived: {stats:?}");
            assert_eq!((end.kcp.wait_snd(), end.kcp.peek_size()), (0, None), "{stats:?}");
            assert!(end.kcp.is_idle(), "{stats:?}");
            assert_eq!(stats.rejected.fragment_chain, 0, "the peer is honest: {stats:?}");
            end.kcp.shrink();
            end.kcp.update(end.time(self.now + Duration::from_secs(3600)));
            let sent = end.kcp.output_mut().pop().map(<[u8]>::to_vec);
            assert_eq!(sent, None, "an idle end sends, {:?}", end.kcp);
        }
    }
}

impl End {
    fn new(clock: Time, config: &Config, snd: Sn, rcv: Sn) -> Self {
        let kcp = Kcp::starting_at(Conv(7), config, DatagramQueue::with_limit(usize::MAX), snd, rcv);
        Self {
            kcp: kcp.expect("a script names only what is in range"),
            clock,
            next_tick: Duration::ZERO,
            link: Link::default(),
            messages: VecDeque::new(),
            stream: VecDeque::new(),
            may_read: None,
            sent: 0,
        }
    }

    /// The time on this end's clock.
    fn time(&self, now: Duration) -> Time {
        self.clock + now
    }

    /// When to call `update`.
    fn wake(&self, now: Duration, ticks: bool) -> Option<Duration> {
        let time = self.time(now);
        let wake = self.kcp.check(time).map(|at| now + at.since(time));
        if ticks { Some(self.next_tick) } else { wake }
    }
}

impl Link {
    fn read(&mut self, script: &mut Script<'_>) {
        (self.lost, self.doubled, self.late) = (script.u32(), script.u32(), script.u32());
        self.delay = LINK_UNIT * script.u8().into();
        self.lateness = LINK_UNIT * script.u8().into();
    }

    fn send(&mut self, now: Duration, datagram: &[u8]) {
        let turn = 1 << (self.count % 32);
        let late = if self.late & turn != 0 { self.lateness } else { Duration::ZERO };
        if self.lost & turn == 0 {
            self.air.insert((now + self.delay + late, self.count), datagram.to_vec());
        }
        if self.doubled & turn != 0 {
            let copy = u64::MAX - self.count; // after all others of the same time
            self.air.insert((now + self.delay + self.lateness, copy), datagram.to_vec());
        }
        self.count += 1;
    }

    fn next_arrival(&self) -> Option<Duration> {
        self.air.first_key_value().map(|(&(at, _), _)| at)
    }

    fn arrived(&mut self, now: Duration) -> Option<Vec<u8>> {
        self.next_arrival().filter(|&at| at <= now)?;
        self.air.pop_first().map(|(_, datagram)| datagram)
    }
}

/// Reads a config, 15 bytes: every setting in range, and small enough for a short run.
fn config(script: &mut Script<'_>, stream: bool) -> Config {
    let flags = script.u8();
    let mtu = script.in_range(50, 1500);
    let [snd_wnd, rcv_wnd, nodelay, fast_resend, fast_limit, dead_link] =
        [0; 6].map(|_| u16::from(script.u8()));
    Config {
        mtu,
        rcv_mtu: 1500,
        snd_wnd: 1 + snd_wnd,
        rcv_wnd: 128 + rcv_wnd,
        nodelay: u8::try_from(nodelay % 3).unwrap_or_default(),
        interval: script.in_range(10, 500),
        fast_resend: fast_resend % 4,
        congestion: if flags & 1 != 0 { Congestion::None } else { Congestion::Kcp },
        stream,
        min_rto: (flags & 2 != 0).then(|| script.in_range(0, 1000)),
        fast_limit,
        dead_link: 1 + dead_link,
        snd_queue: script.in_range(1, 512).into(),
        snd_queue_bytes: u32::from(mtu) + u32::from(script.u16()),
        recovery: recovery(flags),
    }
}

/// As in ikcp.c, or by timing, with or without repairs.
fn recovery(flags: u8) -> Recovery {
    let repairs = match flags >> 4 {
        _ if flags & 8 == 0 => Repairs::Off,
        0 => Repairs::Auto,
        1 => Repairs::Deadline(100),
        more => Repairs::Budget(50 + more * 10),
    };
    match flags & 4 {
        0 => Recovery::Classic,
        _ => Recovery::Modern(Modern { repairs, ..Modern::default() }),
    }
}

/// First segment numbers: ordinary ones, and shortly before each change of sign.
const START: [Sn; 4] = [Sn(0), Sn(u32::MAX - 30), Sn((1 << 31) - 30), Sn(u32::MAX)];
/// First times: ordinary ones, and shortly before the wire's clock wraps or changes sign.
const CLOCK: [Time; 4] = [
    Time::from_millis(1000),
    Time::from_millis((1 << 32) - 3000),
    Time::from_millis((1 << 31) - 3000),
    Time::from_millis((1 << 33) - 20),
];
/// Time between two updates of an end that does not ask `check`.
const TICK: Duration = Duration::from_millis(10);
const LINK_UNIT: Duration = Duration::from_millis(8);
/// Delay in each direction of the good link.
const GOOD_DELAY: Duration = Duration::from_millis(20);
/// Most virtual time that the operations of a script may take. It limits how far an RTO backs off.
const SCRIPT_MAX: Duration = Duration::from_secs(300);
/// Virtual time in which the rest arrives: the longest RTO (twice the script's time), a window probe (120 s)
/// ..
const DRAIN_MAX: Duration = Duration::from_secs(1000);
/// .. and a window of one segment per round trip, including both flush intervals.
const DRAIN_MAX_EACH: Duration = Duration::from_secs(2);
/// Waiting segments from which on a script's sends are skipped.
const WAITING_MAX: usize = 300;
/// Most events that may happen at the same time.
const AT_ONCE_MAX: u32 = 1000;
