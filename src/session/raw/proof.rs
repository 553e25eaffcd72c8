//! Whether a peer receives what is sent to its address, or somebody else sends in its name.

use crate::wire::{self, Command};
use std::collections::VecDeque;

/// What has come from a peer that has proven nothing yet, and gone to it: no more than that.
#[derive(Debug, Default)]
pub(super) struct Proof {
    received: u64,
    sent: u64,
    /// Bytes around each datagram.
    pub(super) around: u64,
    /// Number and timestamp of the segments sent last. An ACK echoes both.
    echoes: VecDeque<(u32, u32)>,
}

impl Proof {
    /// Takes a good datagram of the peer; whether it proves that the peer has seen one of ours.
    pub(super) fn on_received(&mut self, datagram: &[u8]) -> bool {
        self.received += datagram.len() as u64 + self.around;
        wire::segments(datagram).map_while(Result::ok).any(|segment| {
            let head = segment.header;
            head.cmd == Command::Ack && self.echoes.contains(&(head.sn.0, head.ts.0))
        })
    }

    pub(super) fn allows(&self, len: usize) -> bool {
        self.sent + len as u64 + self.around <= self.received
    }

    pub(super) fn on_sent(&mut self, datagram: &[u8]) {
        self.sent += datagram.len() as u64 + self.around;
        for segment in wire::segments(datagram).map_while(Result::ok) {
            let head = segment.header;
            if head.cmd == Command::Push {
                if self.echoes.len() == ECHOES {
                    self.echoes.pop_front();
                }
                self.echoes.push_back((head.sn.0, head.ts.0));
            }
        }
    }
}

/// Segments whose echo is waited for, the newest ones.
const ECHOES: usize = 32;
