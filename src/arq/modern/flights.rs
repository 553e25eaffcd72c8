//! Transmissions in the order in which they left.

use super::Sent;
use crate::seq::Sn;
use crate::time::Time;
use std::collections::VecDeque;

/// The transmissions that may still be under way, the oldest first. What leaves together with
/// numbers in a row is one entry, so there are as many as flushes and resends.
///
/// What has been acknowledged, or sent again since, is noticed when its turn comes.
#[derive(Debug, Default)]
pub(in crate::arq) struct Flights {
    rows: VecDeque<Row>,
}

/// Segments that left together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Row {
    pub(super) first: Sn,
    /// The number after the last.
    end: Sn,
    pub(super) sent: Time,
}

impl Row {
    /// Its first transmission.
    pub(super) fn oldest(self) -> Sent {
        Sent { at: self.sent, sn: self.first }
    }
}

impl Flights {
    /// The segments from `first` up to `end` left at `sent`, later than all before.
    pub(in crate::arq) fn push(&mut self, first: Sn, end: Sn, sent: Time) {
        match self.rows.back_mut() {
            Some(last) if last.sent == sent && last.end == first => last.end = end,
            _ => self.rows.push_back(Row { first, end, sent }),
        }
    }

    /// The oldest row of which something from `una` on is left.
    pub(super) fn front(&mut self, una: Sn) -> Option<Row> {
        loop {
            let row = self.rows.front_mut()?;
            if una.is_before(row.end) {
                row.first = if row.first.is_before(una) { una } else { row.first };
                return Some(*row);
            }
            self.rows.pop_front();
        }
    }

    /// The oldest transmission.
    pub(super) fn oldest(&self) -> Option<Sent> {
        self.rows.front().map(|row| row.oldest())
    }

    /// Forgets the first segment of the oldest row.
    pub(super) fn step(&mut self) {
        if let Some(row) = self.rows.front_mut() {
            row.first = row.first.add(1);
            if row.first == row.end {
                self.rows.pop_front();
            }
        }
    }

    /// Nothing is in flight.
    pub(in crate::arq) fn clear(&mut self) {
        self.rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_in_the_order_in_which_they_left() {
        let mut flights = Flights::default();
        let at = Time::from_micros;
        flights.push(Sn(0), Sn(5), at(1));
        flights.push(Sn(5), Sn(6), at(1));
        flights.push(Sn(2), Sn(3), at(2));
        flights.push(Sn(6), Sn(9), at(2));
        assert_eq!(flights.front(Sn(1)), Some(Row { first: Sn(1), end: Sn(6), sent: at(1) }));
        flights.step();
        assert_eq!(flights.front(Sn(1)).map(|row| row.first), Some(Sn(2)));
        assert_eq!(flights.front(Sn(6)), Some(Row { first: Sn(6), end: Sn(9), sent: at(2) }));
        assert_eq!((flights.front(Sn(9)), flights.oldest()), (None, None));
    }
}
