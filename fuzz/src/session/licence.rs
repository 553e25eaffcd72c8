//! Why an end may close, given everything that happened to it.

use std::collections::BTreeSet;
use whitewater::inside::session::wire::{Frame, Frames};
use whitewater::session::code;
use whitewater::{CloseReason, Time};

/// The reasons for which one end of a session may close.
#[derive(Debug, Default)]
pub(super) struct Licence {
    /// Codes with which its application closed it, and with which the peer may have.
    local: BTreeSet<u16>,
    peer: BTreeSet<u16>,
    /// Frames were altered that can be invalid, or can make a later honest frame invalid.
    is_misled: bool,
    is_malformed: bool,
    is_denied: bool,
    /// Packets are rebuilt from earlier ones, so an alteration may show up anywhere later.
    rebuilds: bool,
}

impl Licence {
    pub(super) fn new(rebuilds: bool) -> Self {
        Self { rebuilds, ..Self::default() }
    }

    /// Its application closes it.
    pub(super) fn close(&mut self, code: u16) {
        self.local.insert(code);
    }

    /// It gets a body that `sender` did not send. Only clients can be redirected or get numbers.
    pub(super) fn meddle(&mut self, body: &[u8], sender: &mut Self, is_client: bool) {
        let Ok(frames) = Frames::parse(body) else {
            self.is_malformed = true;
            return;
        };
        if self.rebuilds {
            (self.is_misled, sender.is_misled) = (true, true);
        }
        for frame in frames {
            match frame {
                // The answer to these may mislead the sender in turn.
                Frame::Kcp(_) | Frame::KcpPart(..) | Frame::Ack(_) | Frame::Packed(_) => {
                    self.is_misled = true;
                    sender.is_misled = true;
                }
                Frame::Close(code, _) => {
                    self.peer.insert(code);
                    sender.peer.insert(CLOSE_ANSWER);
                }
                Frame::Redirect(_) | Frame::NewId(_) => self.is_malformed |= !is_client,
                _ => {}
            }
        }
    }

    /// It may get anything.
    pub(super) const fn mislead(&mut self) {
        self.is_misled = true;
    }

    /// It may get an unauthenticated denial.
    pub(super) const fn deny(&mut self) {
        self.is_denied = true;
    }

    /// Checks that a reason is justified by what happened until `now`. `silent`: nothing was received for the
    /// whole timeout.
    pub(super) fn check(&self, reason: CloseReason, other: &Self, silent: bool, now: Time) {
        let has_waited = now >= Time::from_millis(WAITED);
        let errs = self.is_misled || self.is_malformed;
        let is_licensed = match reason {
            CloseReason::Local(code) => self.local.contains(&code),
            CloseReason::Peer(code) => {
                let by_error = [code::PROTOCOL, code::STREAM_CORRUPT, code::EXHAUSTED];
                let by_time = [code::DEAD_LINK, code::SLOW_PEER];
                self.peer.contains(&code)
                    || other.local.contains(&code)
                    || by_error.contains(&code) && (other.is_misled || other.is_malformed)
                    || by_time.contains(&code) && has_waited
            }
            CloseReason::Timeout => silent,
            CloseReason::ConnectTimeout | CloseReason::DeadLink | CloseReason::SlowPeer => has_waited,
            CloseReason::Denied(_) => self.is_denied,
            CloseReason::Protocol | CloseReason::StreamCorrupt => errs,
            _ => false,
        };
        assert!(is_licensed, "{reason:?}, {self:?}, the other end {other:?}");
    }
}

/// The code that answers a CLOSE.
const CLOSE_ANSWER: u16 = 0;
/// No end gives up on its peer earlier than this, ms.
const WAITED: u64 = 2000;
