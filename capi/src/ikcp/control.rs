//! A control block with ikcp.c's settings, clock and return values.

use super::block::IKCPCB;
use super::congestion::Callbacks;
use super::fields::{Knobs, State};
use crate::guard::Object;
use std::ffi::c_void;
use std::time::Duration;
use ww::Time;
use ww::kcp::{self, Config, Congestion, Conv, InputError, Kcp, Millis, Recovery, RecvError, Stats};
use ww::machine::Output;

/// The time at which the program's clock shows 0. The clock may jump back to before its first reading.
const EPOCH: Time = Time::from_millis(1 << 40);

pub(super) struct Control {
    pub(super) kcp: Kcp<Emitted>,
    config: Config,
    /// The time of the last `update`, or the time that the program set.
    current: Time,
    updated: bool,
    /// The settings as last written to the block, or set by the program.
    knobs: Knobs,
    told: State,
    /// Whether the program has its own congestion control.
    has_control: bool,
    broken: bool,
}

impl Object for Control {
    fn broken(&mut self) -> &mut bool {
        &mut self.broken
    }
}

impl Control {
    /// Creates it, with the block that the program sees.
    pub(super) fn new(conv: u32, user: *mut c_void) -> Option<(Self, IKCPCB)> {
        let config =
            Config { rcv_mtu: 65_507, snd_queue: 1 << 24, snd_queue_bytes: 1 << 30, ..Config::classic() };
        let kcp = Kcp::new(Conv(conv), &config, Emitted::default()).ok()?;
        let mut block = IKCPCB::new(conv, user);
        show_knobs(&config, &mut block);
        let (knobs, told) = (Knobs::put_right(&mut block), State::of(&block));
        let (current, updated, has_control, broken) = (EPOCH, false, false, false);
        let mut control = Self { kcp, config, current, updated, knobs, told, has_control, broken };
        control.show(&control.kcp.stats(), &mut block);
        Some((control, block))
    }

    /// Takes what the program has changed since the block was last updated: `current`, settings and state.
    pub(super) fn take(&mut self, current: u32, is_dead: bool, knobs: Knobs, state: &State) {
        if current != self.current.wire().0 {
            self.current = self.at(current);
        }
        if self.knobs != knobs {
            let before = std::mem::replace(&mut self.knobs, knobs);
            self.take_knobs(before);
        }
        for (field, value) in self.told.written(state) {
            self.kcp.set_trace_state(field, value);
        }
        if !is_dead && self.kcp.is_dead() {
            self.kcp.set_trace_state("state", 0);
        }
        self.told = *state;
    }

    fn take_knobs(&mut self, before: Knobs) {
        let knobs = self.knobs;
        let small = |value: i32, max: u16| u16::try_from(value.clamp(0, max.into())).unwrap_or(max);
        let most = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
        let nodelay = u8::try_from(knobs.nodelay.min(2)).unwrap_or(2);
        // As in ikcp.c, a negative value means more than the maximum.
        let min_rto = u16::try_from(knobs.rx_minrto).unwrap_or(u16::MAX).min(60_000);
        self.configure(&Config {
            nodelay,
            interval: most(knobs.interval).clamp(10, 5000),
            snd_wnd: most(knobs.snd_wnd),
            rcv_wnd: most(knobs.rcv_wnd),
            min_rto: (min_rto != least_rto(nodelay.into())).then_some(min_rto),
            dead_link: most(knobs.dead_link).max(1),
            fast_resend: small(knobs.fastresend, u16::MAX),
            fast_limit: small(knobs.fastlimit, u16::MAX),
            congestion: if knobs.nocwnd == 0 { Congestion::Kcp } else { Congestion::None },
            stream: knobs.stream != 0,
            ..self.config
        });
        // `mtu` and `mss` follow each other. A value out of range is replaced.
        let head = before.mtu.saturating_sub(before.mss);
        let mtu = if knobs.mtu == before.mtu { knobs.mss.saturating_add(head) } else { knobs.mtu };
        if let (true, Ok(mtu)) = (mtu != before.mtu, u16::try_from(mtu)) {
            self.configure(&Config { mtu, ..self.config });
        }
    }

    pub(super) const fn has_control(&self) -> bool {
        self.has_control
    }

    /// Installs the program's congestion control, or that of ikcp.c, which continues with the window in the block.
    pub(super) fn set_congestion(&mut self, callbacks: Option<Callbacks>) {
        self.has_control = callbacks.is_some();
        if let Some(callbacks) = callbacks {
            self.kcp.install(Box::new(callbacks));
        } else {
            self.kcp.set_trace_state("ccops", 0);
            (self.told.cwnd, self.told.ssthresh, self.told.incr) = (0, 0, 0);
        }
    }

    /// Applies the settings. Returns whether they are in range.
    pub(super) fn configure(&mut self, config: &Config) -> bool {
        let taken = self.kcp.configure(config).is_ok();
        if taken {
            self.config = *config;
            // The function limits the interval; a value in the field applies as it is.
            self.kcp.set_trace_state("interval", self.knobs.interval);
        }
        taken
    }

    pub(super) const fn config(&self) -> &Config {
        &self.config
    }

    /// Updates the block. `stats` were taken before: for them, a congestion control of the program reads the block,
    /// which must not be borrowed then.
    pub(super) fn show(&mut self, stats: &Stats, block: &mut IKCPCB) {
        let millis = |duration: Duration| i32::try_from(duration.as_millis()).unwrap_or(i32::MAX);
        let field =
            |name| self.kcp.trace_state(name).and_then(|value| u32::try_from(value).ok()).unwrap_or(0);
        block.ts_flush = field("ts_flush");
        let state = State {
            conv: self.kcp.conv().0,
            rmt_wnd: stats.rmt_wnd.into(),
            rx_srtt: millis(stats.srtt),
            rx_rttval: millis(stats.rttvar),
            rx_rto: millis(stats.rto),
            xmit: stats.resends_timeout,
            cwnd: if self.has_control { 0 } else { stats.cwnd },
            ssthresh: if self.has_control { 0 } else { stats.ssthresh.unwrap_or(0) },
            incr: if self.has_control { 0 } else { field("incr") },
        };
        state.tell(&mut self.told, block);
        if block.mtu == self.knobs.mtu && block.mss == self.knobs.mss {
            (block.mtu, block.mss) = (self.config.mtu.into(), self.config.mss().into());
        }
        (self.knobs.mtu, self.knobs.mss) = (self.config.mtu.into(), self.config.mss().into());
        if self.kcp.is_dead() {
            block.state = u32::MAX;
        }
        block.snd_una = stats.snd_una.0;
        block.snd_nxt = stats.snd_nxt.0;
        block.rcv_nxt = stats.rcv_nxt.0;
        block.nsnd_buf = stats.in_flight;
        block.nsnd_que = stats.snd_queue;
        block.nrcv_que = stats.rcv_queue;
        block.nrcv_buf = stats.rcv_buf;
        block.updated = self.updated.into();
        block.current = self.current.wire().0;
    }

    /// Without a message, sends `len` zero bytes.
    pub(super) fn send(&mut self, message: Option<&[u8]>, len: usize) -> i32 {
        let sent = match message {
            Some(message) => self.kcp.send(message),
            // Anything longer than a message can be is refused (or cut, in a stream) like this much.
            None => self.kcp.send(&vec![0; len.min(128 * usize::from(self.config.mss()))]),
        };
        match sent {
            Ok(taken) => int(taken),
            Err(kcp::SendError::TooLong { .. }) => -2,
            Err(_) => -1,
        }
    }

    /// If `len` is negative, the message stays queued. Without a buffer, it is dropped.
    pub(super) fn recv(&mut self, buf: Option<&mut [u8]>, len: i32) -> i32 {
        let Some(size) = self.kcp.peek_size() else {
            return if self.kcp.stats().rcv_queue == 0 { -1 } else { -2 };
        };
        let taken = match buf {
            Some(buf) if len < 0 => self.kcp.peek(buf),
            Some(buf) => self.kcp.recv_into(buf),
            None if size > usize::try_from(len.unsigned_abs()).unwrap_or(0) => return -3,
            None if len < 0 => Ok(size),
            None => Ok(self.kcp.recv().map_or(0, |message| message.len())),
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

    /// Never later than the next interval, even if there is nothing to do: `input` uses the time of the last `update`.
    pub(super) fn check(&self, now: u32, ts_flush: u32) -> u32 {
        let at = self.at(now);
        let left = match Millis(ts_flush).since(Millis(now)) {
            left @ 1..=JUMP if self.updated => left.unsigned_abs().min(self.knobs.interval),
            _ => return now, // otherwise the clock has jumped
        };
        let beat = at + Duration::from_millis(left.into());
        self.kcp.check(at).map_or(beat, |due| due.clamp(at, beat)).wire().0
    }

    /// Chooses between loss detection by timing and that of ikcp.c.
    pub(super) fn by_time(&mut self, is_by_time: bool) -> bool {
        let recovery = if is_by_time { Recovery::default() } else { Recovery::Classic };
        self.configure(&Config { recovery, ..self.config })
    }

    /// Converts the program's time to our clock: the shorter way from the last time.
    fn at(&self, now: u32) -> Time {
        let step =
            if self.updated { i64::from(Millis(now).since(self.current.wire())) } else { i64::from(now) };
        let from = if self.updated { self.current } else { EPOCH };
        Time::from_millis(from.as_millis().saturating_add_signed(step))
    }
}

/// Writes the settings into a new block.
fn show_knobs(config: &Config, block: &mut IKCPCB) {
    let Config {
        nodelay,
        interval,
        snd_wnd,
        rcv_wnd,
        dead_link,
        fast_resend,
        fast_limit,
        congestion,
        stream,
        ..
    } = *config;
    block.mtu = config.mtu.into();
    block.mss = config.mss().into();
    block.nodelay = nodelay.into();
    block.interval = interval.into();
    block.snd_wnd = snd_wnd.into();
    block.rcv_wnd = rcv_wnd.into();
    block.rx_minrto = config.min_rto.unwrap_or_else(|| least_rto(nodelay.into())).into();
    block.dead_link = dead_link.into();
    block.fastresend = fast_resend.into();
    block.fastlimit = fast_limit.into();
    block.nocwnd = (congestion == Congestion::None).into();
    block.stream = stream.into();
}

/// The default of `rx_minrto`. Source: ikcp.c `ikcp_nodelay`.
pub(super) const fn least_rto(nodelay: u32) -> u16 {
    if nodelay == 0 { 100 } else { 30 }
}

/// Distance from the next flush that counts as a jump of the clock, ms. Source: ikcp.c `ikcp_check`.
const JUMP: i32 = 10_000;

/// Converts a size that came from C, or would not fit there anyway.
fn int(size: usize) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

/// The datagrams of one call, one after another.
#[derive(Default)]
pub(super) struct Emitted {
    pub(super) bytes: Vec<u8>,
    /// Where each datagram ends.
    pub(super) ends: Vec<usize>,
}

impl Output for Emitted {
    fn output(&mut self, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push(self.bytes.len());
    }
}
