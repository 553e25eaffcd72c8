//! KCP by others at the other end: the crate `kcp` 0.6, a port of ikcp.c.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{CONV, Raw, clean, kcp, lossy, numbered, presets, raw_segments, repairing, rough};
use std::io;
use std::sync::mpsc;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, Congestion, Kcp};
use whitewater::machine::DatagramQueue;
use whitewater_sim::{Link, LinkConfig};

/// The output of the other end.
struct Out(mpsc::Sender<Vec<u8>>);

impl io::Write for Out {
    fn write(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.0.send(datagram.to_vec()).unwrap();
        Ok(datagram.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ours and theirs with the same settings, and the path between them; one step is 1 ms.
struct Match {
    ours: Kcp<DatagramQueue>,
    theirs: kcp::Kcp<Out>,
    from_theirs: mpsc::Receiver<Vec<u8>>,
    there: Link,
    back: Link,
    now: u32,
    seed: u64,
    /// Whether messages are read as they arrive.
    reads: bool,
    /// Whether ours is falsely told that theirs can rebuild segments, and that a tenth gets lost.
    is_lied_to: bool,
    /// What each end received.
    at_ours: Vec<Vec<u8>>,
    at_theirs: Vec<Vec<u8>>,
}

impl Match {
    fn new(config: &Config, link: LinkConfig, seed: u64) -> Self {
        let (sender, from_theirs) = mpsc::channel();
        let new = if config.stream { kcp::Kcp::new_stream } else { kcp::Kcp::new };
        let mut theirs = new(CONV, Out(sender));
        let fast_resend = config.fast_resend.into();
        theirs.set_nodelay(
            config.nodelay > 0,
            config.interval.into(),
            fast_resend,
            config.congestion == Congestion::None,
        );
        theirs.set_wndsize(config.snd_wnd, config.rcv_wnd);
        theirs.set_mtu(config.mtu.into()).unwrap();
        theirs.update(0).unwrap();
        Self {
            ours: kcp(config),
            theirs,
            from_theirs,
            there: Link::new(link.clone(), seed, 1).unwrap(),
            back: Link::new(link, seed, 2).unwrap(),
            now: 0,
            seed,
            reads: true,
            is_lied_to: false,
            at_ours: Vec::new(),
            at_theirs: Vec::new(),
        }
    }

    fn step(&mut self) {
        self.now += 1;
        let now = Time::from_millis(self.now.into());
        while let Some(datagram) = self.there.arrive(now) {
            assert_eq!(self.theirs.input(datagram).unwrap(), datagram.len());
        }
        while let Some(datagram) = self.back.arrive(now) {
            assert_eq!(self.ours.input(now, datagram), Ok(()), "an honest datagram");
        }
        if self.reads {
            self.read();
        }
        if self.ours.check(now).is_some_and(|at| at <= now) {
            self.ours.update(now);
        }
        self.theirs.update(self.now).unwrap();
        while let Some(datagram) = self.ours.output_mut().pop() {
            self.there.send(now, datagram);
        }
        for datagram in self.from_theirs.try_iter() {
            let datagram = if self.is_lied_to { marked(datagram) } else { datagram };
            self.back.send(now, &datagram);
        }
    }

    fn read(&mut self) {
        while let Some(message) = self.ours.recv() {
            self.at_ours.push(message.to_vec());
        }
        while let Ok(len) = self.theirs.peeksize() {
            let mut message = vec![0; len];
            assert_eq!(self.theirs.recv(&mut message).unwrap(), len);
            self.at_theirs.push(message);
        }
    }

    /// Runs until both ends have nothing left to send.
    fn run_until_quiet(&mut self, limit: Duration) -> bool {
        let until = u128::from(self.now) + limit.as_millis();
        while self.ours.wait_snd() + self.theirs.wait_snd() > 0
            || !self.there.is_empty()
            || !self.back.is_empty()
        {
            self.step();
            if u128::from(self.now) > until {
                return false;
            }
        }
        true
    }
}

impl Drop for Match {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("failed at {} ms of seed {}: {:?}", self.now, self.seed, self.ours.stats());
        }
    }
}

/// The same with ACKs marked like those of a peer that rebuilds segments.
fn marked(datagram: Vec<u8>) -> Vec<u8> {
    let mut segments = raw_segments([datagram]);
    for ack in segments.iter_mut().filter(|segment| segment.cmd == Command::Ack) {
        assert_eq!(ack.frg, 0, "KCP marks nothing");
        ack.frg = 26;
    }
    Raw::datagram(&segments)
}

/// Lengths from zero to many fragments.
fn messages(count: usize, salt: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| numbered(salt + number, number * 397 % 6000)).collect()
}

/// As in ikcp.c, by timing, and with repairs.
fn recoveries() -> [Config; 3] {
    [configs::classic_turbo(), configs::turbo(), repairing(100)]
}

/// Checks that what each end sends arrives at the other. Returns how many segments ours resent, and of how
/// many.
fn exchange(config: &Config, link: LinkConfig, seed: u64) -> (u32, u32) {
    let mut game = Match::new(config, link, seed);
    let (to_theirs, to_ours) = (messages(80, 0), messages(80, 1000));
    for (message, reply) in to_theirs.iter().zip(&to_ours) {
        assert_eq!(game.ours.send(message), Ok(message.len()));
        assert_eq!(game.theirs.send(reply).unwrap(), reply.len());
        (0..5).for_each(|_| game.step());
    }
    assert!(game.run_until_quiet(Duration::from_secs(900)), "never went quiet");
    if config.stream {
        assert!(game.at_theirs.concat() == to_theirs.concat() && game.at_ours.concat() == to_ours.concat());
    } else {
        assert!(game.at_theirs == to_theirs && game.at_ours == to_ours);
    }
    let stats = game.ours.stats();
    assert_eq!(stats.rejected.total(), u64::from(stats.rejected.window), "{stats:?}");
    assert_eq!(stats.rebuilt, 0, "theirs sends no repairs");
    (stats.resends_fast + stats.resends_timeout, stats.snd_una.0)
}

#[test]
fn everything_is_exchanged_with_the_crate_kcp_at_10_percent_loss_with_every_preset() {
    for (name, config) in presets() {
        for seed in 1..=3 {
            let config = Config { snd_wnd: 128, ..config };
            let (resends, segments) = exchange(&config, lossy(0.1), seed);
            assert!((10..=segments / 2).contains(&resends), "{name}: {resends} resends of {segments}");
        }
    }
}

#[test]
fn streams_are_exchanged_with_the_crate_kcp_at_10_percent_loss_with_every_preset() {
    for (name, config) in presets() {
        for seed in 1..=3 {
            let config = Config { snd_wnd: 128, stream: true, ..config };
            let (resends, segments) = exchange(&config, lossy(0.1), seed);
            assert!((10..=segments / 2).contains(&resends), "{name}: {resends} resends of {segments}");
        }
    }
}

#[test]
fn nothing_is_resent_to_the_crate_kcp_on_a_clean_link() {
    for (name, config) in presets() {
        for stream in [false, true] {
            let config = Config { snd_wnd: 128, stream, ..config };
            assert_eq!(exchange(&config, clean(), 1).0, 0, "{name}");
        }
    }
}

#[test]
fn the_crate_kcp_ignores_repairs() {
    let config = Config { snd_wnd: 128, ..repairing(100) };
    let mut game = Match::new(&config, lossy(0.1), 1);
    game.is_lied_to = true;
    let (to_theirs, to_ours) = (messages(200, 0), messages(200, 1000));
    for (message, reply) in to_theirs.iter().zip(&to_ours) {
        game.ours.send(message).unwrap();
        game.theirs.send(reply).unwrap();
        (0..5).for_each(|_| game.step());
    }
    assert!(game.run_until_quiet(Duration::from_secs(60)), "never went quiet");
    assert!(game.at_theirs == to_theirs && game.at_ours == to_ours);
    let stats = game.ours.stats();
    assert!(stats.repairs_sent > 100 && stats.rejected.ts_age == 0, "{stats:?}");
}

#[test]
fn messages_to_the_crate_kcp_arrive_over_a_mobile_link_with_any_mtu() {
    for (recovery, (seed, mtu)) in
        recoveries().into_iter().flat_map(|config| [(1, 50), (2, 576), (3, 1500)].map(|mtu| (config, mtu)))
    {
        let config = Config { snd_wnd: 128, rcv_wnd: 256, mtu, snd_queue: 1 << 16, ..recovery };
        let mut game = Match::new(&config, rough(), seed);
        let sent: Vec<_> = (0..100).map(|number| numbered(number, number * 31 % 2600)).collect();
        for message in &sent {
            game.ours.send(message).unwrap();
            game.theirs.send(message).unwrap();
            game.step();
        }
        assert!(game.run_until_quiet(Duration::from_secs(60)), "never went quiet");
        assert!(game.at_theirs == sent && game.at_ours == sent, "mtu {mtu}");
    }
}

/// Bursts, reordering and duplicates, and half a minute in which nothing comes through.
#[test]
fn messages_to_the_crate_kcp_arrive_over_the_worst_paths() {
    let late = LinkConfig { reorder: 0.3, late: Duration::from_millis(40), ..lossy(0.05) };
    for (config, seed) in recoveries().into_iter().flat_map(|config| [1, 2].map(|seed| (config, seed))) {
        let config = Config { snd_wnd: 128, ..config };
        exchange(&config, LinkConfig { duplicate: 0.2, ..late.clone() }, seed);
        exchange(&config, lossy(0.4), seed);
        let mut game = Match::new(&config, rough(), seed);
        let (to_theirs, to_ours) = (messages(60, 0), messages(60, 1000));
        for (number, (message, reply)) in to_theirs.iter().zip(&to_ours).enumerate() {
            let loss = if (20..30).contains(&number) { 1.0 } else { 0.05 };
            game.there.set(lossy(loss)).unwrap();
            game.back.set(lossy(loss)).unwrap();
            game.ours.send(message).unwrap();
            game.theirs.send(reply).unwrap();
            (0..if loss < 1.0 { 20 } else { 3000 }).for_each(|_| game.step());
        }
        assert!(game.run_until_quiet(Duration::from_secs(900)), "never went quiet");
        assert!(game.at_theirs == to_theirs && game.at_ours == to_ours);
    }
}

#[test]
fn a_closed_window_at_either_end_reopens_for_the_other() {
    let sent: Vec<_> = (0..400).map(|number| numbered(number, 100)).collect();
    for (config, ours_sends) in
        recoveries().into_iter().flat_map(|config| [true, false].map(|ours| (config, ours)))
    {
        let config = Config { snd_wnd: 256, ..config };
        let mut game = Match::new(&config, clean(), 1);
        game.reads = false;
        for message in &sent {
            if ours_sends {
                game.ours.send(message).unwrap();
            } else {
                game.theirs.send(message).unwrap();
            }
        }
        (0..1000).for_each(|_| game.step());
        if ours_sends {
            assert_eq!(game.ours.stats().rmt_wnd, 0);
        } else {
            assert_eq!((game.ours.stats().rcv_queue, game.theirs.rmt_wnd()), (128, 0));
        }
        game.reads = true;
        assert!(game.run_until_quiet(Duration::from_secs(1)), "never went quiet");
        game.step();
        assert!(if ours_sends { &game.at_theirs } else { &game.at_ours } == &sent);
    }
}
