//! An end that protects and rebuilds segments, and a peer that may send anything: honest and forged repairs,
//! marks, acknowledgements and segments. What is delivered may be forged; memory, traffic and wake-ups are
//! bounded.

use super::script::{Script, payload};
use std::time::Duration;
use whitewater::Repairs;
use whitewater::Time;
use whitewater::inside::code::Encoder;
use whitewater::kcp::wire::{Command, HEADER_LEN, Header, segments};
use whitewater::kcp::{Config, Conv, Kcp, Millis, Modern, Recovery, Sn};
use whitewater::machine::DatagramQueue;

/// The operations of a script.
pub mod op {
    /// A message: its length u16.
    pub const SEND: u8 = 0;
    /// ms u8, then an update.
    pub const WAIT: u8 = 1;
    /// Until `check` says, then an update.
    pub const SLEEP: u8 = 2;
    /// A datagram of arbitrary segments: how many u8, then for each command, frg, and how far its sn and una
    /// are from the honest values, age of ts, window, length, a byte.
    pub const SEGMENTS: u8 = 3;
    /// ACKs like an honest peer's with any mark: mask u16, mark u8.
    pub const ACK: u8 = 4;
    /// PUSHes like an honest peer's: how far the first is from the expected one, and which of the next 16
    /// arrive u16.
    pub const PUSHES: u8 = 5;
    /// A repair like an honest peer's: how far its first is from the expected one, what it covers u16, index,
    /// patience.
    pub const REPAIR: u8 = 6;
    /// Reads everything.
    pub const RECV: u8 = 7;
    /// Changes the budget: percent u8.
    pub const BUDGET: u8 = 8;
    /// Frees what is empty.
    pub const SHRINK: u8 = 9;
    /// s u8 forward, then an update.
    pub const JUMP: u8 = 10;
    /// ms u16 back, then an update.
    pub const BACK: u8 = 11;
    /// Number of operations.
    pub const COUNT: u8 = 12;
}

struct Rig {
    subject: Kcp<DatagramQueue>,
    now: Time,
    encoder: Encoder,
    /// Bytes of new segments including headers and 28 per datagram, and of what protects them.
    new: u64,
    unasked: u64,
    /// The number after the newest sent, and the largest budget so far in percent.
    nxt: Sn,
    percent: u64,
}

/// Runs a script: percent, number sent first, number expected first, then operations [`op`].
///
/// # Panics
///
/// If the control block exceeds its bounds on memory, traffic or wake-ups.
pub fn protection(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let config = config(script.u8());
    let (snd, rcv) = (Sn(script.u32()), Sn(script.u32()));
    let Ok(subject) = Kcp::starting_at(Conv(7), &config, DatagramQueue::with_limit(usize::MAX), snd, rcv)
    else {
        return;
    };
    let now = Time::from_millis(1000);
    let mut rig = Rig {
        subject,
        now,
        encoder: Encoder::new(),
        new: 0,
        unasked: 0,
        nxt: snd,
        percent: percent(&config),
    };
    let mut steps = 0;
    while !script.is_done() && steps < STEPS {
        rig.step(&mut script);
        rig.check();
        steps += 1;
    }
}

fn config(percent: u8) -> Config {
    let repairs = match percent {
        201..228 => Repairs::Auto,
        228.. => Repairs::Deadline(u16::from(percent - 227) * 16),
        _ => Repairs::Budget(percent),
    };
    Config {
        recovery: Recovery::Modern(Modern { repairs, ..Modern::default() }),
        ..Config::classic().nodelay(1, 10, 2, true)
    }
}

impl Rig {
    fn step(&mut self, script: &mut Script<'_>) {
        match script.u8() % op::COUNT {
            op::SEND => {
                let data = payload(script.u16().into(), 1);
                let _ = self.subject.send(&data); // too long, or the queue is full
                self.subject.update(self.now);
            }
            op::WAIT => self.update(self.now + Duration::from_millis(script.u8().into())),
            op::SLEEP => self.update(self.subject.check(self.now).unwrap_or(self.now)),
            op::SEGMENTS => {
                let mut datagram = Vec::new();
                for _ in 0..=script.u8() % 8 {
                    self.segment(script, &mut datagram);
                }
                self.input(&datagram);
            }
            op::ACK => self.acknowledge(script.u16(), script.u8()),
            op::PUSHES => self.pushes(script.u8(), script.u16()),
            op::REPAIR => self.repair(script.u8(), script.u16(), script.u8(), script.u8()),
            op::RECV => while self.subject.recv().is_some() {},
            op::BUDGET => {
                let config = config(script.u8());
                assert_eq!(self.subject.configure(&config), Ok(()));
                self.percent = self.percent.max(percent(&config));
            }
            op::SHRINK => self.subject.shrink(),
            op::JUMP => self.update(self.now + Duration::from_secs(script.u8().into())),
            _ => {
                let back = u64::from(script.u16()) * 1000;
                self.update(Time::from_micros(self.now.as_micros().saturating_sub(back)));
            }
        }
    }

    fn update(&mut self, now: Time) {
        self.now = now;
        self.subject.update(now);
    }

    fn input(&mut self, datagram: &[u8]) {
        let before = self.subject.stats();
        if self.subject.input(self.now, datagram).is_err() {
            let after = self.subject.stats();
            assert_eq!(after.rejected.total(), before.rejected.total() + 1);
            assert_eq!(
                (after.rcv_nxt, after.snd_una, after.rmt_wnd),
                (before.rcv_nxt, before.snd_una, before.rmt_wnd)
            );
        }
        self.subject.update(self.now);
    }

    fn header(&self, cmd: Command, sn: Sn) -> Header {
        let stats = self.subject.stats();
        let ts = Millis(u32::try_from(self.now.as_micros() & 0xffff_ffff).unwrap_or_default());
        Header { conv: Conv(7), cmd, frg: 0, wnd: 128, ts, sn, una: stats.snd_una }
    }

    fn segment(&self, script: &mut Script<'_>, datagram: &mut Vec<u8>) {
        let stats = self.subject.stats();
        let cmd = [Command::Push, Command::Ack, Command::Wask, Command::Wins];
        let cmd = cmd.get(usize::from(script.u8() % 4)).copied().unwrap_or(Command::Push);
        let frg = script.u8();
        let base = if cmd == Command::Ack { stats.snd_una } else { stats.rcv_nxt };
        let mut header = self.header(cmd, base.sub(20).add(script.u8().into()));
        header.frg = frg;
        header.una = stats.snd_una.sub(2).add((script.u8() % 8).into());
        header.ts = Millis(header.ts.0.wrapping_sub(u32::from(script.u16()) * 10));
        header.wnd = script.u16();
        let data = payload((script.u16() % 200).into(), script.u8());
        datagram.extend_from_slice(&header.to_bytes(u32::try_from(data.len()).unwrap_or_default()));
        datagram.extend_from_slice(&data);
    }

    fn acknowledge(&mut self, mask: u16, mark: u8) {
        let stats = self.subject.stats();
        let mut datagram = Vec::new();
        for offset in (0..16).filter(|offset| mask >> offset & 1 == 1) {
            let sn = stats.snd_una.add(offset);
            if sn.is_before(stats.snd_nxt) {
                datagram
                    .extend_from_slice(&Header { frg: mark, ..self.header(Command::Ack, sn) }.to_bytes(0));
            }
        }
        if !datagram.is_empty() {
            self.input(&datagram);
        }
    }

    fn pushes(&mut self, first: u8, mask: u16) {
        let first = self.subject.stats().rcv_nxt.sub(8).add((first % 64).into());
        for offset in (0..16).filter(|offset| mask >> offset & 1 == 1) {
            let sn = first.add(offset);
            let data = sent(sn);
            let mut datagram = self.header(Command::Push, sn).to_bytes(40).to_vec();
            datagram.extend_from_slice(&data);
            self.input(&datagram);
        }
    }

    fn repair(&mut self, first: u8, mask: u16, index: u8, patience: u8) {
        let first = self.subject.stats().rcv_nxt.sub(8).add((first % 64).into());
        self.encoder.begin(index);
        for offset in (0..16).filter(|offset| (mask | 1) >> offset & 1 == 1) {
            let sn = first.add(offset);
            assert!(self.encoder.add(sn, 0, 40, |to| to.copy_from_slice(&sent(sn))));
        }
        let mut payload = vec![0; self.encoder.payload_len()];
        assert_eq!(self.encoder.finish(&mut payload), Some(payload.len()));
        let header = Header { frg: patience, ..self.header(Command::Wins, first) };
        let len = u32::try_from(payload.len()).unwrap_or_default();
        let datagram = [header.to_bytes(len).as_slice(), &payload].concat();
        self.input(&datagram);
    }

    fn check(&mut self) {
        self.drain();
        let (stats, config) = (self.subject.stats(), *self.subject.config());
        let rcv_wnd = u32::from(config.rcv_wnd);
        assert!(stats.rcv_queue <= rcv_wnd && stats.rcv_buf <= rcv_wnd, "{stats:?}");
        assert!(stats.in_flight <= config.snd_wnd.into() && !stats.snd_nxt.is_before(stats.snd_una));
        // After an update nothing is due at once.
        self.subject.update(self.now);
        self.subject.update(self.now);
        let wake = self.subject.check(self.now);
        assert!(wake.is_none_or(|wake| wake > self.now), "{wake:?} at {:?}, {stats:?}", self.now);
        if let Some(wake) = wake {
            assert!(wake <= self.now + Duration::from_secs(130), "{wake:?} at {:?}", self.now);
        }
        self.drain();
        assert!(self.unasked * 100 <= (self.new + (64 << 10)) * self.percent, "{stats:?}");
    }

    /// Takes what was sent, and counts new data and repairs.
    fn drain(&mut self) {
        while let Some(datagram) = self.subject.output_mut().pop() {
            assert!(datagram.len() <= 1400);
            for segment in segments(datagram).flatten() {
                let bytes = (HEADER_LEN + segment.data.len()) as u64;
                match segment.header.cmd {
                    Command::Wins if !segment.data.is_empty() => self.unasked += bytes,
                    Command::Push if !segment.header.sn.is_before(self.nxt) => {
                        self.nxt = segment.header.sn.add(1);
                        self.new += bytes + 28;
                    }
                    _ => {}
                }
            }
        }
    }
}

fn percent(config: &Config) -> u64 {
    match config.recovery {
        Recovery::Modern(Modern { repairs, .. }) => match repairs {
            Repairs::Off => 0,
            Repairs::Auto => 100,
            Repairs::Budget(percent) => percent.into(),
            _ => 200,
        },
        _ => 0,
    }
}

/// The segment `sn` as an honest peer sends it.
fn sent(sn: Sn) -> [u8; 40] {
    [sn.0.to_le_bytes()[0]; 40]
}

/// Seed scripts: a game with marks, losses and repairs.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let percents = [("tight", 9), ("wide", 99), ("most", 199)];
    let starts = [("zero", 0u32), ("turn", u32::MAX - 20)];
    for ((name, percent), (from, start)) in
        percents.into_iter().flat_map(|percent| starts.map(|start| (percent, start)))
    {
        let mut bytes = vec![percent];
        bytes.extend_from_slice(&start.to_le_bytes());
        bytes.extend_from_slice(&start.to_le_bytes());
        for round in 0..40u8 {
            bytes.extend_from_slice(&[op::SEND, 100, 0, op::WAIT, 16]);
            bytes.extend_from_slice(&[op::ACK, 0xff, 0xfd, 1 + round]);
            bytes.extend_from_slice(&[op::PUSHES, 8, 0b1011, 0, op::REPAIR, 8, 0b1111, 0, round, round % 4]);
            bytes.extend_from_slice(&[op::WAIT, 5, op::SLEEP, op::RECV]);
            if round % 8 == 7 {
                bytes.extend_from_slice(&[op::SEGMENTS, 3]);
                bytes.extend((0..40u8).map(|at| at.wrapping_mul(round | 1)));
                bytes.extend_from_slice(&[op::BUDGET, round, op::JUMP, 3, op::SHRINK, op::BACK, 200, 0]);
            }
        }
        seeds.push((format!("{name}-{from}"), bytes));
    }
    seeds
}

/// Most operations of a script that are performed.
const STEPS: usize = 2000;
