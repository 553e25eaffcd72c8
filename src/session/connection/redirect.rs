//! Redirects: the server sends its client a connect token for another server, and repeats it until it has arrived.

use super::Connection;
use crate::session::error::RedirectError;
use crate::session::event::CloseReason;
use crate::session::token::PublicToken;
use crate::time::Time;
use std::time::Duration;
use zeroize::Zeroizing;

/// The token of one end: the one being sent, or the one received.
#[derive(Default)]
pub(super) struct Redirects {
    /// Until it is known to have arrived.
    pub(super) out: Option<Box<Outgoing>>,
    came: Option<Box<Came>>,
}

printed_without_secrets! { Redirects {} }

pub(super) struct Outgoing {
    token: Token,
    due: Time,
    pause: Duration,
    /// The newest packets that carried it.
    carriers: [Option<u64>; CARRIERS],
}

/// The newest token received, and the packet it came in.
struct Came {
    token: Token,
    pn: u64,
    is_taken: bool,
}

type Token = Zeroizing<Vec<u8>>;

impl Redirects {
    fn send(&mut self, now: Time, token: &[u8]) {
        let (token, pause) = (Zeroizing::new(token.to_vec()), Duration::ZERO);
        self.out = Some(Box::new(Outgoing { token, due: now, pause, carriers: [None; CARRIERS] }));
    }

    pub(super) fn due(&self) -> Time {
        self.out.as_ref().map_or(Time::NEVER, |out| out.due)
    }

    /// The token, if it is due. It is due again after two round trips, and then after twice as long each time.
    pub(super) fn poll(&mut self, now: Time, rtt: Duration) -> Option<&[u8]> {
        let out = self.out.as_mut().filter(|out| out.due <= now)?;
        out.pause = (2 * if out.pause.is_zero() { rtt } else { out.pause }).clamp(PAUSE_MIN, PAUSE_MAX);
        out.due = now + out.pause;
        Some(&out.token)
    }

    /// Notes that the packet `pn` carries the token.
    pub(super) fn on_sent(&mut self, pn: u64) {
        if let Some(out) = &mut self.out {
            out.carriers.rotate_right(1);
            out.carriers[0] = Some(pn);
        }
    }

    pub(super) fn on_acked(&mut self, pn: u64) {
        self.out.take_if(|out| out.carriers.contains(&Some(pn)));
    }

    /// Keeps a token of the server, which came in the packet `pn`; returns whether it is new. A repeated one is not:
    /// its acknowledgement may not have arrived. `None`: a newer one came before.
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
}

impl Connection {
    /// Sends the client to another server. See [`Server::redirect`](crate::session::Server::redirect).
    pub(in crate::session) fn redirect(&mut self, now: Time, token: &[u8]) -> Result<(), RedirectError> {
        if !self.is_connected() {
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
        let came = self.redirects.came.as_mut().filter(|came| !came.is_taken)?;
        came.is_taken = true;
        Some(came.token.clone())
    }

    /// Takes a REDIRECT: only a client gets any. Anything that is not a token is counted, and acknowledged, since
    /// sending it again would not help.
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

    /// Whether the other end accepts this. Without encryption a token would reveal its secret, so what is sent is up
    /// to the application.
    fn is_token(&self, token: &[u8]) -> bool {
        if self.seal.is_encrypted() { PublicToken::decode(token).is_ok() } else { !token.is_empty() }
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

    #[test]
    fn an_acknowledgement_counts_only_for_what_had_the_token() {
        let mut redirects = Redirects::default();
        redirects.send(Time::ZERO, b"token");
        redirects.on_sent(7);
        redirects.on_acked(8);
        redirects.send(Time::ZERO, b"another");
        redirects.on_acked(7);
        assert!(redirects.out.is_some(), "that was the token before");
        redirects.on_sent(9);
        redirects.on_acked(9);
        assert!(redirects.out.is_none());
    }
}
