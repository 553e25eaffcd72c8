//! The command line.

use crate::relay::Link;
use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;
use whitewater::kcp::{Config, Congestion, Conv, Recovery};

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    Help,
    /// Both ends and a lossy network between them, under each preset.
    Demo,
    Listen(SocketAddr),
    Connect(SocketAddr),
    PipeListen(SocketAddr),
    PipeConnect(SocketAddr),
    Relay {
        listen: SocketAddr,
        to: SocketAddr,
    },
}

/// The parsed command line.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    pub(crate) mode: Mode,
    /// The presets to show. Modes other than `Demo` use the first.
    pub(crate) presets: Vec<(&'static str, Config)>,
    pub(crate) conv: Option<Conv>,
    pub(crate) eager: bool,
    pub(crate) link: Link,
    pub(crate) load: Load,
    pub(crate) timeout: Duration,
    pub(crate) linger: Duration,
}

/// What the client sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) rate: u32,
    pub(crate) size: usize,
    pub(crate) time: Duration,
}

impl Args {
    pub(crate) fn config(&self) -> Config {
        self.presets.first().map_or_else(|| Config::classic().nodelay(1, 20, 2, true), |(_, config)| *config)
    }

    /// Parses the command line. An error is one line that says what is wrong.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut words = words.peekable();
        let command = words.next_if(|word| !word.starts_with('-')).unwrap_or_default();
        if !matches!(command.as_str(), "" | "pipe" | "relay") {
            return Err(format!("there is no command '{command}': it is pipe, relay or none"));
        }
        let mut given = Vec::new();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            if matches!(name.as_str(), "-h" | "--help") {
                return Ok(Self { mode: Mode::Help, ..Self::from_flags("", &[])? });
            }
            let flag = FLAGS
                .iter()
                .find(|flag| flag.name == name)
                .ok_or_else(|| format!("there is no flag {name}"))?;
            let value = match (flag.value, value) {
                ("", None) => String::new(),
                ("", Some(_)) => return Err(format!("{name} takes no value")),
                (_, Some(value)) => value,
                (what, None) => words.next().ok_or_else(|| format!("{name} wants a value: {what}"))?,
            };
            if given.iter().any(|(other, _): &(&Flag, String)| other.name == flag.name) {
                return Err(format!("{name} is there twice"));
            }
            given.push((flag, value));
        }
        Self::from_flags(&command, &given)
    }

    fn from_flags(command: &str, given: &[(&Flag, String)]) -> Result<Self, String> {
        let flags = Flags { given };
        let mode = flags.mode(command)?;
        let (name, bit) = match mode {
            Mode::Demo | Mode::Help => ("the demonstration", DEMO),
            Mode::Listen(_) => ("--listen", LISTEN),
            Mode::Connect(_) => ("--connect", CONNECT),
            Mode::PipeListen(_) | Mode::PipeConnect(_) => ("pipe", PIPE),
            Mode::Relay { .. } => ("relay", RELAY),
        };
        if let Some((flag, _)) = given.iter().find(|(flag, _)| flag.modes & bit == 0) {
            return Err(format!("{} has no meaning for {name}", flag.name));
        }
        let load = Load {
            rate: flags.number("--rate", 60, 1, 10_000)?,
            size: flags.number("--size", 100, 8, 60_000)?,
            time: flags.seconds("--seconds", 8.0)?,
        };
        let link = Link {
            loss: flags.number("--loss", 10.0, 0.0, 100.0)? / 100.0,
            delay: Duration::from_millis(flags.number("--delay", 30, 0, 60_000)?),
            jitter: Duration::from_millis(flags.number("--jitter", 0, 0, 60_000)?),
            seed: flags.number("--seed", 1, 0, u64::MAX)?,
        };
        Ok(Self {
            mode,
            presets: flags.presets(mode)?,
            conv: match flags.value("--conv") {
                None => None,
                Some(_) => Some(Conv(flags.number("--conv", 1, 0, u32::MAX)?)),
            },
            eager: flags.value("--eager").is_some(),
            link,
            load,
            timeout: flags.seconds("--timeout", 10.0)?,
            linger: flags.seconds("--linger", 2.0)?,
        })
    }
}

struct Flags<'a> {
    given: &'a [(&'a Flag, String)],
}

impl Flags<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(flag, _)| flag.name == name).map(|(_, value)| value.as_str())
    }

    fn number<T>(&self, name: &str, default: T, min: T, max: T) -> Result<T, String>
    where
        T: FromStr + PartialOrd + std::fmt::Display,
    {
        let Some(text) = self.value(name) else { return Ok(default) };
        let number = text.trim_end_matches('%').parse().ok().filter(|number| (&min..=&max).contains(&number));
        number.ok_or_else(|| format!("{name} wants a number from {min} to {max}, not '{text}'"))
    }

    fn seconds(&self, name: &str, default: f64) -> Result<Duration, String> {
        Ok(Duration::from_secs_f64(self.number(name, default, 0.1, 1e6)?))
    }

    fn address(&self, name: &str) -> Result<Option<SocketAddr>, String> {
        let Some(text) = self.value(name) else { return Ok(None) };
        match text.to_socket_addrs().map(|mut all| all.next()) {
            Ok(Some(address)) => Ok(Some(address)),
            Ok(None) => Err(format!("{name} {text}: the name has no address")),
            Err(error) => Err(format!("{name} {text}: {error}; it is HOST:PORT")),
        }
    }

    fn mode(&self, command: &str) -> Result<Mode, String> {
        let (listen, connect, to) =
            (self.address("--listen")?, self.address("--connect")?, self.address("--to")?);
        match (command, listen, connect, to) {
            ("", None, None, None) => Ok(Mode::Demo),
            ("", Some(at), None, None) => Ok(Mode::Listen(at)),
            ("", None, Some(to), None) => Ok(Mode::Connect(to)),
            ("pipe", Some(at), None, None) => Ok(Mode::PipeListen(at)),
            ("pipe", None, Some(to), None) => Ok(Mode::PipeConnect(to)),
            ("relay", Some(listen), None, Some(to)) => Ok(Mode::Relay { listen, to }),
            ("relay", ..) => Err("relay wants --listen ADDR and --to ADDR".to_owned()),
            ("pipe", ..) => Err("pipe wants --listen ADDR or --connect ADDR".to_owned()),
            _ => Err("it is --listen ADDR, --connect ADDR, or neither".to_owned()),
        }
    }

    /// The chosen presets, each with the settings from the command line.
    fn presets(&self, mode: Mode) -> Result<Vec<(&'static str, Config)>, String> {
        let wanted = self.value("--preset").or(if matches!(mode, Mode::Demo) { None } else { Some("fast") });
        let fast = Config::classic().nodelay(1, 10, 2, true);
        let all = [
            ("classic", Config::classic()),
            ("fast2", Config::classic().nodelay(1, 20, 2, true)),
            ("fast", fast),
            ("by time", Config { recovery: Recovery::default(), ..fast }),
        ];
        let mut presets = Vec::new();
        for (name, preset) in all {
            if wanted.is_none_or(|wanted| wanted == name) {
                presets.push((name, self.knobs(mode, preset)?));
            }
        }
        match wanted {
            Some(wanted) if presets.is_empty() => Err(format!("there is no preset '{wanted}'")),
            _ => Ok(presets),
        }
    }

    fn knobs(&self, mode: Mode, preset: Config) -> Result<Config, String> {
        let window = self.value("--window").is_some();
        let pipe = matches!(mode, Mode::PipeListen(_) | Mode::PipeConnect(_));
        let mtu = self.number("--mtu", preset.mtu, 50, 65_507)?;
        let config = Config {
            mtu,
            rcv_mtu: preset.rcv_mtu.max(mtu),
            snd_wnd: self.number("--window", if pipe { 512 } else { preset.snd_wnd }, 1, u16::MAX)?,
            rcv_wnd: self.number("--window", if pipe { 512 } else { preset.rcv_wnd }, 1, u16::MAX)?,
            nodelay: self.number("--nodelay", preset.nodelay, 0, 2)?,
            interval: self.number("--interval", preset.interval, 10, 5000)?,
            fast_resend: self.number("--resend", preset.fast_resend, 0, u16::MAX)?,
            congestion: match self.number("--nc", u8::from(preset.congestion == Congestion::None), 0, 1)? {
                0 => Congestion::Kcp,
                _ => Congestion::None,
            },
            stream: pipe || self.value("--stream").is_some(),
            ..preset
        };
        let config =
            Config { rcv_wnd: if window { config.rcv_wnd.max(128) } else { config.rcv_wnd }, ..config };
        config.check().map_err(|error| error.to_string())?;
        Ok(config)
    }
}

pub(crate) fn help() -> String {
    let mut text = USAGE.to_owned();
    for flag in FLAGS {
        let head = format!("{} {}", flag.name, flag.value);
        let _ = write!(text, "\n  {head:<20} {}", flag.help);
    }
    text
}

struct Flag {
    name: &'static str,
    /// The name of its value; empty if it has none.
    value: &'static str,
    modes: u8,
    help: &'static str,
}

const fn flag(name: &'static str, value: &'static str, modes: u8, help: &'static str) -> Flag {
    Flag { name, value, modes, help }
}

const DEMO: u8 = 1;
const LISTEN: u8 = 2;
const CONNECT: u8 = 4;
const PIPE: u8 = 8;
const RELAY: u8 = 16;
const KCP: u8 = DEMO | LISTEN | CONNECT | PIPE;

const USAGE: &str = "\
KCP over real UDP sockets.

  echo                              both ends and a lossy network on this host, under each preset
  echo --listen ADDR                an echo server for any number of KCP peers
  echo --connect ADDR               measures the round trips to an echo server
  echo pipe --listen ADDR           joins stdin and stdout to the first peer that comes, as a stream
  echo pipe --connect ADDR          the other end of it
  echo relay --listen ADDR --to ADDR
                                    passes datagrams on, but loses and delays some

The peer may be any KCP program without encryption or FEC: bare KCP has no handshake, so both ends
have to be told the same --conv. The end of a pipe is an empty message, sent when everything before
it has arrived. A peer that does not know this is waited for: for --linger seconds of silence when it
has sent nothing so far, else for --timeout seconds, after which the pipe has failed.
";

const FLAGS: &[Flag] = &[
    flag("--listen", "ADDR", LISTEN | PIPE | RELAY, "HOST:PORT to receive on"),
    flag("--connect", "ADDR", CONNECT | PIPE, "HOST:PORT of the peer"),
    flag("--to", "ADDR", RELAY, "HOST:PORT to pass datagrams on to"),
    flag("--loss", "PERCENT", DEMO | RELAY, "datagrams lost each way (10)"),
    flag("--delay", "MS", DEMO | RELAY, "time on the way, each way (30)"),
    flag("--jitter", "MS", DEMO | RELAY, "most of what is added to the delay at random (0)"),
    flag("--seed", "N", DEMO | RELAY, "same seed, same losses (1)"),
    flag("--seconds", "S", DEMO | CONNECT, "how long to send (8)"),
    flag("--rate", "N", DEMO | CONNECT, "messages a second (60)"),
    flag("--size", "BYTES", DEMO | CONNECT, "bytes of a message (100)"),
    flag("--timeout", "S", CONNECT | PIPE, "silence after which the peer is gone (10)"),
    flag("--linger", "S", PIPE, "silence after which a pipe that has ended at one side is done (2)"),
    flag("--conv", "N", CONNECT | PIPE, "conversation (1; pipe --listen: any)"),
    flag("--preset", "NAME", KCP, "classic, fast2, fast or 'by time' (fast; here all)"),
    flag("--nodelay", "0..2", KCP, "how resends back off: double, by half, by half of the RTO"),
    flag("--interval", "MS", KCP, "time between flushes"),
    flag("--resend", "N", KCP, "later acknowledgements that prove a loss; 0: none do"),
    flag("--nc", "0|1", KCP, "1: no congestion window"),
    flag("--mtu", "BYTES", KCP, "largest datagram (1400)"),
    flag("--window", "N", KCP, "segments each way (send 32, receive 128; pipe 512)"),
    flag("--stream", "", DEMO | LISTEN | CONNECT, "a stream of bytes instead of messages"),
    flag("--eager", "", KCP, "flush at once instead of every interval"),
];
