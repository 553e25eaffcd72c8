//! The keys of a hybrid suite, at the beginning; and new keys while a session lasts. Both halves of those ride on
//! packets that leave anyway, so that an idle session is not woken. They are repeated until they have done their work.

use super::Connection;
use super::transmit::Out;
use crate::session::wire::{Frame, RekeyFrame};
use crate::time::Time;
use std::net::SocketAddr;

impl Connection {
    /// The datagram with the server's encapsulation key, while it has no keys.
    pub(in crate::session) fn kem_key(&self) -> Option<&[u8]> {
        self.seal.kem_key()
    }

    /// Takes the client's ciphertext, which completes the keys. Returns `false` if it is not authentic.
    pub(in crate::session) fn decapsulate(&mut self, now: Time, datagram: &mut [u8]) -> bool {
        self.seal.decapsulate(now, datagram)
    }

    /// Writes the datagram with the ciphertext, if it is due: before anything that the server cannot open without it.
    pub(in crate::session) fn write_ciphertext(
        &mut self,
        now: Time,
        buf: &mut Vec<u8>,
    ) -> Option<SocketAddr> {
        let datagram = if self.is_closed() { None } else { self.seal.kem_ciphertext(now) }?;
        buf.extend_from_slice(datagram);
        self.stats.sent += 1;
        self.stats.bytes_sent += datagram.len() as u64;
        Some(self.path.route.address)
    }

    /// Whether new keys need random bytes, which the owner [has](Self::draw).
    pub(in crate::session) fn wants_random(&self) -> bool {
        self.seal.wants_random()
    }

    pub(in crate::session) fn draw(&mut self, now: Time, random: &[u8; 32]) {
        self.seal.draw(now, random);
    }

    pub(super) fn on_half(&mut self, now: Time, half: &RekeyFrame) {
        if !self.seal.on_half(now, half) {
            self.stats.rare_mut().rekeys_refused += 1;
        }
    }

    /// Writes this end's half, if it is due. It leaves alone only if what is due does not fit beside it.
    pub(super) fn write_half(&mut self, out: &mut Out<'_>) {
        self.seal.look(out.now);
        if let Some(half) = self.seal.half() {
            out.written.is_half = out.frames.push(&Frame::Rekey(half)).is_ok();
        }
    }
}
