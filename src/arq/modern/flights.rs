//! Transmissions in the order in which they left.

use super::Sent;
use crate::arq::transmit::Outgoing;
use crate::ring::Ring;
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
    pub(super) fn oldest(self) -> Sent {
        Sent { at: self.sent, sn: self.first }
    }
}

impl Flights {
    pub(in crate::arq) fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
    }

    /// The segments from `first` up to `end` left at `sent`, later than all before.
    pub(in crate::arq) fn push(&mut self, first: Sn, end: Sn, sent: Time) {
        match self.rows.back_mut() {
            Some(last) if last.sent == sent && last.end == first => last.end = end,
            _ => self.rows.push_back(Row { first, end, sent }),
        }
    }

    /// The oldest transmission that is under way still: whose segment is in flight, from `una` on, and
    /// was not sent again since.
    pub(super) fn front(&mut self, ring: &Ring<Outgoing>, una: Sn) -> Option<Sent> {
        loop {
            let row = self.rows.front_mut()?;
            let token = row.sent.token();
            let from = if row.first.is_before(una) { una } else { row.first };
            let is_under_way = |segment: &Outgoing| segment.flight.ts == token;
            if let Some(first) = ring.find(from, row.end, is_under_way) {
                row.first = first;
                return Some(row.oldest());
            }
            self.rows.pop_front();
        }
    }

    pub(super) fn oldest(&self) -> Option<Sent> {
        self.rows.front().map(|row| row.oldest())
    }

    pub(in crate::arq) fn clear(&mut self) {
        self.rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arq::transmit::Flight;

    #[test]
    fn transmissions_come_out_in_the_order_in_which_they_left() {
        let (mut flights, mut ring) = (Flights::default(), Ring::new(Sn(0)));
        let at = Time::from_micros;
        for (first, end, sent) in [(0, 5, 1), (5, 6, 1), (2, 3, 2), (6, 9, 2)] {
            flights.push(Sn(first), Sn(end), at(sent));
            for sn in first..end {
                let flight = Flight { ts: at(sent).token(), ..Flight::default() };
                ring.insert(Sn(sn), Outgoing { flight, ..Outgoing::default() });
            }
        }
        ring.remove(Sn(3));
        let mut order = Vec::new();
        while let Some(Sent { at, sn }) = flights.front(&ring, Sn(1)) {
            order.push((at.as_micros(), sn.0));
            let segment = ring.get_mut(sn).unwrap();
            segment.flight.ts = Time::from_micros(9).token(); // sent again
        }
        assert_eq!(order, [(1, 1), (1, 4), (1, 5), (2, 2), (2, 6), (2, 7), (2, 8)]);
        assert_eq!(flights.oldest(), None);
    }
}
