//! The peer's address, and where it may be now: an address is not believed before it has answered.

use crate::pace::Rtt;
use crate::time::Time;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::net::SocketAddr;
use std::time::Duration;

/// The peer's address, and another one that its newest packets come from.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) address: SocketAddr,
    moves: bool,
    /// The answer to the peer's challenge.
    pub(super) response: Option<[u8; 8]>,
    /// Challenges are derived from this key: nobody without it can predict the next one.
    key: [u64; 2],
    asked: u32,
    /// Created when a packet first comes from another address.
    pub(super) moving: Option<Box<Moving>>,
}

#[derive(Debug, Default)]
pub(super) struct Moving {
    candidate: Option<Candidate>,
    /// A copy of a datagram that has left, for the candidate.
    copy: Option<(SocketAddr, Vec<u8>)>,
    /// Times of the last switches, oldest first.
    switches: [Option<Time>; SWITCHES],
}

/// An address from which a fresh packet came, and which has not answered yet.
#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    challenge: [u8; 8],
    /// Bytes received from it, and bytes sent to it, which are never more.
    received: usize,
    sent: usize,
    /// When it is asked next.
    ask_at: Time,
    dies_at: Time,
}

impl Path {
    pub(super) const fn new(address: SocketAddr, moves: bool, key: [u64; 2]) -> Self {
        Self { address, moves, response: None, key, asked: 0, moving: None }
    }

    pub(super) fn may_be(&self, from: SocketAddr) -> bool {
        self.moves || from == self.address
    }

    /// Notes an authenticated packet of `len` bytes; `is_newest`: none with a higher number came before. `rtt`
    /// decides how long a candidate has to answer.
    #[inline]
    pub(super) fn on_packet(&mut self, now: Time, from: SocketAddr, is_newest: bool, len: usize, rtt: &Rtt) {
        if from != self.address {
            self.on_candidate(now, from, is_newest, len, rtt);
        } else if is_newest && let Some(moving) = &mut self.moving {
            moving.candidate = None; // the peer is still where it was
        }
    }

    fn on_candidate(&mut self, now: Time, from: SocketAddr, is_newest: bool, len: usize, rtt: &Rtt) {
        self.update(now);
        let Moving { candidate, switches, .. } = &mut **self.moving.get_or_insert_default();
        let may_switch = switches[0].is_none_or(|oldest| now.since(oldest) >= SWITCH_SPAN);
        match candidate {
            Some(candidate) if candidate.address == from => {
                candidate.received = candidate.received.saturating_add(len);
            }
            None if is_newest && may_switch => {
                let mut hasher = SipHasher24::new_with_keys(self.key[0], self.key[1]);
                hasher.write_u64(self.asked.into());
                self.asked = self.asked.wrapping_add(1);
                *candidate = Some(Candidate {
                    address: from,
                    challenge: hasher.finish().to_le_bytes(),
                    received: len,
                    sent: 0,
                    ask_at: now,
                    dies_at: now + 3 * (2 * rtt.smoothed()).clamp(PATIENCE_MIN, PATIENCE_MAX),
                });
            }
            _ => {}
        }
    }

    /// The peer asks whether this end is really at its address.
    pub(super) fn on_challenge(&mut self, from: SocketAddr, challenge: [u8; 8]) {
        if from == self.address {
            self.response = Some(challenge);
        }
    }

    /// Takes the answer of a candidate. Returns the old address if the peer has moved.
    pub(super) fn on_response(
        &mut self,
        now: Time,
        from: SocketAddr,
        response: [u8; 8],
    ) -> Option<SocketAddr> {
        self.update(now);
        let Moving { candidate, switches, .. } = self.moving.as_deref_mut()?;
        candidate.take_if(|candidate| candidate.address == from && candidate.challenge == response)?;
        switches.rotate_left(1);
        switches[SWITCHES - 1] = Some(now);
        Some(std::mem::replace(&mut self.address, from))
    }

    /// The challenge that is due, if `len` bytes may be sent to the candidate.
    pub(super) fn poll(&mut self, now: Time, len: usize) -> Option<(SocketAddr, [u8; 8])> {
        self.update(now);
        let candidate = self.moving.as_mut()?.candidate.as_mut()?;
        let sent = candidate.sent.saturating_add(len);
        if candidate.ask_at > now || sent > candidate.received {
            return None;
        }
        candidate.sent = sent;
        candidate.ask_at = now + ASK_AGAIN;
        Some((candidate.address, candidate.challenge))
    }

    /// Copies a datagram that has left for the candidate, if it has paid for that and for one more challenge of
    /// `question` bytes.
    #[inline]
    pub(super) fn copy(&mut self, datagram: &[u8], question: usize) {
        let Some(Moving { candidate: Some(candidate), copy, .. }) = self.moving.as_deref_mut() else {
            return;
        };
        let sent = candidate.sent.saturating_add(datagram.len());
        if sent.saturating_add(question) <= candidate.received {
            candidate.sent = sent;
            *copy = Some((candidate.address, datagram.into()));
        }
    }

    pub(super) fn has_copy(&self) -> bool {
        self.moving.as_ref().is_some_and(|moving| moving.copy.is_some())
    }

    /// That copy, and where it goes.
    pub(super) fn pop_copy(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.moving.as_mut()?.copy.take()
    }

    /// When [`poll`](Self::poll) has something next, if the candidate has paid for it, or when the candidate dies.
    pub(super) fn check(&self, len: usize) -> Time {
        let candidate = self.moving.as_ref().and_then(|moving| moving.candidate.as_ref());
        let Some(candidate) = candidate else { return Time::NEVER };
        let can_pay = candidate.sent.saturating_add(len) <= candidate.received;
        if can_pay { candidate.ask_at.min(candidate.dies_at) } else { candidate.dies_at }
    }

    pub(super) fn update(&mut self, now: Time) {
        if let Some(moving) = &mut self.moving {
            moving.candidate.take_if(|candidate| candidate.dies_at <= now);
        }
    }
}

/// Most switches in [`SWITCH_SPAN`].
const SWITCHES: usize = 4;
const SWITCH_SPAN: Duration = Duration::from_secs(10);
/// A candidate has three times this to answer, or three times twice the round trip if that is longer.
const PATIENCE_MIN: Duration = Duration::from_millis(250);
/// The most that counts of that: a frozen end measures far too long a round trip, and the peer may have moved on.
const PATIENCE_MAX: Duration = Duration::from_secs(1);
/// A candidate is asked again after this time, if it has paid for it.
const ASK_AGAIN: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    /// Takes a packet. Returns the port of the candidate after it.
    fn packet(path: &mut Path, ms: u64, port: u16, is_newest: bool) -> Option<u16> {
        path.on_packet(Time::from_millis(ms), address(port), is_newest, 34, &Rtt::default());
        path.moving.as_ref()?.candidate.as_ref().map(|candidate| candidate.address.port())
    }

    /// The challenge that a candidate gets now.
    fn asked(path: &mut Path, ms: u64, port: u16) -> Option<[u8; 8]> {
        let (to, challenge) = path.poll(Time::from_millis(ms), 34)?;
        assert_eq!(to, address(port));
        Some(challenge)
    }

    #[test]
    fn a_new_address_is_asked_once_for_each_packet_it_paid_and_believed_when_it_answers() {
        let mut path = Path::new(address(1), true, [1, 2]);
        assert_eq!(packet(&mut path, 0, 2, true), Some(2));
        let now = Time::from_millis(0);
        let challenge = asked(&mut path, 0, 2).unwrap();
        assert_eq!(path.check(34), Time::from_millis(750), "it has to send more before it gets more");
        assert_eq!(path.poll(Time::from_millis(500), 34), None);
        packet(&mut path, 500, 2, true);
        assert_eq!(asked(&mut path, 500, 2), Some(challenge));
        assert_eq!(path.on_response(now, address(3), challenge), None);
        assert_eq!(path.on_response(now, address(2), [8; 8]), None);
        assert_eq!(path.address, address(1));
        assert_eq!(path.on_response(now, address(2), challenge), Some(address(1)));
        assert_eq!((path.address, path.check(34)), (address(2), Time::NEVER));
    }

    #[test]
    fn copies_leave_a_candidate_what_one_more_question_costs() {
        let mut path = Path::new(address(1), true, [1, 2]);
        (0..3).for_each(|_| assert_eq!(packet(&mut path, 0, 2, true), Some(2)));
        let mut copied = |len| {
            path.copy(&vec![5; len], 34);
            path.pop_copy()
        };
        assert_eq!(copied(69), None, "102 bytes have come");
        assert_eq!(copied(68), Some((address(2), vec![5; 68])));
        assert_eq!(copied(1), None);
        assert!(asked(&mut path, 0, 2).is_some());
    }
}
