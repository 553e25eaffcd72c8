//! Repairs of a connection: it sends them for its own packets, and rebuilds lost packets from the peer's.

use super::Connection;
use super::acks::low;
use super::handled::Handled;
use super::transmit::Out;
use crate::pace::Mode;
use crate::session::event::CloseReason;
use crate::session::repair::{self, PacketRepairs};
use crate::session::wire::{Frame, Frames, LossFrame};
use crate::time::Time;
use std::net::SocketAddr;

impl Connection {
    /// The repairs of a session whose ends both use them. They are created for the first packet that needs them, because
    /// most sessions of a big server are idle.
    fn used_repairs(&mut self) -> Option<&mut PacketRepairs> {
        if self.repairs.is_none() && self.peer.repairs {
            self.repairs = Some(Box::new(PacketRepairs::new(&self.lanes.config, self.seal.next())));
            self.budget.spend(size_of::<PacketRepairs>());
            self.budget.grow(0, size_of::<PacketRepairs>());
        }
        self.repairs.as_deref_mut()
    }

    /// Begins to count what gets lost with the first packet that carries something which nothing else protects.
    #[inline]
    pub(super) fn note_bare(&mut self, pn: u64, frame: &Frame<'_>) {
        if self.peer.repairs && self.repairs.is_none() && self.lanes.bare.leave(frame) {
            self.begin_repairs(pn);
        }
    }

    #[cold]
    fn begin_repairs(&mut self, pn: u64) {
        if let Some(repairs) = self.used_repairs() {
            repairs.arrived(pn);
        }
    }

    /// Notes that a packet leaves. `is_excused`: its loss says nothing about the path.
    #[inline]
    pub(super) fn note_sent(&mut self, is_excused: bool) {
        let repairs = if is_excused { self.used_repairs() } else { self.repairs.as_deref_mut() };
        if let Some(repairs) = repairs {
            repairs.on_sent(is_excused);
        }
    }

    /// Frees what can be spared for a while.
    pub(super) fn shrink_repairs(&mut self) {
        if let Some(repairs) = &mut self.repairs {
            repairs.shrink();
        }
        self.repairs.take_if(|repairs| repairs.is_as_new());
    }

    /// Protects a packet of data that is about to be sealed, and adds a repair of others if it fits. `body`: the
    /// buffer, where the frames start, and where they must end.
    pub(super) fn protect(&mut self, now: Time, body: (&mut Vec<u8>, usize, usize)) {
        if !self.lanes.is_lossless && self.repairs.as_mut().is_some_and(|repairs| repairs.protects(now)) {
            let (pn, path) = (self.seal.next(), self.repair_path());
            self.with_repairs(|repairs| repairs.protect(now, pn, &path, body));
        }
    }

    /// Writes a repair into a packet without data that is about to be sealed, if one is due and fits.
    pub(super) fn write_repair(&mut self, now: Time, body: (&mut Vec<u8>, usize, usize)) -> bool {
        let path = self.repair_path();
        let is_written = self.repairs.as_mut().is_some_and(|repairs| repairs.write_alone(&path, body));
        if is_written {
            self.on_data(now);
        }
        is_written
    }

    pub(super) fn repair_is_due(&self) -> bool {
        self.repairs.as_ref().is_some_and(|repairs| repairs.is_due(self.keepalive.now))
    }

    pub(super) fn tells_due(&self) -> Time {
        self.repairs.as_ref().and_then(|repairs| repairs.tells.due).unwrap_or(Time::NEVER)
    }

    pub(super) fn write_losses(&mut self, out: &mut Out<'_>) -> bool {
        let Some(repairs) = &mut self.repairs else { return false };
        let loss = repairs.peek(out.now);
        let is_written = loss.is_some_and(|loss| out.frames.push(&Frame::Loss(loss)).is_ok());
        if is_written {
            repairs.told(out.now);
        }
        is_written
    }

    /// The peer reports losses. What it has rebuilt has arrived, but still counts as lost.
    pub(super) fn on_loss(&mut self, now: Time, pn: u64, loss: LossFrame) -> Result<(), CloseReason> {
        if !self.peer.repairs {
            return Ok(());
        }
        let newest = match loss.rebuilt {
            0 => 0,
            rebuilt => match self.number_sent(pn, loss.newest, rebuilt.into())? {
                Some((newest, _)) => newest,
                None => return Ok(()),
            },
        };
        let ago = self.measured.rtt.smoothed_micros() / 2 + self.ack_delay();
        let _ = self.used_repairs();
        let Some(repairs) = &mut self.repairs else { return Ok(()) };
        let ages = (0..u32::BITS).filter(|age| loss.rebuilt >> age & 1 == 1);
        for rebuilt in ages.filter_map(|age| newest.checked_sub(age.into())) {
            if repairs.rebuilt_by_peer(now, rebuilt, ago) {
                self.datagrams.on_acked(low(rebuilt));
                self.lanes.blocks().for_each(|(_, kcp)| kcp.congestion_marked(now));
                if let Some(channels) = &mut self.packed {
                    channels.on_acked(low(rebuilt));
                }
            }
        }
        repairs.on_loss(now, pn, loss);
        Ok(())
    }

    /// Remembers a received packet, and uses its repair. Packets rebuilt from it are applied before its own frames.
    /// Returns whether the peer wants to know that it arrived.
    pub(super) fn on_protected(
        &mut self,
        now: Time,
        from: SocketAddr,
        handled: &mut Handled<'_>,
        frames: Frames<'_>,
    ) -> bool {
        let Some(repairs) = &mut self.repairs else { return false };
        let pn = handled.pn;
        let (repair, others) = frames.split_repair();
        if !repairs.arrived(pn) {
            repairs.stats.needless += u64::from(repair.is_some());
            return false;
        }
        repairs.earn(now, frames.rest().len());
        let has_memory = self.budget.has_room(frames.rest().len());
        let is_protected = frames.need_repairs(self.lanes.bare);
        self.with_repairs(|repairs| {
            if is_protected && has_memory {
                repairs.remember(pn, others.rest());
            }
            match repair {
                Some((first, payload)) if has_memory => repairs.repair(pn, first, payload),
                Some(_) => repairs.stats.refused += 1,
                None => {}
            }
        });
        self.apply_rebuilt(now, from, handled.scratch);
        is_protected
    }

    /// Applies what can be rebuilt now that a packet has come.
    fn apply_rebuilt(&mut self, now: Time, from: SocketAddr, scratch: &mut Vec<u8>) {
        let Some(mut repairs) = self.repairs.take() else { return };
        while self.is_open()
            && let Some((pn, body)) = repairs.recover()
        {
            let frames = Frames::parse(body).ok().filter(|frames| frames.may_be_covered());
            let frames = frames.filter(|frames| frames.split_repair().0.is_none());
            let Some((pn, frames)) = pn.zip(frames) else {
                repairs.stats.refused += 1;
                continue;
            };
            if self.seal.mark_rebuilt(pn).is_err() {
                repairs.stats.late += 1; // or too old to tell
                continue;
            }
            match self.apply_rebuilt_packet(now, from, Handled::new(pn, scratch), frames) {
                Ok(refused) => {
                    repairs.stats.rebuilt += 1;
                    if !refused {
                        repairs.tells.rebuilt(pn, now.after(self.ack_delay()));
                    }
                }
                Err(reason) => self.fail(now, reason),
            }
        }
        self.repairs = Some(repairs);
    }

    /// Returns whether something of it was refused.
    fn apply_rebuilt_packet(
        &mut self,
        now: Time,
        from: SocketAddr,
        handled: Handled<'_>,
        frames: Frames<'_>,
    ) -> Result<bool, CloseReason> {
        let mut handled = Handled { is_rebuilt: true, ..handled };
        for frame in frames.filter(Frame::has_data) {
            self.be_busy(now);
            self.handle_frame(now, from, &frame, &mut handled)?;
        }
        Ok(handled.refused)
    }

    fn repair_path(&self) -> repair::Path {
        repair::Path {
            rtt: self.measured.rtt,
            patience: self.patience(),
            overhead: self.seal.overhead(),
            body_max: usize::from(self.mtu.current).saturating_sub(self.seal.overhead()),
            bare: self.lanes.bare,
            is_bad: self.turns.mode() == Some(Mode::Bad),
        }
    }

    /// Calls `act` with the repairs, if there are any, and notes by how much their memory has grown.
    fn with_repairs(&mut self, act: impl FnOnce(&mut PacketRepairs)) {
        let Some(repairs) = self.repairs.as_deref_mut() else { return };
        let before = repairs.memory();
        act(repairs);
        let after = repairs.memory();
        self.budget.spend(after.saturating_sub(before));
        self.budget.grow(before, after);
    }
}
