//! The command line.

use crate::relay::Link;
use std::fmt::{Display, Write as _};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use whitewater::Modern;
use whitewater::sim::scenario::{Answer, Mode, Traffic, Workload};
use whitewater::sim::{LinkConfig, Loss};

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Run(Box<Args>),
}

/// What is measured, and where it goes.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) workload: Workload,
    /// Both directions, in virtual time.
    pub(crate) link: LinkConfig,
    /// Both directions, over UDP.
    pub(crate) relay: Link,
    pub(crate) modes: Vec<Mode>,
    pub(crate) seeds: u64,
    pub(crate) out: PathBuf,
    /// Over UDP sockets instead of the simulator.
    pub(crate) real: bool,
    link_name: String,
}

impl Args {
    /// Reads the command line, or says in one line what is wrong with it.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Command, String> {
        let mut words = words.into_iter();
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
                (name, _) if !FLAGS.contains(&name) => return Err(format!("there is no flag {name}")),
                (_, Some(value)) => value,
                (name, None) => words.next().ok_or_else(|| format!("{name} wants a value"))?,
            };
            if given.iter().any(|(other, _)| *other == name) {
                return Err(format!("{name} is there twice"));
            }
            given.push((name, value));
        }
        Self::from_flags(&Flags(given)).map(|args| Command::Run(Box::new(args)))
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
            workload: flags.workload(real)?,
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

    /// What was measured, in a line.
    pub(crate) fn title(&self) -> String {
        let Workload { name, traffic, .. } = self.workload;
        let time = traffic.at(traffic.count).as_secs_f64();
        let how = match (self.real, self.seeds) {
            (true, _) => "over UDP".to_owned(),
            (_, 1) => "seed 1".to_owned(),
            (_, seeds) => format!("seeds 1 to {seeds}"),
        };
        format!("{name}, {time:.0} s; each way {}; {how}", self.link_name)
    }
}

struct Flags(Vec<(String, String)>);

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

    /// The preset, or else that of examples/families with 60 ms and 10 %, with what was set changed.
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

    fn workload(&self, real: bool) -> Result<Workload, String> {
        let mut workload = match self.value("--workload") {
            None | Some("input60") => Workload::input60(),
            Some("tiny60") => Workload::tiny60(),
            Some("snap20") => Workload::snap20(),
            Some("chunk32k") => Workload::chunk32k(),
            Some("sparse1") => Workload::sparse1(),
            Some("duplex") => Workload::duplex(),
            Some(name) => return Err(format!("no workload '{name}': it is {WORKLOADS}")),
        };
        if let Some(seconds) = self.number("--seconds", 1, 600)?.or(real.then_some(10)) {
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
        "modern" => repairs(0),
        "repairs10" => repairs(10),
        "repairs30" => repairs(30),
        "repairs100" => repairs(100),
        _ => return Err(format!("no mode '{name}': it is {}", MODES.replace(',', ", "))),
    })
}

const RTT: Duration = Duration::from_millis(60);
const MODES: &str = "normal,fast,turbo,turbo+flush,modern,repairs10,repairs30,repairs100";
const WORKLOADS: &str = "input60, tiny60, snap20, chunk32k, sparse1 or duplex";
const FLAGS: [&str; 9] =
    ["--workload", "--loss", "--rtt", "--jitter", "--link", "--modes", "--seeds", "--seconds", "--out"];

pub(crate) const HELP: &str = "\
How long messages take in each mode, and what that costs: a table, and a picture of it.

  --workload NAME  input60, tiny60, snap20, chunk32k, sparse1 or duplex (input60)
  --loss PERCENT   datagrams lost each way, 0 to 90 (10)
  --rtt MS         round trip (60)
  --jitter MS      most of what is added each way at random (a tenth of the round trip)
  --link NAME      lan, wifi, mobile or congested, but for what the three above change
  --modes A,B,..   normal, fast, turbo, turbo+flush, modern, repairs10, repairs30, repairs100 (all)
  --seeds N        runs of each mode, 1 to 100 (10)
  --seconds N      how long messages are sent, 1 to 600 (that of the workload; 10 with --real)
  --out FILE       the picture (latency.svg)
  --real           in real time, over UDP sockets and a relay that loses; jitter lets datagrams
                   overtake each other there, and in the simulator it does not; bytes are without
                   the headers of IP and UDP there";

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
