//! The tables in `docs/DEVIATIONS.md`, and the rules that connect a replay to their rows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const DOCUMENT: &str = include_str!("../../docs/DEVIATIONS.md");

/// A situation in which `Kcp` behaves differently from ikcp.c. A rule fires where the implementation says so
/// (an error, a counter) or where the adapter has to translate; never by the number of a call.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Rule {
    UnaAhead,
    LaterSegmentBad,
    LaterSegmentBadAfterAck,
    AckUnsent,
    FragmentOfOld,
    FragmentTooHigh,
    FragmentChain,
    AckTooOld,
    AckOverflow,
    BackoffCap,
    ReceiveWindow16Bit,
    WakeWhenDue,
    KnobRefused,
    FlushBeforeUpdate,
    ConvOfPart,
}

impl Rule {
    pub(crate) const ALL: &[Self] = &[
        Self::UnaAhead,
        Self::LaterSegmentBad,
        Self::LaterSegmentBadAfterAck,
        Self::AckUnsent,
        Self::FragmentOfOld,
        Self::FragmentTooHigh,
        Self::FragmentChain,
        Self::AckTooOld,
        Self::AckOverflow,
        Self::BackoffCap,
        Self::ReceiveWindow16Bit,
        Self::WakeWhenDue,
        Self::KnobRefused,
        Self::FlushBeforeUpdate,
        Self::ConvOfPart,
    ];

    /// The id of its row in the table.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::UnaAhead => "D1",
            Self::LaterSegmentBad => "D2",
            Self::LaterSegmentBadAfterAck => "D3",
            Self::AckUnsent => "D4",
            Self::FragmentOfOld => "D5",
            Self::FragmentTooHigh => "D6",
            Self::FragmentChain => "D7",
            Self::AckTooOld => "D8",
            Self::AckOverflow => "D9",
            Self::BackoffCap => "D10",
            Self::ReceiveWindow16Bit => "D11",
            Self::WakeWhenDue => "D12",
            Self::KnobRefused => "D13",
            Self::FlushBeforeUpdate => "D14",
            Self::ConvOfPart => "D15",
        }
    }
}

/// What a replay does when a rule fires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// Stops comparing the trace.
    Cut,
    /// Continues with the adjustment that the row describes.
    Adjust,
    /// No trace can trigger it.
    Untraced,
}

pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) kind: Kind,
    /// Names of traces, which may contain `*`.
    pub(crate) patterns: Vec<&'static str>,
    traps: &'static str,
    tests: &'static str,
}

/// Both tables: what differs, and what is copied on purpose.
pub(crate) struct Deviations {
    rows: Vec<Row>,
    copied: Vec<[&'static str; 3]>,
}

impl Deviations {
    pub(crate) fn load() -> Self {
        let (mut rows, mut copied) = (Vec::new(), Vec::new());
        for line in DOCUMENT.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id ")) {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            match cells[..] {
                [id, traps, _ikcp, _ours, _why, tests, kind, traces] => {
                    rows.push(Row {
                        id,
                        kind: Kind::parse(kind),
                        patterns: quoted(traces).collect(),
                        traps,
                        tests,
                    });
                }
                [traps, what, seen] => copied.push([traps, what, seen]),
                _ => panic!("a row of neither table: {line}"),
            }
        }
        assert!(!rows.is_empty() && !copied.is_empty());
        Self { rows, copied }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn kind(&self, rule: Rule) -> Option<Kind> {
        self.rows
            .iter()
            .find(|row| row.id == rule.id())
            .map(|row| row.kind)
            .filter(|kind| *kind != Kind::Untraced)
    }

    /// What to do when `rule` fires in the trace `name`; `None` if the trace is not listed.
    pub(crate) fn listed(&self, rule: Rule, name: &str) -> Option<Kind> {
        let row = self.rows.iter().find(|row| row.id == rule.id())?;
        row.patterns.iter().any(|pattern| matches(pattern, name)).then_some(row.kind)
    }

    /// The traps and quirks that one of the tables covers.
    pub(crate) fn traps(&self) -> BTreeSet<String> {
        let differs = self.rows.iter().map(|row| row.traps);
        let copied = self.copied.iter().map(|row| row[0]);
        differs.chain(copied).flat_map(|cell| cell.split([' ', ','])).map(str::to_owned).collect()
    }

    /// Tests that are not in `tests/` or `src/`, and traces that are not in the public set.
    pub(crate) fn missing_references(&self) -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut code = String::new();
        for folder in ["tests", "src"] {
            read_rust(&root.join(folder), &mut code);
        }
        let is_trace = |name: &str| root.join(format!("tests/vectors/kcp/{name}.jsonl.gz")).exists();
        let is_test = |name: &str| code.contains(&format!("fn {name}("));
        let tests = self.rows.iter().flat_map(|row| quoted(row.tests)).filter(|name| !is_test(name));
        let patterns = self.rows.iter().flat_map(|row| row.patterns.iter().copied());
        let copied = self.copied.iter().flat_map(|row| quoted(row[2])).filter(|name| !is_test(name));
        let traces = patterns.chain(copied).filter(|name| !name.contains('*') && !is_trace(name));
        tests.chain(traces).map(str::to_owned).collect()
    }
}

impl Kind {
    fn parse(cell: &str) -> Self {
        match cell {
            "cut" => Self::Cut,
            "adjust" => Self::Adjust,
            "-" => Self::Untraced,
            other => panic!("no such kind: {other}"),
        }
    }
}

/// Whether all of `name` matches `pattern`, in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(tail, &rest[at..]))
        }),
    }
}

/// The parts of a cell between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn read_rust(folder: &Path, code: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_rust(&path, code);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            code.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}
