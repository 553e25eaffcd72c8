//! A control block with ikcp.c's knobs, clock and answers.

use super::block::IKCPCB;
use crate::guard::Object;
use std::time::Duration;
use ww::{Config, Conv, InputError, Kcp, Millis, Output, Recovery, RecvError, SendError, Stats, Time};

/// Where the program's clock shows 0: it may jump back before its first moment.
const EPOCH: Time = Time::from_millis(1 << 40);

/// The fields that a program sets without a function, as it has left them.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) struct Knobs {
    pub(super) current: u32,
    nodelay: u32,
    interval: u32,
    snd_wnd: u32,
    rcv_wnd: u32,
    rx_minrto: i32,
    dead_link: u32,
    fastresend: i32,
    fastlimit: i32,
    nocwnd: i32,
    stream: i32,
    has_control: bool,
}

impl Knobs {
    pub(super) const fn of(block: &IKCPCB) -> Self {
        Self {
            current: block.current,
            nodelay: block.nodelay,
            interval: block.interval,
            snd_wnd: block.snd_wnd,
            rcv_wnd: block.rcv_wnd,
            rx_minrto: block.rx_minrto,
            dead_link: block.dead_link,
            fastresend: block.fastresend,
            fastlimit: block.fastlimit,
            nocwnd: block.nocwnd,
            stream: block.stream,
            has_control: !block.ccops.is_null(),
        }
    }
}

pub(super) struct Control {
    pub(super) kcp: Kcp<Emitted>,
    config: Config,
    /// The time of the last `update`, or what the program has set.
    current: Time,
    updated: bool,
    seen: Option<Knobs>,
    broken: bool,
}

impl Object for Control {
    fn broken(&mut self) -> &mut bool {
        &mut self.broken
    }
}

impl Control {
    pub(super) fn new(conv: u32) -> Option<Self> {
        let config = Config {
            rcv_mtu: 65_507,
            snd_queue: 1 << 24,
            snd_queue_bytes: 1 << 30,
            ..Config::default().classic()
        };
        let kcp = Kcp::new(Conv(conv), &config, Emitted::default()).ok()?;
        Some(Self { kcp, config, current: EPOCH, updated: false, seen: None, broken: false })
    }

    /// Takes what the program has set since the last call; what is out of range, as near as it can be.
    pub(super) fn take(&mut self, knobs: Knobs) {
        if self.seen.replace(knobs).is_none_or(|seen| seen == knobs) {
            return;
        }
        if knobs.current != self.current.wire().0 {
            self.current = self.at(knobs.current);
        }
        let small = |value: i32, max: u16| u16::try_from(value.clamp(0, max.into())).unwrap_or(max);
        let window = |value: u32, min: u16| u16::try_from(value).unwrap_or(u16::MAX).max(min);
        let nodelay = u8::try_from(knobs.nodelay.min(2)).unwrap_or(2);
        let least = Config { nodelay, ..Config::default() };
        let min_rto = small(knobs.rx_minrto, 60_000);
        let is_default = min_rto == if least.nodelay == 0 { 100 } else { 30 };
        self.configure(&Config {
            nodelay,
            interval: window(knobs.interval, 10).min(5000),
            snd_wnd: window(knobs.snd_wnd, 1),
            rcv_wnd: window(knobs.rcv_wnd, 128),
            min_rto: (!is_default).then_some(min_rto),
            dead_link: window(knobs.dead_link, 1),
            fast_resend: small(knobs.fastresend, u16::MAX),
            fast_limit: small(knobs.fastlimit, u16::MAX),
            nc: knobs.nocwnd != 0 && !knobs.has_control,
            stream: knobs.stream != 0,
            ..self.config
        });
    }

    /// Whether the values are in range.
    pub(super) fn configure(&mut self, config: &Config) -> bool {
        let taken = self.kcp.configure(config).is_ok();
        if taken {
            self.config = *config;
        }
        taken
    }

    pub(super) const fn config(&self) -> &Config {
        &self.config
    }

    /// Tells the block how it stands. `stats` are taken before: a congestion control of the program looks into the block for them, and
    /// nobody may while it is borrowed here.
    pub(super) fn show(&mut self, stats: &Stats, block: &mut IKCPCB) {
        let config = &self.config;
        let millis = |duration: Duration| i32::try_from(duration.as_millis()).unwrap_or(i32::MAX);
        block.mtu = config.mtu.into();
        block.mss = config.mss().into();
        block.state = if self.kcp.is_dead() { u32::MAX } else { 0 };
        block.snd_una = stats.snd_una.0;
        block.snd_nxt = stats.snd_nxt.0;
        block.rcv_nxt = stats.rcv_nxt.0;
        block.rx_srtt = millis(stats.srtt);
        block.rx_rttval = millis(stats.rttvar);
        block.rx_rto = millis(stats.rto);
        block.rmt_wnd = stats.rmt_wnd.into();
        block.nsnd_buf = stats.in_flight;
        block.nsnd_que = stats.snd_queue;
        block.nrcv_que = stats.rcv_queue;
        block.nrcv_buf = stats.rcv_buf;
        block.xmit = stats.resends_timeout;
        block.updated = self.updated.into();
        block.current = self.current.wire().0;
        if block.ccops.is_null() {
            block.cwnd = stats.cwnd;
            block.ssthresh = stats.ssthresh.unwrap_or(block.ssthresh);
        }
        // What a callback has set meanwhile differs from what was seen, and is taken with the next call.
        let current = block.current;
        self.seen = Some(self.seen.map_or_else(|| Knobs::of(block), |seen| Knobs { current, ..seen }));
    }

    /// Puts the knobs into a new block.
    pub(super) fn show_knobs(&self, block: &mut IKCPCB) {
        let Config { nodelay, interval, snd_wnd, rcv_wnd, min_rto, .. } = self.config;
        block.nodelay = nodelay.into();
        block.interval = interval.into();
        block.snd_wnd = snd_wnd.into();
        block.rcv_wnd = rcv_wnd.into();
        block.rx_minrto = min_rto.unwrap_or(if nodelay == 0 { 100 } else { 30 }).into();
        block.dead_link = self.config.dead_link.into();
        block.fastresend = self.config.fast_resend.into();
        block.fastlimit = self.config.fast_limit.into();
        block.nocwnd = self.config.nc.into();
        block.stream = self.config.stream.into();
    }

    pub(super) fn send(&mut self, message: &[u8]) -> i32 {
        match self.kcp.send(message) {
            Ok(taken) => int(taken),
            Err(SendError::TooLong { .. }) => -2,
            Err(_) => -1,
        }
    }

    /// `len` below zero: it stays. Without a buffer: it goes.
    pub(super) fn recv(&mut self, buf: Option<&mut [u8]>, len: i32) -> i32 {
        let Some(size) = self.kcp.peek_size() else {
            return if self.kcp.stats().rcv_queue == 0 { -1 } else { -2 };
        };
        let taken = match buf {
            Some(buf) if len < 0 => self.kcp.peek(buf),
            Some(buf) => self.kcp.recv(buf),
            None if size > usize::try_from(len.unsigned_abs()).unwrap_or(0) => return -3,
            None if len < 0 => Ok(size),
            None => Ok(self.kcp.recv_bytes().map_or(0, |message| message.len())),
        };
        match taken {
            Ok(taken) => int(taken),
            Err(RecvError::BufferTooSmall { .. }) => -3,
            Err(_) => -1,
        }
    }

    pub(super) fn input(&mut self, datagram: &[u8]) -> i32 {
        match self.kcp.input(self.current, datagram) {
            Ok(()) => 0,
            Err(InputError::TooShort { .. } | InputError::Conv { .. }) => -1,
            Err(InputError::Length { .. }) => -2,
            Err(InputError::Command { .. }) => -3,
            Err(_) => -4,
        }
    }

    pub(super) fn update(&mut self, now: u32) {
        self.current = self.at(now);
        self.updated = true;
        self.kcp.update(self.current);
    }

    pub(super) fn flush(&mut self) {
        if self.updated {
            self.kcp.flush(self.current);
        }
    }

    /// Never later than a beat from now: who asks once sends and receives until then.
    pub(super) fn check(&self, now: u32) -> u32 {
        if !self.updated {
            return now;
        }
        let at = self.at(now);
        let beat = at + Duration::from_millis(self.config.interval.into());
        self.kcp.check(at).map_or(beat, |due| due.clamp(at, beat)).wire().0
    }

    /// What is lost is found by time, or as ikcp.c finds it.
    pub(super) fn by_time(&mut self, is_by_time: bool) -> bool {
        let recovery = if is_by_time { Recovery::default() } else { Recovery::Classic };
        self.configure(&Config { recovery, ..self.config })
    }

    /// The program's time on our clock: the shorter way from the last one.
    fn at(&self, now: u32) -> Time {
        let step =
            if self.updated { i64::from(Millis(now).since(self.current.wire())) } else { i64::from(now) };
        let from = if self.updated { self.current } else { EPOCH };
        Time::from_millis(from.as_millis().saturating_add_signed(step))
    }
}

/// A size that came from C, or would not fit there anyway.
fn int(size: usize) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

/// The datagrams of one call, one after another.
#[derive(Default)]
pub(super) struct Emitted {
    pub(super) bytes: Vec<u8>,
    /// Where each ends.
    pub(super) ends: Vec<usize>,
}

impl Output for Emitted {
    fn output(&mut self, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push(self.bytes.len());
    }
}
