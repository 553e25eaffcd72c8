//! Where a server sends its client: a connect token for another server, repeated until the client has it.

use super::super::error::RedirectError;
use super::Connection;
use super::acks::low;
use crate::message::Message;
use crate::seq::Seq16;
use crate::session::event::CloseReason;
use crate::session::token::PublicToken;
use crate::time::Time;
use std::time::Duration;
use zeroize::Zeroizing;

/// The tokens of one end: the one that is sent, or the one that came.
#[derive(Default)]
pub(super) struct Redirects {
    out: Option<Box<Outgoing>>,
    came: Option<Box<Came>>,
}

/// A token that is not known to have arrived.
struct Outgoing {
    token: Token,
    due: Time,
    pause: Option<Duration>,
    /// The newest packets that had it.
    carriers: [Option<Seq16>; CARRIERS],
}

/// The newest token that came, and by which packet.
struct Came {
    token: Token,
    pn: u64,
    is_taken: bool,
}

type Token = Zeroizing<Vec<u8>>;

impl Redirects {
    fn send(&mut self, now: Time, token: &[u8]) {
        let token = Zeroizing::new(token.to_vec());
        self.out = Some(Box::new(Outgoing { token, due: now, pause: None, carriers: [None; CARRIERS] }));
    }

    pub(super) const fn is_pending(&self) -> bool {
        self.out.is_some()
    }

    pub(super) fn due(&self) -> Time {
        self.out.as_ref().map_or(Time::NEVER, |out| out.due)
    }

    /// The token that is sent now. It is due again after two round trips, and then after twice as long each time.
    pub(super) fn poll(&mut self, now: Time, rtt: Duration) -> Option<&[u8]> {
        let out = self.out.as_mut().filter(|out| out.due <= now)?;
        let pause = out.pause.map_or(2 * rtt, |pause| 2 * pause).clamp(PAUSE_MIN, PAUSE_MAX);
        (out.due, out.pause) = (now + pause, Some(pause));
        Some(&out.token)
    }

    /// Notes a packet that left, and whether it had the token.
    pub(super) fn on_sent(&mut self, pn: u64, has_token: bool) {
        let Some(out) = &mut self.out else { return };
        let sequence = Some(low(pn));
        for carrier in out.carriers.iter_mut().filter(|carrier| **carrier == sequence) {
            *carrier = None; // the number has come round
        }
        if has_token {
            out.carriers.rotate_right(1);
            if let Some(newest) = out.carriers.first_mut() {
                *newest = sequence;
            }
        }
    }

    pub(super) fn on_acked(&mut self, sequence: Seq16) {
        if self.out.as_ref().is_some_and(|out| out.carriers.contains(&Some(sequence))) {
            self.out = None;
        }
    }

    /// Keeps a token of the server, which came in the packet `pn`; returns whether it is new. It may be the newest again, whose
    /// acknowledgement has not arrived; `None`: a newer one came before.
    fn receive(&mut self, pn: u64, token: &[u8]) -> Option<bool> {
        match &mut self.came {
            Some(came) if came.token.as_slice() == token => {
                came.pn = came.pn.max(pn);
                return Some(false);
            }
            Some(came) if pn < came.pn => return None,
            _ => {}
        }
        let token = Zeroizing::new(token.to_vec());
        self.came = Some(Box::new(Came { token, pn, is_taken: false }));
        Some(true)
    }

    fn pop(&mut self) -> Option<Token> {
        let came = self.came.as_mut().filter(|came| !came.is_taken)?;
        came.is_taken = true;
        Some(came.token.clone())
    }
}

impl<M: Message> Connection<M> {
    /// Sends the client to another server. See [`Server::redirect`](crate::session::Server::redirect).
    pub(in crate::session) fn redirect(&mut self, now: Time, token: &[u8]) -> Result<(), RedirectError> {
        if !self.is_up() {
            return Err(RedirectError::Closed);
        }
        let (len, max) = (token.len(), usize::from(self.mtu.least()) - self.seal.overhead() - 1);
        if len > max {
            return Err(RedirectError::TooLong { len, max });
        }
        if !self.is_token(token) {
            return Err(RedirectError::NoToken);
        }
        self.redirects.send(now, token);
        Ok(())
    }

    pub(in crate::session) fn pop_redirect(&mut self) -> Option<Token> {
        self.redirects.pop()
    }

    /// Takes a REDIRECT: only a client gets any. What is no token is counted, and acknowledged, for it will not become one.
    pub(super) fn on_redirect(&mut self, pn: u64, token: &[u8]) -> Result<(), CloseReason> {
        if !self.peer.is_server {
            return Err(CloseReason::Protocol);
        }
        let is_new = if self.is_token(token) { self.redirects.receive(pn, token) } else { None };
        self.events.redirected |= is_new == Some(true);
        let counted = self.stats.rare_mut();
        counted.redirects += u64::from(is_new == Some(true));
        counted.redirects_refused += u64::from(is_new.is_none());
        Ok(())
    }

    /// Whether the other end takes this. Without encryption a token would tell its secret, so what is sent there is up to the
    /// application.
    fn is_token(&self, token: &[u8]) -> bool {
        if self.seal.is_encrypted() { PublicToken::decode(token).is_ok() } else { !token.is_empty() }
    }
}

impl std::fmt::Debug for Redirects {
    /// Without the tokens.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redirects(..)")
    }
}

/// Packets that are remembered: more than leave in a round trip.
const CARRIERS: usize = 8;
/// Least and most time between two of them.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(redirects: &mut Redirects, rtt: u64) -> Vec<u64> {
        let rtt = Duration::from_millis(rtt);
        (0..4000).filter(|&ms| redirects.poll(Time::from_millis(ms), rtt).is_some()).collect()
    }

    #[test]
    fn a_token_is_sent_at_once_and_then_ever_less_often_until_it_has_arrived() {
        let mut redirects = Redirects::default();
        assert!(redirects.poll(Time::ZERO, Duration::ZERO).is_none() && redirects.due() == Time::NEVER);
        redirects.send(Time::ZERO, b"token");
        assert_eq!(sends(&mut redirects, 80), [0, 160, 480, 1120, 2120, 3120]);
        redirects.send(Time::ZERO, b"token");
        assert_eq!(sends(&mut redirects, 0), [0, 100, 300, 700, 1500, 2500, 3500]);
        redirects.on_sent(7, true);
        redirects.on_acked(Seq16(8));
        assert!(redirects.is_pending());
        redirects.on_acked(Seq16(7));
        assert!(!redirects.is_pending() && redirects.due() == Time::NEVER);
    }

    #[test]
    fn an_acknowledgement_counts_only_for_what_had_the_token() {
        let mut redirects = Redirects::default();
        redirects.send(Time::ZERO, b"token");
        redirects.on_sent(7, true);
        redirects.on_sent(7 + (1 << 16), false);
        redirects.on_acked(Seq16(7));
        assert!(redirects.is_pending(), "that was another packet");
        redirects.on_sent(8, true);
        redirects.send(Time::ZERO, b"another");
        redirects.on_acked(Seq16(8));
        assert!(redirects.is_pending(), "that was the token before");
    }
}
