//! What is known of a datagram while its frames are handled.

use super::loss::Told;
use std::time::Duration;

/// What a packet asks for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Elicits {
    Nothing,
    /// Its content is never sent again, so its acknowledgement may wait for the next tick to ride with.
    Receipt,
    /// The peer repairs what is lost by its acknowledgement.
    Ack,
}

/// What the frames of a datagram result in.
#[derive(Debug)]
pub(super) struct Handled<'s> {
    /// A buffer for segments with whole headers. It belongs to the owner of the session, so that it stays in the cache.
    pub(super) scratch: &'s mut Vec<u8>,
    /// How soon the peer wants to know that it arrived.
    pub(super) elicits: Elicits,
    /// Something was refused: it must not be acknowledged.
    pub(super) refused: bool,
    /// The number of the packet.
    pub(super) pn: u64,
    /// It was rebuilt.
    pub(super) is_rebuilt: bool,
    /// Reports on packets so far, on losses, and parts of frames.
    pub(super) acks: u8,
    pub(super) losses: u8,
    pub(super) parts: u8,
    /// Frames of segments that parts were joined to.
    pub(super) joined: u8,
    /// Frames of segments, and how many bytes they have with whole headers.
    pub(super) segments: usize,
    pub(super) expanded: usize,
    /// It has messages of channels in packets.
    pub(super) is_packed: bool,
    /// What it reports about sent packets, until that is handled.
    pub(super) told: Option<Told>,
    /// How long ago the newest of them had arrived there.
    pub(super) delay: Duration,
    pub(super) ping: Option<u64>,
}

impl<'s> Handled<'s> {
    pub(super) fn new(pn: u64, scratch: &'s mut Vec<u8>) -> Self {
        Self {
            scratch,
            elicits: Elicits::Nothing,
            refused: false,
            pn,
            is_rebuilt: false,
            acks: 0,
            losses: 0,
            parts: 0,
            joined: 0,
            segments: 0,
            expanded: 0,
            is_packed: false,
            told: None,
            delay: Duration::ZERO,
            ping: None,
        }
    }
}
