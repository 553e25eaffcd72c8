//! A file of vectors: lines of JSON whose fields are written in the given order.

use serde_json::Value;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::PathBuf;

/// A JSON object.
#[derive(Default)]
pub(crate) struct Line(String);

/// Vectors of one kind.
pub(crate) struct File {
    pub(crate) name: &'static str,
    /// What the lines are, in a sentence.
    pub(crate) about: &'static str,
    pub(crate) lines: Vec<Line>,
}

impl Line {
    pub(crate) fn named(name: &str) -> Self {
        Self::default().text("name", name)
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.raw(key, &Value::from(value).to_string())
    }

    pub(crate) fn number(self, key: &str, value: impl Into<u32>) -> Self {
        self.raw(key, &value.into().to_string())
    }

    /// A 64-bit number as text, since many JSON readers would round it.
    pub(crate) fn wide(self, key: &str, value: u64) -> Self {
        self.raw(key, &format!("\"{value:#018x}\""))
    }

    pub(crate) fn hex(self, key: &str, bytes: &[u8]) -> Self {
        self.raw(key, &format!("\"{}\"", hex(bytes)))
    }

    pub(crate) fn object(self, key: &str, value: &Self) -> Self {
        self.raw(key, &value.to_string())
    }

    pub(crate) fn list<T: fmt::Display>(self, key: &str, values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<_> = values.into_iter().map(|value| value.to_string()).collect();
        self.raw(key, &format!("[{}]", values.join(",")))
    }

    fn raw(mut self, key: &str, value: &str) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        write!(self.0, "{comma}\"{key}\":{value}").unwrap();
        self
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.0)
    }
}

impl File {
    /// Checks that the file equals the one in docs/vectors, then passes each of its lines to `take`. With
    /// `WHITEWATER_WRITE_VECTORS`, writes it there first.
    pub(crate) fn holds(&self, take: impl Fn(&Value)) {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/vectors");
        let path = folder.join(format!("{}.jsonl", self.name));
        let count = u32::try_from(self.lines.len()).unwrap();
        let head = Line::default().text("format", FORMAT).text("file", self.name).text("about", self.about);
        let lines = [head.number("vectors", count)].into_iter().map(|line| format!("{line}\n"));
        let text: String = lines.chain(self.lines.iter().map(|line| format!("{line}\n"))).collect();
        if std::env::var_os("WHITEWATER_WRITE_VECTORS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap();
        for (found, made) in found.lines().zip(text.lines()) {
            assert_eq!(found, made, "{}: what we make of it is another", path.display());
        }
        assert_eq!(found.lines().count(), text.lines().count(), "{}", path.display());
        for line in found.lines().skip(1) {
            take(&serde_json::from_str(line).unwrap());
        }
    }
}

/// A field that contains bytes.
pub(crate) fn bytes(line: &Value, key: &str) -> Vec<u8> {
    let hex = line[key].as_str().unwrap_or_else(|| panic!("no {key} in {line}"));
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The fields of `line` as they are read back.
pub(crate) fn value(line: &Line) -> Value {
    serde_json::from_str(&line.to_string()).unwrap()
}

/// The name of an error's variant, without its fields.
pub(crate) fn variant(error: &impl fmt::Debug) -> String {
    let text = format!("{error:?}");
    text.split([' ', '(', '{']).next().unwrap().to_owned()
}

/// `N` bytes that count up from `first`.
pub(crate) fn count<const N: usize>(first: u8) -> [u8; N] {
    let mut bytes = [first; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = first.wrapping_add(u8::try_from(index).unwrap());
    }
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The version changes if the meaning of a field changes; fields and lines may be added.
const FORMAT: &str = "ww1-vectors/1";
