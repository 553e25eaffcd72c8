//! One connection: its inputs, what it is known to have, and limits on what it may do.

use super::Counts;
use super::budget::Budget;
use crate::receipts::Receipts;
use crate::sim::{Keys, PlayerId, Refusal};
use crate::wire::{self, Inputs, Message};
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) player: Option<PlayerId>,
    /// The tick of the newest snapshot that it is known to have.
    pub(super) base: Option<u32>,
    /// The tick of each snapshot, by datagram.
    pub(super) receipts: Receipts<u32>,
    pub(super) outbox: VecDeque<Message>,
    pub(super) orders: Budget,
    pub(super) chats: Budget,
    packets: Budget,
    /// The keys held in future ticks.
    inputs: BTreeMap<u32, Keys>,
    /// The last keys held, and the newest tick for which keys were received.
    held: Keys,
    newest: u32,
    /// When it was last told about each refusal.
    told: BTreeMap<u8, u32>,
}

impl Peer {
    pub(super) const fn new(player: Option<PlayerId>) -> Self {
        Self {
            player,
            base: None,
            receipts: Receipts::new(),
            outbox: VecDeque::new(),
            orders: Budget::new(12, 40),
            chats: Budget::new(4, 300),
            packets: Budget::new(60, 3),
            inputs: BTreeMap::new(),
            held: Keys::from_bits(0),
            newest: 0,
            told: BTreeMap::new(),
        }
    }

    /// Takes inputs: all of them or none.
    pub(super) fn receive(&mut self, now: u32, bytes: &[u8], counts: &mut Counts) -> Result<(), Refusal> {
        if !self.packets.spend(now) {
            return Err(Refusal::Flood);
        }
        let packet: Inputs = wire::unpack(bytes).map_err(|_| Refusal::Malformed)?;
        if packet.iter().any(|(tick, _)| tick > now + AHEAD_MAX) {
            return Err(Refusal::Future);
        }
        if packet.is_lost {
            self.base = None;
        }
        // A spectator steers nothing, so nothing would ever use these inputs.
        let steers = packet.iter().filter(|_| self.player.is_some());
        for (tick, keys) in steers {
            if tick <= now {
                counts.late += u64::from(tick > self.newest);
            } else {
                self.inputs.entry(tick).or_insert(keys); // the first input for a tick counts
            }
            self.newest = self.newest.max(tick);
        }
        Ok(())
    }

    /// The keys held in this tick: as received, or else as before, but not forever.
    pub(super) fn keys(&mut self, tick: u32, counts: &mut Counts) -> Keys {
        match self.inputs.remove(&tick) {
            Some(keys) => {
                self.held = keys;
                counts.in_time += 1;
            }
            None if self.newest > 0 => {
                counts.guessed += 1;
                if tick.saturating_sub(self.newest) > HOLD {
                    self.held = Keys::default();
                }
            }
            None => {}
        }
        self.inputs = self.inputs.split_off(&tick);
        self.held
    }

    /// The client has the snapshot of this tick.
    pub(super) fn has(&mut self, tick: u32) {
        self.base = self.base.max(Some(tick));
    }

    /// How many ticks its inputs are ahead of the world.
    pub(super) fn lead(&self, now: u32) -> Option<i8> {
        if self.newest == 0 {
            return None;
        }
        let lead = i64::from(self.newest) - i64::from(now);
        i8::try_from(lead.clamp(-63, 63)).ok()
    }

    /// Queues a message, unless too many are waiting.
    pub(super) fn push(&mut self, message: Message, counts: &mut Counts) {
        if self.outbox.len() < OUTBOX_MAX {
            self.outbox.push_back(message);
        } else {
            counts.dropped += 1;
        }
    }

    /// Whether to tell it about this refusal again.
    pub(super) fn may_be_told(&mut self, refusal: Refusal, now: u32) -> bool {
        let is_time = self.told.get(&refusal.code()).is_none_or(|last| now >= last + TELL_AGAIN);
        if is_time {
            self.told.insert(refusal.code(), now);
        }
        is_time
    }
}

/// Most ticks that an input may be ahead of the world: 1.5 s, more than any playable round trip.
const AHEAD_MAX: u32 = 45;
/// Ticks for which keys count as held when nothing is received.
const HOLD: u32 = 15;
/// Most messages that wait for a client.
const OUTBOX_MAX: usize = 512;
/// Ticks until a player is told about the same refusal again.
const TELL_AGAIN: u32 = 30;
