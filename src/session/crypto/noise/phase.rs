//! Both keys of a session, and their renewal.
//!
//! The client starts an exchange of new keys, see `renewal`, and is the first to use one: its packets change phase. The
//! server follows when it opens one of them. The client starts the next exchange only after it has received a packet
//! of the server in the new phase: then the server is not a whole phase behind in either direction.
//!
//! If the peer leaves the exchange unanswered, each key of the next phase follows from that of the last one alone, so
//! limits hold and recordings stay closed, whatever the peer does.

use super::Key;
use super::cipher::{Keyed, TAG_LEN};
use super::renewal::Exchange;
use crate::seq::Seq16;
use crate::session::Cipher;
use crate::session::crypto::{Protection, Renewal};
use crate::session::seal::{MaskKey, OpenError, SealError};
use crate::session::wire::{DATA_HEADER_LEN, Data, RekeyFrame};
use crate::time::Time;
use std::time::Duration;

pub(super) struct Phases {
    send: Keyed,
    receive: Keyed,
    /// The key after `receive` if none is agreed, precomputed so that a packet in the next phase costs no more than
    /// another.
    next: Key,
    /// The keys of the next phase, or how far their exchange is.
    exchange: Option<Box<Exchange>>,
    /// The key before `receive`, and until when it opens late packets.
    old: Option<Box<(Key, Time)>>,
    /// How often the keys were updated, for sending and for receiving. The first is at most 1 ahead of the
    /// second.
    generation: (u32, u32),
    /// Packets sealed with `send`, and packets opened since `send` came into use; 2^32 - 1: that many or more.
    packets: (u32, u32),
    /// When the keys of the last exchange came into use; at the server, when the client last asked for some.
    since: Time,
    /// After how many packets in either direction this end starts an exchange; [`FOLLOWS`]: it starts none.
    update_after: u64,
}

impl Phases {
    pub(super) fn new(cipher: Cipher, send: Key, receive: Key, client: bool) -> Self {
        let receive = Keyed::new(cipher, receive);
        Self {
            send: Keyed::new(cipher, send),
            next: receive.next(),
            receive,
            exchange: None,
            old: None,
            generation: (0, 0),
            packets: (0, 0),
            since: Time::ZERO,
            update_after: if client { UPDATE_AFTER } else { FOLLOWS },
        }
    }

    /// At a client: repeats this datagram until the server is heard.
    #[cfg(feature = "pq")]
    pub(super) fn joining(self, datagram: Box<[u8]>) -> Self {
        Self { exchange: Some(Box::new(Exchange::Joining { datagram, told: None })), ..self }
    }

    /// Whether this end starts exchanges and one is due.
    fn is_due(&self, now: Time) -> bool {
        let age = now.since(self.since);
        self.update_after != FOLLOWS
            && self.generation.0 == self.generation.1
            && (u64::from(self.most()) >= self.update_after && age >= UPDATE_EACH || age >= UPDATE_AGE)
    }

    /// Packets in the direction that has more of them.
    fn most(&self) -> u32 {
        self.packets.0.max(self.packets.1)
    }

    /// The number of the phase after that of the packets received.
    const fn next_phase(&self) -> Seq16 {
        let [low, high, ..] = self.generation.1.wrapping_add(1).to_le_bytes();
        Seq16(u16::from_le_bytes([low, high]))
    }

    /// Goes on with keys derived from the present ones, because the server has not answered the exchange.
    #[cold]
    fn give_up(&mut self, now: Time) {
        #[cfg(feature = "pq")]
        if let Some(Exchange::Joining { .. }) = self.exchange.as_deref()
            && self.packets.1 > 0
        {
            self.exchange = None; // the server has these keys as well
        }
        if let Some(Exchange::Offered { since, .. }) = self.exchange.as_deref()
            && (now.since(*since) >= PATIENCE || self.most() >= UNANSWERED_PACKETS)
        {
            self.exchange = None;
            self.update_send(self.send.next());
        }
    }

    fn update_send(&mut self, key: Key) {
        self.send = Keyed::new(self.send.which, key);
        self.generation.0 += 1;
        self.packets = (0, 0);
    }

    /// Begins to use the key of a packet that was opened. `send` is agreed with it.
    fn update_receive(&mut self, now: Time, next: Keyed, send: Option<Key>) {
        self.old = Some(Box::new((self.receive.key.clone(), now + OLD_KEY)));
        self.next = next.next();
        self.receive = next;
        self.generation.1 += 1;
        self.exchange = None;
        if self.generation.1 > self.generation.0 {
            self.update_send(send.unwrap_or_else(|| self.send.next()));
        }
    }

    /// Opens a packet of the next phase, under the key that is agreed. If its owner could not know that one, because the
    /// answer got lost, under the one that follows.
    fn open_next(&mut self, now: Time, pn: u64, header: &[u8], sealed: &mut [u8]) -> bool {
        if let Some(Exchange::Agreed(agreed)) = self.exchange.as_deref() {
            let (next, send) = (Keyed::new(self.receive.which, agreed.receive.clone()), agreed.send.clone());
            let copy = (self.update_after == FOLLOWS).then(|| sealed.to_vec()); // a key that fails leaves garbage
            if next.open(pn, header, sealed) {
                self.update_receive(now, next, Some(send));
                return true;
            }
            let Some(copy) = copy else { return false };
            sealed.copy_from_slice(&copy);
        }
        let next = Keyed::new(self.receive.which, self.next.clone());
        let is_opened = next.open(pn, header, sealed);
        if is_opened {
            self.update_receive(now, next, None);
        }
        is_opened
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
    ) -> Result<Renewal, SealError> {
        let packet = buffer.get_mut(start..).unwrap_or_default();
        let (head, body) = packet.split_first_chunk_mut().ok_or(SealError::NoHeader)?;
        if self.exchange.is_some() {
            self.give_up(now);
        }
        *head = Data { phase: self.generation.0 % 2 == 1, ..header }.encode();
        let (sealed, _) = self.packets;
        if matches!(self.send.which, Cipher::AesGcm) && sealed >= AES_GCM_PACKETS {
            return Err(SealError::KeySpent);
        }
        let tag = self.send.seal(pn, head, body).ok_or(SealError::KeySpent)?;
        buffer.extend_from_slice(&tag);
        self.packets.0 = sealed.saturating_add(1);
        Ok(self.renewal(now))
    }

    /// Opens a packet with the key that can match.
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
            self.open_next(now, pn, header, sealed)
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

    fn renewal(&self, now: Time) -> Renewal {
        match self.exchange.as_deref() {
            None if self.is_due(now) => Renewal::Draw,
            None => Renewal::Nothing,
            Some(exchange) => exchange.renewal(now),
        }
    }

    fn draw(&mut self, now: Time, random: &[u8; 32]) {
        let keys = (&self.send.key, &self.receive.key);
        match self.exchange.as_deref_mut() {
            None if self.update_after != FOLLOWS && self.generation.0 == self.generation.1 => {
                self.exchange = Some(Exchange::offer(now, random));
            }
            Some(exchange) => exchange.answer(random, keys),
            None => {}
        }
    }

    fn half(&self) -> Option<RekeyFrame> {
        let half = self.exchange.as_ref()?.half()?;
        Some(RekeyFrame { phase: self.next_phase(), half })
    }

    fn told(&mut self, now: Time) {
        if let Some(exchange) = &mut self.exchange {
            exchange.told(now);
        }
    }

    fn on_half(&mut self, now: Time, &RekeyFrame { phase, half }: &RekeyFrame) -> bool {
        if phase != self.next_phase() {
            return phase.distance(self.next_phase()) < 0; // one that comes late is no fault
        }
        if self.update_after != FOLLOWS {
            let keys = (&self.send.key, &self.receive.key);
            let Some(exchange) = &mut self.exchange else { return self.generation.0 > self.generation.1 };
            if let Some(key) = exchange.on_answer(half, keys) {
                self.update_send(key);
                self.since = now;
            }
            return true;
        }
        if let Some(exchange) = &mut self.exchange {
            return exchange.on_repeated(half);
        }
        let is_time = now.since(self.since) >= UPDATE_EACH;
        if is_time {
            self.since = now;
            self.exchange = Some(Box::new(Exchange::Asked(half)));
        }
        is_time
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

    #[cfg(feature = "pq")]
    fn kem_ciphertext(&mut self, now: Time) -> Option<&[u8]> {
        let Exchange::Joining { datagram, told } = self.exchange.as_deref_mut()? else { return None };
        if told.is_some_and(|at| now.since(at) < JOIN_EACH) {
            return None;
        }
        *told = Some(now);
        Some(datagram)
    }

    fn memory(&self) -> usize {
        let exchange = self.exchange.as_ref().map_or(0, |exchange| exchange.memory());
        size_of::<Self>() + self.send.memory() + self.receive.memory() + exchange
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

/// The server's end starts no exchange.
const FOLLOWS: u64 = u64::MAX;
/// Packets in either direction after which an exchange starts. RFC 9001 section 6.6 allows 2^23 for AES-GCM.
const UPDATE_AFTER: u64 = 1 << 20;
/// Packets in either direction for which an answer is awaited.
const UNANSWERED_PACKETS: u32 = 1 << 22;
/// How long an answer is awaited.
const PATIENCE: Duration = Duration::from_secs(60);
/// Packets that one AES-GCM key may seal. Source: RFC 9001 section 6.6.
const AES_GCM_PACKETS: u32 = 1 << 23;
/// Longest time that a key is used, if packets are sent. Source: WireGuard's `REKEY_AFTER_TIME`.
const UPDATE_AGE: Duration = Duration::from_secs(120);
/// Least time between two exchanges, so that a client cannot make a server work at will.
const UPDATE_EACH: Duration = Duration::from_secs(1);
/// Time between two copies of a KEM ciphertext: that between two CONNECTs.
#[cfg(feature = "pq")]
const JOIN_EACH: Duration = Duration::from_millis(100);
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
            assert!(seal(1).is_ok());
            assert_eq!(seal(2).is_err(), is_limited);
        }
    }
}
