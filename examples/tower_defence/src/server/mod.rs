//! The server: it owns the state of the game and does not trust clients.
//!
//! It has no socket and no clock. Whatever carries packets calls [`Server::receive`] and [`Server::take`] with what has
//! arrived, [`Server::tick`] at each tick, and then [`Server::snapshot`] and [`Server::pop_message`] for each peer.
//! [`carry`](crate::carry) does this over sessions.
//!
//! ```text
//!   seats    the places of players, kept for a minute while they are away
//!   peer     one connection: its inputs, its base, its limits
//!   budget   a limit on how often something may happen
//! ```

mod budget;
mod peer;
mod seats;

pub use seats::JoinError;

use crate::sim::rules::{BOARD, HZ};
use crate::sim::{Event, EventKind, Inputs, Order, PlayerId, Refusal, World};
use crate::wire::{self, AGE_MAX, Hello, Message, Will};
use peer::Peer;
use seats::Seats;
use std::collections::{BTreeMap, VecDeque};

/// A game and its connected players.
#[derive(Debug)]
pub struct Server {
    world: World,
    /// The newest worlds as sent, one per tick, the oldest first.
    history: VecDeque<World>,
    seats: Seats,
    peers: BTreeMap<PeerId, Peer>,
    next_peer: u32,
    /// Peers whose player has connected again.
    replaced: Vec<PeerId>,
    counts: Counts,
    inputs: Inputs,
    /// Players who are expected back before the match goes on, and for how many ticks at most.
    awaited: (Vec<PlayerId>, u32),
}

/// A connection, from [`Server::connect`] to [`Server::disconnect`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PeerId(pub u32);

/// The server's counters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Inputs that arrived in time.
    pub in_time: u64,
    /// Ticks for which a runner's input was missing, so it moved on as before.
    pub guessed: u64,
    /// Inputs that arrived after their tick.
    pub late: u64,
    /// Orders and packets that were refused.
    pub refused: u64,
    /// Full snapshots, and deltas.
    pub full: u64,
    /// See `full`.
    pub deltas: u64,
    /// Messages dropped because their client had acknowledged nothing for too long.
    pub dropped: u64,
}

impl Server {
    /// A game without players.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_world(World::new(BOARD.0, BOARD.1, seed))
    }

    /// A game that starts with this world.
    #[must_use]
    pub fn with_world(world: World) -> Self {
        Self {
            world,
            history: VecDeque::new(),
            seats: Seats::default(),
            peers: BTreeMap::new(),
            next_peer: 0,
            replaced: Vec::new(),
            counts: Counts::default(),
            inputs: Inputs::default(),
            awaited: (Vec::new(), 0),
        }
    }

    /// Goes on with the match of another server. It stands still until those who were there are back, or for a second.
    #[must_use]
    pub fn resume(will: Will) -> Self {
        let Will { world, inputs, seats } = will;
        let here = seats.iter().filter(|seat| seat.is_here).map(|seat| seat.player).collect();
        let seats = Seats::resume(seats, world.tick);
        Self { inputs, seats, awaited: (here, AWAITED), ..Self::with_world(world) }
    }

    /// All that another server needs to go on after the last tick. `host`: the ticket of the player whose machine this is,
    /// who goes with it.
    #[must_use]
    pub fn will(&self, host: Option<u64>) -> Will {
        let (world, inputs, seats) = (self.world.clone(), self.inputs.clone(), self.seats.will(host));
        Will { world, inputs, seats }
    }

    /// The state of the game.
    #[must_use]
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// The inputs of the last tick.
    #[must_use]
    pub const fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// The world at an earlier tick, up to [`AGE_MAX`] ago.
    #[must_use]
    pub fn world_at(&self, tick: u32) -> Option<&World> {
        let first = self.history.front()?.tick;
        self.history.get(usize::try_from(tick.checked_sub(first)?).ok()?)
    }

    /// What was counted.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Lets in a client that said `hello` in the handshake.
    ///
    /// # Errors
    ///
    /// There is no place, or it is not a hello.
    pub fn connect(&mut self, hello: &[u8]) -> Result<PeerId, JoinError> {
        self.let_in(&Hello::decode(hello).map_err(|_| JoinError::Malformed)?)
    }

    /// The same for a hello that was read before.
    ///
    /// # Errors
    ///
    /// There is no place.
    pub fn let_in(&mut self, hello: &Hello) -> Result<PeerId, JoinError> {
        let id = PeerId(self.next_peer);
        let taken = self.seats.take(hello, id)?;
        self.next_peer += 1;
        self.peers.insert(id, Peer::new(taken.as_ref().map(|taken| taken.player)));
        self.tell_players(id);
        if let Some(taken) = taken {
            if let Some(old) = taken.replaces {
                self.peers.remove(&old);
                self.replaced.push(old);
            }
            if taken.is_back {
                self.world.decide(taken.player, 0); // it counts its orders from the start
                self.tell_all(EventKind::Back, taken.player, 0);
            } else {
                self.world.join(taken.player, taken.role);
            }
            self.tell_player(taken.player);
        }
        Ok(id)
    }

    /// A connection is over. Its place is kept for a minute.
    pub fn disconnect(&mut self, id: PeerId) {
        self.peers.remove(&id);
        if let Some(player) = self.seats.leave(id, self.world.tick) {
            self.tell_player(player);
        }
    }

    /// Returns a peer whose player has connected again: close it.
    pub fn pop_replaced(&mut self) -> Option<PeerId> {
        self.replaced.pop()
    }

    /// The player of a peer. `None`: a spectator, or nobody.
    #[must_use]
    pub fn player(&self, id: PeerId) -> Option<PlayerId> {
        self.peers.get(&id)?.player
    }

    /// Takes an unreliable packet: inputs.
    pub fn receive(&mut self, id: PeerId, bytes: &[u8]) {
        let now = self.world.tick;
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if let Err(refusal) = peer.receive(now, bytes, &mut self.counts) {
            self.refuse(id, refusal);
        }
    }

    /// Takes a message of the reliable channel: an order, or chat.
    pub fn take(&mut self, id: PeerId, message: Message) {
        let now = self.world.tick;
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let player = peer.player;
        let done = match message {
            Message::Order { number, order } => {
                let is_allowed = peer.orders.spend(now);
                self.decide(player, number, order, is_allowed)
            }
            Message::Chat { text, .. } if !text.chars().all(wire::is_shown) => Err(Refusal::Malformed),
            Message::Chat { text, .. } if peer.chats.spend(now) => {
                let chat = Message::Chat { from: player, text };
                self.peers.values_mut().for_each(|peer| peer.push(chat.clone(), &mut self.counts));
                Ok(())
            }
            Message::Chat { .. } => Err(Refusal::Flood),
            Message::Event(_) | Message::Player { .. } => Err(Refusal::Malformed),
        };
        if let Err(refusal) = done {
            self.refuse(id, refusal);
        }
    }

    /// The snapshot in this datagram has arrived.
    pub fn delivered(&mut self, id: PeerId, datagram: u64) {
        if let Some(peer) = self.peers.get_mut(&id)
            && let Some(tick) = peer.receipts.take(datagram)
        {
            peer.has(tick);
        }
    }

    /// Advances by a tick. Afterwards, take the snapshot and messages of each peer.
    pub fn tick(&mut self) {
        if self.waits() {
            return;
        }
        let next = self.world.tick + 1;
        for peer in self.peers.values_mut() {
            if let Some(player) = peer.player {
                let keys = peer.keys(next, &mut self.counts);
                self.inputs.set(player, keys);
            }
        }
        for player in self.seats.expired(next) {
            self.world.leave(player);
            self.inputs.set(player, Default::default());
        }
        self.world.step(&self.inputs);
        for event in self.world.take_events() {
            let message = Message::Event(event);
            self.peers.values_mut().for_each(|peer| peer.push(message.clone(), &mut self.counts));
        }
        if self.history.len() > AGE_MAX.into() {
            self.history.pop_front();
        }
        self.history.push_back(self.world.clone());
    }

    /// Whether the match waits for players of the server before this one. Until it goes on, there are no snapshots.
    fn waits(&mut self) -> bool {
        let (players, ticks) = &mut self.awaited;
        *ticks = ticks.saturating_sub(1);
        let waits = *ticks > 0 && players.iter().any(|player| !self.seats.is_here(*player));
        if !waits {
            self.awaited = (Vec::new(), 0);
        }
        waits
    }

    /// The current peers.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> + use<> {
        self.peers.keys().copied().collect::<Vec<_>>().into_iter()
    }

    /// Writes the snapshot of the last tick for a peer, then call [`sent`](Self::sent). `false`: there is none.
    pub fn snapshot(&mut self, id: PeerId, bytes: &mut Vec<u8>) -> bool {
        let (Some(peer), Some(world)) = (self.peers.get(&id), self.history.back()) else { return false };
        let base = peer.base.and_then(|tick| self.world_at(tick)).filter(|base| base.tick < world.tick);
        let is_delta = base.is_some();
        let is_written = wire::write(bytes, world, peer.player, base, peer.lead(world.tick)).is_ok();
        *(if is_delta { &mut self.counts.deltas } else { &mut self.counts.full }) += 1;
        is_written
    }

    /// Notes the datagram that carries the last snapshot.
    pub fn sent(&mut self, id: PeerId, datagram: u64) {
        let tick = self.world.tick;
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.receipts.note(datagram, tick);
        }
    }

    /// The next message for a peer's reliable channel.
    #[must_use]
    pub fn next_message(&self, id: PeerId) -> Option<&Message> {
        self.peers.get(&id)?.outbox.front()
    }

    /// Takes the next message for a peer's reliable channel.
    pub fn pop_message(&mut self, id: PeerId) -> Option<Message> {
        self.peers.get_mut(&id)?.outbox.pop_front()
    }

    fn decide(
        &mut self,
        player: Option<PlayerId>,
        number: u16,
        order: Order,
        is_allowed: bool,
    ) -> Result<(), Refusal> {
        let player = player.ok_or(Refusal::Role)?;
        let done = if is_allowed { self.world.order(player, order) } else { Err(Refusal::Flood) };
        self.world.decide(player, number);
        done
    }

    /// Tells a peer that something was refused, at most once a second for each kind.
    fn refuse(&mut self, id: PeerId, refusal: Refusal) {
        self.counts.refused += 1;
        let (tick, running) = (self.world.tick, self.world.phase == crate::sim::Phase::Running);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.may_be_told(refusal, tick) {
            let (kind, player) = (EventKind::Refused, peer.player.unwrap_or_default());
            let event = Event { tick, kind, running, money: 0, id: player, data: refusal.code().into() };
            peer.push(Message::Event(event), &mut self.counts);
        }
    }

    fn tell_all(&mut self, kind: EventKind, id: PlayerId, data: u16) {
        let event = Event { tick: self.world.tick, kind, running: false, money: 0, id, data };
        let message = Message::Event(event);
        self.peers.values_mut().for_each(|peer| peer.push(message.clone(), &mut self.counts));
    }

    /// Tells everybody about the player in this place.
    fn tell_player(&mut self, player: PlayerId) {
        if let Some(message) = self.seats.message(player) {
            self.peers.values_mut().for_each(|peer| peer.push(message.clone(), &mut self.counts));
        }
    }

    /// Tells a peer about all players.
    fn tell_players(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        for message in PlayerId::all().filter_map(|player| self.seats.message(player)) {
            peer.push(message, &mut self.counts);
        }
    }
}

/// Most ticks that a match waits for the players of the server before this one.
const AWAITED: u32 = HZ;
