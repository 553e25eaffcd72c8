//! The command line.

use crate::modes::describe;
use crate::relay::Link;
use std::fmt::{Display, Write as _};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use whitewater::Repairs;
use whitewater::kcp::{Congestion, Modern};
use whitewater_sim::scenario::{Answer, Mode, Traffic, Workload};
use whitewater_sim::{LinkConfig, Loss};

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Run(Box<Args>),
    /// One run, with a log of what its sender does.
    Events(Box<Events>),
    /// A picture of an existing log.
    Plot(Plot),
}

/// A run with an event log.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) workload: Workload,
    /// Both directions.
    pub(crate) link: LinkConfig,
    pub(crate) mode: Mode,
    pub(crate) seed: u64,
    pub(crate) log: PathBuf,
    /// Whether to draw it as well.
    pub(crate) plot: Option<Plot>,
}

/// A log of events and a picture of it.
#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) log: PathBuf,
    pub(crate) out: PathBuf,
    /// Which channel, in the log of a session.
    pub(crate) channel: u64,
    pub(crate) title: String,
}

/// What to measure, and where to write it.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) workload: Workload,
    /// Both directions in virtual time.
    pub(crate) link: LinkConfig,
    /// Both directions over UDP.
    pub(crate) relay: Link,
    pub(crate) modes: Vec<Mode>,
    pub(crate) seeds: u64,
    pub(crate) out: PathBuf,
    /// Whether to use UDP sockets instead of the simulator.
    pub(crate) real: bool,
    link_name: String,
}

impl Args {
    /// Parses the command line. An error is one line that says what is wrong.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Command, String> {
        let mut words = words.into_iter().peekable();
        let mut given = Vec::new();
        while let Some(word) = words.next() {
            if matches!(word.as_str(), "-h" | "--help") {
                return Ok(Command::Help);
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            let value = match (name.as_str(), value) {
                ("--real", None) => String::new(),
                ("--real", Some(_)) => return Err("--real takes no value".to_owned()),
                ("--plot", None) => words.next_if(|word| !word.starts_with("--")).unwrap_or_default(),
                (name, _) if !FLAGS.contains(&name) => return Err(format!("there is no flag {name}")),
                (_, Some(value)) => value,
                (name, None) => words.next().ok_or_else(|| format!("{name} wants a value"))?,
            };
            if given.iter().any(|(other, _)| *other == name) {
                return Err(format!("{name} is there twice"));
            }
            given.push((name, value));
        }
        let flags = Flags(given);
        flags.check_events()?;
        match (flags.value("--events"), flags.value("--plot")) {
            (None, None) => Ok(Command::Run(Box::new(Self::from_flags(&flags)?))),
            (None, Some(log)) => Ok(Command::Plot(flags.plot(log, log.to_owned())?)),
            (Some(log), _) => Ok(Command::Events(Box::new(flags.events(log)?))),
        }
    }

    fn from_flags(flags: &Flags) -> Result<Self, String> {
        let real = flags.value("--real").is_some();
        if let Some(flag) = ["--link", "--seeds"].into_iter().find(|flag| real && flags.value(flag).is_some())
        {
            return Err(format!("{flag} has no meaning with --real"));
        }
        let (link, link_name) = flags.link()?;
        let loss = if let Loss::Random(loss) = link.loss { loss } else { 0.0 };
        let args = Self {
            workload: flags.workload(real.then_some(10))?,
            relay: Link { loss, delay: link.delay, jitter: link.jitter, seed: 1 },
            link,
            modes: flags.modes()?,
            seeds: flags.number("--seeds", 1, 100)?.unwrap_or(10),
            out: flags.value("--out").unwrap_or("latency.svg").into(),
            real,
            link_name,
        };
        if args.out.as_os_str().is_empty() {
            return Err("--out wants the name of a file".to_owned());
        }
        Ok(args)
    }

    /// Describes in a line what was measured.
    pub(crate) fn title(&self) -> String {
        let Workload { traffic, .. } = self.workload;
        let time = traffic.at(traffic.count).as_secs_f64();
        let how = match (self.real, self.seeds) {
            (true, _) => "over UDP".to_owned(),
            (_, 1) => "1 run".to_owned(),
            (_, seeds) => format!("{seeds} runs"),
        };
        format!("{} for {time:.0} s; each way {}; {how}", describe(&self.workload), self.link_name)
    }
}

struct Flags(Vec<(String, String)>);

/// For event logs.
impl Flags {
    /// Checks that the flags of a run, of a log and of a picture go together.
    fn check_events(&self) -> Result<(), String> {
        let has = |name: &str| self.value(name).is_some();
        let without = |flags: &[&'static str], what: &str| {
            let found = flags.iter().find(|flag| has(flag));
            found.map_or(Ok(()), |flag| Err(format!("{flag} has no meaning {what}")))
        };
        match (self.value("--events"), self.value("--plot")) {
            (None, None) => without(&["--seed", "--channel"], "without --events or --plot"),
            (None, Some("")) => Err("--plot wants a log: --plot FILE, or --events FILE --plot".to_owned()),
            (None, Some(_)) => {
                without(&[&RUN[..], &["--real", "--seeds", "--seed"]].concat(), "with --plot FILE")
            }
            (Some(""), _) => Err("--events wants the name of a file".to_owned()),
            (Some(_), Some(log)) if !log.is_empty() => Err("--plot draws what --events writes".to_owned()),
            (Some(_), None) => without(&["--real", "--seeds", "--channel", "--out"], "with --events alone"),
            (Some(_), Some(_)) => without(&["--real", "--seeds", "--channel"], "with --events"),
        }
    }

    fn plot(&self, log: &str, title: String) -> Result<Plot, String> {
        let log = PathBuf::from(log);
        let out = self.value("--out").map_or_else(|| log.with_extension("svg"), PathBuf::from);
        if out.as_os_str().is_empty() || out == log {
            return Err("--out wants the name of another file".to_owned());
        }
        Ok(Plot { log, out, channel: self.number("--channel", 0, 255)?.unwrap_or(0), title })
    }

    fn events(&self, log: &str) -> Result<Events, String> {
        let name = self.value("--modes").unwrap_or("by-time");
        if name.contains(',') {
            return Err("--events is of one mode".to_owned());
        }
        let (link, link_name) = self.link()?;
        let seed = self.number("--seed", 1, u64::MAX)?.unwrap_or(1);
        let workload = match self.value("--workload") {
            Some("bulk") if self.value("--seconds").is_some() => {
                return Err("--seconds has no meaning with bulk".to_owned());
            }
            Some("bulk") => bulk(),
            _ => self.workload(Some(EVENT_SECONDS))?,
        };
        let mode = event_mode(name)?;
        let title = format!("{}, {}; each way {link_name}", describe(&workload), mode.name);
        let plot = self.value("--plot").map(|_| self.plot(log, title)).transpose()?;
        Ok(Events { workload, link, mode, seed, log: log.into(), plot })
    }
}

impl Flags {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    fn number<T: FromStr + PartialOrd + Display>(
        &self,
        name: &str,
        min: T,
        max: T,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.value(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if (&min..=&max).contains(&&number) => Ok(Some(number)),
            _ => Err(format!("{name} wants a number from {min} to {max}, not '{text}'")),
        }
    }

    fn millis(&self, name: &str) -> Result<Option<Duration>, String> {
        Ok(self.number(name, 0.0, 10_000.0)?.map(|ms: f64| Duration::from_secs_f64(ms / 1e3)))
    }

    /// The chosen preset, or that of examples/families with 60 ms and 10 %, with the changes from the command line.
    fn link(&self) -> Result<(LinkConfig, String), String> {
        let (rtt, jitter) = (self.millis("--rtt")?, self.millis("--jitter")?);
        let loss = self.number("--loss", 0.0, 90.0)?;
        let preset = self.value("--link");
        let mut link = match preset {
            None => LinkConfig { loss: Loss::Random(0.1), ..LinkConfig::with_rtt(rtt.unwrap_or(RTT)) },
            Some("lan") => LinkConfig::lan(),
            Some("wifi") => LinkConfig::wifi(),
            Some("mobile") => LinkConfig::mobile(),
            Some("congested") => LinkConfig::congested(),
            Some(name) => return Err(format!("no link '{name}': it is lan, wifi, mobile or congested")),
        };
        if preset.is_none() {
            link.jitter = link.delay / 5;
        }
        link.delay = rtt.map_or(link.delay, |rtt| rtt / 2);
        link.jitter = jitter.unwrap_or(link.jitter);
        link.loss = loss.map_or(link.loss, |percent| Loss::Random(percent / 100.0));
        let mut name = preset.map_or_else(String::new, |preset| format!("{preset}: "));
        let _ = match link.loss {
            Loss::Random(loss) => write!(name, "{} % lost", (loss * 1e6).round() / 1e4),
            _ => write!(name, "bursts of loss"),
        };
        let [delay, jitter] = [link.delay, link.jitter].map(|time| time.as_secs_f64() * 1e3);
        let _ = match jitter {
            0.0 => write!(name, ", {delay} ms"),
            _ => write!(name, ", {delay} to {} ms", ((delay + jitter) * 1e3).round() / 1e3),
        };
        Ok((link, name))
    }

    /// `seconds`: the default duration. `None`: that of the workload.
    fn workload(&self, seconds: Option<u64>) -> Result<Workload, String> {
        let mut workload = match self.value("--workload") {
            None | Some("input60") => Workload::input60(),
            Some("tiny60") => Workload::tiny60(),
            Some("snap20") => Workload::snap20(),
            Some("chunk32k") => Workload::chunk32k(),
            Some("sparse1") => Workload::sparse1(),
            Some("duplex") => Workload::duplex(),
            Some(name) => return Err(format!("no workload '{name}': it is {WORKLOADS}")),
        };
        if let Some(seconds) = self.number("--seconds", 1, 600)?.or(seconds) {
            let scaled = |traffic: Traffic| {
                let count = Duration::from_secs(seconds).as_micros() / traffic.every.as_micros().max(1);
                Traffic { count: u32::try_from(count).unwrap_or(u32::MAX).max(1), ..traffic }
            };
            workload.traffic = scaled(workload.traffic);
            workload.wanted = workload.traffic.count;
            if let Answer::Traffic(answer) = workload.answer {
                workload.answer = scaled(answer).into();
            }
        }
        Ok(workload)
    }

    fn modes(&self) -> Result<Vec<Mode>, String> {
        let names: Vec<_> = self.value("--modes").unwrap_or(MODES).split(',').collect();
        if let Some(name) = (1..).zip(&names).find_map(|(i, name)| names.iter().skip(i).find(|n| *n == name))
        {
            return Err(format!("mode {name} is there twice"));
        }
        names.into_iter().map(mode).collect()
    }
}

fn mode(name: &str) -> Result<Mode, String> {
    let repairs = |repairs| Mode::modern(Modern { repairs, ..Modern::default() });
    Ok(match name {
        "normal" => Mode::normal(),
        "fast" => Mode::fast(),
        "turbo" => Mode::turbo(),
        "turbo+flush" => Mode::turbo_flush(),
        "by-time" => repairs(Repairs::Off),
        "auto" => repairs(Repairs::Auto),
        "repairs10" => repairs(Repairs::Budget(10)),
        "repairs30" => repairs(Repairs::Budget(30)),
        "repairs100" => repairs(Repairs::Budget(100)),
        _ => return Err(format!("no mode '{name}': it is {}", MODES.replace(',', ", "))),
    })
}

const RTT: Duration = Duration::from_millis(60);
const MODES: &str = "normal,fast,turbo,turbo+flush,by-time,repairs10,repairs30,repairs100";
const WORKLOADS: &str = "input60, tiny60, snap20, chunk32k, sparse1 or duplex";
/// 660 kB at once.
const fn bulk() -> Workload {
    let traffic = Traffic { count: 60, size: 11_000, every: Duration::ZERO };
    Workload { name: "bulk", traffic, wanted: 60, ..Workload::bulk() }
}

/// The mode with this name. With a congestion controller, its window is large enough for any path.
fn event_mode(name: &str) -> Result<Mode, String> {
    let wide = || Mode::modern(Modern::default()).with_window(1024);
    Ok(match name {
        "delay" => wide().with_congestion("by time with Delay", Congestion::Delay),
        "cubic" => wide().with_congestion("by time with CUBIC", Congestion::Cubic),
        _ => mode(name).map_err(|error| format!("{error}, delay, cubic"))?,
    })
}

/// The flags that describe a run.
const RUN: [&str; 7] = ["--workload", "--loss", "--rtt", "--jitter", "--link", "--modes", "--seconds"];
const FLAGS: [&str; 13] = [
    "--workload",
    "--loss",
    "--rtt",
    "--jitter",
    "--link",
    "--modes",
    "--seconds",
    "--seeds",
    "--out",
    "--events",
    "--plot",
    "--seed",
    "--channel",
];
/// Default duration of a run with an event log.
const EVENT_SECONDS: u64 = 3;

pub(crate) const HELP: &str = "\
How long messages take in each mode, and what that costs: a table, and a picture of it.

  --workload NAME  input60, tiny60, snap20, chunk32k, sparse1 or duplex (input60)
  --loss PERCENT   datagrams lost each way, 0 to 90 (10)
  --rtt MS         round trip (60)
  --jitter MS      most of what is added each way at random (a tenth of the round trip)
  --link NAME      lan, wifi, mobile or congested, but for what the three above change
  --modes A,B,..   normal, fast, turbo, turbo+flush, by-time, repairs10, repairs30, repairs100 (all)
  --seeds N        runs of each mode, 1 to 100 (10)
  --seconds N      how long messages are sent, 1 to 600 (that of the workload; 10 with --real)
  --out FILE       the picture (latency.svg)
  --real           in real time, over UDP sockets and a relay that loses; jitter lets datagrams
                   overtake each other there, and in the simulator it does not; bytes are without
                   the headers of IP and UDP there

What a sender does, event by event (docs/EVENTS.md), and a picture of it:

  --events FILE    one run of one mode (by-time), 3 s; its log goes to FILE, as lines of JSON;
                   the workload may be bulk then (660 kB at once), the mode delay or cubic
  --seed N         which run (1)
  --plot           draw it as well: segments, round trips, windows, queues
  --plot FILE      draw a log that is there already, wherever it is from
  --channel N      the channel to draw, of the log of a session (0)
  --out FILE       the picture (that of the log, with .svg)";

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
