//! Reliable lanes: a KCP control block each, side by side in the datagrams of one session.

use crate::config::ConfigError;
use crate::kcp::{self, Config, InputError, Kcp};
use crate::seq::{Conv, Sn};
use crate::session::config::SessionConfig;
use crate::session::error::SendError;
use crate::session::event::CloseReason;
use crate::session::stats::LaneTotals;
use crate::time::Time;
use crate::wire::{DatagramQueue, InPacket, conv_of};
use std::sync::Arc;
use std::time::Duration;

/// The lanes of one end. Lane n has the conv of the session + n, which wraps: within what the session has
/// authenticated a conv only tells lanes apart.
#[derive(Debug)]
pub(super) struct Lanes {
    conv: u32,
    /// Longest datagram; what is cut is cut for that.
    max_datagram: u16,
    /// A lane may have made what has not left.
    may_wait: bool,
    /// The user may wait for a lane to become [writable](Self::became_writable).
    is_awaited: bool,
    pub(super) config: Arc<SessionConfig>,
    /// Made when the first of them is used: most sessions of a big server are idle.
    pub(super) lanes: Vec<Lane>,
}

#[derive(Debug)]
pub(super) struct Lane {
    kcp: Kcp<DatagramQueue>,
    /// Since when the peer's window is closed while something waits for it, and nothing more is acknowledged than this.
    blocked: Option<(Time, Sn)>,
    fragment_chains: u32,
    /// A message found no room.
    was_full: bool,
    /// It was asked whether all has arrived, and it had not.
    is_asked: bool,
    wait: Option<Box<Wait>>,
}

/// A lane waits for room for bytes. They are kept for it: what others ask for later they do not get before.
#[derive(Clone, Copy, Debug)]
struct Wait {
    need: u32,
    /// Since when; once it was told that there is room, until when that is kept for it.
    at: Time,
    is_told: bool,
}

impl Wait {
    /// Who has less comes first.
    const fn turn(&self) -> Time {
        if self.is_told { Time::ZERO } else { self.at }
    }
}

impl Lane {
    /// Makes what is due; whether something waits that has not left.
    fn update_if_due(&mut self, now: Time, ahead: Option<&mut InPacket<'_>>) -> bool {
        if self.kcp.output().is_empty() {
            self.kcp.update_if_due(now, ahead);
        }
        !self.kcp.output().is_empty()
    }

    fn became_writable(&mut self) -> bool {
        let has_room = self.was_full && self.kcp.waiting() <= self.kcp.config().snd_queue / 2;
        let is_delivered = self.is_asked && self.kcp.wait_snd() == 0;
        self.was_full &= !has_room;
        self.is_asked &= !is_delivered;
        has_room || is_delivered
    }
}

impl Lanes {
    pub(super) fn new(conv: u32, config: Arc<SessionConfig>, max_datagram: u16) -> Result<Self, ConfigError> {
        config.lanes.iter().try_for_each(|lane| config.lane(lane, max_datagram).check())?;
        Ok(Self { conv, max_datagram, may_wait: false, is_awaited: false, config, lanes: Vec::new() })
    }

    /// A lane as it is before it is used, if there is one of that number.
    fn fresh(&self, lane: usize) -> Option<Lane> {
        let config = self.config.lane(self.config.lanes.get(lane)?, self.max_datagram);
        let conv = self.conv.wrapping_add(u32::try_from(lane).ok()?);
        let kcp = Kcp::new(Conv(conv), &config, config.datagram_queue());
        let mut kcp = kcp.inspect_err(|error| log::error!("lanes that were checked: {error}")).ok()?;
        kcp.set_ack_ride();
        Some(Lane { kcp, blocked: None, fragment_chains: 0, was_full: false, is_asked: false, wait: None })
    }

    #[cold]
    pub(super) fn make(&mut self) {
        let mut lanes = Vec::with_capacity(self.len());
        lanes.extend((0..self.len()).map_while(|lane| self.fresh(lane)));
        self.lanes = lanes;
        (0..self.lanes.len()).for_each(|index| self.make_room(index, u64::MAX));
    }

    /// A lane that is used from now on.
    fn used(&mut self, lane: usize) -> Result<&mut Lane, SendError> {
        if self.lanes.is_empty() {
            self.make();
        }
        let count = self.len();
        self.lanes.get_mut(lane).ok_or(SendError::NoLane { lane, count })
    }

    pub(super) fn send(&mut self, lane: usize, message: &[u8]) -> Result<usize, SendError> {
        let lane = self.used(lane)?;
        let sent = lane.kcp.send(message);
        if let Err(kcp::SendError::Full { .. }) = sent {
            lane.was_full = true;
            self.is_awaited = true;
        } else if lane.wait.as_ref().is_some_and(|wait| sent.is_ok() && message.len() >= wait.need as usize) {
            lane.wait = None;
        }
        Ok(sent?)
    }

    pub(super) fn send_end(&mut self, lane: usize) -> Result<(), SendError> {
        let lane = self.used(lane)?;
        let sent = lane.kcp.send_end();
        lane.was_full |= sent.is_err();
        self.is_awaited |= sent.is_err();
        Ok(sent?)
    }

    pub(super) fn are_open(&self) -> bool {
        self.lanes.iter().all(|lane| lane.kcp.rmt_wnd() > 0)
    }

    /// Whether nothing of a lane is under way; of a lane that is not there, nothing is.
    pub(super) fn is_delivered(&mut self, lane: usize) -> bool {
        let Some(lane) = self.lanes.get_mut(lane) else { return true };
        lane.is_asked = lane.kcp.wait_snd() > 0;
        self.is_awaited |= lane.is_asked;
        !lane.is_asked
    }

    /// Whether a lane has become what its user waits for, once.
    pub(super) fn became_writable(&mut self) -> bool {
        if !self.is_awaited {
            return false;
        }
        let any = self.lanes.iter_mut().fold(false, |any, lane| lane.became_writable() | any);
        self.is_awaited = self.lanes.iter().any(|lane| lane.was_full || lane.is_asked);
        any
    }

    pub(super) fn peek_size(&self, lane: usize) -> Option<usize> {
        self.lanes.get(lane)?.kcp.peek_size()
    }

    /// Looks at a lane, used or not.
    pub(super) fn look<T>(&self, lane: usize, at: impl Fn(&Kcp<DatagramQueue>) -> T) -> Option<T> {
        let fresh = if self.lanes.is_empty() { self.fresh(lane) } else { None };
        self.lanes.get(lane).or(fresh.as_ref()).map(|lane| at(&lane.kcp))
    }

    pub(super) fn is_readable(&self) -> bool {
        self.lanes.iter().any(|lane| lane.kcp.is_readable())
    }

    pub(super) fn len(&self) -> usize {
        self.config.lanes.len()
    }

    pub(super) fn totals(&self) -> LaneTotals {
        let mut totals = LaneTotals::default();
        self.lanes.iter().for_each(|lane| totals.add(&lane.kcp.stats()));
        totals
    }

    /// Switches the event logs on, with room for so many events each, or off.
    pub(super) fn log_events(&mut self, now: Time, most: usize) {
        if most > 0 && self.lanes.is_empty() {
            self.make();
        }
        self.lanes.iter_mut().for_each(|lane| lane.kcp.log_events(now, most));
    }

    /// Bytes of the heap, and those that are kept free so that what has come can be read.
    pub(super) fn memory(&self) -> usize {
        let lane = |lane: &Lane| {
            lane.kcp.memory() + lane.kcp.receive_promised() as usize + lane.kcp.output().memory()
        };
        self.lanes.capacity() * size_of::<Lane>() + self.lanes.iter().map(lane).sum::<usize>()
    }

    pub(super) fn is_stream(&self, lane: usize) -> Result<bool, SendError> {
        let (found, count) = (self.config.lanes.get(lane), self.len());
        found.map(|config| config.stream).ok_or(SendError::NoLane { lane, count })
    }

    /// Takes the segments of a frame, which may take `left` bytes of memory.
    pub(super) fn input(&mut self, now: Time, segments: &[u8], left: u64) -> Result<(), CloseReason> {
        let conv = conv_of(segments).ok_or(CloseReason::Protocol)?;
        let index = conv.0.wrapping_sub(self.conv) as usize;
        if index >= self.len() {
            return Err(CloseReason::Protocol);
        }
        if self.lanes.is_empty() {
            self.make();
        }
        self.make_room(index, left);
        let lane = self.lanes.get_mut(index).ok_or(CloseReason::Protocol)?;
        lane.kcp.input(now, segments).map_err(|error| match error {
            InputError::Fragment { .. } => CloseReason::StreamCorrupt, // a message that would never fit
            _ => CloseReason::Protocol,
        })?;
        let broken = lane.kcp.broken_chains();
        if std::mem::replace(&mut lane.fragment_chains, broken) < broken {
            return Err(CloseReason::StreamCorrupt);
        }
        Ok(())
    }

    /// Makes what is due now, of each lane when what it made before has left. The first frame of all goes into a packet, if there is one:
    /// behind what is in that buffer, which may become so many bytes long. Returns the lane that it is of, if it fits.
    pub(super) fn update(&mut self, now: Time, packet: Option<(&mut Vec<u8>, usize)>) -> Option<usize> {
        self.may_wait = false;
        let (mut packet, mut first) = (packet, None);
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            // What is made behind the first comes behind it.
            if let Some((buffer, end)) = packet.as_mut().filter(|_| first.is_none() && !self.may_wait) {
                let mut ahead = InPacket::new(buffer, *end);
                self.may_wait = lane.update_if_due(now, Some(&mut ahead));
                first = ahead.finish().then_some(index);
            } else {
                self.may_wait |= lane.update_if_due(now, None);
            }
        }
        first
    }

    /// Tells the peer now what has come on lanes that send nothing.
    pub(super) fn acknowledge(&mut self, now: Time) {
        self.may_wait = true;
        for lane in &mut self.lanes {
            if lane.kcp.wait_snd() == 0 && !lane.kcp.is_idle() {
                lane.kcp.acknowledge(now); // nothing comes any more that it could ride with
            }
        }
    }

    /// What a lane has waited for in vain.
    pub(super) fn judge(&mut self, now: Time) -> Result<(), CloseReason> {
        let slow_peer = self.config.slow_peer;
        for lane in &mut self.lanes {
            if lane.kcp.is_dead() {
                return Err(CloseReason::DeadLink);
            }
            if lane.kcp.wait_snd() == 0 || lane.kcp.rmt_wnd() > 0 {
                lane.blocked = None;
                continue;
            }
            let snd_una = lane.kcp.snd_una();
            // A peer that reads slowly opens its window for a moment each time, which may not be when we look.
            match lane.blocked.filter(|(_, una)| *una == snd_una) {
                Some((since, _)) if now.since(since) >= slow_peer => return Err(CloseReason::SlowPeer),
                Some(_) => {}
                None => lane.blocked = Some((now, snd_una)),
            }
        }
        Ok(())
    }

    /// When [`update`](Self::update) or [`judge`](Self::judge) has something to do.
    pub(super) fn check(&self, now: Time) -> Time {
        let due = |lane: &Lane| match lane.blocked {
            Some((since, _)) => lane.kcp.due_at(now).min(since + self.config.slow_peer),
            None => lane.kcp.due_at(now),
        };
        self.lanes.iter().fold(Time::NEVER, |soonest, lane| soonest.min(due(lane)))
    }

    /// Bytes of the next frame of the first lane that has one.
    pub(super) fn next_len(&self) -> Option<usize> {
        if !self.may_wait {
            return None;
        }
        self.lanes.iter().find_map(|lane| lane.kcp.output().next_len())
    }

    /// Takes that frame; returns its lane as well.
    pub(super) fn pop(&mut self) -> Option<(usize, &[u8])> {
        let mut lanes = self.lanes.iter_mut().enumerate();
        let (index, lane) = lanes.find(|(_, lane)| !lane.kcp.output().is_empty())?;
        Some((index, lane.kcp.output_mut().pop()?))
    }

    /// Takes a frame of at most `room` bytes of the last lane that has one, but for those whose bit is set in `except`.
    pub(super) fn pop_last(&mut self, room: usize, except: u32) -> Option<(usize, &[u8])> {
        let has_one = |(index, lane): &(usize, &mut Lane)| {
            except & (1 << index) == 0 && lane.kcp.output().next_len().is_some_and(|len| len <= room)
        };
        let (index, lane) = self.lanes.iter_mut().enumerate().rev().find(has_one)?;
        Some((index, lane.kcp.output_mut().pop()?))
    }

    /// Cuts what is sent from now on for datagrams of so many bytes. What is cut already stays as it is.
    pub(super) fn set_datagram(&mut self, max_datagram: u16) {
        self.max_datagram = max_datagram;
        let mtu = SessionConfig::frame_max(max_datagram);
        for lane in &mut self.lanes {
            let config = Config { mtu, ..*lane.kcp.config() };
            if let Err(error) = lane.kcp.configure(&config) {
                log::error!("a lane that was checked for longer datagrams refuses them: {error}");
            }
        }
    }

    /// The control blocks of lanes that are used.
    pub(super) fn blocks(&mut self) -> impl Iterator<Item = &mut Kcp<DatagramQueue>> {
        self.lanes.iter_mut().map(|lane| &mut lane.kcp)
    }

    /// Segments that are not known to have arrived.
    pub(super) fn unacked(&self) -> usize {
        self.lanes.iter().map(|lane| lane.kcp.wait_snd()).sum()
    }

    pub(super) fn shrink(&mut self) {
        for lane in &mut self.lanes {
            lane.kcp.shrink();
            lane.kcp.output_mut().shrink();
        }
    }
}

/// What each lane has of the memory of all: a share that no other takes, and of the rest what it asked for first.
impl Lanes {
    /// Bytes that the messages of a lane take until they are acknowledged, and how many they may.
    pub(super) fn send_share(&self, index: usize) -> (usize, usize) {
        let held = |lane: &Lane| lane.kcp.send_held();
        if let [lane] = self.lanes.as_slice() {
            return (held(lane), self.config.send_memory as usize);
        }
        let turn_of = |lane: &Lane| lane.wait.as_ref().map_or(Time::NEVER, |wait| wait.turn());
        let turn = self.lanes.get(index).map_or(Time::NEVER, turn_of);
        let (own, most) = self.shares(self.config.send_memory);
        let mut rest = most - own;
        for (other, lane) in self.lanes.iter().enumerate() {
            if other != index {
                let first = lane.wait.as_ref().filter(|wait| (wait.turn(), other) < (turn, index));
                let taken = held(lane) + first.map_or(0, |wait| wait.need as usize);
                rest = rest.saturating_sub(taken.saturating_sub(own));
            }
        }
        (self.lanes.get(index).map_or(0, held), own + rest)
    }

    pub(super) fn send_most(&self) -> usize {
        self.shares(self.config.send_memory).1
    }

    /// What each lane has of `memory` for itself, and what one may take when the others have nothing.
    fn shares(&self, memory: u32) -> (usize, usize) {
        let count = self.len().max(1);
        let own = memory as usize / SHARED / count;
        (own, memory as usize - own * (count - 1))
    }

    /// A lane found no room for so many bytes. Of a lane that is not there, nothing is noted.
    pub(super) fn wait_for_room(&mut self, now: Time, lane: usize, need: usize) {
        let is_stream = self.is_stream(lane).unwrap_or_default();
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        let need = if is_stream { 1 } else { u32::try_from(need).unwrap_or(u32::MAX) }; // more is too long
        let wait = lane.wait.get_or_insert_with(|| Box::new(Wait { need, at: now, is_told: false }));
        wait.need = wait.need.max(need);
        if std::mem::take(&mut wait.is_told) {
            wait.at = now;
        }
    }

    /// Whether a lane that waits has room, of a `memory` that all share, and was not told yet. Who was told and takes nothing waits no more.
    pub(super) fn regain_room(&mut self, now: Time, memory: u64) -> bool {
        let mut any = false;
        for index in 0..self.lanes.len() {
            if self.lanes.get(index).is_none_or(|lane| lane.wait.is_none()) {
                continue;
            }
            let (held, max) = self.send_share(index);
            let Some(Lane { wait: slot, .. }) = self.lanes.get_mut(index) else { continue };
            let Some(wait) = slot else { continue };
            if wait.is_told && wait.at <= now {
                *slot = None;
            } else if !wait.is_told
                && held <= max / 2
                && held + wait.need as usize <= max
                && memory > wait.need.into()
            {
                (wait.at, wait.is_told, any) = (now + KEPT, true, true);
            }
        }
        any
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.lanes.iter().any(|lane| lane.wait.is_some())
    }

    /// Shares `receive_memory` out: each lane has a part of a quarter for itself, and of the rest what the others have left. What
    /// a lane holds already it may hold, and no more than `left` bytes beyond; but one segment it may in any case, whose ACK tells the
    /// peer that the window is closed.
    fn make_room(&mut self, index: usize, left: u64) {
        let mut limit = self.config.receive_memory;
        if self.lanes.len() > 1 {
            let (own, most) = self.shares(limit);
            let [own, most] = [own, most].map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
            limit = most;
            for (other, lane) in self.lanes.iter().enumerate() {
                if other != index {
                    limit = limit.saturating_sub(lane.kcp.receive_reserved().saturating_sub(own));
                }
            }
        }
        if let Some(lane) = self.lanes.get_mut(index) {
            let left = u32::try_from(left).unwrap_or(u32::MAX);
            let most = lane.kcp.receive_reserved().saturating_add(left);
            lane.kcp.set_receive_room(limit.min(most.max(lane.kcp.config().rcv_mtu.into())));
        }
    }
}

/// One part of so many of the memory of all lanes is shared out among them; the rest is for whoever comes first.
const SHARED: usize = 4;
/// How long room is kept for a lane that was told that it has some.
const KEPT: Duration = Duration::from_millis(20);
