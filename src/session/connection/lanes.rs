//! Reliable lanes: a KCP control block each, side by side in the datagrams of one session.

mod room;

use super::super::config::SessionConfig;
use super::super::event::CloseReason;
use super::super::stats::LaneTotals;
use crate::arq::{Config, InputError, Kcp, KcpEvent, KcpSendError, RecvError};
use crate::config::ConfigError;
use crate::events::Logged;
use crate::seq::{Conv, Sn};
use crate::time::Time;
use crate::wire::{Ahead, DatagramQueue, InPacket, conv_of};
use room::Wait;
use std::sync::Arc;

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
    config: Arc<SessionConfig>,
    /// Made when the first of them is used: most sessions of a big server are idle.
    lanes: Vec<Lane>,
}

#[derive(Debug)]
struct Lane {
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

impl Lane {
    /// Makes what is due; whether something waits that has not left.
    fn update_if_due(&mut self, now: Time, ahead: &mut impl Ahead) -> bool {
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
    pub(super) fn new(
        conv: u32,
        config: &Arc<SessionConfig>,
        max_datagram: u16,
    ) -> Result<Self, ConfigError> {
        for lane in &config.lanes {
            config.lane(lane, max_datagram).check()?;
        }
        Ok(Self {
            conv,
            max_datagram,
            may_wait: false,
            is_awaited: false,
            config: Arc::clone(config),
            lanes: Vec::new(),
        })
    }

    pub(super) fn config(&self) -> &SessionConfig {
        &self.config
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
    fn make(&mut self) {
        let mut lanes = Vec::with_capacity(self.len());
        lanes.extend((0..self.len()).map_while(|lane| self.fresh(lane)));
        self.lanes = lanes;
        (0..self.lanes.len()).for_each(|index| self.make_room(index, u64::MAX));
    }

    pub(super) fn send(&mut self, lane: usize, message: &[u8]) -> Option<Result<usize, KcpSendError>> {
        if self.lanes.is_empty() {
            self.make();
        }
        let lane = self.lanes.get_mut(lane)?;
        let sent = lane.kcp.send(message);
        if let Err(KcpSendError::QueueFull { .. }) = sent {
            (lane.was_full, self.is_awaited) = (true, true);
        }
        if lane.wait.as_ref().is_some_and(|wait| sent.is_ok() && message.len() >= wait.need as usize) {
            lane.wait = None;
        }
        Some(sent)
    }

    pub(super) fn send_end(&mut self, lane: usize) -> Option<Result<(), KcpSendError>> {
        if self.lanes.is_empty() {
            self.make();
        }
        let lane = self.lanes.get_mut(lane)?;
        let sent = lane.kcp.send_end();
        lane.was_full |= sent.is_err();
        self.is_awaited |= sent.is_err();
        Some(sent)
    }

    /// Whether every peer's window is open.
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

    pub(super) fn recv(&mut self, lane: usize, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.lanes.get_mut(lane).ok_or(RecvError::NoMessage)?.kcp.recv(buf)
    }

    pub(super) fn peek_size(&self, lane: usize) -> Option<usize> {
        self.lanes.get(lane)?.kcp.peek_size()
    }

    /// Looks at a lane, used or not.
    pub(super) fn look<T>(&self, lane: usize, at: impl FnOnce(&Kcp<DatagramQueue>) -> T) -> Option<T> {
        if self.lanes.is_empty() {
            return self.fresh(lane).map(|lane| at(&lane.kcp));
        }
        self.lanes.get(lane).map(|lane| at(&lane.kcp))
    }

    pub(super) fn is_readable(&self) -> bool {
        self.lanes.iter().any(|lane| lane.kcp.is_readable())
    }

    pub(super) fn len(&self) -> usize {
        self.config.lanes.len()
    }

    /// What all lanes have counted and hold.
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

    /// Gives what the lanes have logged.
    pub(super) fn pop_logs(&mut self, mut each: impl FnMut(u16, Logged<KcpEvent>)) {
        for (index, lane) in (0..).zip(&mut self.lanes) {
            while let Some(logged) = lane.kcp.poll_log() {
                each(index, logged);
            }
        }
    }

    /// Bytes of the heap, and those that are kept free so that what has come can be read.
    pub(super) fn memory(&self) -> usize {
        let lane = |lane: &Lane| {
            lane.kcp.memory() + lane.kcp.receive_promised() as usize + lane.kcp.output().memory()
        };
        self.lanes.capacity() * size_of::<Lane>() + self.lanes.iter().map(lane).sum::<usize>()
    }

    /// Whether a lane is a stream of bytes; `None`: there is no such lane.
    pub(super) fn is_stream(&self, lane: usize) -> Option<bool> {
        Some(self.config.lanes.get(lane)?.stream)
    }

    /// Takes the segments of a frame, which may take `left` bytes of memory.
    pub(super) fn input(&mut self, now: Time, segments: &[u8], left: u64) -> Result<(), CloseReason> {
        let conv = conv_of(segments).ok_or(CloseReason::Protocol)?;
        let index = usize::try_from(conv.0.wrapping_sub(self.conv)).map_err(|_| CloseReason::Protocol)?;
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

    /// Makes what is due now, of each lane when what it made before has left.
    pub(super) fn update(&mut self, now: Time) {
        self.may_wait = false;
        for lane in &mut self.lanes {
            self.may_wait |= lane.update_if_due(now, &mut ());
        }
    }

    /// The same where no lane has made anything before. The first frame of all goes into a packet, behind what is in `buffer`, which may
    /// become `end` bytes long; returns the lane that it is of, if it fits.
    pub(super) fn update_into(&mut self, now: Time, buffer: &mut Vec<u8>, end: usize) -> Option<usize> {
        self.may_wait = false;
        let mut lanes = self.lanes.iter_mut().enumerate();
        let mut first = None;
        for (index, lane) in &mut lanes {
            let mut packet = InPacket::new(buffer, end);
            self.may_wait = lane.update_if_due(now, &mut packet);
            first = packet.finish().then_some(index);
            if first.is_some() || self.may_wait {
                break; // what is made from here on comes behind that
            }
        }
        for (_, lane) in lanes {
            self.may_wait |= lane.update_if_due(now, &mut ());
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
                Some((since, _)) if now.since(since) >= slow_peer => {
                    return Err(CloseReason::SlowPeer);
                }
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
    pub(super) fn used(&mut self) -> impl Iterator<Item = &mut Kcp<DatagramQueue>> {
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

#[cfg(test)]
impl Lanes {
    /// Begins the lanes anew at other numbers than 0.
    pub(super) fn start_at(&mut self, config: &SessionConfig, snd: Sn, rcv: Sn) {
        self.make();
        for (index, (lane, knobs)) in (0..).zip(self.lanes.iter_mut().zip(&config.lanes)) {
            let knobs = config.lane(knobs, config.max_datagram);
            let conv = Conv(self.conv.wrapping_add(index));
            lane.kcp = Kcp::starting_at(conv, &knobs, DatagramQueue::new(), snd, rcv).unwrap();
        }
    }
}
