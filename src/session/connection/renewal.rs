//! New keys while a session lasts. Both halves ride on packets that leave anyway, so that an idle session is
//! not woken. They are repeated until they have done their work.

use super::Connection;
use super::transmit::Out;
use crate::session::wire::{Frame, RekeyFrame};
use crate::time::Time;

impl Connection {
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
    pub(super) fn write_half(&self, out: &mut Out<'_>) {
        if let Some(half) = self.seal.half() {
            out.written.is_half = out.frames.push(&Frame::Rekey(half)).is_ok();
        }
    }
}
