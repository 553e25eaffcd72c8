//! A flow to a KCP that acknowledges at intervals, as different implementations do it, in virtual time.

use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::{Command, Header, segments};
use whitewater::kcp::{Config, Congestion, Conv, Kcp, Millis, Recovery, Sn};
use whitewater::machine::DatagramQueue;
use whitewater_sim::scenario::percentile;
use whitewater_sim::{Drive, KcpEnd, Link, LinkConfig, Loss, Pair, Peer};

/// How a receiver acknowledges.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rule {
    /// Ours; its owner reads the socket only at intervals, as a game loop does.
    Ours,
    /// Every segment, at the next flush. Source: ikcp.c `ikcp_flush`.
    Ikcp,
    /// At the next flush: the last received segment, and of the others those that `una` does not cover.
    /// Source: kcp-go `KCP.flush`.
    KcpGo,
}

/// What is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flow {
    /// 700 messages of 100 bytes at 60 Hz.
    Input,
    /// 240 messages of 1200 bytes at 20 Hz.
    Snapshots,
    /// 3000 messages of 1200 bytes at once, without the congestion window.
    Bulk,
    /// The same with the congestion window.
    BulkCwnd,
}

/// A flow over a path to a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) rule: Rule,
    /// ms.
    pub(crate) beat: u64,
    /// Round trip of the path, and the jitter added in each direction, in order, ms.
    pub(crate) rtt: u64,
    pub(crate) jitter: u64,
    /// Loss in each direction.
    pub(crate) loss: f64,
    pub(crate) flow: Flow,
}

/// The results of a flow, over some seeds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Segments that were resent.
    pub(crate) resent: u64,
    pub(crate) messages: u64,
    /// From `send` until the message can be read, sorted.
    pub(crate) latencies: Vec<Duration>,
    /// Until the last message could be read, all seeds added up.
    pub(crate) took: Duration,
}

impl Outcome {
    /// ms.
    pub(crate) fn p99(&self) -> f64 {
        percentile(&self.latencies, 0.99).as_secs_f64() * 1000.0
    }

    pub(crate) fn mean(&self) -> f64 {
        self.latencies.iter().sum::<Duration>().as_secs_f64() * 1000.0 / self.latencies.len().max(1) as f64
    }
}

impl Cell {
    pub(crate) fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for rule in [Rule::Ours, Rule::Ikcp, Rule::KcpGo] {
            for flow in [Flow::Input, Flow::Snapshots, Flow::Bulk, Flow::BulkCwnd] {
                for beat in [10, 20, 30, 40, 100] {
                    for rtt in [2, 10, 20, 60] {
                        for jitter in [0, 5] {
                            for loss in [0.0, 0.01, 0.05, 0.2] {
                                cells.push(Self { rule, beat, rtt, jitter, loss, flow });
                            }
                        }
                    }
                }
            }
        }
        cells
    }

    /// The same flow, sent with loss detection by timing and as ikcp.c would send it.
    pub(crate) fn beside_classic(&self, seeds: impl Iterator<Item = u64> + Clone) -> [Outcome; 2] {
        let congestion = if self.flow == Flow::BulkCwnd { Congestion::Kcp } else { Congestion::None };
        let config = Config { congestion, snd_queue: 4096, ..Config::default() };
        [(config, Drive::CHECK), (Config { recovery: Recovery::Classic, ..config }, Drive::BEAT)]
            .map(|(config, drive)| self.run(&config, drive, seeds.clone()))
    }

    pub(crate) fn run(&self, config: &Config, drive: Drive, seeds: impl Iterator<Item = u64>) -> Outcome {
        let mut outcome = Outcome::default();
        for seed in seeds {
            self.run_once(config, drive, seed, &mut outcome);
        }
        outcome.latencies.sort_unstable();
        outcome
    }

    fn run_once(&self, config: &Config, drive: Drive, seed: u64, outcome: &mut Outcome) {
        let (count, len, gap) = match self.flow {
            Flow::Input => (700, 100, 16_667),
            Flow::Snapshots => (240, 1200, 50_000),
            Flow::Bulk | Flow::BulkCwnd => (3000, 1200, 0),
        };
        let path = LinkConfig {
            jitter: Duration::from_millis(self.jitter),
            loss: if self.loss > 0.0 { Loss::Random(self.loss) } else { Loss::None },
            ..LinkConfig::with_rtt(Duration::from_millis(self.rtt))
        };
        let links = [1, 2].map(|stream| Link::new(path.clone(), seed, stream).unwrap());
        // Two independent phases.
        let first = Time::from_micros(seed * 7919 % (self.beat * 1000));
        let alice = KcpEnd::new(CONV, config, drive, Time::from_micros(seed * 104_729 % 10_000)).unwrap();
        let mut pair = Pair::new(alice, Receiver::new(self.rule, self.beat, first), links);
        let mut sent = Vec::new();
        let mut message = vec![0; len];
        let end = Time::from_millis(600_000);
        for index in 0..count {
            let at = Time::from_micros(20_000 + u64::from(index) * gap);
            pair.run_to(at);
            message[..4].copy_from_slice(&u32::to_le_bytes(index));
            pair.alice.send(at, &message).unwrap();
            sent.push(at);
        }
        pair.run_until(end.since(pair.now()), |pair| pair.bob.arrived.len() == sent.len());
        assert_eq!(pair.bob.arrived.len(), sent.len(), "{self:?}, seed {seed}");
        outcome.resent += pair.alice.resends();
        outcome.messages += sent.len() as u64;
        outcome.took += pair.bob.arrived.last().unwrap().since(sent[0]);
        let latencies = pair.bob.arrived.iter().zip(&sent).map(|(arrived, sent)| arrived.since(*sent));
        outcome.latencies.extend(latencies);
    }
}

/// A receiver that reads at once and acknowledges by its rule.
pub(crate) struct Receiver {
    rule: Rule,
    kcp: Kcp<DatagramQueue>,
    /// kcp-go: what it must acknowledge.
    acks: Vec<(Sn, Millis)>,
    /// Ours: datagrams waiting in the socket.
    socket: Vec<Vec<u8>>,
    out: Vec<Vec<u8>>,
    next: Time,
    beat: Duration,
    /// When each message could be read.
    pub(crate) arrived: Vec<Time>,
}

impl Receiver {
    fn new(rule: Rule, beat: u64, first: Time) -> Self {
        let config = Config { snd_wnd: 32, rcv_wnd: 256, snd_queue: 4096, ..Config::default() };
        let recovery = if rule == Rule::Ours { config.recovery } else { Recovery::Classic };
        let config = Config { recovery, ..config };
        Self {
            rule,
            kcp: Kcp::new(CONV, &config, DatagramQueue::with_limit(usize::MAX)).unwrap(),
            acks: Vec::new(),
            socket: Vec::new(),
            out: Vec::new(),
            next: first,
            beat: Duration::from_millis(beat),
            arrived: Vec::new(),
        }
    }

    fn take(&mut self, now: Time, datagram: &[u8]) {
        self.kcp.input(now, datagram).unwrap();
        let mut message = [0; 1500];
        while self.kcp.recv_into(&mut message).is_ok() {
            let index = u32::from_le_bytes(*message.first_chunk().unwrap());
            assert_eq!(index as usize, self.arrived.len());
            self.arrived.push(now);
        }
    }

    fn flush_as_kcp_go(&mut self) {
        let una = self.kcp.stats().rcv_nxt;
        let last = self.acks.len().wrapping_sub(1);
        let mut datagram = Vec::new();
        for (at, (sn, ts)) in self.acks.drain(..).enumerate() {
            if !sn.is_before(una) || at == last {
                let header = Header { conv: CONV, cmd: Command::Ack, frg: 0, wnd: 256, ts, sn, una };
                datagram.extend(header.to_bytes(0));
            }
            if datagram.len() + 24 > 1400 {
                self.out.push(std::mem::take(&mut datagram));
            }
        }
        if !datagram.is_empty() {
            self.out.push(datagram);
        }
    }
}

impl Peer for Receiver {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        if self.rule == Rule::Ours {
            return self.socket.push(datagram.to_vec());
        }
        if self.rule == Rule::KcpGo {
            let pushes =
                segments(datagram).map(Result::unwrap).filter(|segment| segment.header.cmd == Command::Push);
            self.acks.extend(pushes.map(|segment| (segment.header.sn, segment.header.ts)));
        }
        self.take(now, datagram);
    }

    fn poll(&mut self, now: Time) {
        self.next = now + self.beat;
        for datagram in std::mem::take(&mut self.socket) {
            self.take(now, &datagram);
        }
        match self.rule {
            Rule::KcpGo => self.flush_as_kcp_go(),
            Rule::Ikcp => self.kcp.flush(now),
            Rule::Ours => self.kcp.update(now),
        }
        while let Some(datagram) = self.kcp.output_mut().pop() {
            self.out.push(datagram.to_vec());
        }
    }

    fn next_wake(&self, _now: Time) -> Option<Time> {
        Some(self.next)
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        let Some(next) = (!self.out.is_empty()).then(|| self.out.remove(0)) else { return false };
        *datagram = next;
        true
    }
}

const CONV: Conv = Conv(0x1122_3344);
