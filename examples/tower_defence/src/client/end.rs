//! A client: what has arrived, what is due, what is to be sent.

use super::clock::{Clock, TICK};
use super::figures::{Measured, Path};
use super::held::Held;
use super::news::News;
use super::past::Past;
use super::prediction::Prediction;
use super::smooth::Smooth;
use super::{Command, View};
use crate::sim::{Keys, PlayerId, Point, Role, World};
use crate::wire::{self, AGE_MAX, CHAT_MAX, Message, ReadError, Snapshot};
use std::collections::{BTreeMap, VecDeque};
use whitewater::Time;

/// A player's end of the game.
#[derive(Debug)]
pub struct Client {
    pub(super) clock: Clock,
    pub(super) held: Held,
    pub(super) prediction: Option<Prediction>,
    pub(super) past: Past,
    pub(super) smooth: Smooth,
    pub(super) news: News,
    pub(super) measured: Measured,
    pub(super) now: Time,
    pub(super) heard: Option<Time>,
    /// The newest snapshots by tick, as bases of later ones.
    snapshots: BTreeMap<u32, World>,
    /// The keys held.
    keys: Keys,
    /// Position of the own runner a tick ago.
    pub(super) before: Option<Point>,
    outbox: VecDeque<Message>,
    /// A snapshot could not be read, because its base is missing.
    is_lost: bool,
    has_packet: bool,
    /// Another server goes on with the match, and has not sent a snapshot yet.
    is_moving: bool,
    unreadable: u64,
    samples: Vec<Sample>,
}

/// A measurement, for [`Client::take_samples`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// A snapshot has arrived: its bytes.
    Snapshot(usize),
    /// Distance between a snapshot and our prediction, cells.
    Error(f32),
    /// The time from an input to the snapshot with its effect.
    Effect(std::time::Duration),
}

impl Client {
    /// A client that has received nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            clock: Clock::default(),
            held: Held::new(),
            prediction: None,
            past: Past::default(),
            smooth: Smooth::default(),
            news: News::default(),
            measured: Measured::default(),
            now: Time::ZERO,
            heard: None,
            snapshots: BTreeMap::new(),
            keys: Keys::default(),
            before: None,
            outbox: VecDeque::new(),
            is_lost: false,
            has_packet: false,
            is_moving: false,
            unreadable: 0,
            samples: Vec::new(),
        }
    }

    /// Another server goes on with the match, maybe from an earlier tick, and this client joins it. Until it sends a snapshot,
    /// the screen goes on with what is predicted. Orders that were not decided are given again.
    pub fn move_on(&mut self) {
        self.is_moving = true;
        self.snapshots.clear();
        self.held = Held::new();
        self.outbox.retain(|message| !matches!(message, Message::Order { .. }));
        if let Some(prediction) = &mut self.prediction {
            let orders = prediction.renumber().map(|(number, order)| Message::Order { number, order });
            self.outbox.extend(orders);
        }
    }

    /// When a snapshot has arrived last.
    #[must_use]
    pub const fn heard(&self) -> Option<Time> {
        self.heard
    }

    /// What the session has measured.
    pub fn set_path(&mut self, now: Time, path: Path) {
        self.clock.set_path(path);
        self.measured.set_path(now, path);
    }

    /// Takes an unreliable packet: a snapshot. Other packets change nothing.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn receive(&mut self, now: Time, bytes: &[u8]) -> Result<(), ReadError> {
        let read = wire::read(bytes, self.you(), |tick| self.snapshots.get(&tick));
        self.is_lost |= read.as_ref().is_err_and(|error| *error == ReadError::NoBase);
        self.unreadable += u64::from(matches!(read, Err(ReadError::Bits(_))));
        let Snapshot { head, world } = read?;
        self.is_lost &= head.age.is_some();
        self.measured.snapshots += 1;
        self.measured.snapshot_bytes = bytes.len();
        self.samples.push(Sample::Snapshot(bytes.len()));
        self.heard = Some(now);
        let newest = self.snapshots.keys().next_back().copied();
        if std::mem::take(&mut self.is_moving) {
            self.start_from(head.you, &world);
        }
        self.past.push(&world);
        self.remember(world.clone());
        if newest.is_some_and(|newest| head.tick <= newest && self.prediction.is_some()) {
            return Ok(()); // overtaken: it may be a base, but not the current state
        }
        self.clock.on_snapshot(now, head.tick, head.lead);
        if let Some(lead) = head.lead {
            let newest = head.tick.saturating_add_signed(lead.into());
            let effects = self.held.effects(head.tick, newest).map(|given| Sample::Effect(now.since(given)));
            self.samples.extend(effects);
        }
        self.reconcile(now, head.you, world);
        let excess = self.samples.len().saturating_sub(SAMPLES_MAX);
        self.samples.drain(..excess); // nobody collects them
        Ok(())
    }

    /// Takes a message of the reliable channel.
    pub fn take(&mut self, message: Message) {
        self.news.take(message);
    }

    /// A datagram has arrived, and with it its packet.
    pub fn delivered(&mut self, datagram: u64) {
        self.held.delivered(datagram);
    }

    /// Lets time pass: runs the ticks that are due.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        let (Some(prediction), Some(ahead)) = (&mut self.prediction, self.clock.ahead(now)) else { return };
        let due = u32::try_from(ahead / TICK).unwrap_or_default();
        let tick = prediction.predicted().tick;
        if due.abs_diff(tick) > JUMP {
            let limit = prediction.confirmed().tick + JUMP; // do not predict too far
            prediction.jump(due.min(limit), &self.held);
            self.before = None;
            return;
        }
        for tick in tick + 1..=due {
            let you = prediction.you();
            self.before = you.and_then(|you| prediction.predicted().runner(you)).map(|runner| runner.at);
            self.held.push(tick, self.keys, now);
            prediction.advance(self.keys);
            self.smooth.fade();
            self.has_packet = true;
        }
    }

    /// Writes the packet that is due into `bytes`, replacing their content, then call [`sent`](Self::sent). `false`:
    /// none is due.
    pub fn packet(&mut self, bytes: &mut Vec<u8>) -> bool {
        if !std::mem::take(&mut self.has_packet) && !self.is_lost {
            return false;
        }
        let is_runner = self.role() == Some(Role::Runner);
        if !is_runner && !self.is_lost {
            return false; // builders and spectators hold no keys
        }
        if self.is_moving {
            return false; // their ticks are those of a server that is gone
        }
        let word = self.prediction.as_ref().map_or(0, |prediction| prediction.confirmed().tick);
        let mut packet = self.held.packet(word);
        packet.is_lost = std::mem::take(&mut self.is_lost);
        wire::pack(&packet, bytes).is_ok()
    }

    /// Notes the datagram that carries the last packet.
    pub fn sent(&mut self, datagram: u64) {
        self.held.sent(datagram);
    }

    /// The next message for the reliable channel.
    #[must_use]
    pub fn next_message(&self) -> Option<&Message> {
        self.outbox.front()
    }

    /// Takes the next message for the reliable channel.
    pub fn pop_message(&mut self) -> Option<Message> {
        self.outbox.pop_front()
    }

    /// Takes a command. Commands beyond the limit of waiting messages are dropped.
    pub fn command(&mut self, command: Command) {
        let has_room = self.outbox.len() < OUTBOX_MAX;
        match command {
            Command::Steer(keys) => self.keys = keys,
            Command::Order(order) if has_room => {
                if let Some(prediction) = &mut self.prediction {
                    let number = prediction.order(order);
                    self.outbox.push_back(Message::Order { number, order });
                }
            }
            Command::Chat(mut text) if has_room => {
                text.retain(wire::is_shown);
                while text.len() > CHAT_MAX {
                    text.pop();
                }
                self.outbox.push_back(Message::Chat { from: None, text });
            }
            Command::Order(_) | Command::Chat(_) => {}
        }
    }

    /// The own player. `None`: a spectator, or not let in yet.
    #[must_use]
    pub fn you(&self) -> Option<PlayerId> {
        self.prediction.as_ref()?.you()
    }

    /// The last state from the server.
    #[must_use]
    pub fn confirmed(&self) -> Option<&World> {
        self.prediction.as_ref().map(Prediction::confirmed)
    }

    /// Our prediction from it.
    #[must_use]
    pub fn predicted(&self) -> Option<&World> {
        self.prediction.as_ref().map(Prediction::predicted)
    }

    /// The view. `None`: no world is known yet.
    #[must_use]
    pub fn view(&self) -> Option<View> {
        View::of(self)
    }

    /// Number of snapshots that were invalid, or did not give the world that the server had.
    #[must_use]
    pub const fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Takes the measurements since the last call.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    /// The first snapshot of another server: what was predicted from the one before counts no longer.
    fn start_from(&mut self, you: Option<PlayerId>, world: &World) {
        self.clock.restart();
        (self.past, self.smooth, self.before) = (Past::default(), Smooth::default(), None);
        if let Some(prediction) = self.prediction.as_mut().filter(|prediction| prediction.you() == you) {
            prediction.restart(world.clone());
        }
    }

    fn role(&self) -> Option<Role> {
        let prediction = self.prediction.as_ref()?;
        prediction.confirmed().purse(prediction.you()?).map(|purse| purse.role)
    }

    fn reconcile(&mut self, now: Time, you: Option<PlayerId>, word: World) {
        let Some(prediction) = self.prediction.as_mut().filter(|prediction| prediction.you() == you) else {
            self.prediction = Some(Prediction::new(you, word));
            return;
        };
        let place = |prediction: &Prediction| {
            let runner = prediction.predicted().runner(you?).filter(|runner| runner.alive)?;
            Some(runner.at)
        };
        let before = place(prediction);
        let error = prediction.reconcile(word, &self.held);
        if let (Some(before), Some(after)) = (before, place(prediction)) {
            self.smooth.moved(before, after);
            let shift = Point { x: after.x - before.x, y: after.y - before.y };
            self.before = self.before.map(|at| Point { x: at.x + shift.x, y: at.y + shift.y });
        }
        if let Some(error) = error {
            self.measured.on_error(now, error);
            self.samples.push(Sample::Error(error));
        }
    }

    /// Keeps a snapshot as long as it may be the base of another one.
    fn remember(&mut self, world: World) {
        self.snapshots.insert(world.tick, world);
        if let Some(newest) = self.snapshots.keys().next_back().copied() {
            self.snapshots = self.snapshots.split_off(&newest.saturating_sub(AGE_MAX.into()));
        }
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// Ticks that the clock may be off before it jumps: a second.
const JUMP: u32 = 30;
/// Most messages that wait for the channel.
const OUTBOX_MAX: usize = 64;
/// Most samples that wait to be collected.
const SAMPLES_MAX: usize = 1024;
