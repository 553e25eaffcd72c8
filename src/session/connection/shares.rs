//! How the channels that KCP carries share memory: each has a share of its own, and the rest is first come, first
//! served.

use super::lane::{Lane, Wait};
use super::lanes::Lanes;
use crate::time::Time;
use std::time::Duration;

impl Lanes {
    /// Bytes of a channel's unacknowledged messages, and how many they may be.
    pub(super) fn send_share(&self, channel: u8) -> (usize, usize) {
        if let [lane] = self.lanes.as_slice()
            && self.config.channels.len() == 1
        {
            return (lane.held(), self.config.send_memory as usize);
        }
        let turn_of = |lane: &Lane| lane.wait.as_ref().map_or(Time::NEVER, |wait| wait.turn());
        let turn = self.get(channel).map_or(Time::NEVER, turn_of);
        let (own, most) = self.shares(self.config.send_memory);
        let mut rest = most - own;
        for lane in &self.lanes {
            if lane.channel != channel {
                let first = lane.wait.as_ref().filter(|wait| (wait.turn(), lane.channel) < (turn, channel));
                let taken = lane.held() + first.map_or(0, |wait| wait.room(self.is_stream(lane.channel)));
                rest = rest.saturating_sub(taken.saturating_sub(own));
            }
        }
        (self.get(channel).map_or(0, Lane::held), own + rest)
    }

    pub(super) fn send_most(&self) -> usize {
        self.shares(self.config.send_memory).1
    }

    /// Each lane's own share of `memory`, and what a lane may use when the others use nothing.
    fn shares(&self, memory: u32) -> (usize, usize) {
        let count = self.len().max(1);
        let own = memory as usize / SHARED / count;
        (own, memory as usize - own * (count - 1))
    }

    /// Notes that a channel found no room for `need` bytes.
    pub(super) fn wait_for_room(&mut self, now: Time, channel: u8, need: usize) {
        let Some(lane) = self.used(channel) else { return };
        let need = u32::try_from(need).unwrap_or(u32::MAX); // more is too long
        let wait = lane.wait.get_or_insert_with(|| Box::new(Wait { need, at: now, is_told: false }));
        wait.need = wait.need.max(need);
        if std::mem::take(&mut wait.is_told) {
            wait.at = now;
        }
    }

    /// Whether a waiting lane has room now, in the shared `memory`, and was not told yet. A lane that was told and
    /// takes nothing stops waiting.
    pub(super) fn regain_room(&mut self, now: Time, memory: u64) -> bool {
        let mut any = false;
        for index in 0..self.lanes.len() {
            let Some(channel) =
                self.lanes.get(index).filter(|lane| lane.wait.is_some()).map(|lane| lane.channel)
            else {
                continue;
            };
            let (held, max) = self.send_share(channel);
            let is_stream = self.is_stream(channel);
            let Some(lane) = self.lanes.get_mut(index) else { continue };
            let has_place = lane.needs == 0 || lane.has_half_room();
            let Lane { wait: slot, needs, .. } = lane;
            let Some(wait) = slot else { continue };
            if wait.is_told && wait.at <= now {
                *slot = None;
            } else if !wait.is_told
                && has_place
                && held <= max / 2
                && held + wait.room(is_stream) <= max
                && memory > wait.need.into()
            {
                (wait.at, wait.is_told, *needs, any) = (now + KEPT, true, 0, true);
            }
        }
        any
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.lanes.iter().any(|lane| lane.wait.is_some())
    }

    /// Sets how much a lane may receive. Each lane has its part of a quarter of `receive_memory`, and of the rest
    /// what the others have left. It may keep what it holds, and take at most `left` bytes more. One segment is
    /// always allowed: its ACK tells the peer that the window is closed. Returns whether `left` is the limit.
    pub(super) fn make_room(&mut self, index: usize, left: u64) -> bool {
        let mut limit = self.config.receive_memory;
        if self.config.channels.len() > 1 {
            let (own, most) = self.receive_shares();
            let beyond = |lane: &Lane| lane.kcp.receive_reserved().saturating_sub(own);
            let sum = || self.lanes.iter().fold(0, |sum: u32, lane| sum.saturating_add(beyond(lane)));
            let all = self.beyond_shares.unwrap_or_else(sum);
            self.beyond_shares = Some(all);
            let others = all.saturating_sub(self.lanes.get(index).map_or(0, beyond));
            limit = most.saturating_sub(others);
        }
        let Some(lane) = self.lanes.get_mut(index) else { return false };
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let most = lane.kcp.receive_reserved().saturating_add(left).max(lane.kcp.config().rcv_mtu.into());
        lane.kcp.set_receive_room(limit.min(most));
        most < limit
    }

    /// Notes that a lane reserved this much before a frame, and reserves that much after it.
    pub(super) fn note_reserved(&mut self, (before, after): (u32, u32)) {
        if before == after {
            return;
        }
        let (own, _) = self.receive_shares();
        if let Some(all) = &mut self.beyond_shares {
            *all = all.saturating_sub(before.saturating_sub(own)).saturating_add(after.saturating_sub(own));
        }
    }

    fn receive_shares(&self) -> (u32, u32) {
        let (own, most) = self.shares(self.config.receive_memory);
        let [own, most] = [own, most].map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        (own, most)
    }
}

/// The shared memory divided by this is split into the lanes' own shares; the rest is first come, first served.
const SHARED: usize = 4;
/// How long room is reserved for a lane that was told that it has some.
const KEPT: Duration = Duration::from_millis(20);
