//! Both keys of a session, and how they are updated.
//!
//! The client begins an update: its packets change their phase. The server follows when it opens one of them. The client begins
//! the next only after a packet of the server in the new phase: then the server is not a whole phase behind, in either direction.

use super::OpenError;
use super::SealError;
use super::cipher::{Keyed, TAG_LEN};
use super::keys::Key;
use crate::session::Cipher;
use crate::time::Time;
use std::time::Duration;

/// The keys of both directions.
pub(super) struct Phases {
    send: Keyed,
    receive: Keyed,
    /// The key after `receive`, so that a packet in the next phase costs no more than another.
    next: Key,
    /// The key before `receive`, and until when it opens what is late.
    old: Option<Box<(Key, Time)>>,
    /// How often the keys were updated, to send and to receive. The first is at most 1 ahead of the second.
    generation: (u64, u64),
    /// Packets that were sealed with `send`, and opened since it is used.
    packets: (u64, u64),
    /// When `send` was used first.
    since: Time,
    /// Whether this end begins updates, after so many packets in either direction.
    update_after: Option<u64>,
}

impl Phases {
    pub(super) fn new(now: Time, cipher: Cipher, send: Key, receive: Key, client: bool) -> Self {
        let receive = Keyed::new(cipher, receive);
        Self {
            send: Keyed::new(cipher, send),
            next: receive.next(),
            receive,
            old: None,
            generation: (0, 0),
            packets: (0, 0),
            since: now,
            update_after: client.then_some(UPDATE_AFTER),
        }
    }

    /// Whether the phase bit is set in what is sent.
    pub(super) const fn phase(&self) -> bool {
        self.generation.0 % 2 == 1
    }

    pub(super) const fn generation(&self) -> (u64, u64) {
        self.generation
    }

    /// Has this end, if it is the one to begin updates, do so after so many packets.
    pub(super) fn update_after(&mut self, packets: u64) {
        self.update_after = self.update_after.map(|_| packets);
    }

    /// Begins an update if one is due.
    pub(super) fn update_if_due(&mut self, now: Time) {
        let Some(after) = self.update_after else {
            return;
        };
        let answered = self.generation.0 == self.generation.1;
        let (sealed, opened) = self.packets;
        if answered && (sealed.max(opened) >= after || now.since(self.since) >= UPDATE_AGE) {
            self.update_send(now);
        }
    }

    pub(super) fn seal(
        &mut self,
        pn: u64,
        header: &[u8],
        body: &mut [u8],
    ) -> Result<[u8; TAG_LEN], SealError> {
        let (sealed, _) = self.packets;
        if matches!(self.send.which(), Cipher::AesGcm) && sealed >= AES_GCM_PACKETS {
            return Err(SealError::KeySpent);
        }
        let tag = self.send.seal(pn, header, body).ok_or(SealError::KeySpent)?;
        self.packets.0 += 1;
        Ok(tag)
    }

    /// Opens a packet with the one key that it can be of. `ahead`: its number is beyond all that were opened.
    pub(super) fn open(
        &mut self,
        now: Time,
        (phase, pn, ahead): (bool, u64, bool),
        header: &[u8],
        sealed: &mut [u8],
    ) -> Result<(), OpenError> {
        let current = phase == (self.generation.1 % 2 == 1);
        let opened = if current {
            self.receive.open(pn, header, sealed)
        } else if ahead {
            let next = Keyed::new(self.receive.which(), self.next.clone());
            let opened = next.open(pn, header, sealed);
            if opened {
                self.update_receive(now, next);
            }
            opened
        } else {
            let Some(old) = self.old.as_ref().filter(|old| now < old.1) else {
                return Err(OpenError::Phase);
            };
            Keyed::new(self.receive.which(), old.0.clone()).open(pn, header, sealed)
        };
        if !opened {
            return Err(OpenError::Forged);
        }
        self.packets.1 += 1;
        self.old.take_if(|old| now >= old.1);
        Ok(())
    }

    pub(super) const fn memory(&self) -> usize {
        size_of::<Self>() + self.send.memory() + self.receive.memory()
    }

    pub(super) fn rest(&mut self) {
        self.send.rest();
        self.receive.rest();
    }

    pub(super) fn wake(&mut self) {
        self.send.wake();
        self.receive.wake();
    }

    fn update_send(&mut self, now: Time) {
        self.send = Keyed::new(self.send.which(), self.send.next());
        self.generation.0 += 1;
        self.packets = (0, 0);
        self.since = now;
    }

    fn update_receive(&mut self, now: Time, next: Keyed) {
        self.old = Some(Box::new((self.receive.key().clone(), now + OLD_KEY)));
        self.next = next.next();
        self.receive = next;
        self.generation.1 += 1;
        if self.generation.1 > self.generation.0 {
            self.update_send(now);
        }
    }
}

/// Packets in either direction after which a key is updated. Source: RFC 9001 section 6.6 allows 2^23 of AES-GCM.
const UPDATE_AFTER: u64 = 1 << 20;
/// Packets that one key of AES-GCM may seal. Source: RFC 9001 section 6.6.
const AES_GCM_PACKETS: u64 = 1 << 23;
/// How long a key is used at most, if packets are sent.
const UPDATE_AGE: Duration = Duration::from_secs(15 * 60);
/// How long packets of the last phase are still opened.
const OLD_KEY: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(cipher: Cipher) -> Phases {
        let key = |byte| Key::new([byte; 32]);
        Phases::new(Time::ZERO, cipher, key(1), key(2), false)
    }

    #[test]
    fn a_key_of_aes_gcm_seals_8_million_packets() {
        for (cipher, most) in [(Cipher::AesGcm, Some(1 << 23)), (Cipher::ChaChaPoly, None)] {
            let mut phases = phases(cipher);
            phases.packets.0 = (1 << 23) - 1;
            assert!(phases.seal(1, &[], &mut []).is_ok());
            assert_eq!(phases.seal(2, &[], &mut []).is_err(), most == Some(phases.packets.0));
        }
    }

    #[test]
    fn an_idle_session_has_little_of_it() {
        assert!(size_of::<Phases>() <= 400, "{} bytes", size_of::<Phases>());
        assert!(size_of::<super::super::Seal>() <= 200, "{} bytes", size_of::<super::super::Seal>());
    }
}
