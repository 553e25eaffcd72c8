//! One control block under a script of calls, from an honest user and from any peer.
//!
//! Its twin gets the same calls in their other variants (`send_bytes`, `input_bytes`, `recv_bytes`), and only
//! the successful ones. What it sends and counts must not differ, so refused calls change nothing, ever. The
//! twin may also log events, which changes nothing either.

mod peer;
mod watch;

use super::inbox::Inbox;
use super::knobs;
use super::log::KcpBook;
use super::script::{Script, payload};
use bytes::Bytes;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::congestion::CongestionControl;
use whitewater::kcp::wire::{Command, Header, Segment, segments};
use whitewater::kcp::{Config, Conv, Kcp, Millis, Recovery, RecvError, Rejected, Sn, Stats};
use whitewater::machine::DatagramQueue;

/// Runs a script: conv, first numbers, start of the clock, a config, then operations [`op`].
///
/// # Panics
///
/// If the control block breaks a promise.
pub fn kcp_input(script: &[u8]) {
    kcp_input_measured(script, || 0);
}

/// [`kcp_input`] with `live`, which counts the bytes allocated by the process, so that memory is checked as
/// well.
///
/// # Panics
///
/// If the control block breaks a promise.
pub fn kcp_input_measured(script: &[u8], live: fn() -> usize) {
    let mut script = Script::new(script);
    let Some(mut rig) = Rig::new(&mut script, live) else { return };
    while !script.is_done() && rig.segments < SEGMENTS_MAX {
        let before = rig.subject.stats();
        let clock = rig.now;
        let updated = rig.step(&mut script);
        let datagrams = rig.drain(&before);
        rig.check_stats(&before);
        rig.check_log();
        rig.check_memory();
        rig.check_wake(clock, updated, datagrams);
    }
}

/// Operation bytes of a script, each with its arguments.
pub mod op {
    /// A config (`knobs`).
    pub const CONFIGURE: u8 = 0;
    /// Length u16, first payload byte u8.
    pub const SEND: u8 = 1;
    /// Length of the buffer u16.
    pub const RECV: u8 = 2;
    /// ms u16, then an update.
    pub const WAIT: u8 = 3;
    /// µs u16, then an update.
    pub const WAIT_MICROS: u8 = 4;
    /// Until `check` says, then an update.
    pub const SLEEP: u8 = 5;
    /// No argument.
    pub const FLUSH: u8 = 6;
    /// Length u16, bytes of a datagram.
    pub const DATAGRAM: u8 = 7;
    /// Count u8, then segments (`Rig::segment`) of one datagram.
    pub const SEGMENTS: u8 = 8;
    /// Mask u16, wnd u16: an honest peer's ACKs for the segments in flight that the mask selects.
    pub const ACK: u8 = 9;
    /// Which u8: one of our own datagrams comes back.
    pub const ECHO: u8 = 10;
    /// No argument.
    pub const SHRINK: u8 = 11;
    /// Window u16, payload bytes per second u32: another congestion controller.
    pub const PACE: u8 = 12;
    /// Half of u32 ms forward, little enough for the wire's clock not to mistake it for backward, then an
    /// update.
    pub const JUMP: u8 = 13;
    /// ms u16 backward, then an update.
    pub const BACK: u8 = 14;
    /// First number relative to the expected one i16, how many u8, shape u8: a peer's PUSHes.
    pub const PUSHES: u8 = 15;
    /// Number of operations: a byte stands for itself modulo this.
    pub const COUNT: u8 = 16;
}

/// The control block, its twin, and what an observer knows about them.
struct Rig {
    subject: Kcp<DatagramQueue>,
    twin: Kcp<DatagramQueue>,
    conv: Conv,
    now: Time,
    /// The twin sends shared buffers. They do not fill up segments of streams, so there are no streams then.
    shares: bool,
    /// `install` was called.
    paced: bool,
    /// The largest value of each setting so far.
    most: Config,
    /// Payload accepted and not sent yet.
    waiting: VecDeque<u8>,
    /// What was sent, from `first` on, until `una` passes it.
    flying: VecDeque<Flying>,
    first: Sn,
    /// What the peer's PUSHes should result in.
    inbox: Inbox,
    /// Number and time of every accepted PUSH.
    taken: HashSet<(u32, u32)>,
    /// The last datagrams sent.
    recent: VecDeque<Vec<u8>>,
    /// Number of segments sent and checked.
    segments: usize,
    /// What `check` last returned.
    wake: Option<Time>,
    /// What the twin has logged.
    book: Option<KcpBook>,
    live: fn() -> usize,
    /// Bytes that the subject holds.
    held: usize,
}

struct Flying {
    frg: u8,
    data: Vec<u8>,
    ts: Millis,
    acked: bool,
}

impl Rig {
    fn new(script: &mut Script<'_>, live: fn() -> usize) -> Option<Self> {
        let flags = script.u8();
        let (shares, logs) = (flags & 1 != 0, flags & 2 == 0);
        let conv = Conv(script.u32());
        let (snd, rcv) = (Sn(script.u32()), Sn(script.u32()));
        let now = Time::from_millis(script.u32().into());
        let config = Self::config(shares, script);
        let make = || Kcp::starting_at(conv, &config, DatagramQueue::with_limit(usize::MAX), snd, rcv);
        let before = live();
        let subject = make()
            .inspect_err(|error| assert!(!(error.min..=error.max).contains(&error.value), "{error}"))
            .ok()?;
        let held = live().wrapping_sub(before);
        let mut twin = make().ok()?;
        let book = logs.then(|| KcpBook::open(&mut twin, now));
        Some(Self {
            subject,
            twin,
            book,
            conv,
            now,
            shares,
            paced: false,
            most: config,
            waiting: VecDeque::new(),
            flying: VecDeque::new(),
            first: snd,
            inbox: Inbox::new(rcv),
            taken: HashSet::new(),
            recent: VecDeque::new(),
            segments: 0,
            wake: None,
            live,
            held,
        })
    }

    fn check_log(&mut self) {
        let Self { book, twin, .. } = self;
        if book.as_mut().is_some_and(|book| !book.check(twin)) {
            *book = None;
        }
    }

    /// Performs one operation. Returns whether it was an update.
    fn step(&mut self, script: &mut Script<'_>) -> bool {
        match script.u8() % op::COUNT {
            op::CONFIGURE => self.configure(&Self::config(self.shares, script)),
            op::SEND => self.send(script.u16().into(), script.u8()),
            op::RECV => self.recv(script.u16().into()),
            op::WAIT => return self.update(self.now + Duration::from_millis(script.u16().into())),
            op::WAIT_MICROS => return self.update(self.now + Duration::from_micros(script.u16().into())),
            op::SLEEP => return self.update(self.subject.check(self.now).unwrap_or(self.now)),
            op::FLUSH => self.both(|kcp, now| kcp.flush(now)),
            op::DATAGRAM => {
                let len = script.u16();
                self.input(script.bytes(len.into()));
            }
            op::SEGMENTS => {
                let mut datagram = Vec::new();
                for _ in 0..=script.u8() % 8 {
                    self.segment(script, &mut datagram);
                }
                self.input(&datagram);
            }
            op::ACK => self.acknowledge(script.u16(), script.u16()),
            op::ECHO => {
                let which = usize::from(script.u8());
                if let Some(datagram) = self.recent.get(which % RECENT).cloned() {
                    self.input(&datagram);
                }
            }
            op::SHRINK => {
                self.measured(Kcp::shrink);
                if self.subject.config().recovery != Recovery::Classic {
                    self.twin.shrink(); // shows if it drops something
                }
            }
            op::PACE => {
                let control = Fixed { window: script.u16().into(), rate: script.u32().into() };
                self.paced = true;
                self.both(|kcp, _| kcp.install(Box::new(control)));
            }
            op::JUMP => return self.update(self.now + Duration::from_millis((script.u32() / 2).into())),
            op::PUSHES => {
                let from = i32::from(script.u16().cast_signed());
                self.pushes(from, script.u8(), script.u8());
            }
            _ => {
                let back = u64::from(script.u16()) * 1000;
                return self.update(Time::from_micros(self.now.as_micros().saturating_sub(back)));
            }
        }
        false
    }

    fn configure(&mut self, config: &Config) {
        let before = *self.subject.config();
        if let Err(error) = self.measured(|kcp| kcp.configure(config)) {
            let is_in_range = (error.min..=error.max).contains(&error.value);
            assert!(!is_in_range || !error.cure.is_empty(), "{error}");
            assert_eq!(*self.subject.config(), before);
            return;
        }
        assert_eq!(self.twin.configure(config), Ok(()));
        let most = &mut self.most;
        most.mtu = most.mtu.max(config.mtu);
        most.rcv_mtu = most.rcv_mtu.max(config.rcv_mtu);
        most.snd_wnd = most.snd_wnd.max(config.snd_wnd);
        most.rcv_wnd = most.rcv_wnd.max(config.rcv_wnd);
        most.snd_queue = most.snd_queue.max(config.snd_queue);
        most.snd_queue_bytes = most.snd_queue_bytes.max(config.snd_queue_bytes);
    }

    fn send(&mut self, len: usize, start: u8) {
        let data = payload(len, start);
        let Ok(taken) = self.measured(|kcp| kcp.send(&data)) else { return };
        assert!(taken == len || (taken < len && self.subject.config().stream), "{taken} of {len}");
        self.waiting.extend(data.iter().take(taken));
        let twin = if self.shares { self.twin.send_bytes(Bytes::from(data)) } else { self.twin.send(&data) };
        assert_eq!(twin, Ok(taken));
    }

    fn recv(&mut self, room: usize) {
        let size = self.subject.peek_size();
        let room = room.min(size.unwrap_or(0) + 16); // equivalent, and faster to allocate
        let (mut peeked, mut buf) = (vec![0; room], vec![0; room]);
        let peek = self.subject.peek(&mut peeked);
        let was_closed = self.window() == 0;
        let result = self.measured(|kcp| kcp.recv_into(&mut buf));
        assert!(!was_closed || self.window() == 0 || !self.subject.is_idle(), "the peer is not told");
        assert_eq!(result, peek);
        match result {
            Ok(len) => {
                assert_eq!(size, Some(len));
                assert_eq!(peeked, buf);
                let message = self.twin.recv();
                assert_eq!(message.as_deref(), buf.get(..len));
                assert_eq!(message.map(Vec::from), self.inbox.pop(self.subject.config().rcv_wnd));
            }
            Err(RecvError::BufferTooSmall { have, need }) => {
                assert!(have == room && need > have && size == Some(need));
            }
            Err(_) => {
                assert_eq!(size, None);
                assert_eq!(self.inbox.peek(), None);
            }
        }
    }

    fn update(&mut self, now: Time) -> bool {
        self.now = now;
        self.both(|kcp, now| kcp.update(now));
        true
    }

    fn input(&mut self, datagram: &[u8]) {
        let (now, before) = (self.now, self.subject.stats());
        let judged = self.judge(datagram);
        let taken = self.measured(|kcp| kcp.input(now, datagram));
        assert_eq!(taken, judged);
        if taken.is_err() {
            let after = self.subject.stats();
            assert_eq!(after.rejected.total(), before.rejected.total() + 1);
            assert_eq!(without_rejected(after), without_rejected(before));
            return;
        }
        assert_eq!(self.twin.input_bytes(now, &Bytes::copy_from_slice(datagram)), Ok(()));
        for segment in segments(datagram) {
            let Segment { header, data } = segment.expect("decodes, for it was taken");
            let Header { conv, cmd, frg, sn, ts, .. } = header;
            assert_eq!(conv, self.conv);
            match cmd {
                Command::Push => {
                    self.taken.insert((sn.0, ts.0));
                    self.inbox.push(sn, frg, data, self.subject.config().rcv_wnd);
                }
                Command::Ack => {
                    if let Some(flying) = index_of(sn, self.first).and_then(|i| self.flying.get_mut(i)) {
                        flying.acked = true;
                    }
                }
                _ => {}
            }
        }
    }

    /// The advertised window.
    fn window(&self) -> u16 {
        let queued = u16::try_from(self.subject.stats().rcv_queue).unwrap_or(u16::MAX);
        self.subject.config().rcv_wnd.saturating_sub(queued)
    }

    fn config(shares: bool, script: &mut Script<'_>) -> Config {
        let config = knobs::read(script);
        Config { stream: config.stream && !shares, ..config }
    }

    fn both(&mut self, verb: impl Fn(&mut Kcp<DatagramQueue>, Time)) {
        let now = self.now;
        self.measured(|kcp| verb(kcp, now));
        verb(&mut self.twin, now);
    }

    fn measured<R>(&mut self, verb: impl FnOnce(&mut Kcp<DatagramQueue>) -> R) -> R {
        let before = (self.live)();
        let result = verb(&mut self.subject);
        self.held = self.held.wrapping_add((self.live)().wrapping_sub(before));
        result
    }
}

/// A constant window and rate.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    window: u32,
    rate: u64,
}

impl CongestionControl for Fixed {
    fn window(&self) -> u32 {
        self.window
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.rate).filter(|rate| *rate != 0)
    }
}

fn without_rejected(mut stats: Stats) -> Stats {
    stats.rejected = Rejected::default();
    stats
}

/// How far `sn` is after `from`; `None` if it is before.
fn index_of(sn: Sn, from: Sn) -> Option<usize> {
    usize::try_from(sn.distance(from)).ok()
}

/// Segments checked after which a script ends.
const SEGMENTS_MAX: usize = 100_000;
/// Datagrams kept for coming back.
const RECENT: usize = 4;
