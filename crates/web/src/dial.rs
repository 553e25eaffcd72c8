//! Which transport to try when: the decisions alone, without a browser.

use crate::target::{Transport, Transports};
use std::time::Duration;
use whitewater::Time;

/// Decides when to open which transport. The first that is ready carries the session, until it is lost.
#[derive(Debug)]
pub(crate) struct Dial {
    /// What may be tried, the one that served last first.
    order: Vec<Transport>,
    /// How long the first one has before the other is tried as well.
    patience: Duration,
    state: State,
    /// Until the next round, should this one fail.
    pause: Duration,
}

#[derive(Debug)]
enum State {
    /// Nothing is under way until then.
    Paused { until: Time },
    /// Those under way and those to try yet, in their order. The next of these is due then; without one, the round is over.
    Trying { under_way: Vec<Transport>, left: Vec<Transport>, due: Time },
    /// One is ready.
    Up { since: Time },
    /// There will be no other.
    Stopped,
}

/// What to do now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// Open this one.
    Open(Transport),
    /// Give up all that are under way: they have taken too long.
    GiveUp,
}

impl Dial {
    /// Begins at `now`, with what is allowed and what the browser has. `None`: that is nothing.
    pub(crate) fn new(
        now: Time,
        allowed: Transports,
        has: impl Fn(Transport) -> bool,
        patience: Duration,
    ) -> Option<Self> {
        let order: Vec<_> = allowed.in_order().iter().copied().filter(|transport| has(*transport)).collect();
        let is_any = !order.is_empty();
        is_any.then_some(Self { order, patience, state: State::Paused { until: now }, pause: Duration::ZERO })
    }

    /// What is due. Ask again until nothing is.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Step> {
        match &mut self.state {
            State::Paused { until } if *until <= now => {
                self.state = State::Trying { under_way: Vec::new(), left: self.order.clone(), due: now };
                self.poll(now)
            }
            State::Trying { under_way, left, due } if *due <= now => {
                if left.is_empty() {
                    self.rest(now);
                    return Some(Step::GiveUp);
                }
                let transport = left.remove(0);
                under_way.push(transport);
                *due = now + if left.is_empty() { READY } else { self.patience };
                Some(Step::Open(transport))
            }
            _ => None,
        }
    }

    /// When to ask next.
    pub(crate) const fn next(&self) -> Option<Time> {
        match &self.state {
            State::Paused { until: at } | State::Trying { due: at, .. } => Some(*at),
            State::Up { .. } | State::Stopped => None,
        }
    }

    /// One that was opened is ready. Returns whether it is taken; the others are not needed then.
    pub(crate) fn is_ready(&mut self, now: Time, transport: Transport) -> bool {
        let State::Trying { under_way, .. } = &self.state else { return false };
        let is_taken = under_way.contains(&transport);
        if is_taken {
            if self.order.first() != Some(&transport) {
                self.order.reverse(); // there are two
            }
            self.state = State::Up { since: now };
        }
        is_taken
    }

    /// One that was opened has failed before it was ready.
    pub(crate) fn has_failed(&mut self, now: Time, transport: Transport) {
        let State::Trying { under_way, left, due } = &mut self.state else { return };
        under_way.retain(|it| *it != transport);
        if !left.is_empty() {
            *due = now;
        } else if under_way.is_empty() {
            self.rest(now);
        }
    }

    /// The one that was ready is lost. The next round begins at once, unless it was ready only for a moment.
    pub(crate) fn is_lost(&mut self, now: Time) {
        let State::Up { since, .. } = self.state else { return };
        if now.since(since) >= PAUSE_MAX {
            self.pause = Duration::ZERO;
        }
        self.rest(now);
    }

    /// The session is over.
    pub(crate) fn stop(&mut self) {
        self.state = State::Stopped;
    }

    fn rest(&mut self, now: Time) {
        self.state = State::Paused { until: now + self.pause };
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
    }
}

/// How long the last one of a round may take. A WebSocket needs four round trips, and its first packet is sent again after 1 s and 3 s.
const READY: Duration = Duration::from_secs(5);
/// Pauses between two rounds: none before the second one, then these, each twice as long as the one before.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use Transport::{WebSocket, WebTransport};

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn dial(allowed: Transports) -> Dial {
        Dial::new(at(0), allowed, |_| true, Duration::from_secs(2)).unwrap()
    }

    fn is_up(dial: &Dial) -> bool {
        matches!(dial.state, State::Up { .. })
    }

    /// All that is done at one time.
    fn steps(dial: &mut Dial, ms: u64) -> Vec<Step> {
        std::iter::from_fn(|| dial.poll(at(ms))).collect()
    }

    fn opens(dial: &mut Dial, ms: u64, transport: Transport) {
        assert_eq!(steps(dial, ms), [Step::Open(transport)], "at {ms} ms");
    }

    #[test]
    fn the_websocket_is_tried_after_patience_and_the_first_that_is_ready_is_taken() {
        for first in [WebTransport, WebSocket] {
            let mut dial = dial(Transports::Any);
            opens(&mut dial, 0, WebTransport);
            assert_eq!((dial.next(), steps(&mut dial, 1999)), (Some(at(2000)), vec![]));
            opens(&mut dial, 2000, WebSocket);
            assert!(dial.is_ready(at(2100), first));
            assert!(is_up(&dial) && dial.next().is_none());
            let other = if first == WebSocket { WebTransport } else { WebSocket };
            assert!(!dial.is_ready(at(2200), other), "one is enough");
            dial.has_failed(at(2300), other);
            assert!(is_up(&dial));
        }
    }

    #[test]
    fn the_websocket_is_tried_at_once_when_webtransport_fails_or_is_missing() {
        let mut dial = dial(Transports::Any);
        opens(&mut dial, 0, WebTransport);
        dial.has_failed(at(30), WebTransport);
        opens(&mut dial, 30, WebSocket);
        let has = |transport| transport == WebSocket;
        let mut dial = Dial::new(at(0), Transports::Any, has, Duration::from_secs(2)).unwrap();
        opens(&mut dial, 0, WebSocket);
        assert!(Dial::new(at(0), Transports::WebTransport, has, Duration::ZERO).is_none());
    }

    #[test]
    fn only_what_is_allowed_is_tried_and_pauses_grow_to_two_seconds() {
        for (allowed, transport) in
            [(Transports::WebTransport, WebTransport), (Transports::WebSocket, WebSocket)]
        {
            let (mut dial, mut now) = (dial(allowed), 0);
            let mut pauses = Vec::new();
            for _ in 0..8 {
                opens(&mut dial, now, transport);
                dial.has_failed(at(now + 10), transport);
                let next = dial.next().unwrap().as_millis();
                pauses.push(next - now - 10);
                now = next;
            }
            assert_eq!(pauses, [0, 100, 200, 400, 800, 1600, 2000, 2000]);
        }
    }

    #[test]
    fn what_is_never_ready_is_given_up_and_tried_again() {
        let mut dial = dial(Transports::Any);
        opens(&mut dial, 0, WebTransport);
        opens(&mut dial, 2000, WebSocket);
        assert_eq!(steps(&mut dial, 6999), []);
        assert_eq!(steps(&mut dial, 7000), [Step::GiveUp, Step::Open(WebTransport)]);
        assert!(!dial.is_ready(at(7001), WebSocket), "it was given up");
    }

    #[test]
    fn what_is_lost_is_opened_again_at_once_and_the_other_after_patience() {
        for kind in [WebTransport, WebSocket] {
            let mut dial = dial(Transports::Any);
            opens(&mut dial, 0, WebTransport);
            opens(&mut dial, 2000, WebSocket);
            assert!(dial.is_ready(at(2050), kind));
            dial.is_lost(at(9000));
            opens(&mut dial, 9000, kind);
            assert_eq!(dial.next(), Some(at(11_000)), "then the other");
            assert!(dial.is_ready(at(9050), kind));
        }
    }

    #[test]
    fn a_server_that_ends_every_transport_is_not_dialled_without_pause() {
        let mut dial = dial(Transports::WebTransport);
        let (mut now, mut opened) = (0, 0);
        while now < 20_000 {
            opened += steps(&mut dial, now).len();
            if dial.is_ready(at(now), WebTransport) {
                dial.is_lost(at(now));
            }
            now += 1;
        }
        assert!((10..=16).contains(&opened), "{opened}");
    }

    #[test]
    fn nothing_is_opened_after_the_session() {
        let mut dial = dial(Transports::Any);
        opens(&mut dial, 0, WebTransport);
        dial.stop();
        dial.has_failed(at(1), WebTransport);
        assert_eq!((steps(&mut dial, 60_000), dial.next()), (vec![], None));
        assert!(!dial.is_ready(at(60_000), WebTransport));
    }
}
