//! The peer's address, and where it may be now: an address is not believed before it has answered.

use super::question::{ASK_AGAIN, Candidate, Question, Questions};
use super::second::Second;
use crate::pace::Rtt;
use crate::time::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// The peer's address, and another one that its newest packets come from.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) route: Route,
    pub(super) moves: bool,
    /// The answer to the peer's challenge.
    pub(super) response: Option<[u8; 8]>,
    pub(super) questions: Questions,
    /// Created when a packet first comes from another address.
    pub(super) moving: Option<Box<Moving>>,
}

/// Where the peer is, or may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Route {
    pub(super) address: SocketAddr,
    /// The number of the session in packets to there.
    pub(super) sid: u32,
}

/// What is known about other addresses.
///
/// An observer whose copies arrive before the packets themselves looks like a peer that has moved, and may even pass
/// challenges on to the peer. But then the packets themselves still come from the peer's address, as duplicates. So if
/// two addresses send the same packet, the one where the peer was before is asked too, and its answer counts more.
/// That address is remembered as long as copies come from it. Otherwise an observer on the path with more
/// addresses could keep moving until it is forgotten.
/// Source: RFC 9000 section 9.3.3.
#[derive(Debug, Default)]
pub(super) struct Moving {
    /// Where the newest packets come from.
    pub(super) candidate: Option<Candidate>,
    /// Where others or copies of them come from, while the address is contested: an observer may follow a peer that
    /// moves.
    pub(super) rival: Option<Candidate>,
    /// The first packet of the newest candidate.
    first: u64,
    previous: Option<Previous>,
    /// The present address, while it is asked whether the peer is still there.
    pub(super) home: Option<Question>,
    /// Until when every candidate is compared with the present address.
    contested: Time,
    /// When copies are looked at again.
    looks_at: Time,
    /// When candidates are, while the address is contested: copies of a single packet do not keep the peer from moving.
    takes_at: Time,
    /// The frames of a packet that has left, for the candidate.
    copy: Option<(Route, Vec<u8>)>,
    /// Where the peer is as well.
    pub(super) second: Option<Box<Second>>,
    /// Times of the last switches, oldest first.
    switches: [Option<Time>; SWITCHES],
}

/// Where the peer was before it moved, or where somebody else asked for the same session before it began.
#[derive(Debug)]
struct Previous {
    route: Route,
    /// The peer may never have been there. Whoever asks and copies later than the peer can also pass on what is asked: so
    /// the present address is asked as well, and its answer counts more.
    yields: bool,
    /// It waits for what the peer says at the present address.
    has_answered: bool,
    /// Until when no later address takes its place.
    until: Time,
    /// The packet with which the peer began to move. Copies of earlier ones say nothing.
    first: u64,
    /// While it is asked whether the peer is still there. The present address cannot keep it from being asked.
    question: Option<Question>,
    /// When it may be asked anew.
    looks_at: Time,
}

/// An authentic packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) from: SocketAddr,
    /// The number for packets to there.
    pub(super) sid: u32,
    pub(super) pn: u64,
    /// None with a higher number came before.
    pub(super) is_newest: bool,
    pub(super) len: usize,
}

impl Path {
    pub(super) fn new(route: Route, moves: bool) -> Self {
        Self { route, moves, response: None, questions: Questions::default(), moving: None }
    }

    /// The peer may also be at `other`, where somebody asked for the same session.
    pub(super) fn contest(&mut self, now: Time, other: SocketAddr) {
        if self.moves {
            let moving = self.moving.get_or_insert_default();
            let previous = Previous::new(now, Route { address: other, ..self.route }, 0);
            moving.previous = Some(Previous { yields: true, ..previous });
        }
    }

    pub(super) fn may_be(&self, from: SocketAddr) -> bool {
        self.moves || from == self.route.address
    }

    /// Notes a packet. `rtt` decides how long an address has to answer.
    #[inline]
    pub(super) fn on_packet(&mut self, now: Time, came: &Came, rtt: &Rtt) {
        if came.from != self.route.address {
            self.on_candidate(now, came, rtt);
        } else if came.is_newest {
            self.route.sid = came.sid;
            if let Some(moving) = self.moving.as_mut().filter(|moving| moving.home.is_none()) {
                (moving.candidate, moving.rival) = (None, None); // the peer is still where it was
            }
        }
    }

    fn on_candidate(&mut self, now: Time, came: &Came, rtt: &Rtt) {
        self.update(now);
        let moving = self.moving.get_or_insert_default();
        if came.is_newest
            && let Some(previous) = moving.previous.as_mut().filter(|previous| previous.is_at(now, came.from))
        {
            previous.route.sid = came.sid;
            return self.ask_previous(now);
        }
        if moving.pays(came) || !came.is_newest || !moving.may_switch(now) {
            return;
        }
        let is_contested = now < moving.contested;
        if moving.candidate.is_none() {
            let question = self.questions.next(now, came.route(), 3 * patience(rtt));
            (moving.candidate, moving.first) = (Some(Candidate::new(question, came)), came.pn);
        } else if is_contested {
            self.try_rival(now, came, rtt);
        }
        if is_contested {
            self.ask_home(now);
        }
    }

    fn try_rival(&mut self, now: Time, came: &Came, rtt: &Rtt) {
        let Self { questions, moving: Some(moving), .. } = self else { return };
        moving.rival.get_or_insert_with(|| {
            Candidate::new(questions.next(now, came.route(), 3 * patience(rtt)), came)
        });
    }

    /// Whether a copy of the packet `pn`, which has come before, matters if it is authentic.
    pub(super) fn heeds_copy(&self, now: Time, from: SocketAddr, pn: u64) -> bool {
        let Some(moving) = self.moving.as_deref() else { return self.moves && from != self.route.address };
        if moving.second.as_ref().is_some_and(|second| second.is_at(from)) {
            return false; // the peer sends nothing twice there
        }
        if let Some(previous) = moving.previous.as_ref().filter(|previous| previous.route.address == from) {
            let is_asked = previous.question.is_some() || previous.has_answered;
            return !is_asked && pn >= previous.first && previous.looks_at <= now;
        }
        let of_two = if from == self.route.address {
            moving.candidate.is_some() && moving.home.is_none()
        } else {
            moving.may_switch(now)
        };
        of_two && pn >= moving.first && moving.looks_at <= now
    }

    /// Notes an authentic copy that [matters](Self::heeds_copy): two addresses have sent the same packet.
    pub(super) fn on_copy(&mut self, now: Time, came: &Came, rtt: &Rtt) {
        let moving = self.moving.get_or_insert_default();
        if let Some(previous) =
            moving.previous.as_mut().filter(|previous| previous.route.address == came.from)
        {
            previous.until = now + CONTESTED; // the peer may still be there
            return self.ask_previous(now);
        }
        moving.looks_at = now + ASK_AGAIN;
        if came.from == self.route.address {
            return self.ask_home(now);
        }
        if !moving.pays(came) {
            moving.rival.take_if(|rival| !rival.has_answered); // an observer has many addresses, and is the first
            let may_stay = moving.candidate.is_none() || now < moving.contested;
            self.try_rival(now, came, rtt);
            if may_stay {
                self.contest_home(now);
            }
        }
    }

    fn ask_home(&mut self, now: Time) {
        let Self { route, questions, moving: Some(moving), .. } = self else { return };
        moving.home.get_or_insert_with(|| questions.next(now, *route, PATIENCE_MAX));
    }

    /// The address may be an observer's, or the peer's: nobody takes its place before it was asked.
    fn contest_home(&mut self, now: Time) {
        if let Some(moving) = &mut self.moving {
            moving.contested = now + CONTESTED;
        }
        self.ask_home(now);
    }

    fn ask_previous(&mut self, now: Time) {
        let Self { questions, moving: Some(moving), .. } = self else { return };
        let Some(previous) = &mut moving.previous else { return };
        previous.looks_at = now + ASK_AGAIN;
        previous.question.get_or_insert_with(|| questions.next(now, previous.route, PATIENCE_MAX));
        if previous.yields {
            self.contest_home(now);
        }
    }

    /// The peer asks whether this end is really at its address.
    pub(super) fn on_challenge(&mut self, from: SocketAddr, challenge: [u8; 8]) {
        if from == self.route.address {
            self.response = Some(challenge);
        }
    }

    /// Takes an answer, to the question whose number it `answers`. Returns the old address if the peer has moved.
    pub(super) fn on_response(&mut self, now: Time, answers: impl Fn(u32) -> bool) -> Option<SocketAddr> {
        self.update(now);
        let moving = self.moving.as_deref_mut()?;
        let answers = |question: &Question| answers(question.number);
        if moving.home.as_ref().is_some_and(&answers) {
            moving.stay(now);
            return None;
        }
        if let Some(previous) = &mut moving.previous {
            previous.has_answered |= previous.question.take_if(|question| answers(question)).is_some();
        }
        for candidate in moving.candidates() {
            candidate.has_answered |= answers(&candidate.question);
        }
        if let Some(second) = &mut moving.second {
            second.answers(answers);
        }
        self.switch(now)
    }

    /// Moves to a candidate that has answered, unless the peer may still be where it was. Returns the old address if
    /// the peer has moved.
    pub(super) fn switch(&mut self, now: Time) -> Option<SocketAddr> {
        self.update(now);
        let moving = self.moving.as_deref_mut()?;
        let was_silent = moving.home.as_ref().map(|home| home.dies_at <= now);
        let waits = was_silent == Some(false);
        let is_back = |previous: &mut Previous| previous.has_answered && !(previous.yields && waits);
        if let Some(previous) = moving.previous.take_if(is_back) {
            moving.stay(now);
            return Some(self.lead_to(previous.route));
        }
        if waits {
            return None;
        }
        // Copies of an observer who was faster before come before the packets themselves.
        let to = moving.candidates().rfind(|candidate| candidate.has_answered)?.question.route;
        (moving.candidate, moving.rival, moving.home) = (None, None, None);
        moving.note_switch(now);
        moving.previous.take_if(|previous| previous.until <= now || previous.route.address == to.address);
        if was_silent.is_none() {
            moving.previous.get_or_insert(Previous::new(now, self.route, moving.first));
        }
        Some(self.lead_to(to))
    }

    /// The peer is there. Returns where it was.
    fn lead_to(&mut self, to: Route) -> SocketAddr {
        if let Some(moving) = &mut self.moving {
            moving.second.take_if(|second| second.is_at(to.address));
        }
        std::mem::replace(&mut self.route, to).address
    }

    /// The question that is due, and where it goes, if `len` bytes may be sent there.
    pub(super) fn poll(&mut self, now: Time, len: usize) -> Option<(Route, u32)> {
        self.update(now);
        let moving = self.moving.as_deref_mut()?;
        let is_due = |question: &&mut Question| question.ask_at <= now && now < question.dies_at;
        if let Some(question) = moving.proven().find(is_due) {
            return Some(question.ask(now)); // the peer was there
        }
        let second = moving.second.as_deref_mut().map(Second::candidate_mut);
        let mut candidates = moving.candidate.iter_mut().chain(&mut moving.rival).chain(second);
        let candidate = candidates.find(|candidate| candidate.asks_at(len) <= now)?;
        candidate.sent = candidate.sent.saturating_add(len);
        Some(candidate.question.ask(now))
    }

    /// Whether a candidate pays for a copy of `len` bytes, and for one more challenge of `question` bytes.
    #[inline]
    pub(super) fn can_copy(&self, len: usize, question: usize) -> bool {
        let candidate = self.moving.as_ref().and_then(|moving| moving.candidate.as_ref());
        candidate.is_some_and(|it| it.sent.saturating_add(len + question) <= it.received)
    }

    /// Copies the frames of a packet that leaves for the candidate, which pays for `len` bytes.
    #[cold]
    pub(super) fn copy(&mut self, frames: &[u8], len: usize) {
        let Some(Moving { candidate: Some(candidate), copy, .. }) = self.moving.as_deref_mut() else {
            return;
        };
        candidate.sent = candidate.sent.saturating_add(len);
        *copy = Some((candidate.question.route, frames.into()));
    }

    pub(super) fn has_copy(&self) -> bool {
        self.moving.as_ref().is_some_and(|moving| moving.copy.is_some()) || self.has_second_copy()
    }

    /// That copy, and where it goes.
    pub(super) fn pop_copy(&mut self) -> Option<(Route, Vec<u8>)> {
        self.moving.as_mut()?.copy.take()
    }

    /// When [`poll`](Self::poll) has something next, if it is paid for, or when a question dies.
    pub(super) fn check(&self, len: usize) -> Time {
        let Some(moving) = &self.moving else { return Time::NEVER };
        let asked = moving.previous.iter().filter_map(|previous| previous.question.as_ref());
        let proven = moving.home.iter().chain(asked).map(|question| question.ask_at.min(question.dies_at));
        let second = moving.second.as_deref().map(Second::candidate);
        let candidates = moving.candidate.iter().chain(&moving.rival).chain(second);
        let due = candidates.map(|candidate| candidate.asks_at(len).min(candidate.dies_at()));
        due.chain(proven).fold(Time::NEVER, Time::min)
    }

    pub(super) fn update(&mut self, now: Time) {
        if let Some(moving) = &mut self.moving {
            moving.second.take_if(|second| second.is_dead(now));
            let mut has_answer = false;
            if let Some(previous) = &mut moving.previous {
                previous.question.take_if(|question| question.dies_at <= now);
                has_answer = previous.has_answered;
            }
            moving.candidate.take_if(|candidate| candidate.dies_at() <= now);
            moving.rival.take_if(|candidate| candidate.dies_at() <= now);
            has_answer |= moving.candidates().any(|candidate| candidate.has_answered);
            moving.home.take_if(|home| home.dies_at <= now && !has_answer); // otherwise its silence decides
        }
    }
}

impl Moving {
    pub(super) fn memory(&self) -> usize {
        self.second.as_deref().map_or(0, Second::memory)
    }

    fn candidates(&mut self) -> impl DoubleEndedIterator<Item = &mut Candidate> {
        self.candidate.iter_mut().chain(&mut self.rival)
    }

    /// Whether a packet pays for what is sent to a candidate.
    fn pays(&mut self, came: &Came) -> bool {
        let mut candidates = self.candidates();
        let Some(candidate) = candidates.find(|candidate| candidate.question.route.address == came.from)
        else {
            return false;
        };
        candidate.on_paid(came);
        true
    }

    /// The questions for addresses where the peer is or was.
    fn proven(&mut self) -> impl Iterator<Item = &mut Question> {
        self.home.iter_mut().chain(self.previous.iter_mut().filter_map(|previous| previous.question.as_mut()))
    }

    /// The peer has answered where it was: others have to wait, and are compared with that address.
    fn stay(&mut self, now: Time) {
        (self.candidate, self.rival, self.home) = (None, None, None);
        (self.contested, self.looks_at, self.takes_at) = (now + CONTESTED, now + ASK_AGAIN, now + ASK_AGAIN);
        if let Some(previous) = self.previous.as_mut().filter(|previous| previous.yields) {
            (previous.question, previous.has_answered) = (None, false);
        }
    }

    pub(super) fn note_switch(&mut self, now: Time) {
        self.switches.rotate_left(1);
        self.switches[SWITCHES - 1] = Some(now);
    }

    /// Whether an address may become a candidate now.
    pub(super) fn may_switch(&self, now: Time) -> bool {
        let is_frequent = self.switches[0].is_some_and(|oldest| now.since(oldest) < SWITCH_SPAN);
        !is_frequent && (now >= self.contested || now >= self.takes_at)
    }
}

impl Came {
    pub(super) const fn route(&self) -> Route {
        Route { address: self.from, sid: self.sid }
    }
}

impl Previous {
    fn new(now: Time, route: Route, first: u64) -> Self {
        let (until, looks_at) = (now + CONTESTED, Time::ZERO);
        Self { route, yields: false, has_answered: false, until, first, question: None, looks_at }
    }

    fn is_at(&self, now: Time, address: SocketAddr) -> bool {
        self.route.address == address && now < self.until
    }
}

/// A third of the time that a candidate has to answer.
pub(super) fn patience(rtt: &Rtt) -> Duration {
    (2 * rtt.smoothed()).clamp(PATIENCE_MIN, PATIENCE_MAX)
}

/// Most switches in [`SWITCH_SPAN`].
const SWITCHES: usize = 4;
const SWITCH_SPAN: Duration = Duration::from_secs(10);
/// A candidate has three times this to answer, or three times twice the round trip if that is longer.
const PATIENCE_MIN: Duration = Duration::from_millis(250);
/// The most that counts of that: a frozen end measures far too long a round trip, and the peer may have moved on. So
/// long is asked where the peer was before.
const PATIENCE_MAX: Duration = Duration::from_secs(1);
/// How long candidates are compared with the present address after two addresses have sent the same packet, and the
/// peer was where it had been before.
const CONTESTED: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn path_at(port: u16) -> Path {
        Path::new(Route { address: address(port), sid: 1 }, true)
    }

    /// Takes a packet. Returns the port of the candidate after it.
    fn packet(path: &mut Path, ms: u64, port: u16, is_newest: bool) -> Option<u16> {
        let came = Came { from: address(port), sid: 1, pn: ms, is_newest, len: 34 };
        path.on_packet(Time::from_millis(ms), &came, &Rtt::default());
        path.moving.as_ref()?.candidate.as_ref().map(|candidate| candidate.question.route.address.port())
    }

    /// The question that a candidate gets now.
    fn asked(path: &mut Path, ms: u64, port: u16) -> Option<u32> {
        let (to, question) = path.poll(Time::from_millis(ms), 34)?;
        assert_eq!(to.address, address(port));
        Some(question)
    }

    fn answer(path: &mut Path, ms: u64, to: u32) -> Option<SocketAddr> {
        path.on_response(Time::from_millis(ms), |number| number == to)
    }

    #[test]
    fn a_new_address_is_asked_once_for_each_packet_it_paid_and_believed_when_it_answers() {
        let mut path = path_at(1);
        assert_eq!(packet(&mut path, 0, 2, true), Some(2));
        let question = asked(&mut path, 0, 2).unwrap();
        assert_eq!(path.check(34), Time::from_millis(750), "it has to send more before it gets more");
        assert_eq!(path.poll(Time::from_millis(500), 34), None);
        packet(&mut path, 500, 2, true);
        assert_eq!(asked(&mut path, 500, 2), Some(question));
        assert_eq!(answer(&mut path, 0, question + 9), None);
        assert_eq!(path.route.address, address(1));
        assert_eq!(answer(&mut path, 0, question), Some(address(1)));
        assert_eq!((path.route.address, path.check(34)), (address(2), Time::NEVER));
    }

    /// Takes a copy of the packet that came at `pn` ms.
    fn duplicate(path: &mut Path, ms: u64, port: u16, pn: u64) -> bool {
        let came = Came { from: address(port), sid: 1, pn, is_newest: false, len: 34 };
        let heeds = path.heeds_copy(Time::from_millis(ms), came.from, pn);
        if heeds {
            path.on_copy(Time::from_millis(ms), &came, &Rtt::default());
        }
        heeds
    }

    #[test]
    fn while_the_old_address_is_asked_the_peer_stays_and_its_answer_counts_more() {
        for old_answers in [true, false] {
            let mut path = path_at(1);
            assert!(!duplicate(&mut path, 5, 1, 0), "of no candidate's packet");
            packet(&mut path, 10, 2, true);
            let question = asked(&mut path, 10, 2).unwrap();
            assert!(!duplicate(&mut path, 20, 1, 9) && duplicate(&mut path, 20, 1, 10));
            assert!(!duplicate(&mut path, 21, 1, 10), "it is asked already");
            let of_home = asked(&mut path, 20, 1).unwrap();
            assert_ne!(question, of_home);
            assert_eq!((answer(&mut path, 30, question), path.route.address), (None, address(1)));
            if old_answers {
                assert_eq!(answer(&mut path, 40, of_home), None);
                assert_eq!(packet(&mut path, 50, 2, true), None, "so soon again");
                assert_eq!(packet(&mut path, 140, 2, true), Some(2));
                assert!(asked(&mut path, 140, 1).is_some() && asked(&mut path, 140, 2).is_some());
            } else {
                assert_eq!(path.check(34), Time::from_millis(120));
                assert!(asked(&mut path, 120, 1).is_some() && asked(&mut path, 220, 1).is_some());
                assert_eq!(path.switch(Time::from_millis(750)), None);
                assert_eq!(path.switch(Time::from_millis(1020)), Some(address(1)));
            }
        }
    }

    #[test]
    fn a_peer_is_taken_back_to_where_it_was_if_copies_come_from_there_and_it_answers() {
        let mut path = path_at(1);
        packet(&mut path, 10, 2, true);
        let question = asked(&mut path, 10, 2).unwrap();
        assert_eq!(answer(&mut path, 20, question), Some(address(1)));
        // The present address and others cannot keep that one from being asked.
        assert!(!duplicate(&mut path, 30, 3, 9) && duplicate(&mut path, 30, 3, 15));
        let home = asked(&mut path, 31, 2).unwrap();
        assert!(duplicate(&mut path, 32, 1, 15) && !duplicate(&mut path, 32, 1, 15));
        let question = asked(&mut path, 32, 1).unwrap();
        assert_eq!(answer(&mut path, 40, home), None);
        assert_eq!(answer(&mut path, 40, question), Some(address(2)));
        assert_eq!(path.route.address, address(1));
        assert_eq!(answer(&mut path, 50, question), None);
    }

    #[test]
    fn copies_leave_a_candidate_what_one_more_question_costs() {
        let mut path = path_at(1);
        (0..3).for_each(|_| assert_eq!(packet(&mut path, 0, 2, true), Some(2)));
        assert!(!path.can_copy(69, 34), "102 bytes have come");
        assert!(path.can_copy(68, 34));
        path.copy(&[5; 40], 68);
        assert_eq!(path.pop_copy().map(|(to, frames)| (to.address, frames.len())), Some((address(2), 40)));
        assert!(!path.can_copy(1, 34));
        assert!(asked(&mut path, 0, 2).is_some());
    }
}
