//! What protects the DATA packets of a session: packet numbers, the replay window, and a checksum or a cipher.
//!
//! A [`Seal`] belongs to one session and dies with it, so that no packet number comes again under the same key. What is opened
//! changes nothing before its checksum or tag was found right.
#![expect(clippy::missing_errors_doc, reason = "the errors say when")]

use super::crypto::Protection;
use super::replay::{ReplayWindow, Replayed, expand, truncate};
use super::wire::{DATA_HEADER_LEN, Data, PacketError};
use crate::time::Time;
use thiserror::Error;

#[cfg(all(fuzzing, feature = "crypto"))]
pub use super::crypto::noise::replace_ciphers;

/// Seals and opens the DATA packets of one end of one session.
pub struct Seal {
    protection: Box<dyn Protection>,
    /// Number of the packet that is sealed next.
    next_pn: u64,
    window: ReplayWindow,
    /// Packets whose checksum or tag was wrong.
    forged: u64,
    /// Bytes of a packet that are not its body.
    overhead: u16,
    is_resting: bool,
}

/// What a handshake leaves: the keys of one session, as one of its ends has them. A [`Seal`] is made of them, once.
pub struct Keys(pub(in crate::session) Box<dyn Protection>);

/// A packet that was opened.
#[derive(Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Opened<'a> {
    /// Its number.
    pub pn: u64,
    /// Whether its number is the highest so far.
    pub newest: bool,
    /// Its frames.
    pub body: &'a [u8],
}

errors! {
    /// Why a packet was not sealed.
    SealError {
        /// The datagram was not begun with [`Seal::begin`].
        "there is no room for the header" NoHeader,
        /// There are no packet numbers left: close the session.
        "the packet numbers are used up" NumbersSpent,
        /// The key sealed as much as it may, and the client did not update it: close the session.
        "the key is used up" KeySpent,
    }
}

/// Why a packet was not opened. Nothing but counters has changed; the bytes of the datagram may have.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum OpenError {
    /// It is no DATA packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// Its number came before or is too old: the network doubled or kept it, or somebody sends again what he saw.
    #[error(transparent)]
    Replayed(#[from] Replayed),
    /// Its number is beyond all that are used.
    #[error("the packet number is beyond the last")]
    Number,
    /// It is of a key phase that is over.
    #[error("the key phase is over")]
    Phase,
    /// Its checksum or tag is wrong.
    #[error("the tag is wrong")]
    Forged,
    /// So many tags were wrong that the next forgery might be right: close the session.
    #[error("too many tags were wrong")]
    KeySpent,
}

impl Seal {
    /// Protects a session with the keys of its handshake.
    #[must_use]
    pub fn new(now: Time, Keys(mut protection): Keys) -> Self {
        protection.begin(now);
        let overhead = u16::try_from(DATA_HEADER_LEN + protection.tail()).unwrap_or(u16::MAX);
        Self {
            protection,
            next_pn: 0,
            window: ReplayWindow::default(),
            forged: 0,
            overhead,
            is_resting: false,
        }
    }

    /// Leaves room for the header of a packet behind what is in the buffer, which the frames are to follow. Returns where it begins,
    /// which [`seal`](Self::seal) wants to know.
    pub fn begin(buffer: &mut Vec<u8>) -> usize {
        let start = buffer.len();
        buffer.extend_from_slice(&[0; DATA_HEADER_LEN]);
        start
    }

    /// Bytes of a packet that are not its body.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        self.overhead as usize
    }

    /// Makes what was [begun](Self::begin) at `start` a packet for the session that its receiver calls `sid`. Updates the key first if
    /// that is due. Returns the number of the packet. After an error nothing has changed, and the session has to end.
    pub fn seal(
        &mut self,
        now: Time,
        sid: u32,
        buffer: &mut Vec<u8>,
        start: usize,
    ) -> Result<u64, SealError> {
        let pn = self.next_pn;
        if pn >= PN_MAX {
            return Err(SealError::NumbersSpent);
        }
        let header = Data { phase: false, sid, pn: truncate(pn) };
        self.protection.seal(now, (header, pn), buffer, start)?;
        self.next_pn += 1;
        Ok(pn)
    }

    /// Opens a packet in place. That it is of this session is for the caller to see, by the `sid`. After an error nothing but a counter
    /// has changed: it is none, came before or is not authentic.
    pub fn open<'a>(&mut self, now: Time, datagram: &'a mut [u8]) -> Result<Opened<'a>, OpenError> {
        let (header, _) = Data::decode(datagram)?;
        self.open_data(now, header, datagram)
    }

    /// The same of a packet whose header was read.
    pub(in crate::session) fn open_data<'a>(
        &mut self,
        now: Time,
        Data { phase, pn, .. }: Data,
        datagram: &'a mut [u8],
    ) -> Result<Opened<'a>, OpenError> {
        if self.forged >= FORGED_MAX {
            return Err(OpenError::KeySpent);
        }
        let have = datagram.len();
        let body_len = have.checked_sub(self.overhead()).ok_or(PacketError::Length { have })?;
        let newest = self.window.newest();
        let pn = expand(newest, pn);
        self.window.check(pn)?;
        if pn >= PN_MAX {
            return Err(OpenError::Number);
        }
        let ahead = newest.is_none_or(|newest| pn > newest);
        let opened = self.protection.open(now, (phase, pn, ahead), datagram);
        if opened == Err(OpenError::Forged) {
            self.forged += 1;
        }
        opened?;
        self.window.mark(pn)?;
        let body = datagram.get(DATA_HEADER_LEN..DATA_HEADER_LEN + body_len).unwrap_or_default();
        Ok(Opened { pn, newest: ahead, body })
    }

    /// Counts the packet `pn` as one that came, if it did not before: it was rebuilt of what is authentic.
    pub(in crate::session) fn mark_rebuilt(&mut self, pn: u64) -> Result<(), Replayed> {
        self.window.mark(pn)
    }

    /// Packets sealed: the number of the next.
    #[must_use]
    pub const fn sealed(&self) -> u64 {
        self.next_pn
    }

    /// The highest number of a packet that was opened.
    #[must_use]
    pub const fn newest(&self) -> Option<u64> {
        self.window.newest()
    }

    /// How often the keys were updated: to send, to receive.
    #[must_use]
    pub fn updates(&self) -> (u64, u64) {
        self.protection.updates()
    }

    /// Has the client update its key after so many packets in either direction, instead of 2^20. Of no effect at a server, which
    /// follows, and without a cipher.
    pub fn set_update_after(&mut self, packets: u64) {
        self.protection.update_after(packets);
    }

    /// Bytes of the heap, about.
    pub(in crate::session) fn memory(&self) -> usize {
        self.protection.memory() + self.window.memory()
    }

    /// Gives the memory back that makes packets cheap: each takes the time to prepare its key from now on.
    pub(in crate::session) fn rest(&mut self) {
        self.is_resting = true;
        self.window.rest();
        self.protection.rest();
    }

    #[inline]
    pub(in crate::session) fn wake(&mut self) {
        if std::mem::take(&mut self.is_resting) {
            self.window.wake();
            self.protection.wake();
        }
    }

    /// Whether nobody else can read what is sealed.
    pub(in crate::session) fn is_encrypted(&self) -> bool {
        self.protection.is_encrypted()
    }

    /// Begins with other packet numbers than 0, of what is sent and of what is received.
    #[cfg(test)]
    pub(in crate::session) fn start_at(&mut self, send: u64, receive: u64) {
        self.next_pn = send;
        self.window.mark(receive - 1).unwrap();
    }
}

printed_without_secrets! { Seal { next_pn, forged }, Keys {} }

/// Packet numbers end here. A billion packets a second take three days to get there.
const PN_MAX: u64 = 1 << 48;
/// Wrong tags after which no key is trusted. Source: RFC 9001 section 6.6, the integrity limit of ChaCha20-Poly1305; to close a
/// session earlier would be a gift to whoever forges.
const FORGED_MAX: u64 = 1 << 36;

#[cfg(test)]
mod tests;
