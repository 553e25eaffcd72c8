//! The whole set of recordings, replayed once per run, family by family.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::{env, fs};

use super::deviations::{Deviations, Kind, Rule, matches};
use super::replay::{Outcome, Replay, public_name};
use super::trace::Trace;

/// Environment variable for another folder of recordings.
const FOLDER: &str = "WHITEWATER_VECTORS";

/// The replays of a family's traces.
pub(crate) struct Report {
    family: String,
    replays: Vec<Replay>,
}

impl Report {
    /// # Panics
    ///
    /// If a trace differs. The message has every first difference.
    pub(crate) fn assert_as_recorded(&self) {
        let mut differences = String::new();
        for replay in &self.replays {
            if let Outcome::Differs(difference) = &replay.outcome {
                writeln!(differences, "{}: {difference}", replay.name).unwrap();
            }
        }
        assert!(differences.is_empty(), "{} differs from ikcp.c:\n{differences}", self.family);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.replays.iter().map(|replay| replay.name.clone()).collect()
    }
}

/// The replays of one family. They run once, for the first caller.
pub(crate) fn report(family: &str) -> &'static Report {
    static REPORTS: Mutex<BTreeMap<String, &OnceLock<Report>>> = Mutex::new(BTreeMap::new());
    let mut reports = REPORTS.lock().unwrap();
    let report = *reports.entry(family.to_owned()).or_insert_with(|| Box::leak(Box::default()));
    drop(reports); // other families can run meanwhile
    report.get_or_init(|| {
        let deviations = Deviations::load();
        let names = names().into_iter().filter(|name| family_of(name) == family);
        let replays = names.map(|name| {
            let trace = Trace::read(&folder().join(format!("{name}.jsonl.gz")));
            Replay::run(name, &trace, &deviations)
        });
        Report { family: family.to_owned(), replays: replays.collect() }
    })
}

/// The replay of the public trace `name` as if it were called `other`.
pub(crate) fn replay_as(name: &str, other: &str) -> Replay {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/kcp");
    let trace = Trace::read(&folder.join(format!("{name}.jsonl.gz")));
    Replay::run(other.to_owned(), &trace, &Deviations::load())
}

pub(crate) fn reports() -> impl Iterator<Item = &'static Report> {
    families().into_iter().map(|family| report(&family))
}

/// The families of the set.
pub(crate) fn families() -> BTreeSet<String> {
    names().iter().map(|name| family_of(name).to_owned()).collect()
}

/// The names listed in the set's `INDEX.tsv`; empty if it has no index.
pub(crate) fn index() -> Vec<String> {
    let index = fs::read_to_string(folder().join("INDEX.tsv")).unwrap_or_default();
    index.lines().skip(1).filter_map(|line| line.split('\t').next()).map(str::to_owned).collect()
}

pub(crate) fn folder() -> PathBuf {
    let public = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/kcp");
    env::var_os(FOLDER).map_or_else(public, PathBuf::from)
}

/// The state fields that no replay could read.
pub(crate) fn unread_fields() -> BTreeSet<String> {
    let mut fields = BTreeMap::<String, bool>::new();
    for report in reports() {
        for (field, read) in report.replays.iter().flat_map(|replay| &replay.fields) {
            *fields.entry(field.clone()).or_default() |= read;
        }
    }
    fields.into_iter().filter(|(_, read)| !read).map(|(field, _)| field).collect()
}

/// Deviations in the table that this set does not show: a trace in a row whose rule does not fire, or, in the
/// public set, a row with families that never fires.
pub(crate) fn unseen_deviations() -> Vec<String> {
    let replays: Vec<_> = reports().flat_map(|report| &report.replays).collect();
    let is_public = env::var_os(FOLDER).is_none();
    let mut unseen = Vec::new();
    for row in Deviations::load().rows().iter().filter(|row| row.kind != Kind::Untraced) {
        let (mut families, mut seen) = (Vec::new(), false);
        for pattern in &row.patterns {
            let named = replays.iter().filter(|replay| matches(pattern, public_name(&replay.name)));
            let fires: Vec<_> = named.map(|replay| replay.fired().any(|rule| rule.id() == row.id)).collect();
            seen |= fires.contains(&true);
            if pattern.contains('*') {
                families.push(*pattern);
            } else if fires.contains(&false) {
                unseen.push(format!("{} {pattern}", row.id));
            }
        }
        if is_public && !families.is_empty() && !seen {
            unseen.push(format!("{} {}", row.id, families.join(" ")));
        }
    }
    unseen
}

/// What was replayed in full and what was cut, where and by which rule.
pub(crate) fn summary() -> String {
    let (mut full, mut compared, mut calls) = (0, 0, 0);
    let mut cut = BTreeMap::<Rule, Vec<String>>::new();
    let mut adjusted = BTreeMap::<Rule, Vec<&str>>::new();
    let reports: Vec<_> = reports().collect();
    let mut differ = Vec::new();
    for report in &reports {
        for replay in &report.replays {
            compared += replay.compared;
            calls += replay.calls;
            for rule in &replay.adjusted {
                adjusted.entry(*rule).or_default().push(&replay.name);
            }
            match &replay.outcome {
                Outcome::Full => full += 1,
                Outcome::Cut(rule) => {
                    let place = format!("{} at {} of {}", replay.name, replay.compared, replay.calls);
                    cut.entry(*rule).or_default().push(place);
                }
                Outcome::Differs(_) => differ.push(replay.name.clone()),
            }
        }
    }
    let cuts: usize = cut.values().map(Vec::len).sum();
    let mut text = format!("{full} traces in full, {cuts} cut, {} differ: ", differ.len());
    writeln!(text, "{compared} of {calls} calls compared").unwrap();
    for (rule, places) in cut {
        writeln!(text, "  cut by {} {rule:?}: {}", rule.id(), places.join(", ")).unwrap();
    }
    for (rule, names) in adjusted {
        writeln!(text, "  adjusted for {} {rule:?}: {}", rule.id(), names.join(", ")).unwrap();
    }
    if !differ.is_empty() {
        writeln!(text, "  differ: {}", differ.join(", ")).unwrap();
    }
    text
}

/// Every trace in the set, by file name.
fn names() -> Vec<String> {
    let folder = folder();
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files = files.map(|file| file.unwrap().file_name().into_string().expect("a name in UTF-8"));
    let mut names: Vec<_> =
        files.filter_map(|file| file.strip_suffix(".jsonl.gz").map(str::to_owned)).collect();
    names.sort();
    names
}

fn family_of(name: &str) -> &str {
    name.split('-').next().unwrap_or(name)
}
