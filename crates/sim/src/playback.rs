//! A bottleneck that plays a delivery trace.

use super::codel::{Codel, Head};
use super::trace::{OPPORTUNITY, Trace};
use std::collections::VecDeque;
use whitewater::Time;

/// A bottleneck that plays a delivery trace, as of a cellular link. An opportunity carries up to [`OPPORTUNITY`] bytes of
/// the packets that wait by then, of one or of several; what nobody needs is gone. A packet has left with its last byte.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a trace and its queue")]
pub struct Playback {
    /// When the link can carry how much.
    pub trace: Trace,
    /// What happens to packets that come faster.
    pub queue: Discipline,
}

/// What a queue drops.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Discipline {
    /// The newest packet, if this many wait already.
    DropTail(usize),
    /// Besides that, packets at the head if all of them wait too long: CoDel with its 5 and 100 ms. Source: RFC 8289.
    CoDel(usize),
}

/// A queue before a trace.
#[derive(Debug)]
pub(super) struct Station<P> {
    waiting: VecDeque<(Time, usize, P)>,
    /// Bytes that wait.
    pub(super) bytes: usize,
    /// The packet that is being sent, and how much of it is left.
    sending: Option<(Time, usize, P)>,
    /// Number of the next opportunity.
    next: u64,
    codel: Codel,
}

/// What became of a packet at the queue.
#[derive(Debug)]
pub(super) enum Fate<P> {
    /// It entered at the first time and left at the second.
    Left(Time, Time, P),
    /// It was dropped.
    Dropped(P),
}

impl<P> Default for Station<P> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, sending: None, next: 0, codel: Codel::default() }
    }
}

impl<P> Station<P> {
    /// Adds a packet of `size` bytes. Returns it if the queue is full.
    pub(super) fn push(&mut self, now: Time, size: usize, packet: P, queue: Discipline) -> Option<P> {
        let (Discipline::DropTail(most) | Discipline::CoDel(most)) = queue;
        if self.waiting.len() + usize::from(self.sending.is_some()) >= most {
            return Some(packet);
        }
        self.waiting.push_back((now, size, packet));
        self.bytes += size;
        None
    }

    /// When something may leave next.
    pub(super) fn next_at(&self, trace: &Trace) -> Option<Time> {
        (!self.is_empty()).then(|| trace.at(self.next))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sending.is_none() && self.waiting.is_empty()
    }

    /// Plays the trace up to and including `now`. Returns what left the queue, in order.
    pub(super) fn play(&mut self, now: Time, playback: &Playback) -> Vec<Fate<P>> {
        let (mut fates, trace) = (Vec::new(), &playback.trace);
        while !self.is_empty() && trace.at(self.next) <= now {
            let at = trace.at(self.next);
            self.next += 1;
            self.carry(at, playback.queue, &mut fates);
        }
        if self.is_empty() {
            self.next = self.next.max(trace.opportunities(now));
        }
        fates
    }

    /// Everything leaves now.
    pub(super) fn clear(self, now: Time) -> Vec<Fate<P>> {
        let packets = self.sending.into_iter().chain(self.waiting);
        packets.map(|(entered, _, packet)| Fate::Left(entered, now, packet)).collect()
    }

    /// Uses one opportunity.
    fn carry(&mut self, at: Time, queue: Discipline, fates: &mut Vec<Fate<P>>) {
        let mut room = OPPORTUNITY;
        while room > 0 {
            let Some((entered, left, packet)) = self.sending.take().or_else(|| self.take(at, queue, fates))
            else {
                return;
            };
            let sent = left.min(room);
            (room, self.bytes) = (room - sent, self.bytes - sent);
            if sent < left {
                self.sending = Some((entered, left - sent, packet));
            } else {
                fates.push(Fate::Left(entered, at, packet));
            }
        }
    }

    /// Takes the next packet to send.
    fn take(&mut self, at: Time, queue: Discipline, fates: &mut Vec<Fate<P>>) -> Option<(Time, usize, P)> {
        let Self { waiting, bytes, codel, .. } = self;
        let mut behind = *bytes;
        let mut next = || waiting.pop_front();
        match queue {
            Discipline::DropTail(_) => next(),
            Discipline::CoDel(_) => {
                let head = || {
                    let (entered, size, packet) = next()?;
                    behind -= size;
                    Some(Head { packet: (entered, size, packet), entered, behind })
                };
                codel.dequeue(at, head, |(_, size, packet)| {
                    *bytes -= size;
                    fates.push(Fate::Dropped(packet));
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(sizes: &[usize], queue: Discipline, ms: u64) -> (Vec<(u64, usize)>, usize) {
        let playback = Playback { trace: "3\n3\n10".parse().unwrap(), queue };
        let mut station = Station::default();
        let full = sizes
            .iter()
            .enumerate()
            .filter_map(|(index, &size)| station.push(Time::ZERO, size, index, queue));
        let (full, mut left) = (full.count(), Vec::new());
        for fate in station.play(Time::from_millis(ms), &playback) {
            if let Fate::Left(_, at, index) = fate {
                left.push((at.as_micros() / 1000, index));
            }
        }
        (left, full)
    }

    #[test]
    fn packets_leave_at_opportunities_and_small_ones_share_one() {
        let tail = Discipline::DropTail(9);
        assert_eq!(play(&[1504; 4], tail, 12).0, [(3, 0), (3, 1), (10, 2)]);
        assert_eq!(play(&[1504; 4], tail, 13).0, [(3, 0), (3, 1), (10, 2), (13, 3)]);
        assert_eq!(play(&[752; 5], tail, 99).0, [(3, 0), (3, 1), (3, 2), (3, 3), (10, 4)]);
        assert_eq!(play(&[1000; 3], tail, 99).0, [(3, 0), (3, 1), (3, 2)], "3000 bytes need two");
        assert_eq!(play(&[1, 1504], tail, 99).0, [(3, 0), (3, 1)], "the second takes what the first leaves");
        assert_eq!(play(&[1504; 5], Discipline::DropTail(2), 99), (vec![(3, 0), (3, 1)], 3));
    }

    #[test]
    fn an_opportunity_without_a_packet_is_gone() {
        let tail = Discipline::DropTail(9);
        let playback = Playback { trace: "3\n3\n10".parse().unwrap(), queue: tail };
        let mut station = Station::default();
        assert!(station.play(Time::from_millis(4), &playback).is_empty());
        assert!(station.push(Time::from_millis(4), 100, (), tail).is_none());
        assert_eq!(station.next_at(&playback.trace), Some(Time::from_millis(10)));
        assert_eq!(station.play(Time::from_millis(10), &playback).len(), 1);
        assert_eq!((station.next_at(&playback.trace), station.bytes), (None, 0));
    }
}
