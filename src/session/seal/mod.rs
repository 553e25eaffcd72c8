//! Protection of the DATA packets of a session: packet numbers, the replay window, and a checksum or a
//! cipher.
//!
//! A [`Seal`] belongs to one session and is dropped with it, so no packet number is used twice with the same
//! key. A packet changes nothing until its checksum or tag has been verified.
#![expect(clippy::missing_errors_doc, reason = "the errors say when")]

mod mask;
mod skips;

pub(in crate::session) use mask::MaskKey;

use super::crypto::{Protection, Renewal};
use super::local_key::LocalKey;
use super::replay::{ReplayWindow, Replayed, expand, truncate};
use super::wire::{DATA_HEADER_LEN, Data, KEM_KEY_LEN, PacketError, RekeyFrame};
use crate::time::Time;
use skips::Skips;
use std::num::NonZeroU32;
use thiserror::Error;

#[cfg(all(fuzzing, feature = "crypto"))]
pub use super::crypto::noise::replace_ciphers;

/// Seals and opens the DATA packets at one end of one session.
pub struct Seal {
    protection: Box<dyn Protection>,
    /// `None`: headers are in clear.
    mask_key: Option<MaskKey>,
    /// Number of the next packet to seal.
    next_pn: u64,
    /// `None`: no number is skipped.
    skips: Option<Skips>,
    window: ReplayWindow,
    /// Packets with a wrong checksum or tag.
    forged: u64,
    /// Bytes of a packet besides its body.
    overhead: u16,
    is_resting: bool,
    renewal: Renewal,
}

/// The result of a handshake: the keys of one session, as one end has them. A [`Seal`] is made from them,
/// once.
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
        /// No packet numbers are left. Close the session.
        "the packet numbers are used up" NumbersSpent,
        /// The key has reached its limit and the client did not update it. Close the session.
        "the key is used up" KeySpent,
    }
}

/// Why a packet was not opened. Only counters, and possibly the bytes of the datagram, have changed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum OpenError {
    /// It is not a DATA packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// Its number was received before or is too old: the network duplicated or delayed it, or an attacker
    /// replays it.
    #[error(transparent)]
    Replayed(#[from] Replayed),
    /// Its number is beyond the last one that may be used.
    #[error("the packet number is too large")]
    Number,
    /// It belongs to a key phase that is over, or whose keys are not there yet.
    #[error("the key phase is over, or has not begun")]
    Phase,
    /// Its checksum or tag is wrong.
    #[error("the tag is wrong")]
    Forged,
    /// So many tags were wrong that the next forgery might succeed. Close the session.
    #[error("too many tags were wrong")]
    KeySpent,
}

impl Keys {
    /// Whether packets can be sealed and opened with them. If not, a KEM has to follow, after which the keys are others.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    /// Completes the keys of a client with the server's encapsulation key. `sid`: by which the server knows the session.
    /// Returns `false` if the key is not that server's; then nothing has changed.
    pub fn encapsulate(&mut self, sid: u32, key: &[u8; KEM_KEY_LEN]) -> bool {
        let complete = self.0.encapsulate(sid, key);
        complete.map(|complete| self.0 = complete).is_some()
    }
}

impl Seal {
    /// Protects a session with the keys from its handshake.
    #[must_use]
    pub fn new(now: Time, Keys(mut protection): Keys) -> Self {
        protection.begin(now);
        let overhead = u16::try_from(DATA_HEADER_LEN + protection.tail()).unwrap_or(u16::MAX);
        Self {
            protection,
            mask_key: None,
            next_pn: 0,
            skips: None,
            window: ReplayWindow::default(),
            forged: 0,
            overhead,
            is_resting: false,
            renewal: Renewal::Nothing,
        }
    }

    /// From now on, masks the numbers and phases of packets, as the other end has to do as well. Has no effect without
    /// a cipher, or once a key was updated.
    pub fn mask(&mut self) {
        self.mask_key = self.protection.mask_key();
    }

    /// Whether headers are masked.
    pub(in crate::session) const fn is_masked(&self) -> bool {
        self.mask_key.is_some()
    }

    /// The number of the session in packets to the client while those to the server have the number `sid`, which was
    /// told inside of it.
    #[must_use]
    pub fn sid_for(&self, sid: u32) -> u32 {
        self.mask_key.as_ref().map_or(sid, |key| mask::sid_for(key, sid))
    }

    /// From now on, [`skip`](Self::skip) leaves out one of 2^`bits` packet numbers, at places that follow from this key.
    /// All calls take the same one, which the peer must not know.
    pub(in crate::session) fn skip_numbers(&mut self, key: LocalKey, bits: NonZeroU32) {
        self.skips = Some(Skips::new(key, bits, self.next_pn));
        self.skip(key);
    }

    /// Skips the next number if that is due. Call it after each packet.
    #[inline]
    pub(in crate::session) fn skip(&mut self, key: LocalKey) {
        if let Some(skips) = &mut self.skips {
            self.next_pn = skips.pass(key, self.next_pn);
        }
    }

    /// Whether the number after the next packet's is left out.
    #[inline]
    pub(in crate::session) const fn skips_after_next(&self) -> bool {
        matches!(self.skips, Some(skips) if skips.next == self.next_pn + 1)
    }

    /// Which of the 33 numbers up to `newest` were skipped: bit n is for `newest` - n.
    pub(in crate::session) fn skipped_among(&self, key: LocalKey, newest: u64) -> u64 {
        self.skips.map_or(0, |skips| skips.among(key, newest))
    }

    /// How many numbers up to `pn` were skipped.
    pub(in crate::session) fn skipped_up_to(&self, key: LocalKey, pn: u64) -> u64 {
        self.skips.map_or(0, |skips| skips.up_to(key, pn))
    }

    /// Appends room for the header of a packet to the buffer; append the frames next. Returns where the
    /// packet begins, to pass to [`seal`](Self::seal).
    pub fn begin(buffer: &mut Vec<u8>) -> usize {
        let start = buffer.len();
        buffer.extend_from_slice(&[0; DATA_HEADER_LEN]);
        start
    }

    /// Bytes of a packet besides its body.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        self.overhead as usize
    }

    /// Seals the packet [begun](Self::begin) at `start`, for the session that the receiver knows as `sid`.
    /// Returns the number of the packet. An error changes nothing, and
    /// the session must end.
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
        self.renewal = self.protection.seal(now, (header, pn), buffer, start)?;
        if let Some(key) = &self.mask_key {
            mask::mask(key, buffer.get_mut(start..).unwrap_or_default());
        }
        self.next_pn += 1;
        Ok(pn)
    }

    /// Opens a packet in place. The caller must have checked by the `sid` that it belongs to this session. An
    /// error (not a DATA packet, a replay, or not authentic) changes nothing but a counter.
    pub fn open<'a>(&mut self, now: Time, datagram: &'a mut [u8]) -> Result<Opened<'a>, OpenError> {
        let (header, _) = Data::decode(datagram)?;
        let header = self.unmask(header, datagram);
        self.open_data(now, header, datagram)
    }

    /// Takes the mask from the header of a packet, once.
    pub(in crate::session) fn unmask(&self, header: Data, datagram: &mut [u8]) -> Data {
        self.mask_key.as_ref().and_then(|key| mask::mask(key, datagram)).unwrap_or(header)
    }

    /// Like [`open`](Self::open), for a packet whose header has been read and unmasked.
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

    /// The full number of a packet.
    pub(in crate::session) fn expand(&self, Data { pn, .. }: Data) -> u64 {
        expand(self.window.newest(), pn)
    }

    /// Whether a packet whose number was received before is authentic. Decrypts it in place.
    pub(in crate::session) fn is_authentic(&mut self, now: Time, header: Data, datagram: &mut [u8]) -> bool {
        let opened = self.protection.open(now, (header.phase, self.expand(header), false), datagram);
        self.forged += u64::from(opened == Err(OpenError::Forged));
        opened.is_ok()
    }

    /// Marks the packet `pn` as received unless it already was. It was rebuilt from authentic packets.
    pub(in crate::session) fn mark_rebuilt(&mut self, pn: u64) -> Result<(), Replayed> {
        self.window.mark(pn)
    }

    /// The number of the next packet.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next_pn
    }

    /// The number of the last packet that was sealed; 0 if none was.
    pub(in crate::session) fn last(&self, key: LocalKey) -> u64 {
        let last = self.next_pn.saturating_sub(1);
        last - u64::from(self.skips.is_some_and(|skips| skips.is_skipped(key, last)))
    }

    /// The highest number of an opened packet.
    #[must_use]
    pub const fn newest(&self) -> Option<u64> {
        self.window.newest()
    }

    /// Whether new keys need random bytes: [`draw`](Self::draw) them.
    #[must_use]
    pub fn wants_random(&self) -> bool {
        self.renewal == Renewal::Draw
    }

    /// Makes this end's half of new keys from 32 unpredictable bytes, which are used for nothing else. A client starts
    /// the exchange, a server answers.
    pub fn draw(&mut self, now: Time, random: &[u8; 32]) {
        self.protection.draw(now, random);
        self.renewal = self.protection.renewal(now);
    }

    /// Finds out whether an unanswered half is due again. Call it before a packet is made; [`seal`](Self::seal) looked
    /// when the one before it left, perhaps long ago.
    #[inline]
    pub fn look(&mut self, now: Time) {
        if self.renewal == Renewal::Wait {
            self.renewal = self.protection.renewal(now);
        }
    }

    /// This end's half, if it is due to be sent. Once it is in a packet, call [`told`](Self::told).
    #[must_use]
    pub fn half(&self) -> Option<RekeyFrame> {
        if self.renewal == Renewal::Tell { self.protection.half() } else { None }
    }

    /// The half is in a packet that was sealed. It is repeated until it is answered.
    pub fn told(&mut self, now: Time) {
        self.protection.told(now);
        self.renewal = self.protection.renewal(now);
    }

    /// Takes the peer's half. Returns `false` if the peer should not have sent it; then it changes nothing.
    pub fn on_half(&mut self, now: Time, half: &RekeyFrame) -> bool {
        let is_good = self.protection.on_half(now, half);
        self.renewal = self.protection.renewal(now);
        is_good
    }

    /// At a server whose keys are not complete: the datagram with its encapsulation key.
    #[must_use]
    pub fn kem_key(&self) -> Option<&[u8]> {
        self.protection.kem_key()
    }

    /// At a client: the datagram with the ciphertext, if it is due because the server, which has not been heard, may
    /// not have it.
    #[inline]
    pub fn kem_ciphertext(&mut self, now: Time) -> Option<&[u8]> {
        if self.window.newest().is_some() { None } else { self.protection.kem_ciphertext(now) }
    }

    /// Completes the keys of a server with that datagram, which is decrypted in place. Returns `false` if it is not
    /// authentic or the keys are complete; then nothing has changed.
    pub fn decapsulate(&mut self, now: Time, datagram: &mut [u8]) -> bool {
        let Some(mut protection) = self.protection.decapsulate(datagram) else { return false };
        protection.begin(now);
        if self.is_resting {
            protection.rest();
        }
        self.protection = protection;
        if self.is_masked() {
            self.mask();
        }
        true
    }

    /// How often the keys were updated, for sending and for receiving.
    #[must_use]
    pub fn updates(&self) -> (u64, u64) {
        self.protection.updates()
    }

    /// Makes the client start an exchange of new keys after this many packets in either direction, instead of 2^20, but
    /// at most one a second. Has no effect at a server, which follows the client, or without a cipher.
    pub fn set_update_after(&mut self, packets: u64) {
        self.protection.update_after(packets);
    }

    /// Bytes of heap memory, approximately.
    pub(in crate::session) fn memory(&self) -> usize {
        self.protection.memory() + self.window.memory()
    }

    /// Frees the memory that speeds up packets. From now on, each packet takes extra time to prepare its key.
    pub(in crate::session) fn rest(&mut self) {
        self.is_resting = true;
        self.window.rest();
        self.protection.rest();
    }

    pub(in crate::session) const fn is_resting(&self) -> bool {
        self.is_resting
    }

    #[inline]
    pub(in crate::session) fn wake(&mut self) {
        if std::mem::take(&mut self.is_resting) {
            self.window.wake();
            self.protection.wake();
        }
    }

    /// Whether nobody else can read sealed packets.
    pub(in crate::session) fn is_encrypted(&self) -> bool {
        self.protection.is_encrypted()
    }

    /// Starts with packet numbers other than 0 for sending and receiving.
    #[cfg(test)]
    pub(in crate::session) fn start_at(&mut self, send: u64, receive: u64) {
        self.next_pn = send;
        self.window.mark(receive - 1).unwrap();
    }
}

printed_without_secrets! { Seal { next_pn, forged }, Keys {} }

/// The end of the packet numbers. At a billion packets per second, it takes three days to get there.
const PN_MAX: u64 = 1 << 48;
/// Number of wrong tags after which a key is no longer trusted. Source: RFC 9001 section 6.6, the integrity
/// limit of ChaCha20-Poly1305. Closing sessions any earlier would only help attackers.
const FORGED_MAX: u64 = 1 << 36;

#[cfg(test)]
mod tests;
