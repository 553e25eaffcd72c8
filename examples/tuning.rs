//! The effect of each setting on latency and bytes: two control blocks with a lossy link between them, in virtual time
//! and without a socket. The same seeds give the same figures. Prints the tables of docs/TUNING.md: all of them, or
//! those of the named settings.
//!
//! ```text
//! cargo run --release --example tuning [-- KNOB..]
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Display;
use std::time::Duration;
use whitewater::Repairs;
use whitewater::Time;
use whitewater::kcp::{Config, Congestion, Conv, Kcp, Modern, Recovery};
use whitewater::machine::DatagramQueue;

fn main() -> Result<(), Box<dyn Error>> {
    let (knobs, wanted) = (knobs(), std::env::args().skip(1).collect::<Vec<_>>());
    let names: Vec<_> = knobs.iter().map(|knob| knob.name).chain(["dead_link"]).collect();
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("there is no knob '{unknown}'; there are {}", names.join(", ")).into());
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    for knob in knobs.iter().filter(|knob| is_wanted(knob.name)) {
        print_knob(knob)?;
    }
    if is_wanted("dead_link") { print_dead_link() } else { Ok(()) }
}

/// A setting and its value; the others are those of [`fast2`] and [`CHECK`].
struct Knob {
    name: &'static str,
    loads: &'static [Load],
    values: Vec<(String, Config, Drive)>,
}

/// When a program calls its control block, and whether it flushes each time.
#[derive(Clone, Copy)]
struct Drive {
    /// Only at this interval, including messages to send, like a game loop. `None`: at every message and datagram, and
    /// when `check` says, as `whitewater::net` does.
    beat: Option<Duration>,
    flush: bool,
}

const CHECK: Drive = Drive { beat: None, flush: false };

/// What is sent: messages of `size` bytes for a minute.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    count: u32,
    size: usize,
}

const INPUTS: Load = Load { name: "60 Hz x 100 B", count: 3600, size: 100 };
const SNAPSHOTS: Load = Load { name: "20 Hz x 1200 B", count: 1200, size: 1200 };
const MAPS: Load = Load { name: "1 Hz x 60 kB", count: 60, size: 60_000 };

/// (1, 20, 2, 1).
fn fast2() -> Config {
    Config::classic().nodelay(1, 20, 2, true)
}

/// (1, 10, 2, 1).
fn fast() -> Config {
    Config::classic().nodelay(1, 10, 2, true)
}

fn knobs() -> Vec<Knob> {
    let game: &[Load] = &[INPUTS, SNAPSHOTS];
    let bulk: &[Load] = &[SNAPSHOTS, MAPS];
    let (ms, frame) = (Some(Duration::from_millis(1)), Some(MINUTE / INPUTS.count));
    let presets = [
        ("classic", Config::classic()),
        ("fast2", fast2()),
        ("fast", fast()),
        ("by time", Config { recovery: Recovery::default(), ..fast() }),
    ];
    let drives = [
        ("check", CHECK),
        ("check, flush", Drive { beat: None, flush: true }),
        ("1 ms", Drive { beat: ms, flush: false }),
        ("frame", Drive { beat: frame, flush: false }),
        ("frame, flush", Drive { beat: frame, flush: true }),
    ];
    let preset = |(name, config): (&str, _)| (name.to_owned(), config, CHECK);
    let drive = |(name, drive): (&str, _)| (name.to_owned(), fast2(), drive);
    vec![
        Knob { name: "preset", loads: game, values: presets.map(preset).into() },
        Knob { name: "by time", loads: &[INPUTS, MAPS], values: by_time().map(preset).into() },
        Knob { name: "drive", loads: game, values: drives.map(drive).into() },
        knob("interval", game, [10, 20, 40, 100], |config, ms| config.interval = ms),
        knob("nodelay", game, [0, 1, 2], |config, nodelay| config.nodelay = nodelay),
        knob("fast_resend", game, [0, 1, 2, 3], |config, count| config.fast_resend = count),
        knob("fast_limit", game, [0, 1, 5], |config, sends| config.fast_limit = sends),
        knob("min_rto", game, [10, 30, 100, 200], |config, ms| config.min_rto = Some(ms)),
        knob("nc", bulk, [false, true], |config, nc| {
            config.congestion = if nc { Congestion::None } else { Congestion::Kcp };
        }),
        knob("stream", game, [false, true], |config, stream| config.stream = stream),
        knob("mtu", bulk, [600, 1000, 1200, 1400], |config, mtu| config.mtu = mtu),
        knob("snd_wnd", bulk, [8, 16, 32, 64], |config, segments| config.snd_wnd = segments),
        // A map then has 105 segments, most of the smallest window.
        knob("rcv_wnd", &[MAPS], [128, 256, 512], |config, segments| {
            (config.mtu, config.rcv_wnd) = (600, segments);
        }),
    ]
}

/// Modern recovery, with each of its settings changed.
fn by_time() -> [(&'static str, Config); 5] {
    let all = Modern::default();
    let with = |modern| Config { recovery: Recovery::Modern(modern), ..fast() };
    [
        ("as it is", with(all)),
        ("at_once off", with(Modern { at_once: false, ..all })),
        ("repairs off", with(Modern { repairs: Repairs::Off, ..all })),
        ("repairs 30", with(Modern { repairs: Repairs::Budget(30), ..all })),
        ("repairs 100", with(Modern { repairs: Repairs::Budget(100), ..all })),
    ]
}

fn knob<T: Display + Copy, const N: usize>(
    name: &'static str,
    loads: &'static [Load],
    values: [T; N],
    turn: fn(&mut Config, T),
) -> Knob {
    let turned = |value: T| {
        let mut config = fast2();
        turn(&mut config, value);
        (value.to_string(), config, CHECK)
    };
    Knob { name, loads, values: values.map(turned).into() }
}

fn print_knob(knob: &Knob) -> Result<(), Box<dyn Error>> {
    let mut head = format!("| loss | {} |", knob.name);
    for load in knob.loads {
        head += &format!(" {}: mean | p50 | p99 | max | bytes | resends |", load.name);
    }
    println!("{head}\n|---|---|{}", "---:|".repeat(6 * knob.loads.len()));
    for loss in [0, 5, 10] {
        for (value, config, drive) in &knob.values {
            let mut row = format!("| {loss} % | {value} |");
            for load in knob.loads {
                let mut figures = Figures::default();
                for seed in 0..RUNS {
                    let [alice, bob] = [2 * seed, 2 * seed + 1].map(Chance);
                    let loss = f64::from(loss) / 100.0;
                    let ends = [End::new(config, *drive, loss, alice)?, End::new(config, *drive, loss, bob)?];
                    figures.run(ends, load)?;
                }
                row += &figures.row(load);
            }
            println!("{row}");
        }
    }
    println!();
    Ok(())
}

/// The measurements of all runs together.
#[derive(Default)]
struct Figures {
    /// The time of each message from `send` to the `recv` that returned it.
    latencies: Vec<Duration>,
    /// Both directions, with 28 bytes of IP and UDP headers per datagram.
    wire_bytes: usize,
    resends: u32,
}

impl Figures {
    /// Runs a minute of `load` from one end to the other, until everything has arrived.
    fn run(&mut self, [mut alice, mut bob]: [End; 2], load: &Load) -> Result<(), Box<dyn Error>> {
        let in_frames = alice.drive.beat.is_some();
        let (message, mut buf) = (vec![0x5a; load.size], vec![0; 1 << 16]);
        let (mut sent, mut received, mut next) = (Vec::new(), 0, START);
        while received < load.count as usize * load.size {
            let more = sent.len() < load.count as usize;
            let send = Some(next).filter(|_| more && !in_frames);
            let Some(now) = [send, alice.next(), bob.next()].into_iter().flatten().min() else {
                return Err("nothing is left to do, and not everything has arrived".into());
            };
            let looks = send == Some(now) || alice.next() == Some(now);
            if looks && more && next <= now {
                let mut rest = &message[..];
                while !rest.is_empty() {
                    rest = rest.get(alice.kcp.send(rest)?..).unwrap_or_default(); // a stream may take less
                }
                sent.push(now);
                next = next + MINUTE / load.count;
            }
            if looks {
                alice.step(now, &mut bob)?;
            }
            if bob.next() == Some(now) {
                bob.step(now, &mut alice)?;
            }
            while let Ok(len) = bob.kcp.recv_into(&mut buf) {
                let whole = received / load.size..(received + len) / load.size;
                self.latencies.extend(sent.get(whole).unwrap_or_default().iter().map(|at| now.since(*at)));
                received += len;
                if !in_frames {
                    bob.wake = bob.kcp.check(now); // reading may have opened the window
                }
            }
        }
        let stats = alice.kcp.stats();
        self.resends += stats.resends_timeout + stats.resends_fast;
        self.wire_bytes += alice.wire_bytes + bob.wire_bytes;
        Ok(())
    }

    fn row(&mut self, load: &Load) -> String {
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let percentile =
            |percent| self.latencies.get((count - 1) * percent / 100).copied().map_or(f64::NAN, ms);
        format!(
            " {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {:.0} |",
            self.latencies.iter().copied().map(ms).sum::<f64>() / count as f64,
            percentile(50),
            percentile(99),
            percentile(100),
            self.wire_bytes as f64 / (count * load.size) as f64,
            f64::from(self.resends) * 1000.0 / count as f64,
        )
    }
}

/// One end: a control block, its driver, and the link that leads to it.
struct End {
    kcp: Kcp<DatagramQueue>,
    drive: Drive,
    /// When the driver calls next, unless a datagram arrives before.
    wake: Option<Time>,
    /// Datagrams on their way here, in the order of arrival and then of sending.
    inbox: BTreeMap<(Time, usize), Vec<u8>>,
    loss: f64,
    chance: Chance,
    wire_bytes: usize,
}

impl End {
    fn new(config: &Config, drive: Drive, loss: f64, mut chance: Chance) -> Result<Self, Box<dyn Error>> {
        let kcp = Kcp::new(Conv(1), config, DatagramQueue::new())?;
        let (wake, inbox) =
            (Some(Time::ZERO + START.since(Time::ZERO).mul_f64(chance.next())), BTreeMap::new());
        Ok(Self { kcp, drive, wake, inbox, loss, chance, wire_bytes: 0 })
    }

    /// When the driver calls next.
    fn next(&self) -> Option<Time> {
        let arrival = self.inbox.keys().next().map(|(at, _)| *at);
        self.wake.into_iter().chain(arrival.filter(|_| self.drive.beat.is_none())).min()
    }

    /// A step of the driver: datagrams in, the time, datagrams out.
    fn step(&mut self, now: Time, peer: &mut Self) -> Result<(), Box<dyn Error>> {
        while let Some(entry) = self.inbox.first_entry().filter(|entry| entry.key().0 <= now) {
            self.kcp.input(now, &entry.remove())?;
        }
        self.kcp.update(now);
        if self.drive.flush {
            self.kcp.flush(now);
        }
        while let Some(datagram) = self.kcp.output_mut().pop() {
            self.wire_bytes += datagram.len() + IP_AND_UDP;
            let (lost, late) = (self.chance.next() < self.loss, JITTER.mul_f64(self.chance.next()));
            if !lost {
                peer.inbox.insert((now + DELAY + late, self.wire_bytes), datagram.to_vec());
            }
        }
        self.wake = match self.drive.beat {
            Some(beat) => Some(now + beat),
            None => self.kcp.check(now),
        };
        Ok(())
    }
}

/// How long sending to nobody continues until the link counts as dead.
fn print_dead_link() -> Result<(), Box<dyn Error>> {
    println!("| nodelay | dead_link 5 | dead_link 10 | dead_link 20 |\n|---|---:|---:|---:|");
    for nodelay in 0..=2 {
        let mut row = format!("| {nodelay} |");
        for dead_link in [5, 10, 20] {
            let config = Config { nodelay, dead_link, ..fast2() };
            let mut kcp = Kcp::new(Conv(1), &config, |_: &[u8]| ())?;
            kcp.send(b"anybody there?")?;
            let mut now = Time::ZERO;
            kcp.update(now);
            while let Some(next) = kcp.check(now).filter(|_| !kcp.is_dead()) {
                now = next;
                kcp.update(now);
            }
            row += &format!(" {:.1} s |", now.since(Time::ZERO).as_secs_f64());
        }
        println!("{row}");
    }
    Ok(())
}

/// Numbers from 0 to 1 that only depend on the seed. Source: splitmix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }
}

const RUNS: u64 = 20;
const MINUTE: Duration = Duration::from_secs(60);
/// When the first message is sent; by then the flush intervals of both ends have begun.
const START: Time = Time::from_millis(100);
/// One-way delay: half of a round trip of 60 ms. Each datagram gets up to 10 ms more, independently.
const DELAY: Duration = Duration::from_millis(30);
const JITTER: Duration = Duration::from_millis(10);
const IP_AND_UDP: usize = 28;
