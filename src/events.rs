//! A log of what happens, while somebody wants to know: bounded, and taken event by event, or as lines of JSON. docs/EVENTS.md has each line.

use crate::time::Time;
use std::collections::VecDeque;
use std::fmt;
use std::io;

/// An event of a log, and when it was. Displayed, it is a line of JSON without its end: docs/EVENTS.md.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a pair with names")]
pub struct Logged<E> {
    /// The time that the call was given in which it happened.
    pub at: Time,
    /// What happened.
    pub event: E,
}

/// The version of the lines that this crate writes, which the first line of a log tells. Another name or another unit makes another
/// version; a line or a field more does not.
pub const VERSION: u32 = 1;

impl<E: fmt::Display> fmt::Display for Logged<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r#"{{"t":{},{}}}"#, self.at.as_micros(), self.event)
    }
}

/// So many events found no room, and are missing from here on.
pub(crate) struct Lost(pub(crate) u64);

/// The newest events that were not taken yet: a full log forgets the oldest and says how many.
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

    /// Keeps so many from now on, at least one.
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

    /// Takes the oldest; before it, how many older ones are missing.
    pub(crate) fn pop(&mut self) -> Option<Logged<E>> {
        let at = self.events.front()?.at;
        match std::mem::take(&mut self.lost) {
            0 => self.events.pop_front(),
            lost => Some(Logged { at, event: Lost(lost).into() }),
        }
    }

    /// Bytes of memory that it owns.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.events.capacity() * size_of::<Logged<E>>()
    }

    fn drop_oldest(&mut self) {
        self.lost += u64::from(self.events.pop_front().is_some());
    }
}

/// Writes what `pop` gives, a line each; returns how many. What could not be written is gone.
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

/// Its examples compile.
#[cfg(all(doctest, feature = "net"))]
#[doc = include_str!("../docs/EVENTS.md")]
struct Document;

#[cfg(test)]
mod tests {
    use super::*;

    struct Number(u64);

    impl fmt::Display for Number {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, r#""e":"number","n":{}"#, self.0)
        }
    }

    impl From<Lost> for Number {
        fn from(Lost(lost): Lost) -> Self {
            Self(1000 + lost)
        }
    }

    #[test]
    fn a_full_log_keeps_the_newest_and_says_how_many_are_missing() {
        let mut log = EventLog::new(3);
        (0..5).for_each(|n| log.push(Time::from_micros(n), Number(n)));
        let memory = log.memory();
        let mut text = Vec::new();
        assert_eq!(write_lines(&mut text, || log.pop()).unwrap(), 4);
        let want = [(2, 1002), (2, 2), (3, 3), (4, 4)];
        let want = want.map(|(t, n)| format!("{{\"t\":{t},\"e\":\"number\",\"n\":{n}}}\n"));
        assert_eq!(String::from_utf8(text).unwrap(), want.concat());
        (0..100_000).for_each(|n| log.push(Time::from_micros(n), Number(n)));
        assert_eq!(log.memory(), memory);
        log.set_most(1);
        assert_eq!([log.pop(), log.pop()].map(|logged| logged.unwrap().event.0), [1000 + 99_999, 99_999]);
    }
}
