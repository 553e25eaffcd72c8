//! Shared by the tables of sessions and of bare KCP peers: whose turn it is to send, when to look at each
//! seat, how many seats each address has, and which ones may not come back at once.

use super::wheel::{Timer, Wheel};
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Whose turn it is to send, and when to look at each of the others.
///
/// A seat that may have something to send is on a list: a datagram came, a timer fired or the program used
/// it. All other seats cost nothing. The list is served round robin by bytes: everyone's turn has the same
/// size, which is enough for datagrams to one address to leave in one batch. A seat with little to send waits
/// for at most one turn of each of the others, however much those have. Source: Shreedhar and Varghese,
/// Efficient Fair Queueing Using Deficit Round Robin, 1995; without the deficit, since a datagram is only a
/// small part of a turn.
///
/// Each seat has one timer at most, which moves with what the seat waits for.
#[derive(Debug)]
pub(super) struct Agenda<Id> {
    listed: VecDeque<Id>,
    sent: usize,
    /// When to look at each seat that has something to do.
    timers: Wheel<Id>,
}

/// The part of the agenda that is stored in a seat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// When it has something to do.
    pub(super) due: Time,
    /// When to look at it next, by this timer; never, if it has none.
    wake: Time,
    timer: Timer,
    is_listed: bool,
}

impl Entry {
    /// For a seat that has something to do at `due`, once [`put_off`](Agenda::put_off) has set its timer.
    pub(super) const fn at(due: Time) -> Self {
        Self { due, wake: Time::NEVER, timer: Timer::NONE, is_listed: false }
    }

    pub(super) const fn is_listed(&self) -> bool {
        self.is_listed
    }
}

impl<Id: Copy> Agenda<Id> {
    #[inline]
    pub(super) fn list(&mut self, id: Id, entry: &mut Entry) {
        if !std::mem::replace(&mut entry.is_listed, true) {
            self.listed.push_back(id);
        }
    }

    pub(super) fn first(&self) -> Option<Id> {
        self.listed.front().copied()
    }

    /// The first seat has sent so many bytes. Returns whether that was all of its turn.
    #[inline]
    pub(super) fn sent(&mut self, bytes: usize) -> bool {
        self.sent += bytes;
        let is_all = self.sent >= QUANTUM;
        if is_all {
            self.sent = 0;
            self.listed.rotate_left(1);
        }
        is_all
    }

    /// Ends the turn of the first seat: it has nothing more to send, or is gone and has no entry.
    pub(super) fn end_turn(&mut self, entry: Option<&mut Entry>) {
        self.sent = 0;
        self.listed.pop_front();
        if let Some(entry) = entry {
            entry.is_listed = false;
        }
    }

    /// Sets the timer of a seat for when it is due.
    #[inline]
    pub(super) fn put_off(&mut self, id: Id, entry: &mut Entry) {
        let Entry { due, wake, .. } = *entry;
        if due < wake || due.micros_since(wake) >= WORTH {
            self.leave(entry);
            if due != Time::NEVER {
                (entry.wake, entry.timer) = (due, self.timers.insert(due, id));
            }
        }
    }

    /// Takes the next seat whose timer has fired. Pass it to [`fired`](Self::fired).
    pub(super) fn pop(&mut self, now: Time) -> Option<Id> {
        self.timers.pop(now)
    }

    /// The timer of a seat has fired. Returns whether it has something to do. If not, its timer is set again.
    pub(super) fn fired(&mut self, now: Time, id: Id, entry: &mut Entry) -> bool {
        entry.wake = Time::NEVER;
        let is_due = entry.due <= now || entry.is_listed;
        if !is_due {
            self.put_off(id, entry);
        }
        is_due
    }

    /// Removes the timer of a seat.
    pub(super) fn leave(&mut self, entry: &mut Entry) {
        if std::mem::replace(&mut entry.wake, Time::NEVER) != Time::NEVER {
            self.timers.remove(entry.timer);
        }
    }

    pub(super) fn poll_timeout(&self, now: Time) -> Option<Time> {
        if self.listed.is_empty() { self.timers.soonest() } else { Some(now) }
    }
}

impl<Id> Default for Agenda<Id> {
    fn default() -> Self {
        Self { listed: VecDeque::new(), sent: 0, timers: Wheel::default() }
    }
}

/// What identifies a bare KCP peer: its address, and the number of the conversation.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Name(pub(super) SocketAddr, pub(super) u32);

/// In few words, because it is hashed for each datagram.
impl Hash for Name {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self(address, conv) = *self;
        state.write_u64(u64::from(conv) << 16 | u64::from(address.port()));
        match address {
            SocketAddr::V4(address) => state.write_u32(address.ip().to_bits()),
            SocketAddr::V6(address) => {
                let bits = address.ip().to_bits();
                #[expect(clippy::cast_possible_truncation, reason = "the halves are meant")]
                [(bits >> 64) as u64, bits as u64].into_iter().for_each(|half| state.write_u64(half));
                state.write_u64(u64::from(address.flowinfo()) << 32 | u64::from(address.scope_id()));
            }
        }
    }
}

/// Names of seats that were recently given up. A late copy of a first datagram would otherwise open a seat
/// again. Stores what each was told, in case it asks again. Only the newest are kept, up to a limit in total
/// and per address.
#[derive(Debug)]
pub(super) struct Graves<N, T = ()> {
    told: BTreeMap<N, T>,
    /// When each of them may be removed, soonest first, and which address it counts for.
    until: VecDeque<(Time, N, IpAddr)>,
    stay: Duration,
    limit: usize,
    of_host: usize,
}

impl<N: Copy + Ord, T> Graves<N, T> {
    pub(super) const fn new(stay: Duration, limit: usize, of_host: usize) -> Self {
        Self { told: BTreeMap::new(), until: VecDeque::new(), stay, limit, of_host }
    }

    pub(super) fn insert(&mut self, now: Time, name: N, host: IpAddr, told: T) {
        self.get(now, &name);
        let is_neighbour = |(.., other): &(Time, N, IpAddr)| *other == host;
        let may_be_many = self.of_host < self.limit && self.until.len() >= self.of_host;
        let goes =
            if may_be_many && self.until.iter().filter(|other| is_neighbour(other)).count() >= self.of_host {
                self.until.iter().position(is_neighbour)
            } else {
                (self.until.len() >= self.limit).then_some(0)
            };
        if let Some((_, gone, _)) = goes.and_then(|index| self.until.remove(index)) {
            self.told.remove(&gone);
        }
        if self.limit > 0 && self.told.insert(name, told).is_none() {
            self.until.push_back((now + self.stay, name, host));
        }
    }

    pub(super) fn get(&mut self, now: Time, name: &N) -> Option<&mut T> {
        while let Some((until, name, _)) = self.until.front()
            && *until <= now
        {
            self.told.remove(name);
            self.until.pop_front();
        }
        self.told.get_mut(name)
    }
}

/// How many seats each address or network has. Those without seats are not stored, so it is no larger than the
/// table.
#[derive(Debug, Default)]
pub(super) struct Hosts(BTreeMap<IpAddr, usize>);

impl Hosts {
    pub(super) fn enter(&mut self, host: IpAddr) {
        *self.0.entry(host).or_default() += 1;
    }

    pub(super) fn leave(&mut self, host: IpAddr) {
        let Some(seats) = self.0.get_mut(&host) else { return };
        *seats -= 1;
        if *seats == 0 {
            self.0.remove(&host);
        }
    }

    pub(super) fn of(&self, host: IpAddr) -> usize {
        self.0.get(&host).copied().unwrap_or_default()
    }
}

/// Whether a network already has its share of `places`, of which `taken` are taken. The second half of them
/// is for networks that have fewer than an eighth, or fewer than one address may have.
pub(super) fn has_share(of_network: usize, taken: usize, places: usize, of_address: usize) -> bool {
    taken >= places / 2 && of_network >= (places / 8).max(of_address)
}

/// Timers that one call handles: enough for a thousand calls per second, or for one per frame with some ten
/// thousand seats.
pub(super) const TIMERS_EACH: usize = 4096;
/// Bytes in one turn: 14 datagrams of 1200 bytes.
const QUANTUM: usize = 16 << 10;
/// By how much a timer must move back to be worth it, µs.
const WORTH: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Datagrams of 100 sessions bring timers forward; when these have fired, the next deadline is far away
    /// again.
    #[test]
    fn no_timer_is_lost_or_fires_for_nothing() {
        let (mut agenda, mut seats) = (Agenda::<usize>::default(), [Entry::at(Time::NEVER); 100]);
        for (ms, id) in (0..5_000).zip((0..seats.len()).cycle().step_by(37)) {
            let now = Time::from_millis(ms);
            while let Some(id) = agenda.pop(now) {
                assert!(agenda.fired(now, id, &mut seats[id]), "at {now:?}");
                seats[id].due = now.after(500_000);
                agenda.put_off(id, &mut seats[id]);
            }
            if ms % 1000 < 300 {
                seats[id].due = now.after(10_000);
                agenda.put_off(id, &mut seats[id]);
            }
            assert_eq!(seats.iter().position(|seat| seat.wake <= now), None, "at {now:?}");
        }
        seats.iter_mut().for_each(|seat| agenda.leave(seat));
        assert_eq!(agenda.poll_timeout(Time::ZERO), None);
    }

    #[test]
    fn timers_are_moved_back_only_by_at_least_a_millisecond() {
        let (at, mut agenda, mut seat) = (Time::from_micros, Agenda::default(), Entry::at(Time::NEVER));
        for (due, expected) in [(5_000, 5_000), (30_000, 30_000), (20_000, 20_000), (20_999, 20_000)] {
            seat.due = at(due);
            agenda.put_off(0, &mut seat);
            assert_eq!(agenda.poll_timeout(Time::ZERO), Some(at(expected)));
        }
        assert_eq!((agenda.pop(at(19_999)), agenda.pop(at(20_000))), (None, Some(0)));
        assert!(!agenda.fired(at(20_000), 0, &mut seat), "its timer is set again");
        assert_eq!(agenda.poll_timeout(Time::ZERO), Some(at(20_999)));
        seat.due = Time::NEVER;
        agenda.put_off(0, &mut seat);
        assert_eq!(agenda.poll_timeout(Time::ZERO), None);
    }

    #[test]
    fn a_name_is_kept_for_its_time_and_the_oldest_are_dropped_first() {
        let host = |host| IpAddr::from([10, 0, 0, host]);
        let name = |host: u8, number: u64| (host, number);
        let held = |graves: &mut Graves<(u8, u64), u64>, ms| {
            let names = (1..5).flat_map(|host| (0..9).map(move |number| (host, number)));
            names
                .filter(|(host, number)| graves.get(Time::from_millis(ms), &name(*host, *number)).is_some())
                .collect::<Vec<_>>()
        };
        let mut graves = Graves::new(Duration::from_secs(10), 4, 2);
        for number in 0..9 {
            graves.insert(Time::from_millis(number), name(1, number), host(1), number);
        }
        assert_eq!(held(&mut graves, 9), [(1, 7), (1, 8)]);
        for number in 2..5 {
            graves.insert(Time::from_millis(9), name(number, 1), host(number), 1);
        }
        assert_eq!(held(&mut graves, 10_007), [(1, 8), (2, 1), (3, 1), (4, 1)]);
        assert_eq!((held(&mut graves, 10_009), graves.until.len(), graves.told.len()), (vec![], 0, 0));
        let mut none = Graves::new(Duration::from_secs(10), 0, 0);
        none.insert(Time::ZERO, name(1, 1), host(1), 1);
        assert_eq!(held(&mut none, 0), []);
    }
}
