//! Seed scripts and datagrams, made from the recorded traces (`tests/vectors/kcp/README.md`).

use super::input::op;
#[cfg(feature = "net")]
use super::threads;
use super::{
    bits, channel, code, crowd, datagram, derive, endpoint, fragment, frames, knobs, packet, pair,
    protection, replay, session,
};
#[cfg(feature = "crypto")]
use super::{networks, token, underlays};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use whitewater::inside::compact::Compactor;
use whitewater::kcp::wire::segments;
use whitewater::kcp::{Config, Congestion};

/// One seed: its target, its file name, its bytes.
#[non_exhaustive]
pub struct Seed {
    /// Name of the fuzz target.
    pub target: &'static str,
    /// Name of the file, unique per target.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// The seeds of every trace in `folder`, in the order of their names.
///
/// # Errors
///
/// If a trace cannot be read.
pub fn all(folder: &Path) -> io::Result<Vec<Seed>> {
    let mut traces: Vec<_> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    traces.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    traces.sort();
    let mut seeds = of_pairs();
    for (target, of_target) in [
        ("code_decode", code::seeds()),
        ("protection", protection::seeds()),
        ("packet_read", packet::seeds()),
        ("fragment_reassembly", fragment::seeds()),
        ("bits_read", bits::seeds()),
        ("message_unpack", derive::seeds()),
        ("channel_pair", channel::seeds()),
        ("server_endpoint", endpoint::seeds()),
        ("client_endpoint", endpoint::seeds()),
        ("server_crowd", crowd::seeds()),
        #[cfg(feature = "crypto")]
        ("server_underlays", underlays::seeds()),
        #[cfg(feature = "crypto")]
        ("client_networks", networks::seeds()),
        #[cfg(feature = "net")]
        ("thread_driver", threads::seeds()),
        ("session_script", session::seeds()),
        ("dgram_decode", datagram::seeds()),
        ("frames_decode", frames::seeds()),
        ("replay_window", replay::seeds()),
        #[cfg(feature = "crypto")]
        ("token_open", token::seeds()),
    ] {
        seeds.extend(of_target.into_iter().map(|(name, bytes)| Seed { target, name, bytes }));
    }
    let mut shapes = HashSet::new();
    for path in traces {
        let name = path.file_name().unwrap_or_default().display().to_string().replace(".jsonl.gz", "");
        let lines = BufReader::new(GzDecoder::new(File::open(&path)?)).lines().skip(1);
        let mut trace = Trace::default();
        for line in lines {
            trace.add(&serde_json::from_str(&line?)?);
        }
        for (end, script) in [("a", trace.ends.0), ("b", trace.ends.1)] {
            if !script.operations.is_empty() {
                seeds.push(Seed {
                    target: "kcp_input",
                    name: format!("{name}-{end}"),
                    bytes: script.finish(),
                });
            }
        }
        for (index, bytes) in
            trace.inputs.into_iter().enumerate().filter(|(_, bytes)| shapes.insert(shape(bytes)))
        {
            let mut compact = bytes.clone();
            let len = Compactor::default().compact(u8::from(index % 2 == 1), &mut compact);
            compact.truncate(len);
            seeds.push(Seed { target: "compact_decode", name: format!("{name}-{index}"), bytes: compact });
            seeds.push(Seed { target: "segment_decode", name: format!("{name}-{index}"), bytes });
        }
    }
    Ok(seeds)
}

/// A trace that is being read.
#[derive(Default)]
struct Trace {
    ends: (End, End),
    /// Datagrams so far; later lines name them by their number.
    datagrams: Vec<Vec<u8>>,
    /// The datagrams passed to `input`.
    inputs: Vec<Vec<u8>>,
}

/// The script of one end.
#[derive(Default)]
struct End {
    conv: u32,
    first: (u32, u32),
    config: Config,
    /// The config at the start of the operations.
    first_config: Option<Config>,
    operations: Vec<u8>,
    now: Option<u32>,
    first_now: u32,
}

impl Trace {
    fn add(&mut self, call: &Value) {
        let end = if call["k"] == "A" { &mut self.ends.0 } else { &mut self.ends.1 };
        if let Some(input) = input_of(call, &self.datagrams) {
            end.datagram(&input);
            self.inputs.push(input);
        } else {
            end.add(call);
        }
        let sent = call["out"].as_array().into_iter().flatten();
        self.datagrams.extend(sent.filter_map(Value::as_str).map(unhex));
    }
}

impl End {
    fn add(&mut self, call: &Value) {
        if self.operations.len() > SCRIPT_MAX {
            return;
        }
        let number = |name: &str| call[name].as_i64().unwrap_or_default();
        match call["op"].as_str().unwrap_or_default() {
            "create" => {
                let (conv, config) = (wrapped(number("conv")), Config::classic());
                *self = Self { conv, config, ..Self::default() };
            }
            "poke" => {
                let first = if call["field"] == "rcv_nxt" { &mut self.first.1 } else { &mut self.first.0 };
                *first = wrapped(number("val"));
            }
            "nodelay" | "wndsize" | "setmtu" | "set" => {
                change(&mut self.config, call);
                if self.first_config.is_some() {
                    self.operations.push(op::CONFIGURE);
                    knobs::write(&self.config, &mut self.operations);
                }
            }
            "send" => {
                let hex = call["hex"].as_str().map(unhex).unwrap_or_default();
                let len = u16::try_from(call["len"].as_u64().unwrap_or(hex.len() as u64));
                let start = hex.first().copied().unwrap_or(number("pay").to_le_bytes()[0]);
                self.push(op::SEND, &len.unwrap_or(u16::MAX).to_le_bytes());
                self.operations.push(start);
            }
            "recv" => self.push(op::RECV, &u16::try_from(number("len")).unwrap_or(u16::MAX).to_le_bytes()),
            "update" => self.update(wrapped(number("now"))),
            "flush" => self.push(op::FLUSH, &[]),
            _ => {}
        }
    }

    fn datagram(&mut self, datagram: &[u8]) {
        if let Ok(len) = u16::try_from(datagram.len())
            && self.operations.len() <= SCRIPT_MAX
        {
            self.push(op::DATAGRAM, &len.to_le_bytes());
            self.operations.extend_from_slice(datagram);
        }
    }

    fn update(&mut self, now: u32) {
        let last = *self.now.get_or_insert(now);
        let step = now.wrapping_sub(last);
        if let Ok(ms) = u16::try_from(step) {
            self.push(op::WAIT, &ms.to_le_bytes());
        } else if let Ok(ms) = u16::try_from(last.wrapping_sub(now)) {
            self.push(op::BACK, &ms.to_le_bytes());
        } else {
            self.push(op::JUMP, &step.saturating_mul(2).to_le_bytes());
        }
        if self.first_now == 0 {
            self.first_now = last;
        }
        self.now = Some(now);
    }

    fn push(&mut self, operation: u8, arguments: &[u8]) {
        self.first_config.get_or_insert(self.config);
        self.operations.push(operation);
        self.operations.extend_from_slice(arguments);
    }

    fn finish(self) -> Vec<u8> {
        let config = self.first_config.unwrap_or(self.config);
        let mut script = vec![u8::from(!config.stream)];
        for number in [self.conv, self.first.0, self.first.1, self.first_now] {
            script.extend_from_slice(&number.to_le_bytes());
        }
        knobs::write(&config, &mut script);
        script.extend_from_slice(&self.operations);
        script
    }
}

/// Applies the effect that a call had on ikcp.c to a config, as far as our ranges allow.
fn change(config: &mut Config, call: &Value) {
    let at = |name: &str| call[name].as_i64();
    let knob = |value: Option<i64>, min: u16, max: u16, old: u16| match value {
        Some(value) if value >= 0 => u16::try_from(value).unwrap_or(max).clamp(min, max),
        _ => old,
    };
    match call["op"].as_str().unwrap_or_default() {
        "nodelay" => {
            let arg = |index: usize| call["args"][index].as_i64();
            config.nodelay = knob(arg(0), 0, 2, config.nodelay.into()).to_le_bytes()[0];
            config.interval = knob(arg(1), 10, 5000, config.interval);
            config.fast_resend = knob(arg(2), 0, u16::MAX, config.fast_resend);
            let nc = knob(arg(3), 0, 1, u16::from(config.congestion == Congestion::None)) != 0;
            config.congestion = if nc { Congestion::None } else { Congestion::Kcp };
        }
        "wndsize" => {
            config.snd_wnd = knob(at("snd").filter(|&wnd| wnd > 0), 1, u16::MAX, config.snd_wnd);
            config.rcv_wnd = knob(at("rcv").filter(|&wnd| wnd > 0), 128, u16::MAX, config.rcv_wnd);
        }
        "setmtu" => {
            config.mtu = knob(at("mtu"), 50, 65_507, config.mtu);
            config.rcv_mtu = config.rcv_mtu.max(config.mtu);
            config.snd_queue_bytes = config.snd_queue_bytes.max(config.mtu.into());
        }
        _ => match call["field"].as_str().unwrap_or_default() {
            "stream" => config.stream = at("val") != Some(0),
            "rx_minrto" => config.min_rto = Some(knob(at("val"), 0, 60_000, 0)),
            "fastlimit" => config.fast_limit = knob(at("val"), 0, u16::MAX, 0),
            "dead_link" => config.dead_link = knob(at("val"), 1, u16::MAX, 20),
            _ => {}
        },
    }
}

fn input_of(call: &Value, datagrams: &[Vec<u8>]) -> Option<Vec<u8>> {
    if call["op"] != "input" {
        return None;
    }
    match call["hex"].as_str() {
        Some(hex) => Some(unhex(hex)),
        None => datagrams.get(usize::try_from(call["dg"].as_u64()?).ok()?).cloned(),
    }
}

/// What makes a datagram a seed of its own: its first commands, how full the segments are, and whether a tail
/// is left.
fn shape(datagram: &[u8]) -> Vec<(u8, usize)> {
    let mut all = segments(datagram);
    let mut shape: Vec<_> = all
        .by_ref()
        .map(|segment| {
            segment.map_or((0, 0), |segment| (segment.header.cmd as u8, segment.data.len().min(2)))
        })
        .collect();
    shape.truncate(3);
    shape.push((u8::from(!all.trailing().is_empty()), 0));
    shape
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    hex.as_bytes().chunks(2).filter_map(digits).collect()
}

fn wrapped(number: i64) -> u32 {
    u32::try_from(number & i64::from(u32::MAX)).unwrap_or_default()
}

/// Scripts for two ends: each kind of trouble alone, with and without a wrap of the numbers.
fn of_pairs() -> Vec<Seed> {
    let link = |end: u8, lost: u32, doubled: u32, late: u32, lateness: u8| {
        let masks = [lost, doubled, late].map(u32::to_le_bytes).concat();
        [&[pair::op::LINK + end], &masks[..], &[4, lateness]].concat()
    };
    let other = pair::op::OTHER;
    let traffic = [
        [pair::op::SEND, 200, 0, 9, pair::op::SEND + other, 0, 8, 3, pair::op::WAIT, 200, 0],
        [pair::op::SEND, 0, 0, 2, pair::op::SEND + other, 32, 3, 3, pair::op::WAIT, 0, 16],
    ]
    .concat();
    let troubles = [
        ("good", vec![]),
        ("loss", [link(0, 0x1111_2481, 0, 0, 0), link(other, 0x0404_8111, 0, 0, 0)].concat()),
        ("late", [link(0, 0, 0, 0x0101_4949, 9), link(other, 0, 0, 0x2222_2222, 9)].concat()),
        ("double", [link(0, 0, 0x5555_5555, 0, 30), link(other, 0, u32::MAX, 0, 30)].concat()),
        ("dead", [link(0, u32::MAX, 0, 0, 0), vec![pair::op::WAIT + other, 0, 32]].concat()),
        ("deaf", vec![pair::op::READ, 0, pair::op::READ + other, 2]),
        ("change", [vec![pair::op::CONFIGURE], pair_config(100, 4, 20)].concat()),
    ];
    let mut seeds = Vec::new();
    for (name, trouble) in troubles {
        for (variant, flags) in
            [0, pair::flag::STREAM, pair::flag::FLUSHES, pair::flag::TICKS + pair::flag::SHARES]
                .into_iter()
                .enumerate()
        {
            let turn = u8::try_from(variant).unwrap_or_default();
            let mut bytes = vec![flags, turn, turn / 2];
            for _ in 0..2 {
                bytes.push(turn);
                bytes.extend(pair_config(500, 31, 10 * u16::from(turn)));
            }
            for part in [&traffic, &trouble, &traffic, &traffic] {
                bytes.extend_from_slice(part);
            }
            seeds.push(Seed { target: "kcp_pair", name: format!("{name}-{variant}"), bytes });
        }
    }
    seeds
}

/// A config as `kcp_pair` reads it.
fn pair_config(mtu: u16, snd_wnd: u8, interval: u16) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend_from_slice(&mtu.to_le_bytes());
    bytes.extend_from_slice(&[snd_wnd, 0, 1, 2, 5, 20]);
    for knob in [interval, 400, 40_000] {
        bytes.extend_from_slice(&knob.to_le_bytes());
    }
    bytes
}

/// Bytes of operations after which a script is long enough.
const SCRIPT_MAX: usize = 3000;
