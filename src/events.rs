//! An event log for anybody who wants to watch: bounded, and read event by event or as lines of JSON.
//! docs/EVENTS.md documents each line.

use crate::seq::{Conv, Sn};
use crate::time::Time;
use std::collections::VecDeque;
use std::fmt;
use std::io;

/// A logged event with its time. Its `Display` is one line of JSON, without the line break: docs/EVENTS.md.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a pair with names")]
pub struct Logged<E> {
    /// When it happened: the time passed to the call in which it did.
    pub at: Time,
    /// What happened.
    pub event: E,
}

/// The version of the lines that this crate writes; the first line of a log contains it. It changes when a
/// name or a unit changes, but not when a line or a field is added.
pub const VERSION: u32 = 1;

impl<E: fmt::Display> fmt::Display for Logged<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r#"{{"t":{},{}}}"#, self.at.as_micros(), self.event)
    }
}

/// Declares the events of a log: the name of each in its line, and its fields, which have the same names
/// there. The last variant says that older events were dropped.
macro_rules! events {
    (
        $(#[$meta:meta])* $name:ident {
            $($(#[$doc:meta])* $text:literal $variant:ident $({ $($field:ident: $type:ty = $what:literal,)* })?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $(
                $(#[$doc])*
                #[non_exhaustive]
                $variant $({ $(#[doc = $what] $field: $type,)* })?,
            )*
            /// The log was full, and older events were dropped.
            #[non_exhaustive]
            Lost {
                /// How many.
                n: u64,
            },
        }

        impl From<$crate::events::Lost> for $name {
            fn from($crate::events::Lost(n): $crate::events::Lost) -> Self {
                Self::Lost { n }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut line = $crate::events::Line::new(f);
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        line.begin($text)?;
                        $($(line.field(stringify!($field), $field)?;)*)?
                    })*
                    Self::Lost { n } => {
                        line.begin("lost")?;
                        line.field("n", n)?;
                    }
                }
                Ok(())
            }
        }
    };
}

pub(crate) use events;

/// Writes the fields of one line of JSON.
pub(crate) struct Line<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    is_begun: bool,
}

/// A value that a field can have.
pub(crate) trait Field {
    /// Writes a field with the name `name`.
    fn write(&self, name: &str, line: &mut Line<'_, '_>) -> fmt::Result;
}

impl<'a, 'f> Line<'a, 'f> {
    pub(crate) const fn new(f: &'a mut fmt::Formatter<'f>) -> Self {
        Self { f, is_begun: false }
    }

    /// Begins the line with the name of the event; "": the first field carries it.
    pub(crate) fn begin(&mut self, event: &str) -> fmt::Result {
        if !event.is_empty() {
            self.quoted("e", event)?;
        }
        if event == "start" { self.field("version", &VERSION) } else { Ok(()) }
    }

    pub(crate) fn field(&mut self, name: &str, value: &impl Field) -> fmt::Result {
        value.write(name, self)
    }

    pub(crate) fn plain(&mut self, name: &str, value: impl fmt::Display) -> fmt::Result {
        self.fields(format_args!("\"{name}\":{value}"))
    }

    pub(crate) fn quoted(&mut self, name: &str, value: impl fmt::Display) -> fmt::Result {
        self.fields(format_args!("\"{name}\":\"{value}\""))
    }

    pub(crate) fn fields(&mut self, fields: impl fmt::Display) -> fmt::Result {
        let comma = if std::mem::replace(&mut self.is_begun, true) { "," } else { "" };
        write!(self.f, "{comma}{fields}")
    }
}

/// Values that are written as they are (`plain`) or between quotation marks (`quoted`).
macro_rules! fields {
    ($how:ident: $($type:ty)*) => {
        $(impl Field for $type {
            fn write(&self, name: &str, line: &mut Line<'_, '_>) -> fmt::Result {
                line.$how(name, self)
            }
        })*
    };
}

fields!(plain: bool u16 u32 u64 Sn Conv);
fields!(quoted: &str std::net::SocketAddr);

impl<F: Field> Field for Option<F> {
    fn write(&self, name: &str, line: &mut Line<'_, '_>) -> fmt::Result {
        self.as_ref().map_or(Ok(()), |value| value.write(name, line))
    }
}

/// This many events were dropped for lack of room.
pub(crate) struct Lost(pub(crate) u64);

/// The newest events that have not been read. When the log is full, it drops the oldest and counts them.
#[derive(Debug)]
pub(crate) struct EventLog<E> {
    events: VecDeque<Logged<E>>,
    most: usize,
    lost: u64,
}

impl<E: fmt::Display + From<Lost>> EventLog<E> {
    pub(crate) const fn new(most: usize) -> Self {
        Self { events: VecDeque::new(), most, lost: 0 }
    }

    /// Keeps up to `most` events from now on, at least one.
    pub(crate) fn set_most(&mut self, most: usize) {
        self.most = most;
        while self.events.len() > most {
            self.drop_oldest();
        }
        self.events.shrink_to(most);
    }

    pub(crate) fn push(&mut self, at: Time, event: E) {
        if self.events.len() >= self.most {
            self.drop_oldest();
        }
        self.events.push_back(Logged { at, event });
    }

    /// Removes and returns the oldest event, after a note of how many older ones are missing.
    pub(crate) fn pop(&mut self) -> Option<Logged<E>> {
        let at = self.events.front()?.at;
        match std::mem::take(&mut self.lost) {
            0 => self.events.pop_front(),
            lost => Some(Logged { at, event: Lost(lost).into() }),
        }
    }

    /// Logs `event` unless it equals `last`, the one logged before.
    pub(crate) fn tell(&mut self, at: Time, last: &mut Option<E>, event: E)
    where
        E: Copy + PartialEq,
    {
        if last.replace(event) != Some(event) {
            self.push(at, event);
        }
    }

    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.events.capacity() * size_of::<Logged<E>>()
    }

    fn drop_oldest(&mut self) {
        self.lost += u64::from(self.events.pop_front().is_some());
    }
}

/// Writes the events that `pop` returns, one per line, and returns how many. An event that could not be
/// written is lost.
pub(crate) fn write_lines<E: fmt::Display>(
    out: &mut impl io::Write,
    mut pop: impl FnMut() -> Option<Logged<E>>,
) -> io::Result<usize> {
    let mut lines = 0;
    while let Some(logged) = pop() {
        writeln!(out, "{logged}")?;
        lines += 1;
    }
    Ok(lines)
}

/// Compiles the examples in the document.
#[cfg(all(doctest, feature = "net"))]
#[doc = include_str!("../docs/EVENTS.md")]
struct Document;

#[cfg(test)]
mod tests {
    use super::*;

    events! {
        #[expect(unreachable_pub, reason = "those of the library are public")]
        Number {
            /// It.
            "number" Is { n: u64 = "Which.", },
        }
    }

    #[test]
    fn a_full_log_keeps_the_newest_and_counts_the_missing() {
        let mut log = EventLog::new(3);
        (0..5).for_each(|n| log.push(Time::from_micros(n), Number::Is { n }));
        let memory = log.memory();
        let mut text = Vec::new();
        assert_eq!(write_lines(&mut text, || log.pop()).unwrap(), 4);
        let want = [(2, "lost", 2), (2, "number", 2), (3, "number", 3), (4, "number", 4)];
        let want = want.map(|(t, e, n)| format!("{{\"t\":{t},\"e\":\"{e}\",\"n\":{n}}}\n"));
        assert_eq!(String::from_utf8(text).unwrap(), want.concat());
        (0..100_000).for_each(|n| log.push(Time::from_micros(n), Number::Is { n }));
        assert_eq!(log.memory(), memory);
        log.set_most(1);
        assert_eq!(
            [log.pop(), log.pop()].map(|logged| logged.unwrap().event),
            [Number::Lost { n: 99_999 }, Number::Is { n: 99_999 }]
        );
    }
}
