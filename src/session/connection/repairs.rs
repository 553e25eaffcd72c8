//! What a connection does about repairs: those of its own packets leave, what the peer's were made of is taken.

use super::Connection;
use super::acks::low;
use super::receive::Handled;
use crate::message::Message;
use crate::pace::Mode;
use crate::session::config::SessionConfig;
use crate::session::event::CloseReason;
use crate::session::repair::{self, Protection, REPAIR_ROOM, Rebuild, RepairStats};
use crate::session::wire::{FEATURE_REPAIRS, Frame, FrameWriter, Frames, LossFrame};
use crate::time::Time;
use crate::wire::move_ts;
use std::net::SocketAddr;

/// Both directions of a session of which both ends use repairs.
#[derive(Debug)]
pub(super) struct Repairs {
    protection: Protection,
    rebuild: Rebuild,
    /// Segments that were rebuilt.
    moved: Vec<u8>,
}

impl Repairs {
    /// For a session of both of whose ends have these features.
    pub(super) fn new(config: &SessionConfig, features: u32) -> Option<Box<Self>> {
        let repairs = config.repairs.as_ref().filter(|_| features & FEATURE_REPAIRS != 0)?;
        let rebuild = Rebuild::new(repairs, config.datagram_taken());
        let protection = Protection::new(repairs);
        Some(Box::new(Self { protection, rebuild, moved: Vec::new() }))
    }

    /// Bytes of a datagram that are kept for what a repair has more than what it protects.
    pub(super) fn room(repairs: Option<&Self>) -> u16 {
        if repairs.is_some() { REPAIR_ROOM } else { 0 }
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.protection.memory() + self.rebuild.memory() + self.moved.capacity()
    }

    /// The share of what is sent that gets lost, as the peer tells, 0 to 1.
    pub(super) fn loss_told(&self, now: Time) -> f64 {
        self.protection.loss(now)
    }

    /// Gives back what can be done without for a while.
    pub(super) fn shrink(&mut self) {
        self.protection.shrink();
        self.rebuild.shrink();
        self.moved = Vec::new();
    }

    pub(super) fn stats(&self) -> RepairStats {
        let (sent, came) = (self.protection.stats(), self.rebuild.stats());
        let RepairStats { sent, sent_alone, bytes, rebuilt_by_peer, loss_told, .. } = sent;
        RepairStats { sent, sent_alone, bytes, rebuilt_by_peer, loss_told, ..came }
    }
}

impl<M: Message> Connection<M> {
    /// See [`Repairs::room`].
    pub(super) fn repair_room(&self) -> u16 {
        Repairs::room(self.repairs.as_deref())
    }

    /// A packet of data is about to be sealed, with the frames from a place of the buffer on: it is protected from now on, and takes a
    /// repair of others along if that fits.
    pub(super) fn protect(&mut self, now: Time, body: (&mut Vec<u8>, usize, usize)) {
        match &mut self.repairs {
            None => return,
            Some(repairs) if !repairs.protection.is_on(now) => return repairs.protection.shrink(),
            Some(_) => {}
        }
        let (pn, path) = (self.seal.sealed(), self.repair_path());
        self.with_repairs(|repairs| repairs.protection.protect(now, pn, &path, body));
    }

    /// A packet without data is about to be sealed: writes a repair into it, if one is due and fits.
    pub(super) fn write_repair(&mut self, now: Time, body: (&mut Vec<u8>, usize, usize)) -> bool {
        let path = self.repair_path();
        let repairs = self.repairs.as_mut();
        let is_written = repairs.is_some_and(|repairs| repairs.protection.write_alone(&path, body));
        if is_written {
            self.on_data(now);
        }
        is_written
    }

    /// Whether a repair is to leave without data.
    pub(super) fn repair_is_due(&self) -> bool {
        self.repairs.as_ref().is_some_and(|repairs| repairs.protection.is_due(self.keepalive.now))
    }

    /// When the peer is to be told of what was rebuilt.
    pub(super) fn tells_due(&self) -> Time {
        self.repairs.as_ref().and_then(|repairs| repairs.rebuild.due()).unwrap_or(Time::NEVER)
    }

    /// Tells the peer what gets lost.
    pub(super) fn write_losses(&mut self, now: Time, writer: &mut FrameWriter<'_>) -> bool {
        let Some(repairs) = &mut self.repairs else { return false };
        let Some(loss) = repairs.rebuild.peek(now) else { return false };
        let is_written = writer.push(&Frame::Loss(loss)).is_ok();
        if is_written {
            repairs.rebuild.told(now);
        }
        is_written
    }

    /// These packets have arrived: `newest`, and those of the bits before it.
    pub(super) fn protected_arrived(&mut self, newest: u64, bits: u32) {
        if let Some(repairs) = &mut self.repairs {
            repairs.protection.arrived(newest, bits);
        }
    }

    /// The peer tells of loss. What it has rebuilt has arrived, and was lost all the same.
    pub(super) fn on_loss(&mut self, now: Time, pn: u64, loss: LossFrame) -> Result<(), CloseReason> {
        if self.repairs.is_none() {
            return Ok(());
        }
        let newest = if loss.rebuilt == 0 { 0 } else { self.number_sent(loss.newest)? };
        let Some(Repairs { protection, .. }) = self.repairs.as_deref_mut() else { return Ok(()) };
        let ages = (0..u32::BITS).filter(|age| loss.rebuilt >> age & 1 == 1);
        for rebuilt in ages.filter_map(|age| newest.checked_sub(age.into())) {
            if protection.rebuilt_by_peer(rebuilt) {
                self.datagrams.on_acked(low(rebuilt));
                self.lanes.used().for_each(|lane| lane.congestion_marked(now));
                if let Some(channels) = &mut self.channels {
                    channels.on_acked(low(rebuilt));
                }
            }
        }
        protection.on_loss(now, pn, loss);
        Ok(())
    }

    /// A packet has come: remembers it, and uses its repair. What can be rebuilt thereby is applied before its own frames. Returns whether the
    /// peer wants to know that it arrived.
    pub(super) fn on_protected(&mut self, now: Time, from: SocketAddr, pn: u64, frames: Frames<'_>) -> bool {
        let has_memory = self.budget.check(frames.rest().len()).is_ok();
        let Some(Repairs { rebuild, .. }) = self.repairs.as_deref_mut() else { return false };
        rebuild.arrived(pn);
        let mut rest = frames;
        let repair = match rest.next() {
            Some(Frame::Repair(first, payload)) => Some((first, payload)),
            _ => None,
        };
        if !rebuild.is_on() {
            rebuild.stats.needless += u64::from(repair.is_some());
            return false;
        }
        let body = if repair.is_some() { rest.rest() } else { frames.rest() };
        let is_protected = repair::is_worth_protecting(frames);
        self.with_repairs(|Repairs { rebuild, .. }| {
            if is_protected && has_memory {
                rebuild.remember(pn, body);
            }
            match repair {
                Some((first, payload)) if has_memory => rebuild.repair(pn, first, payload),
                Some(_) => rebuild.stats.refused += 1,
                None => {}
            }
        });
        self.apply_rebuilt(now, from);
        is_protected
    }

    /// Applies what can be rebuilt now that a packet has come.
    fn apply_rebuilt(&mut self, now: Time, from: SocketAddr) {
        let Some(mut repairs) = self.repairs.take() else { return };
        let Repairs { rebuild, moved, .. } = &mut *repairs;
        while self.is_open()
            && let Some((pn, body)) = rebuild.recover()
        {
            let Some((pn, frames)) = pn.zip(repair::protected(body)) else {
                rebuild.stats.refused += 1;
                continue;
            };
            if self.seal.mark_rebuilt(pn).is_err() {
                rebuild.stats.late += 1; // or too old to tell
                continue;
            }
            match self.apply_rebuilt_packet(now, from, pn, frames, moved) {
                Ok(refused) => rebuild.was_rebuilt(pn, !refused, now.after(self.ack_delay())),
                Err(reason) => self.fail(now, reason),
            }
        }
        self.repairs = Some(repairs);
    }

    /// Whether something of it was refused.
    fn apply_rebuilt_packet(
        &mut self,
        now: Time,
        from: SocketAddr,
        pn: u64,
        frames: Frames<'_>,
        moved: &mut Vec<u8>,
    ) -> Result<bool, CloseReason> {
        let mut handled = Handled::of(pn);
        for frame in frames.filter(Frame::has_data) {
            self.be_busy(now);
            let frame = match frame {
                Frame::Kcp(segments) => {
                    moved.clear();
                    moved.extend_from_slice(segments);
                    move_ts(moved, AHEAD);
                    Frame::Kcp(moved)
                }
                frame => frame,
            };
            self.handle_frame(now, from, &frame, &mut handled)?;
        }
        Ok(handled.refused)
    }

    /// What a repair has to know of the path.
    fn repair_path(&self) -> repair::Path {
        let rtt = &self.measured.rtt;
        repair::Path {
            rtt: rtt.smoothed(),
            rtt_min: rtt.min(),
            patience: self.patience(),
            overhead: self.seal.overhead(),
            is_bad: self.turns.mode() == Some(Mode::Bad),
        }
    }

    /// Does something with the repairs, if there are any, and notes by how much their memory has grown.
    fn with_repairs(&mut self, act: impl FnOnce(&mut Repairs)) {
        let Some(repairs) = self.repairs.as_deref_mut() else { return };
        let before = repairs.memory();
        act(repairs);
        let after = repairs.memory();
        self.budget.spend(after.saturating_sub(before));
        self.budget.grow(before, after);
    }
}

/// What is added to the `ts` of a segment that was rebuilt, so that its acknowledgement measures no round trip: it came later than the
/// segment would have. Whichever unit `ts` has, it is ahead of all that were sent, and not by half of the numbers there are.
const AHEAD: u32 = 10_000_000;
