//! The state that a thread shares with its handle.

use super::ThreadConfig;
use crate::net::sync::{AtomicBool, AtomicUsize, Bell};
use crate::session::DATAGRAMS;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, OnceLock};

/// Wakes a thread that waits for datagrams, and counts what it has delivered.
#[derive(Debug)]
pub(super) struct Shared {
    /// Whether the thread is about to sleep. After setting this, it checks once more for new work.
    pub(super) is_asleep: AtomicBool,
    bell: Arc<Bell>,
    /// Bytes of messages and of events that were delivered and not yet taken. The last messages of a session that has
    /// ended count as events.
    messages: AtomicUsize,
    events: AtomicUsize,
    /// There was no room for more: the thread must be woken when some is taken.
    is_full: AtomicBool,
    pub(super) config: ThreadConfig,
    pub(super) runs: AtomicUsize,
}

impl Shared {
    pub(super) fn new(bell: Arc<Bell>, config: ThreadConfig) -> Self {
        let [messages, events, runs] = [const { AtomicUsize::new(0) }; 3];
        let [is_asleep, is_full] = [const { AtomicBool::new(false) }; 2];
        Self { is_asleep, bell, messages, events, is_full, config, runs }
    }

    /// Wakes a sleeping thread to check for new work. Call this after adding work.
    pub(super) fn wake(&self) {
        if self.is_asleep.swap(false, SeqCst) {
            self.bell.ring();
        }
    }

    /// Notes that an event of this cost was delivered.
    pub(super) fn told(&self, cost: usize) {
        self.events.fetch_add(cost, SeqCst);
    }

    /// Notes that it was taken. The thread may have waited for that.
    pub(super) fn heard(&self, cost: usize) {
        self.take_away(&self.events, cost);
    }

    /// Whether more events may be delivered. If not, the thread is woken when one is taken.
    pub(super) fn may_tell(&self) -> bool {
        or_again(&self.is_full, || self.is_below(&self.events))
    }

    /// Whether more messages may be delivered. If not, the thread is woken when one is taken.
    fn has_room(&self) -> bool {
        or_again(&self.is_full, || self.is_below(&self.messages))
    }

    fn is_below(&self, used: &AtomicUsize) -> bool {
        let used = used.load(SeqCst);
        used == 0 || used < self.config.incoming
    }

    fn take_away(&self, used: &AtomicUsize, cost: usize) {
        used.fetch_sub(cost, SeqCst);
        if self.is_full.swap(false, SeqCst) {
            self.wake();
        }
    }
}

/// What a thread and its handle share about one session.
#[derive(Debug)]
pub(super) struct Counts {
    /// Bytes that wait for the session. The program adds, the thread takes away.
    outgoing: Budgets,
    /// There was no room for more: the program must be told when there is.
    is_short: AtomicBool,
    /// Messages and datagrams that wait for the session, or that it has refused.
    untaken: [AtomicUsize; 2],
    /// Bytes that wait for the program. The thread adds, the program takes away.
    unread: Budgets,
    /// There was no room for more: the thread must be woken when some is taken.
    is_full: AtomicBool,
    /// What the peer said in the handshake, and when it closed the session.
    pub(super) user: Box<[u8]>,
    /// What a server gave its client for the next session.
    pub(super) ticket: Box<[u8]>,
    pub(super) close_text: OnceLock<Box<str>>,
}

impl Counts {
    /// For a session with this many channels. `is_only`: the thread has no other session.
    pub(super) fn new(
        user: &[u8],
        ticket: &[u8],
        channels: usize,
        is_only: bool,
        config: &ThreadConfig,
    ) -> Self {
        let part = if is_only { 1 } else { PART };
        Self {
            outgoing: Budgets::new(channels, config.outgoing),
            is_short: AtomicBool::new(false),
            untaken: [const { AtomicUsize::new(0) }; 2],
            unread: Budgets::new(channels, config.incoming / part),
            is_full: AtomicBool::new(false),
            user: user.into(),
            ticket: ticket.into(),
            close_text: OnceLock::new(),
        }
    }

    /// Whether the program may send something of this cost. If so, it is counted. If not, the program is told when
    /// there is room.
    pub(super) fn send(&self, way: u8, cost: usize) -> bool {
        let is_sent = or_again(&self.is_short, || self.outgoing.add(way, cost));
        if is_sent {
            self.untaken_of(way).fetch_add(1, SeqCst);
        }
        is_sent
    }

    /// Notes that it no longer waits: the session has taken it, or never will.
    pub(super) fn sent(&self, way: u8, cost: usize, is_taken: bool) {
        self.outgoing.take_away(way, cost);
        if is_taken {
            self.untaken_of(way).fetch_sub(1, SeqCst);
        }
    }

    /// Whether to tell the program that it may send more. Says so once.
    pub(super) fn regains_room(&self) -> bool {
        self.is_short.load(SeqCst) && self.outgoing.is_half_empty() && self.is_short.swap(false, SeqCst)
    }

    /// Messages and datagrams that were sent and that the session has not taken.
    pub(super) fn untaken(&self) -> (usize, usize) {
        let [messages, datagrams] = &self.untaken;
        (messages.load(SeqCst), datagrams.load(SeqCst))
    }

    const fn untaken_of(&self, way: u8) -> &AtomicUsize {
        let [messages, datagrams] = &self.untaken;
        if way == DATAGRAMS { datagrams } else { messages }
    }

    /// Whether a message of this cost may be delivered on a channel. If not, the thread is woken when there is room.
    ///
    /// Even when all sessions together are at the limit, a session may have a little. It may also have one message on
    /// each channel that the program has read completely, if the message is short or the session has not used up its
    /// part. So unread messages hold up nothing else, and each session is bounded.
    pub(super) fn has_room(&self, shared: &Shared, way: u8, cost: usize) -> bool {
        let Self { is_full, unread, .. } = self;
        or_again(is_full, || {
            let (all, is_first) = (unread.all() + cost, unread.used(way) == 0);
            all <= unread.limit / LITTLE
                || (is_first && (all <= unread.limit || cost <= unread.own()))
                || (shared.has_room() && (is_first || unread.room(way) > 0))
        })
    }

    /// Notes that a message of this cost was delivered.
    pub(super) fn delivered(&self, shared: &Shared, way: u8, cost: usize) {
        self.unread.put(way, cost);
        shared.messages.fetch_add(cost, SeqCst);
    }

    /// Notes that it was taken. The thread may have waited for that.
    pub(super) fn taken(&self, shared: &Shared, way: u8, cost: usize) {
        self.unread.take_away(way, cost);
        shared.take_away(&shared.messages, cost);
        if self.is_full.swap(false, SeqCst) {
            shared.wake();
        }
    }
}

/// Checks for room. If there is none, sets `is_missed` and checks once more: some may have been taken just before.
fn or_again(is_missed: &AtomicBool, has_room: impl Fn() -> bool) -> bool {
    has_room() || {
        is_missed.store(true, SeqCst);
        has_room()
    }
}

/// Queued bytes of one session, by channel. One end adds, the other takes away.
#[derive(Debug)]
struct Budgets {
    /// One counter per channel, then one for the datagrams.
    used: Box<[AtomicUsize]>,
    limit: usize,
}

impl Budgets {
    fn new(channels: usize, limit: usize) -> Self {
        Self { used: (0..=channels).map(|_| AtomicUsize::new(0)).collect(), limit }
    }

    /// The counter of a channel. Any other number gets that of the datagrams.
    fn of(&self, way: u8) -> Option<&AtomicUsize> {
        let channels = self.used.len() - 1;
        self.used.get(usize::from(way).min(channels))
    }

    fn used(&self, way: u8) -> usize {
        self.of(way).map_or(0, |used| used.load(SeqCst))
    }

    /// Adds `cost` if there is room, or if nothing waits on this way. Returns whether it did.
    fn add(&self, way: u8, cost: usize) -> bool {
        let has_room = self.used(way) == 0 || cost <= self.room(way);
        if has_room {
            self.put(way, cost);
        }
        has_room
    }

    fn is_half_empty(&self) -> bool {
        self.all() <= self.limit / 2
    }

    fn all(&self) -> usize {
        self.used.iter().map(|used| used.load(SeqCst)).sum()
    }

    /// Bytes reserved for each way.
    fn own(&self) -> usize {
        self.limit / 4 / self.used.len()
    }

    /// Adds `cost` in any case.
    fn put(&self, way: u8, cost: usize) {
        if let Some(used) = self.of(way) {
            used.fetch_add(cost, SeqCst);
        }
    }

    fn take_away(&self, way: u8, cost: usize) {
        if let Some(used) = self.of(way) {
            used.fetch_sub(cost, SeqCst);
        }
    }

    /// Bytes that may be added to a way. A quarter of the limit is divided evenly; of the rest, it gets what the
    /// others have left.
    fn room(&self, way: u8) -> usize {
        let own = self.own();
        let rest = self.limit - own * self.used.len();
        let Some(way) = self.of(way) else { return 0 };
        let others = self.used.iter().filter(|other| !std::ptr::eq(*other, way));
        let taken = others.map(|other| other.load(SeqCst).saturating_sub(own)).sum();
        (own + rest.saturating_sub(taken)).saturating_sub(way.load(SeqCst))
    }
}

/// One session may use `incoming` divided by this.
const PART: usize = 8;
/// A session may use its part divided by this even if the others have used up everything.
const LITTLE: usize = 32;

#[cfg(test)]
mod tests {
    use super::super::inbox::Inbox;
    use super::super::worker::{Parcel, Tell, What};
    use super::*;
    use allocation_counter::measure;
    use bytes::Bytes;
    use std::sync::mpsc::channel;
    use whitewater_udp::{Mode, Port};

    /// Three channels and datagrams: of 1600 bytes, 100 are reserved for each and 1200 are shared.
    fn budgets() -> Budgets {
        Budgets::new(3, 1600)
    }

    const ALL: [u8; 4] = [0, 1, 2, DATAGRAMS];

    fn fill(budgets: &Budgets, way: u8) -> usize {
        (0..).take_while(|_| budgets.add(way, 10)).count() * 10
    }

    /// Shared state that gives each session 800 bytes, and a function that makes sessions with one channel.
    fn unread() -> (Shared, impl Fn() -> Counts) {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut port = Port::<std::net::UdpSocket>::new(socket, Mode::Whole, 1).unwrap();
        let config = ThreadConfig { incoming: 6400, ..ThreadConfig::default() };
        (Shared::new(port.bell().unwrap(), config), move || Counts::new(b"", b"", 1, false, &config))
    }

    fn deliver(shared: &Shared, counts: &Counts, way: u8, cost: usize) -> bool {
        let has_room = counts.has_room(shared, way, cost);
        if has_room {
            counts.delivered(shared, way, cost);
        }
        has_room
    }

    #[test]
    fn messages_count_for_what_they_own_while_they_wait() {
        let (shared, session) = unread();
        let (parcels, taken) = channel();
        let (tell, counts) = (Tell { parcels, shared: Arc::new(shared) }, session());
        for (count, len) in [(1000, 0), (1000, 1), (1000, 100), (100, 1200), (3, 1 << 20)] {
            let mut inbox = Inbox::default();
            let heap = measure(|| {
                for _ in 0..count {
                    tell.tell_message(None, 0, Bytes::from(vec![1; len]), &counts);
                }
                taken.try_iter().for_each(|Parcel { what, cost, .. }| {
                    if let What::Message(way, message) = what {
                        inbox.push(way, message, cost);
                    }
                });
            });
            let (counted, held) = (counts.unread.all(), usize::try_from(heap.bytes_current).unwrap());
            assert!(
                held >= count * len && held <= counted + 4096,
                "{count} of {len}: {held} bytes, {counted} counted"
            );
            inbox.clear(|way, cost| counts.taken(&tell.shared, way, cost));
            assert_eq!(counts.unread.all(), 0);
        }
    }

    #[test]
    fn sessions_that_nobody_reads_leave_every_other_a_little_and_are_bounded() {
        let (shared, session) = unread();
        let mut hostile = Vec::new();
        for _ in 0..100 {
            let counts = session();
            while deliver(&shared, &counts, 0, 10) || deliver(&shared, &counts, DATAGRAMS, 10) {}
            assert!(counts.unread.all() <= 800 + 10, "{counts:?}");
            hostile.push(counts);
        }
        let honest = session();
        for _ in 0..10 {
            assert_eq!((0..).take_while(|_| deliver(&shared, &honest, 0, 10)).count(), 2, "25 bytes of 800");
            honest.taken(&shared, 0, 20);
        }
    }

    #[test]
    fn one_message_may_wait_on_each_channel_up_to_the_part_of_the_session() {
        let (shared, session) = unread();
        let greedy: Vec<_> = (0..10).map(|_| session()).collect();
        for counts in &greedy {
            while deliver(&shared, counts, 0, 100) {}
        }
        let honest = session();
        assert!(!deliver(&shared, &honest, 0, 801), "longer than its part, while the others have everything");
        assert!(deliver(&shared, &honest, 0, 700));
        assert!(!deliver(&shared, &honest, DATAGRAMS, 101));
        assert!(deliver(&shared, &honest, DATAGRAMS, 100), "a short one always may");
        honest.taken(&shared, 0, 700);
        greedy.iter().for_each(|counts| counts.taken(&shared, 0, counts.unread.used(0)));
        assert!(deliver(&shared, &honest, 0, 5000), "and a long one when the others have left room");
    }

    #[test]
    fn a_greedy_channel_leaves_every_other_its_share() {
        for greedy in ALL {
            let budgets = budgets();
            assert_eq!(fill(&budgets, greedy), 1300, "{greedy:?}");
            for other in ALL.into_iter().filter(|other| *other != greedy) {
                let room = (budgets.room(other), fill(&budgets, other));
                assert_eq!(room, (100, 100), "{other:?} beside {greedy:?}");
            }
            budgets.take_away(greedy, 1300);
            assert_eq!(ALL.map(|way| budgets.room(way)).into_iter().max(), Some(1300));
        }
    }

    #[test]
    fn an_oversized_message_is_accepted_if_nothing_waits_and_the_others_keep_their_share() {
        let budgets = budgets();
        assert!(budgets.add(2, 5000));
        assert!(!budgets.add(2, 1));
        assert_eq!(fill(&budgets, 1), 100);
    }
}
