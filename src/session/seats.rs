//! What the table of a server and that of bare peers have in common: whose turn it is, when each is looked at, whose addresses have how
//! many seats, and who must not come back at once.

use crate::rate::host;
use crate::time::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Whose turn it is to send, and when each of the others is looked at.
///
/// Who may have something to send is on a list, because a datagram came, a timer went off or the program looked at it. The rest costs
/// nothing. It is a round robin by bytes: each turn is the same for all, and enough for neighbours of one address to leave as one. Who has
/// little to send waits for one turn of each of the others at most, whatever they have. Source: Shreedhar and Varghese, Efficient Fair
/// Queueing Using Deficit Round Robin, 1995; without the deficit, for no datagram is more than a small part of a turn.
///
/// A timer goes off too early rather than being moved back, so that traffic, which moves deadlines back all the time, costs nothing. One
/// that was moved to an earlier time stays in the heap as well, and is nobody's when it comes up. Where there are few, neither is so: there
/// is nobody else for whom the thread that they wake would be awake anyway.
#[derive(Debug)]
pub(super) struct Agenda<Id> {
    listed: VecDeque<Id>,
    sent: usize,
    /// When each that has something to do is looked at, soonest first, and timers that are nobody's.
    timers: BinaryHeap<Reverse<(Time, Id)>>,
}

/// What a seat keeps of the agenda.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// When it has something to do.
    pub(super) due: Time,
    /// When it is looked at next, which is not later; never, if there is no timer of it.
    wake: Time,
    is_listed: bool,
}

impl Entry {
    /// Of a seat that has something to do at `due`, once that is [put down](Agenda::put_off).
    pub(super) const fn at(due: Time) -> Self {
        Self { due, wake: Time::NEVER, is_listed: false }
    }

    pub(super) const fn is_listed(&self) -> bool {
        self.is_listed
    }
}

impl<Id: Copy + Ord> Agenda<Id> {
    #[inline]
    pub(super) fn list(&mut self, id: Id, entry: &mut Entry) {
        if !std::mem::replace(&mut entry.is_listed, true) {
            self.listed.push_back(id);
        }
    }

    pub(super) fn first(&self) -> Option<Id> {
        self.listed.front().copied()
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= QUANTUM {
            self.sent = 0;
            self.listed.rotate_left(1);
        }
    }

    /// The first has nothing more to send, or is not there any more and has no entry.
    pub(super) fn end_turn(&mut self, entry: Option<&mut Entry>) {
        self.sent = 0;
        self.listed.pop_front();
        if let Some(entry) = entry {
            entry.is_listed = false;
        }
    }

    /// Has the seat looked at when it is due.
    #[inline]
    pub(super) fn put_off(&mut self, id: Id, entry: &mut Entry) {
        let Entry { due, wake, .. } = *entry;
        let is_worth_it = self.timers.len() <= FEW && due.micros_since(wake) >= WORTH;
        if due < wake || due != Time::NEVER && is_worth_it {
            self.leave(id, entry);
            entry.wake = due;
            self.timers.push(Reverse((due, id)));
        }
    }

    /// The next timer that has come up. It may be nobody's any more: see [`is_due`](Self::is_due).
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Id)> {
        self.timers.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.timers.pop().map(|Reverse(timer)| timer)
    }

    /// Whether a seat has something to do, a timer of which has come up; if not it is put off.
    pub(super) fn is_due(&mut self, now: Time, at: Time, id: Id, entry: &mut Entry) -> bool {
        if entry.wake != at {
            return false;
        }
        entry.wake = Time::NEVER;
        let is_due = entry.due <= now || entry.is_listed;
        if !is_due {
            self.put_off(id, entry);
        }
        is_due
    }

    pub(super) fn leave(&mut self, id: Id, entry: &mut Entry) {
        if std::mem::replace(&mut entry.wake, Time::NEVER) != Time::NEVER && self.timers.len() <= FEW {
            self.timers.retain(|Reverse((_, other))| *other != id);
        }
    }

    /// Takes out timers that are nobody's, if there may be many for so many seats. `entry` is that of each.
    pub(super) fn tidy<'a>(&mut self, seats: usize, entry: impl Fn(Id) -> Option<&'a Entry>) {
        let most = 2 * seats.max(FEW);
        if seats == 0 || self.timers.len() >= most {
            let mut timers = std::mem::take(&mut self.timers).into_vec();
            timers.retain(|Reverse((at, id))| entry(*id).is_some_and(|entry| entry.wake == *at));
            if timers.len() > seats {
                timers.sort_unstable(); // what was moved, and then moved back, is there twice
                timers.dedup();
            }
            timers.shrink_to(most);
            self.timers = timers.into();
        }
    }

    pub(super) fn poll_timeout(&self, now: Time) -> Option<Time> {
        if self.listed.is_empty() { self.timers.peek().map(|Reverse((at, _))| *at) } else { Some(now) }
    }
}

impl<Id: Ord> Default for Agenda<Id> {
    fn default() -> Self {
        Self { listed: VecDeque::new(), sent: 0, timers: BinaryHeap::new() }
    }
}

/// What a stranger asks by: where it is, and the number of its attempt or conversation.
pub(super) type Name = (SocketAddr, u64);

/// Names of seats that were given back, each for a while: a late copy of a first datagram would open what nobody is in. With each what it
/// was told, if that may be asked for again. The newest are kept, so many in all and of one address.
#[derive(Debug)]
pub(super) struct Graves<T = ()> {
    told: BTreeMap<Name, T>,
    /// When each of them may go, soonest first.
    until: VecDeque<(Time, Name)>,
    stay: Duration,
    limit: usize,
    of_host: usize,
}

impl<T> Graves<T> {
    pub(super) const fn new(stay: Duration, limit: usize, of_host: usize) -> Self {
        Self { told: BTreeMap::new(), until: VecDeque::new(), stay, limit, of_host }
    }

    pub(super) fn insert(&mut self, now: Time, name: Name, told: T) {
        self.get(now, &name);
        let is_neighbour = |(_, other): &(Time, Name)| host(other.0) == host(name.0);
        let may_be_many = self.of_host < self.limit && self.until.len() >= self.of_host;
        let goes =
            if may_be_many && self.until.iter().filter(|other| is_neighbour(other)).count() >= self.of_host {
                self.until.iter().position(is_neighbour)
            } else {
                (self.until.len() >= self.limit).then_some(0)
            };
        if let Some((_, gone)) = goes.and_then(|index| self.until.remove(index)) {
            self.told.remove(&gone);
        }
        if self.limit > 0 && self.told.insert(name, told).is_none() {
            self.until.push_back((now + self.stay, name));
        }
    }

    pub(super) fn get(&mut self, now: Time, name: &Name) -> Option<&mut T> {
        while let Some((until, name)) = self.until.front()
            && *until <= now
        {
            self.told.remove(name);
            self.until.pop_front();
        }
        self.told.get_mut(name)
    }
}

/// How many seats each address has. An address without any is not in it, so its size is that of the table.
#[derive(Debug, Default)]
pub(super) struct Hosts(BTreeMap<IpAddr, HostSeats>);

/// The seats of one address.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostSeats {
    pub(super) all: usize,
    pub(super) half_open: usize,
}

impl Hosts {
    pub(super) fn enter(&mut self, host: IpAddr, is_half_open: bool) {
        let seats = self.0.entry(host).or_default();
        seats.all += 1;
        seats.half_open += usize::from(is_half_open);
    }

    /// One of those that were not confirmed is.
    pub(super) fn confirm(&mut self, host: IpAddr) {
        if let Some(seats) = self.0.get_mut(&host) {
            seats.half_open = seats.half_open.saturating_sub(1);
        }
    }

    /// A confirmed one is given back.
    pub(super) fn leave(&mut self, host: IpAddr) {
        let Some(seats) = self.0.get_mut(&host) else { return };
        seats.all -= 1;
        if seats.all == 0 {
            self.0.remove(&host);
        }
    }

    pub(super) fn of(&self, host: IpAddr) -> HostSeats {
        self.0.get(&host).copied().unwrap_or_default()
    }
}

/// Timers that one call looks at: enough for a thousand calls a second, or for one a frame of some ten thousand seats.
pub(super) const TIMERS_EACH: usize = 4096;
/// Bytes of a turn: 14 datagrams of 1200 bytes.
const QUANTUM: usize = 16 << 10;
/// Timers of which each is moved back.
const FEW: usize = 8;
/// By how much at least, µs.
const WORTH: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Datagrams of 100 sessions bring timers forward, which are far away again when they have gone off.
    #[test]
    fn no_timer_is_lost_and_those_of_nobody_take_no_room() {
        let (mut agenda, mut seats) = (Agenda::<usize>::default(), [Entry::at(Time::NEVER); 100]);
        for (ms, id) in (0..5_000).zip((0..seats.len()).cycle().step_by(37)) {
            let now = Time::from_millis(ms);
            while let Some((at, id)) = agenda.pop(now) {
                if agenda.is_due(now, at, id, &mut seats[id]) {
                    seats[id].due = now.after(500_000);
                    agenda.put_off(id, &mut seats[id]);
                }
            }
            if ms % 1000 < 300 {
                seats[id].due = now.after(10_000);
                agenda.put_off(id, &mut seats[id]);
            }
            agenda.tidy(seats.len(), |id| seats.get(id));
            assert_eq!(seats.iter().position(|seat| seat.wake <= now), None, "at {now:?}");
            assert!(agenda.timers.len() <= 2 * seats.len(), "{} at {now:?}", agenda.timers.len());
        }
        for (id, seat) in seats.iter_mut().enumerate() {
            agenda.leave(id, seat);
        }
        agenda.tidy(0, |_| None);
        assert_eq!(agenda.poll_timeout(Time::ZERO), None);
    }

    #[test]
    fn a_timer_is_moved_back_by_a_millisecond_at_least_and_only_among_few() {
        let (at, mut agenda) = (Time::from_micros, Agenda::default());
        let mut seats = [Entry::at(Time::NEVER); FEW + 1];
        let mut first = |agenda: &mut Agenda<usize>, id: usize, due| {
            seats[id].due = at(due);
            agenda.put_off(id, &mut seats[id]);
            agenda.poll_timeout(Time::ZERO).map(Time::as_micros)
        };
        for (due, expected) in [(5_000, 5_000), (30_000, 30_000), (20_000, 20_000), (20_999, 20_000)] {
            assert_eq!(first(&mut agenda, 0, due), Some(expected));
        }
        (1..=FEW).for_each(|id| _ = first(&mut agenda, id, 100_000));
        assert_eq!(agenda.timers.len(), 1 + FEW, "what was moved is not there any more");
        assert_eq!(first(&mut agenda, 0, 40_000), Some(20_000));
        assert_eq!((agenda.pop(at(19_999)), agenda.pop(at(20_000))), (None, Some((at(20_000), 0))));
        assert!(!agenda.is_due(at(20_000), at(20_000), 0, &mut seats[0]), "it is put off");
        assert_eq!(agenda.poll_timeout(Time::ZERO), Some(at(40_000)));
    }

    #[test]
    fn a_name_stays_for_its_time_and_the_oldest_of_an_address_goes_and_then_the_oldest_of_all() {
        let name = |host, number| (SocketAddr::from(([10, 0, 0, host], 1)), number);
        let held = |graves: &mut Graves<u64>, ms| {
            let names = (1..5).flat_map(|host| (0..9).map(move |number| (host, number)));
            names
                .filter(|(host, number)| graves.get(Time::from_millis(ms), &name(*host, *number)).is_some())
                .collect::<Vec<_>>()
        };
        let mut graves = Graves::new(Duration::from_secs(10), 4, 2);
        for number in 0..9 {
            graves.insert(Time::from_millis(number), name(1, number), number);
        }
        assert_eq!(held(&mut graves, 9), [(1, 7), (1, 8)]);
        for host in 2..5 {
            graves.insert(Time::from_millis(9), name(host, 1), 1);
        }
        assert_eq!(held(&mut graves, 10_007), [(1, 8), (2, 1), (3, 1), (4, 1)]);
        assert_eq!((held(&mut graves, 10_009), graves.until.len(), graves.told.len()), (vec![], 0, 0));
        let mut none = Graves::new(Duration::from_secs(10), 0, 0);
        none.insert(Time::ZERO, name(1, 1), 1);
        assert_eq!(held(&mut none, 0), []);
    }
}
