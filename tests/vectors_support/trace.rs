//! A recording in the format `kcp-trace/1`, parsed.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

/// One recording: calls on one or two control blocks, in order.
pub(crate) struct Trace {
    pub(crate) calls: Vec<Call>,
}

/// One call and what ikcp.c did.
pub(crate) struct Call {
    pub(crate) i: usize,
    pub(crate) block: String,
    pub(crate) op: Op,
    pub(crate) ret: Option<i64>,
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) out: Vec<Vec<u8>>,
    /// Number of the first datagram in `out`, counted over the whole trace.
    pub(crate) first_out: Option<usize>,
    /// The state fields that changed.
    pub(crate) state: Vec<(String, i64)>,
    pub(crate) comment: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Op {
    Create {
        conv: u32,
    },
    Nodelay {
        nodelay: i64,
        interval: i64,
        resend: i64,
        nc: i64,
    },
    Wndsize {
        snd: i64,
        rcv: i64,
    },
    Setmtu {
        mtu: i64,
    },
    Set {
        field: String,
        val: i64,
    },
    Poke {
        field: String,
        val: u32,
    },
    Send {
        message: Vec<u8>,
    },
    Input {
        datagram: Vec<u8>,
    },
    /// Input of a datagram that the trace emitted earlier.
    InputNumber {
        dg: usize,
    },
    Update {
        now: u32,
    },
    Flush,
    Check {
        now: u32,
    },
    Waitsnd,
    Peeksize,
    /// A negative length means peek.
    Recv {
        len: i64,
    },
    Getconv {
        bytes: Vec<u8>,
    },
}

impl Trace {
    /// # Panics
    ///
    /// If the file is not a complete recording.
    pub(crate) fn read(path: &Path) -> Self {
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut lines = BufReader::new(GzDecoder::new(file)).lines().map(|line| {
            let line = line.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            serde_json::from_str::<Value>(&line).expect("a line is a JSON object")
        });
        let header = lines.next().expect("the first line is the header");
        assert_eq!(header["format"], "kcp-trace/1");
        let calls: Vec<_> = lines.map(|line| Call::parse(&line)).collect();
        assert_eq!(header["ops"], calls.len(), "{}: truncated", path.display());
        assert!(calls.iter().map(|call| call.i).eq(0..calls.len()));
        Self { calls }
    }
}

impl Call {
    fn parse(line: &Value) -> Self {
        let state = line["st"].as_object().into_iter().flatten();
        Self {
            i: number(line, "i"),
            block: text(line, "k"),
            op: Op::parse(line),
            ret: line["ret"].as_i64(),
            data: line["data"].as_str().map(unhex),
            out: line["out"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|hex| unhex(hex.as_str().unwrap()))
                .collect(),
            first_out: line["n"].as_u64().map(|n| n.try_into().unwrap()),
            state: state.map(|(field, value)| (field.clone(), value.as_i64().unwrap())).collect(),
            comment: line["c"].as_str().map(str::to_owned),
        }
    }
}

impl Op {
    fn parse(line: &Value) -> Self {
        match text(line, "op").as_str() {
            "create" => Self::Create { conv: number(line, "conv") },
            "nodelay" => {
                let args: Vec<_> =
                    line["args"].as_array().unwrap().iter().map(|arg| arg.as_i64().unwrap()).collect();
                let [nodelay, interval, resend, nc] = args.try_into().expect("four arguments");
                Self::Nodelay { nodelay, interval, resend, nc }
            }
            "wndsize" => Self::Wndsize { snd: number(line, "snd"), rcv: number(line, "rcv") },
            "setmtu" => Self::Setmtu { mtu: number(line, "mtu") },
            "set" => Self::Set { field: text(line, "field"), val: number(line, "val") },
            "poke" => Self::Poke { field: text(line, "field"), val: number(line, "val") },
            "send" => Self::Send {
                message: match line["hex"].as_str() {
                    Some(hex) => unhex(hex),
                    None => payload(number(line, "len"), number(line, "pay")),
                },
            },
            "input" => match line["hex"].as_str() {
                Some(hex) => Self::Input { datagram: unhex(hex) },
                None => Self::InputNumber { dg: number(line, "dg") },
            },
            "update" => Self::Update { now: number(line, "now") },
            "flush" => Self::Flush,
            "check" => Self::Check { now: number(line, "now") },
            "waitsnd" => Self::Waitsnd,
            "peeksize" => Self::Peeksize,
            "recv" => Self::Recv { len: number(line, "len") },
            "getconv" => Self::Getconv { bytes: unhex(&text(line, "hex")) },
            other => panic!("no such op: {other}"),
        }
    }
}

fn text(line: &Value, key: &str) -> String {
    line[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {line}")).to_owned()
}

fn number<T: TryFrom<i64>>(line: &Value, key: &str) -> T {
    let number = line[key].as_i64().and_then(|number| T::try_from(number).ok());
    number.unwrap_or_else(|| panic!("no number `{key}` in {line}"))
}

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |c| match c {
        b'0'..=b'9' => c - b'0',
        b'a'..=b'f' => c - b'a' + 10,
        _ => panic!("no hex digit in {hex}"),
    };
    hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// The payload that `pay` stands for: see the README of the format.
fn payload(len: usize, pay: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from((pay + i + 13 * (i / 256)) % 256).unwrap()).collect()
}
