//! The channels that KCP carries: one control block each, sharing the datagrams of one session.

use super::lane::Lane;
use super::large::{Joined, Left};
use crate::channel::ChannelConfig;
use crate::config::ConfigError;
use crate::kcp::{Config, InputError, Kcp, PathHint};
use crate::seq::{Conv, Sn};
use crate::session::config::SessionConfig;
use crate::session::event::CloseReason;
use crate::session::repair::BareLanes;
use crate::session::stats::KcpTotals;
use crate::time::Time;
use crate::wire::compact::{self, CompactError, Compactor};
use crate::wire::{DatagramQueue, InPacket};
use std::sync::Arc;

/// The lanes of one end: one for each channel that is used. The conv of channel n is that of the session + n, and
/// wraps. The session authenticates everything, so a conv only tells channels apart.
#[derive(Debug)]
pub(super) struct Lanes {
    pub(super) conv: u32,
    /// Longest datagram. Segments are cut to fit into it.
    pub(super) max_datagram: u16,
    /// A lane may have frames that have not left.
    may_wait: bool,
    /// An acknowledgement came so early that it is a lie, or the path has become shorter.
    pub(super) is_surprised: bool,
    /// Whether the path loses nothing.
    pub(super) is_lossless: bool,
    /// The user may wait for a lane to become [writable](Self::became_writable).
    pub(super) is_awaited: bool,
    /// Channels that may have a lane.
    count: u8,
    /// What lanes hold beyond their own shares of `receive_memory`, summed up once for all frames of a datagram.
    pub(super) beyond_shares: Option<u32>,
    pub(super) bare: BareLanes,
    pub(super) config: Arc<SessionConfig>,
    /// By channel. Each is created when it is first used, since most sessions of a big server are idle.
    pub(super) lanes: Vec<Lane>,
}

impl Lanes {
    pub(super) fn new(conv: u32, config: Arc<SessionConfig>, max_datagram: u16) -> Result<Self, ConfigError> {
        let mut channels = config.channels.iter();
        channels.try_for_each(|channel| config.lane(channel, max_datagram).check())?;
        let count = config.channels.iter().filter(|channel| has_lane(channel)).count();
        Ok(Self {
            conv,
            max_datagram,
            may_wait: false,
            is_surprised: false,
            is_lossless: false,
            is_awaited: false,
            count: u8::try_from(count).unwrap_or(u8::MAX),
            beyond_shares: None,
            bare: BareLanes::of(&config),
            config,
            lanes: Vec::new(),
        })
    }

    /// A new lane for a channel, if the channel has one.
    fn fresh(&self, channel: u8) -> Option<Lane> {
        let of = self.config.channels.get(usize::from(channel)).filter(|of| has_lane(of))?;
        let config = self.config.lane(of, self.max_datagram);
        let conv = self.conv.wrapping_add(channel.into());
        let kcp = Kcp::new(Conv(conv), &config, config.datagram_queue());
        let mut kcp = kcp.inspect_err(|error| log::error!("channels that were checked: {error}")).ok()?;
        kcp.set_ack_ride();
        Some(Lane {
            channel,
            kcp,
            compactor: Compactor::default(),
            large: None,
            blocked: Time::NEVER,
            blocked_at: Sn(0),
            starved: Time::NEVER,
            needs: 0,
            is_next_whole: false,
            is_asked: false,
            wait: None,
        })
    }

    #[cold]
    fn make(&mut self, channel: u8) -> Option<&mut Lane> {
        let lane = self.fresh(channel)?;
        let at = self.lanes.partition_point(|lane| lane.channel < channel);
        if self.lanes.capacity() == 0 {
            self.lanes.reserve_exact(1); // most sessions use one
        }
        self.lanes.insert(at, lane);
        self.beyond_shares = None;
        self.make_room(at, u64::MAX);
        self.lanes.get_mut(at)
    }

    pub(super) fn position(&self, channel: u8) -> Option<usize> {
        match self.lanes.first() {
            Some(lane) if lane.channel == channel => Some(0), // mostly
            _ => self.lanes.binary_search_by_key(&channel, |lane| lane.channel).ok(),
        }
    }

    pub(super) fn get(&self, channel: u8) -> Option<&Lane> {
        self.lanes.get(self.position(channel)?)
    }

    pub(super) fn get_mut(&mut self, channel: u8) -> Option<&mut Lane> {
        let index = self.position(channel)?;
        self.lanes.get_mut(index)
    }

    /// The lane of a channel, created if needed; `None`: the channel has none.
    pub(super) fn used(&mut self, channel: u8) -> Option<&mut Lane> {
        match self.position(channel) {
            Some(at) => self.lanes.get_mut(at),
            None => self.make(channel),
        }
    }

    pub(super) fn are_open(&self) -> bool {
        self.lanes.iter().all(|lane| lane.kcp.rmt_wnd() > 0)
    }

    /// Whether nothing of a channel is in flight. Also true if the channel was never used.
    pub(super) fn is_delivered(&mut self, channel: u8) -> bool {
        let Some(lane) = self.get_mut(channel) else { return true };
        lane.is_asked = !lane.is_idle();
        let is_asked = lane.is_asked;
        self.is_awaited |= is_asked;
        !is_asked
    }

    /// Whether a lane has room or has delivered everything, and its user waits for that. Says so once.
    pub(super) fn became_writable(&mut self) -> bool {
        if !self.is_awaited {
            return false;
        }
        let any = self.lanes.iter_mut().fold(false, |any, lane| lane.became_writable() | any);
        self.is_awaited = self.lanes.iter().any(|lane| lane.needs > 0 || lane.is_asked);
        any
    }

    /// Calls `at` with the control block of a channel, used or not; `None`: it has none.
    pub(super) fn look<T>(&self, channel: u8, at: impl Fn(&Kcp<DatagramQueue>) -> T) -> Option<T> {
        match self.get(channel) {
            Some(lane) => Some(at(&lane.kcp)),
            None => self.fresh(channel).map(|lane| at(&lane.kcp)),
        }
    }

    /// Whether a lane has a message of a channel to read.
    pub(super) fn has_message(&self, channel: u8) -> bool {
        self.get(channel).is_some_and(Lane::is_readable)
    }

    /// Channels that may have a lane.
    pub(super) fn len(&self) -> usize {
        self.count.into()
    }

    pub(super) fn totals(&self) -> KcpTotals {
        let mut totals = KcpTotals::default();
        self.lanes.iter().for_each(|lane| totals.add(&lane.kcp.stats()));
        totals
    }

    /// Switches the event logs on, with room for `most` events each; 0 switches them off.
    pub(super) fn log_events(&mut self, now: Time, most: usize) {
        for channel in (0..).take(self.config.channels.len()) {
            if let Some(lane) = if most > 0 { self.used(channel) } else { self.get_mut(channel) } {
                lane.kcp.log_events(now, most);
            }
        }
    }

    /// Bytes on the heap, and those reserved so that arriving messages can be completed.
    pub(super) fn memory(&self) -> usize {
        let lane = |lane: &Lane| {
            let large = lane.large.as_ref().map_or(0, |large| large.memory());
            lane.kcp.memory() + lane.kcp.receive_promised() as usize + lane.kcp.output().memory() + large
        };
        self.lanes.capacity() * size_of::<Lane>() + self.lanes.iter().map(lane).sum::<usize>()
    }

    /// Bytes that no longer wait for an acknowledgement, or to be read or joined. It wraps.
    pub(super) fn moved(&self) -> u32 {
        self.lanes.iter().fold(0, |moved: u32, lane| moved.wrapping_add(lane.kcp.moved()))
    }

    /// Since when data has arrived that there is no memory for. `in_turn`: long messages that wait for their turn do not
    /// count.
    pub(super) fn starved(&self, in_turn: bool) -> Option<Time> {
        let counts = |(index, _): &(usize, &Lane)| !(in_turn && self.waits_its_turn(*index));
        let since = self.lanes.iter().enumerate().filter(counts).map(|(_, lane)| lane.starved).min()?;
        (since != Time::NEVER).then_some(since)
    }

    /// Whether a lane is in the middle of a long message, and one before it as well.
    fn waits_its_turn(&self, index: usize) -> bool {
        let (before, after) = self.lanes.split_at_checked(index).unwrap_or_default();
        after.first().is_some_and(Lane::is_joining) && before.iter().any(Lane::is_joining)
    }

    /// Bytes of memory that a lane may use. Long messages that share what is for one would all wait for their rest.
    pub(super) fn left_for(&self, index: usize, left: Left) -> u64 {
        let Left { bytes, alone } = left;
        if alone > 0 && self.waits_its_turn(index) { bytes.saturating_sub(alone) } else { bytes }
    }

    /// Restarts the wait of data that has found no room.
    pub(super) fn restart_starved(&mut self, now: Time) {
        let starved = self.lanes.iter_mut().filter(|lane| lane.starved != Time::NEVER);
        starved.for_each(|lane| lane.starved = now);
    }

    /// Frees the parts of incomplete messages, and waits for no more of them. Returns whether there were any.
    pub(super) fn drop_joining(&mut self) -> bool {
        let mut any = false;
        for lane in &mut self.lanes {
            lane.starved = Time::NEVER;
            any |= lane.large.as_mut().is_some_and(|large| large.drop_joining());
        }
        any
    }

    /// Writes a frame's segments with whole headers, at most `most` bytes of them. Returns the index of their lane, which
    /// [`input`](Self::input) gives them to.
    #[inline]
    pub(super) fn expand(
        &mut self,
        now: Time,
        (segments, is_rebuilt): (&[u8], bool),
        most: usize,
        expanded: &mut Vec<u8>,
    ) -> Result<usize, CompactError> {
        let channel = compact::channel_of(segments)?;
        self.used(channel).ok_or(CompactError::Channel)?;
        let index = self.position(channel).ok_or(CompactError::Channel)?;
        let lane = self.lanes.get(index).ok_or(CompactError::Channel)?;
        expanded.clear();
        let echo = |sn, token| lane.kcp.echo(now, sn, token);
        compact::expand(segments, &lane.known(is_rebuilt), echo, most, expanded)?;
        Ok(index)
    }

    /// Takes the segments of a frame, which may use what is `left` of the memory. Returns how many bytes they use, and the
    /// channel if it has a message.
    #[inline]
    pub(super) fn input(
        &mut self,
        now: Time,
        (index, segments): (usize, &[u8]),
        left: Left,
    ) -> Result<(usize, Joined, Option<u8>), CloseReason> {
        let left = self.left_for(index, left);
        let is_short = self.make_room(index, left);
        let channel = self.lanes.get(index).ok_or(CloseReason::Protocol)?.channel;
        let max = self.message_max(channel);
        let lane = self.lanes.get_mut(index).ok_or(CloseReason::Protocol)?;
        let (before, chains, held) =
            (lane.kcp.received_up_to(), lane.kcp.broken_chains(), lane.kcp.receive_memory());
        let reserved = lane.kcp.receive_reserved();
        lane.kcp.input(now, segments).map_err(|error| match error {
            InputError::Fragment { .. } => CloseReason::StreamCorrupt, // a message that would never fit
            _ => CloseReason::Protocol,
        })?;
        if lane.kcp.broken_chains() != chains {
            return Err(CloseReason::StreamCorrupt);
        }
        self.is_surprised |= lane.kcp.take_surprise();
        let grown = lane.kcp.receive_memory().saturating_sub(held);
        lane.feed(); // else nothing would be due once everything KCP had has arrived
        if is_short || lane.starved != Time::NEVER {
            lane.note_room(now, is_short, before);
        }
        let joined = lane.join(max, left)?;
        let readable = lane.is_readable().then_some(channel);
        let reserved = (reserved, lane.kcp.receive_reserved());
        self.note_reserved(reserved);
        Ok((grown, joined, readable))
    }

    /// Makes what is due now on each lane whose earlier frames have left. If there is a `packet`, the first frame
    /// goes straight into it, behind what is in the buffer, which may grow to the given length. Returns the channel
    /// of that frame, if it fits, and its length with whole headers. `path` is what the session knows.
    #[inline]
    pub(super) fn update(
        &mut self,
        now: Time,
        path: PathHint,
        packet: Option<(&mut Vec<u8>, usize)>,
    ) -> Option<(u8, usize)> {
        self.may_wait = false;
        let (mut packet, mut first) = (packet, None);
        for lane in &mut self.lanes {
            // Later frames stay behind the first.
            if let Some((buffer, end)) = packet.as_mut().filter(|_| first.is_none() && !self.may_wait) {
                let mut ahead = InPacket::new(buffer, *end);
                self.may_wait = lane.update_if_due(now, path, Some(&mut ahead));
                let Lane { compactor, channel, .. } = lane;
                let mut len = 0;
                let is_written = ahead.finish(|segments| {
                    len = segments.len();
                    compactor.compact(*channel, segments)
                });
                first = is_written.then_some((*channel, len));
            } else {
                self.may_wait |= lane.update_if_due(now, path, None);
            }
        }
        first
    }

    /// Acknowledges now what has arrived on lanes that send nothing.
    pub(super) fn acknowledge(&mut self, now: Time) {
        self.may_wait = true;
        for lane in &mut self.lanes {
            if lane.kcp.wait_snd() == 0 && !lane.kcp.is_idle() {
                lane.kcp.acknowledge(now); // no data comes that it could ride with
            }
        }
    }

    /// Fails if a lane has waited too long for its peer.
    pub(super) fn judge(&mut self, now: Time) -> Result<(), CloseReason> {
        let slow_peer = self.config.slow_peer;
        for lane in &mut self.lanes {
            if lane.kcp.is_dead() {
                return Err(CloseReason::DeadLink);
            }
            if lane.kcp.wait_snd() == 0 || lane.kcp.rmt_wnd() > 0 {
                lane.blocked = Time::NEVER;
                continue;
            }
            let snd_una = lane.kcp.snd_una();
            // A peer that reads slowly opens its window only for moments, which we may miss.
            if lane.blocked == Time::NEVER || lane.blocked_at != snd_una {
                (lane.blocked, lane.blocked_at) = (now, snd_una);
            } else if now.since(lane.blocked) >= slow_peer {
                return Err(CloseReason::SlowPeer);
            }
        }
        Ok(())
    }

    /// When [`update`](Self::update) or [`judge`](Self::judge) has something to do.
    pub(super) fn check(&self, now: Time) -> Time {
        let due = |lane: &Lane| match lane.blocked {
            Time::NEVER => lane.kcp.due_at(now),
            since => lane.kcp.due_at(now).min(since + self.config.slow_peer),
        };
        self.lanes.iter().fold(Time::NEVER, |soonest, lane| soonest.min(due(lane)))
    }

    /// Whether a channel carries a long message, or has more to send than anybody needs at once.
    pub(super) fn is_bulk(&self, channel: u8) -> bool {
        let is_bulk = |lane: &Lane| lane.kcp.wait_snd() > BULK || lane.waiting() > 0;
        self.get(channel).is_some_and(is_bulk)
    }

    /// Bytes of the next frame of the first lane that has one.
    pub(super) fn next_frame(&self) -> Option<usize> {
        if !self.may_wait {
            return None;
        }
        self.lanes.iter().find_map(|lane| lane.kcp.output().next_len())
    }

    /// Takes that frame with compact headers; returns its channel as well.
    pub(super) fn pop(&mut self) -> Option<(u8, &[u8])> {
        self.lanes.iter_mut().find(|lane| !lane.kcp.output().is_empty())?.pop()
    }

    /// Takes a frame of at most `room` bytes of the last channel that has one, except channels whose bit is set in
    /// `except`. Returns its length with whole headers, its channel and its segments.
    pub(super) fn pop_last(&mut self, room: usize, except: u64) -> Option<(usize, u8, &[u8])> {
        let has_one = |lane: &&mut Lane| {
            except & (1 << lane.channel) == 0 && lane.kcp.output().next_len().is_some_and(|len| len <= room)
        };
        let lane = self.lanes.iter_mut().rev().find(has_one)?;
        let len = lane.kcp.output().next_len()?;
        let (channel, segments) = lane.pop()?;
        Some((len, channel, segments))
    }

    /// From now on, cuts segments for datagrams of at most this many bytes. Existing segments stay as they are.
    pub(super) fn set_datagram(&mut self, max_datagram: u16) {
        self.max_datagram = max_datagram;
        let mtu = SessionConfig::frame_max(max_datagram);
        for lane in &mut self.lanes {
            let config = Config { mtu, ..*lane.kcp.config() };
            if let Err(error) = lane.kcp.configure(&config) {
                log::error!("KCP of a channel refuses datagrams of a length that was checked: {error}");
            }
        }
    }

    /// The control blocks that are used, with their channels.
    pub(super) fn blocks(&mut self) -> impl Iterator<Item = (u8, &mut Kcp<DatagramQueue>)> {
        self.lanes.iter_mut().map(|lane| (lane.channel, &mut lane.kcp))
    }

    /// Segments that have not arrived as far as the peer has said.
    pub(super) fn undelivered(&self) -> usize {
        self.lanes.iter().map(|lane| lane.kcp.undelivered()).sum()
    }

    /// The same of a channel, and its long messages that are not segments yet.
    #[cfg(feature = "tokio")]
    pub(super) fn unacked_of(&self, channel: u8) -> usize {
        self.get(channel).map_or(0, |lane| lane.kcp.wait_snd() + lane.waiting())
    }

    /// Long messages that are not completely segments yet, without those of each channel that are `counted` already.
    pub(super) fn waiting(&self, counted: impl Fn(u8) -> usize) -> usize {
        self.lanes.iter().map(|lane| lane.waiting().saturating_sub(counted(lane.channel))).sum()
    }

    pub(super) fn shrink(&mut self) {
        for lane in &mut self.lanes {
            lane.large.take_if(|large| large.is_empty());
            lane.kcp.shrink();
            lane.kcp.output_mut().shrink();
        }
    }
}

/// Whether KCP may carry anything of a channel: all of it, or what is too long for packets.
fn has_lane(channel: &ChannelConfig) -> bool {
    channel.channel.kind().is_reliable()
}

/// Segments that a channel may have under way or waiting before its data counts as bulk: 18 kB.
const BULK: usize = 16;
