//! Both keys of a session, and their updates.
//!
//! The client starts an update: its packets change phase. The server follows when it opens one of them. The
//! client starts the next update only after it has received a packet of the server in the new phase: then the
//! server is not a whole phase behind in either direction.

use super::Key;
use super::cipher::{Keyed, TAG_LEN};
use crate::session::Cipher;
use crate::session::crypto::Protection;
use crate::session::seal::{MaskKey, OpenError, SealError};
use crate::session::wire::{DATA_HEADER_LEN, Data};
use crate::time::Time;
use std::time::Duration;

pub(super) struct Phases {
    send: Keyed,
    receive: Keyed,
    /// The key after `receive`, precomputed so that a packet in the next phase costs no more than another.
    next: Key,
    /// The key before `receive`, and until when it opens late packets.
    old: Option<Box<(Key, Time)>>,
    /// How often the keys were updated, for sending and for receiving. The first is at most 1 ahead of the
    /// second.
    generation: (u32, u32),
    /// Packets sealed with `send`, and packets opened since `send` came into use; 2^32 - 1: that many or more.
    packets: (u32, u32),
    /// When `send` was first used.
    since: Time,
    /// After how many packets in either direction this end starts an update; [`FOLLOWS`]: it starts none.
    update_after: u64,
}

impl Phases {
    pub(super) fn new(cipher: Cipher, send: Key, receive: Key, client: bool) -> Self {
        let receive = Keyed::new(cipher, receive);
        Self {
            send: Keyed::new(cipher, send),
            next: receive.next(),
            receive,
            old: None,
            generation: (0, 0),
            packets: (0, 0),
            since: Time::ZERO,
            update_after: if client { UPDATE_AFTER } else { FOLLOWS },
        }
    }

    /// Updates the key if this end starts updates and one is due.
    fn update_if_due(&mut self, now: Time) {
        let after = self.update_after;
        let answered = self.generation.0 == self.generation.1;
        let (sealed, opened) = self.packets;
        if after != FOLLOWS
            && answered
            && (u64::from(sealed.max(opened)) >= after || now.since(self.since) >= UPDATE_AGE)
        {
            self.update_send(now);
        }
    }

    fn update_send(&mut self, now: Time) {
        self.send = Keyed::new(self.send.which, self.send.next());
        self.generation.0 += 1;
        self.packets = (0, 0);
        self.since = now;
    }

    fn update_receive(&mut self, now: Time, next: Keyed) {
        self.old = Some(Box::new((self.receive.key.clone(), now + OLD_KEY)));
        self.next = next.next();
        self.receive = next;
        self.generation.1 += 1;
        if self.generation.1 > self.generation.0 {
            self.update_send(now);
        }
    }
}

impl Protection for Phases {
    fn tail(&self) -> usize {
        TAG_LEN
    }

    fn begin(&mut self, now: Time) {
        self.since = now;
    }

    fn seal(
        &mut self,
        now: Time,
        (header, pn): (Data, u64),
        buffer: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), SealError> {
        let packet = buffer.get_mut(start..).unwrap_or_default();
        let (head, body) = packet.split_first_chunk_mut().ok_or(SealError::NoHeader)?;
        self.update_if_due(now);
        *head = Data { phase: self.generation.0 % 2 == 1, ..header }.encode();
        let (sealed, _) = self.packets;
        if matches!(self.send.which, Cipher::AesGcm) && sealed >= AES_GCM_PACKETS {
            return Err(SealError::KeySpent);
        }
        let tag = self.send.seal(pn, head, body).ok_or(SealError::KeySpent)?;
        buffer.extend_from_slice(&tag);
        self.packets.0 = sealed.saturating_add(1);
        Ok(())
    }

    /// Opens a packet with the one key that can match.
    fn open(
        &mut self,
        now: Time,
        (phase, pn, ahead): (bool, u64, bool),
        packet: &mut [u8],
    ) -> Result<(), OpenError> {
        let (header, sealed) = packet.split_first_chunk_mut::<DATA_HEADER_LEN>().ok_or(OpenError::Forged)?;
        let current = phase == (self.generation.1 % 2 == 1);
        let opened = if current {
            self.receive.open(pn, header, sealed)
        } else if ahead {
            let next = Keyed::new(self.receive.which, self.next.clone());
            let opened = next.open(pn, header, sealed);
            if opened {
                self.update_receive(now, next);
            }
            opened
        } else {
            let Some(old) = self.old.as_ref().filter(|old| now < old.1) else {
                return Err(OpenError::Phase);
            };
            Keyed::new(self.receive.which, old.0.clone()).open(pn, header, sealed)
        };
        if !opened {
            return Err(OpenError::Forged);
        }
        self.packets.1 = self.packets.1.saturating_add(1);
        self.old.take_if(|old| now >= old.1);
        Ok(())
    }

    fn mask_key(&self) -> Option<MaskKey> {
        let of_client = if self.update_after == FOLLOWS { &self.receive } else { &self.send };
        of_client.mask_key().filter(|_| self.generation == (0, 0))
    }

    fn updates(&self) -> (u64, u64) {
        let (sending, receiving) = self.generation;
        (sending.into(), receiving.into())
    }

    fn update_after(&mut self, packets: u64) {
        if self.update_after != FOLLOWS {
            self.update_after = packets;
        }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.send.memory() + self.receive.memory()
    }

    fn rest(&mut self) {
        self.send.rest();
        self.receive.rest();
    }

    fn wake(&mut self) {
        self.send.wake();
        self.receive.wake();
    }

    fn is_encrypted(&self) -> bool {
        true
    }
}

/// The server's end starts no updates.
const FOLLOWS: u64 = u64::MAX;
/// Packets in either direction after which a key is updated. RFC 9001 section 6.6 allows 2^23 for AES-GCM.
const UPDATE_AFTER: u64 = 1 << 20;
/// Packets that one AES-GCM key may seal. Source: RFC 9001 section 6.6.
const AES_GCM_PACKETS: u32 = 1 << 23;
/// Longest time that a key is used, if packets are sent. Source: WireGuard's `REKEY_AFTER_TIME`.
const UPDATE_AGE: Duration = Duration::from_secs(120);
/// How long packets of the previous phase are still opened.
const OLD_KEY: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(cipher: Cipher) -> Phases {
        let key = |byte| Key::new([byte; 32]);
        Phases::new(cipher, key(1), key(2), false)
    }

    #[test]
    fn an_aes_gcm_key_seals_8_million_packets() {
        for (cipher, is_limited) in [(Cipher::AesGcm, true), (Cipher::ChaChaPoly, false)] {
            let mut phases = phases(cipher);
            phases.packets.0 = (1 << 23) - 1;
            let header = Data { phase: false, sid: 1, pn: 0 };
            let mut seal = |pn| phases.seal(Time::ZERO, (header, pn), &mut vec![0; DATA_HEADER_LEN], 0);
            assert_eq!(seal(1), Ok(()));
            assert_eq!(seal(2).is_err(), is_limited);
        }
    }
}
