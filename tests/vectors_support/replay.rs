//! Replays one trace on our control blocks, up to the first difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use whitewater::kcp::wire::{Header, segments};

use super::adapter::{Answer, Block};
use super::deviations::{Deviations, Kind, Rule};
use super::rewrite::shows;
use super::trace::{Call, Op, Trace};

/// How the replay of a trace went.
pub(crate) struct Replay {
    pub(crate) name: String,
    /// Number of calls compared, and in total.
    pub(crate) compared: usize,
    pub(crate) calls: usize,
    pub(crate) outcome: Outcome,
    /// The rules that the replay adjusted for.
    pub(crate) adjusted: BTreeSet<Rule>,
    /// Recorded state fields, and whether they could be compared.
    pub(crate) fields: BTreeMap<String, bool>,
}

pub(crate) enum Outcome {
    Full,
    Cut(Rule),
    Differs(Difference),
}

/// The first call at which we differ from ikcp.c.
pub(crate) struct Difference {
    at: String,
    field: String,
    want: String,
    got: String,
    comment: Option<String>,
}

impl Replay {
    pub(crate) fn run(name: String, trace: &Trace, deviations: &Deviations) -> Self {
        let mut player = Player::new(deviations, public_name(&name));
        let played = catch_unwind(AssertUnwindSafe(|| player.play(trace)));
        let outcome = played.unwrap_or_else(|_| {
            let call = &trace.calls[player.compared];
            Outcome::Differs(Difference::new(call, "panic", "none", "a panic, printed above"))
        });
        Self {
            compared: player.compared,
            calls: trace.calls.len(),
            outcome,
            adjusted: player.adjusted,
            fields: player.fields,
            name,
        }
    }

    /// Every rule that fired.
    pub(crate) fn fired(&self) -> impl Iterator<Item = Rule> {
        let cut = match self.outcome {
            Outcome::Cut(rule) => Some(rule),
            Outcome::Full | Outcome::Differs(_) => None,
        };
        self.adjusted.iter().copied().chain(cut)
    }
}

struct Player<'a> {
    deviations: &'a Deviations,
    name: &'a str,
    blocks: BTreeMap<String, Side>,
    /// Every datagram of the recording so far: ikcp.c's, so that one fault does not cascade.
    datagrams: Vec<Vec<u8>>,
    compared: usize,
    adjusted: BTreeSet<Rule>,
    fields: BTreeMap<String, bool>,
}

/// A control block, and its state according to the recording.
struct Side {
    block: Block,
    want: BTreeMap<String, i64>,
}

impl<'a> Player<'a> {
    fn new(deviations: &'a Deviations, name: &'a str) -> Self {
        Self {
            deviations,
            name,
            blocks: BTreeMap::new(),
            datagrams: Vec::new(),
            compared: 0,
            adjusted: BTreeSet::new(),
            fields: BTreeMap::new(),
        }
    }

    fn play(&mut self, trace: &Trace) -> Outcome {
        for call in &trace.calls {
            match self.step(call) {
                Ok(None) => self.compared += 1,
                Ok(Some(rule)) => return Outcome::Cut(rule),
                Err(difference) => return Outcome::Differs(difference),
            }
        }
        Outcome::Full
    }

    /// Makes one call and compares. Returns the rule that ends the trace here, if any.
    fn step(&mut self, call: &Call) -> Result<Option<Rule>, Difference> {
        let side = match call.op {
            Op::Create { conv } => {
                let side = Side { block: Block::create(conv), want: BTreeMap::new() };
                self.blocks.insert(call.block.clone(), side);
                self.blocks.get_mut(&call.block)
            }
            _ => self.blocks.get_mut(&call.block),
        }
        .expect("a block is created before it is called");
        let numbered;
        let op = match call.op {
            Op::InputNumber { dg } => {
                numbered = Op::Input { datagram: self.datagrams[dg].clone() };
                &numbered
            }
            ref op => op,
        };
        let mut answer = side.block.call(op);
        if matches!(call.op, Op::Check { .. }) && answer.ret != call.ret {
            answer.rules.push(Rule::WakeWhenDue);
        }
        for rule in &answer.rules {
            if let Op::Input { datagram } = op
                && shows(*rule, datagram, &side.want) == Some(false)
            {
                let got = format!("{} ({rule:?}), which is not in the datagram", rule.id());
                return Err(Difference::new(call, "deviation", "none", &got));
            }
            match self.deviations.listed(*rule, self.name) {
                Some(Kind::Cut) => return Ok(Some(*rule)),
                Some(Kind::Adjust) => {
                    self.adjusted.insert(*rule);
                }
                Some(Kind::Untraced) | None => {
                    let got = format!("{} ({rule:?}), not listed for this trace", rule.id());
                    return Err(Difference::new(call, "deviation", "none", &got));
                }
            }
        }
        compare_answer(call, &answer)?;
        compare_datagrams(call, &side.block.take_emitted())?;
        assert!(call.first_out.is_none_or(|n| n == self.datagrams.len()), "the recording miscounts");
        self.datagrams.extend(call.out.iter().cloned());
        side.want.extend(call.state.iter().cloned());
        // A poke of snd_una and the following one of snd_nxt are a single step for us.
        if !matches!(call.op, Op::Poke { .. }) {
            compare_state(call, side, &mut self.fields)?;
        }
        Ok(None)
    }
}

fn compare_answer(call: &Call, answer: &Answer) -> Result<(), Difference> {
    if let Some(broken) = &answer.broken {
        return Err(Difference::new(call, "check", "no sleep through work", broken));
    }
    if answer.ret != call.ret && !answer.rules.contains(&Rule::WakeWhenDue) {
        return Err(Difference::new(call, "ret", &format!("{:?}", call.ret), &format!("{:?}", answer.ret)));
    }
    if answer.data != call.data {
        let [want, got] =
            [&call.data, &answer.data].map(|data| data.as_deref().map_or("none".to_owned(), hex));
        return Err(Difference::new(call, "data", &want, &got));
    }
    Ok(())
}

fn compare_datagrams(call: &Call, emitted: &[Vec<u8>]) -> Result<(), Difference> {
    for at in 0..call.out.len().max(emitted.len()) {
        let (want, got) = (call.out.get(at), emitted.get(at));
        if want != got {
            let [want, got] =
                [want, got].map(|datagram| datagram.map_or("none".to_owned(), |bytes| describe(bytes)));
            return Err(Difference::new(call, &format!("out[{at}]"), &want, &got));
        }
    }
    Ok(())
}

fn compare_state(call: &Call, side: &Side, fields: &mut BTreeMap<String, bool>) -> Result<(), Difference> {
    for (field, _) in &call.state {
        *fields.entry(field.clone()).or_default() |= side.block.state(field).is_some();
    }
    let mut wrong = Vec::new();
    for (field, want) in &side.want {
        let got = side.block.state(field);
        if got.is_some_and(|got| got != *want) {
            wrong.push((field.as_str(), *want, got.unwrap_or_default()));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let column =
        |pick: fn(&(&str, i64, i64)) -> String| wrong.iter().map(pick).collect::<Vec<_>>().join(", ");
    let field = column(|(field, _, _)| (*field).to_owned());
    Err(Difference::new(
        call,
        &field,
        &column(|wrong| wrong.1.to_string()),
        &column(|wrong| wrong.2.to_string()),
    ))
}

impl Difference {
    fn new(call: &Call, field: &str, want: &str, got: &str) -> Self {
        let mut op = format!("{:?}", call.op);
        if op.len() > 160 {
            op = format!("{}..", op.chars().take(160).collect::<String>());
        }
        Self {
            at: format!("i={} {} {op}", call.i, call.block),
            field: field.to_owned(),
            want: want.to_owned(),
            got: got.to_owned(),
            comment: call.comment.clone(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n    {}: want {}\n    {}: got  {}",
            self.at, self.field, self.want, self.field, self.got
        )?;
        if let Some(comment) = &self.comment {
            write!(f, "\n    recorded comment: {comment}")?;
        }
        Ok(())
    }
}

/// The headers of a datagram in words, and its bytes.
fn describe(datagram: &[u8]) -> String {
    let mut text = String::new();
    for segment in segments(datagram) {
        match segment {
            Ok(s) => {
                let Header { cmd, frg, wnd, ts, sn, una, .. } = s.header;
                let (ts, len) = (ts.0, s.data.len());
                write!(text, "[{cmd:?} frg {frg} wnd {wnd} ts {ts} sn {sn} una {una} len {len}] ").unwrap();
            }
            Err(error) => write!(text, "[{error}] ").unwrap(),
        }
    }
    text + &hex(datagram)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(120) {
        write!(text, "{byte:02x}").unwrap();
    }
    if bytes.len() > 120 {
        write!(text, ".. ({} bytes)", bytes.len()).unwrap();
    }
    text
}

/// The name that the table uses for a trace. Another set may have its own trace of that name with the suffix
/// `-h`.
pub(crate) fn public_name(name: &str) -> &str {
    name.strip_suffix("-h").unwrap_or(name)
}
