//! The thread: takes commands, pumps, delivers events and data.

use super::outbox::{Outbox, Outgoing};
use super::shared::{Counts, Shared};
use crate::message::BitsError;
use crate::net::driver::{Driver, farewell};
use crate::net::end::{End, Id};
use crate::net::sync::mpsc::{Receiver, Sender};
use crate::session::{DATAGRAMS, Event};
use crate::time::Time;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

type Run<E> = Box<dyn FnOnce(&mut Driver<E>) + Send>;

pub(super) enum Command<E: End> {
    Send(Id, Outgoing),
    Close(Id, u16, Box<str>),
    /// The same, at once.
    Kick(Id, u16, Box<str>),
    /// A received message is not of its channel's type.
    Refuse(Id, BitsError),
    Run(Run<E>),
    /// Ends all sessions, then the thread.
    Shutdown(u16),
}

/// What a thread reports about a session.
pub(super) enum What {
    /// Any event except [`Event::Readable`]. [`Event::Closed`] comes last.
    Event(Event),
    /// A message of a channel, or a datagram.
    Message(u8, Bytes),
}

pub(super) struct Parcel {
    pub(super) id: Id,
    pub(super) what: What,
    /// Bytes that it counts for until it is taken.
    pub(super) cost: usize,
    /// With the first parcel of a session: its counters.
    pub(super) counts: Option<Arc<Counts>>,
    /// With that parcel, and when the peer has moved: its address.
    pub(super) peer: Option<SocketAddr>,
}

pub(super) struct Tell {
    pub(super) parcels: Sender<Parcel>,
    pub(super) shared: Arc<Shared>,
}

impl Tell {
    /// Reports an event. `rest`: bytes of the last messages of a session that is over.
    fn tell_event(
        &self,
        id: Id,
        event: Event,
        rest: usize,
        first: (Option<Arc<Counts>>, Option<SocketAddr>),
    ) {
        let (cost, (counts, peer)) = (size_of::<Parcel>() + rest, first);
        self.shared.told(cost);
        self.tell(Parcel { id, what: What::Event(event), cost, counts, peer });
    }

    pub(super) fn tell_message(&self, id: Id, way: u8, message: Bytes, counts: &Counts) {
        let cost = size_of::<Parcel>() + message.len();
        counts.delivered(&self.shared, way, cost);
        self.tell(Parcel { id, what: What::Message(way, message), cost, counts: None, peer: None });
    }

    fn tell(&self, parcel: Parcel) {
        let _ = self.parcels.send(parcel); // fails only if the handle is gone
    }
}

/// What a session has received and cannot deliver yet.
struct Held {
    counts: Arc<Counts>,
    /// Channels with a message, and the datagrams, which may have one: each with the cost of the next.
    ways: Vec<(u8, usize)>,
}

impl Held {
    fn has_room(&self, shared: &Shared) -> bool {
        self.ways.iter().any(|(way, cost)| self.counts.has_room(shared, *way, *cost))
    }
}

/// What is left to read of a session.
enum Left {
    Nothing,
    /// There may be more.
    More,
    Held(Held),
}

pub(super) struct Worker<E: End> {
    end: Driver<E>,
    commands: Receiver<Command<E>>,
    out: Tell,
    /// One for each session that is up.
    outboxes: BTreeMap<Id, Outbox>,
    /// Sessions whose outbox has something to do.
    waiting: BTreeSet<Id>,
    /// Sessions that may have something to read, in the order of their turns.
    readable: VecDeque<Id>,
    /// The same, for look-up.
    listed: BTreeSet<Id>,
    /// Sessions that have something to read for which there is no room.
    held: BTreeMap<Id, Held>,
    /// Whether there was no room for an event when the last one was delivered.
    is_full: bool,
    /// Code and deadline of the shutdown.
    shutdown: Option<(u16, Time)>,
}

impl<E: End> Worker<E> {
    pub(super) fn new(end: Driver<E>, commands: Receiver<Command<E>>, out: Tell) -> Self {
        Self {
            end,
            commands,
            out,
            outboxes: BTreeMap::new(),
            waiting: BTreeSet::new(),
            readable: VecDeque::new(),
            listed: BTreeSet::new(),
            held: BTreeMap::new(),
            is_full: false,
            shutdown: None,
        }
    }

    /// Runs until the sessions are over or the socket has failed.
    pub(super) fn run(mut self) -> io::Result<()> {
        loop {
            let mut is_busy = self.handle_commands();
            is_busy |= self.send();
            let wait = self.end.pump()?;
            if self.is_over() {
                return Ok(());
            }
            is_busy |= self.deliver();
            if !is_busy {
                self.sleep(wait)?;
            }
        }
    }

    /// Waits for a datagram, a command, room to deliver, or the next timer.
    fn sleep(&mut self, wait: Option<Duration>) -> io::Result<()> {
        self.out.shared.is_asleep.store(true, SeqCst);
        let shared = &self.out.shared;
        let is_new =
            (self.is_full && shared.may_tell()) || self.held.values().any(|held| held.has_room(shared));
        let is_new = self.handle_commands() || is_new;
        if !is_new {
            let wait = wait.map_or(LONGEST_SLEEP, |wait| wait.min(LONGEST_SLEEP));
            self.end.line.wait(Some(wait))?;
        }
        self.out.shared.is_asleep.store(false, SeqCst);
        Ok(())
    }

    /// Executes a bounded number of commands. Returns whether there were any.
    fn handle_commands(&mut self) -> bool {
        for count in 0..COMMANDS_PER_TURN {
            match self.commands.try_recv() {
                Ok(command) => self.handle_command(command),
                Err(_) => return count > 0,
            }
        }
        true
    }

    fn handle_command(&mut self, command: Command<E>) {
        let now = self.end.now();
        let (drain, farewell) = (self.end.machine.config().drain, farewell(self.end.machine.config()));
        match command {
            Command::Send(id, outgoing) => {
                if let Some(outbox) = self.outboxes.get_mut(&id) {
                    outbox.push(outgoing);
                    self.waiting.insert(id);
                }
            }
            Command::Close(id, code, text) => match self.outboxes.get_mut(&id) {
                Some(outbox) => {
                    outbox.close = Some((code, text, now + drain));
                    self.waiting.insert(id);
                }
                None => self.end.machine.close(now, id, code, &text), // it is not up yet
            },
            Command::Kick(id, code, text) => {
                self.outboxes.get_mut(&id).into_iter().for_each(Outbox::clear);
                self.waiting.remove(&id); // the program is not told of the room
                match self.end.machine.connection(id) {
                    Some(connection) => {
                        let _ = connection.kick(now, code, &text); // the text was checked
                    }
                    None => self.end.machine.close(now, id, code, &text),
                }
            }
            Command::Refuse(id, error) => {
                self.end
                    .machine
                    .connection(id)
                    .into_iter()
                    .for_each(|session| session.on_bad_message(&error));
            }
            Command::Run(run) => {
                self.out.shared.runs.fetch_sub(1, SeqCst);
                run(&mut self.end);
            }
            Command::Shutdown(code) => {
                for (id, outbox) in &mut self.outboxes {
                    outbox.close.get_or_insert_with(|| (code, "".into(), now + drain));
                    self.waiting.insert(*id);
                }
                self.shutdown = Some((code, now + drain + farewell));
            }
        }
    }

    /// Passes what waits to the sessions. Returns whether anything moved.
    fn send(&mut self) -> bool {
        let now = self.end.now();
        let Self { end, outboxes, waiting, out, .. } = self;
        let mut has_moved = false;
        waiting.retain(|id| {
            let Some(outbox) = outboxes.get_mut(id) else { return false };
            if let Some(connection) = end.machine.connection(*id) {
                has_moved |= outbox.send(connection);
            }
            let is_empty = outbox.is_empty();
            if outbox.counts.regains_room() {
                out.tell_event(*id, Event::Writable, 0, (None, None));
            }
            if let Some((code, text, _)) = outbox.close.take_if(|(_, _, until)| is_empty || *until <= now) {
                end.machine.close(now, *id, code, &text);
                has_moved = true;
            }
            !outbox.is_empty() || outbox.close.is_some()
        });
        has_moved
    }

    fn is_over(&mut self) -> bool {
        let Some((code, until)) = self.shutdown else { return false };
        let (now, outboxes) = (self.end.now(), &self.outboxes);
        let waits = |id| outboxes.get(&id).is_some_and(|outbox| outbox.close.is_some());
        self.end.machine.close_rest(now, code, waits) || until <= now
    }

    /// Delivers events and data as far as there is room. Returns whether there were any.
    fn deliver(&mut self) -> bool {
        let mut is_any = false;
        loop {
            self.is_full = !self.out.shared.may_tell();
            if self.is_full {
                break;
            }
            let Some((id, event)) = self.end.machine.next_event() else { break };
            is_any = true;
            self.handle_event(id, event);
        }
        let Self { out, readable, listed, held, .. } = self;
        held.retain(|id, held| {
            let has_room = held.has_room(&out.shared);
            if has_room && listed.insert(*id) {
                readable.push_back(*id);
            }
            !has_room
        });
        for _ in 0..self.readable.len() {
            let Some(id) = self.readable.pop_front() else { break };
            let (is_read, left) = self.read(id);
            is_any |= is_read;
            if matches!(left, Left::More) {
                self.readable.push_back(id);
                continue;
            }
            self.listed.remove(&id);
            if let Left::Held(held) = left {
                self.held.insert(id, held);
            }
        }
        is_any
    }

    fn handle_event(&mut self, id: Id, event: Event) {
        let (mut counts, mut rest) = (None, 0);
        match event {
            Event::Connected => {
                let channels = self.end.machine.config().channels.len();
                let connection = self.end.machine.connection(id);
                let said = connection.map(|connection| (connection.user(), connection.ticket()));
                let (user, ticket) = said.unwrap_or_default();
                let new =
                    Arc::new(Counts::new(user, ticket, channels, id.is_none(), &self.out.shared.config));
                self.outboxes.insert(id, Outbox::new(Arc::clone(&new)));
                counts = Some(new);
            }
            Event::Readable => {
                if self.listed.insert(id) {
                    self.readable.push_back(id);
                }
                return;
            }
            Event::Closed { .. } => {
                // Deliver what was received before the end in any case: it is kept nowhere else.
                rest = self.read_rest(id);
                self.held.remove(&id);
                // What its outbox held still counts as undelivered.
                if let (Some(outbox), Some(connection)) =
                    (self.outboxes.remove(&id), self.end.machine.connection(id))
                {
                    let _ = outbox.counts.close_text.set(connection.close_text().into());
                }
            }
            _ => {}
        }
        let has_place = matches!(event, Event::Connected | Event::Moved { .. });
        let connection = if has_place { self.end.machine.connection(id) } else { None };
        let peer = connection.map(|connection| connection.peer_addr());
        self.out.tell_event(id, event, rest, (counts, peer));
    }

    /// Reads everything a session has received, whether there is room or not. Returns its bytes.
    fn read_rest(&mut self, id: Id) -> usize {
        let channels = self.end.machine.config().channels.len();
        let Some(connection) = self.end.machine.connection(id) else { return 0 };
        let mut rest = 0;
        let mut tell = |way, message: Bytes| {
            let cost = 0; // the event carries the cost
            rest += size_of::<Parcel>() + message.len();
            self.out.tell(Parcel { id, what: What::Message(way, message), cost, counts: None, peer: None });
        };
        for channel in (0..).take(channels) {
            std::iter::from_fn(|| connection.recv_packed(channel)).for_each(|message| tell(channel, message));
        }
        std::iter::from_fn(|| connection.recv_datagram()).for_each(|datagram| tell(DATAGRAMS, datagram));
        rest
    }

    /// Reads a session in a few rounds over its channels, as far as there is room. Returns whether there was
    /// anything, and what is left.
    fn read(&mut self, id: Id) -> (bool, Left) {
        let Self { end, out, outboxes, .. } = self;
        let channels = end.machine.config().channels.len();
        let (Some(connection), Some(Outbox { counts, .. })) = (end.machine.connection(id), outboxes.get(&id))
        else {
            return (false, Left::Nothing);
        };
        let mut is_read = false;
        for _ in 0..TURNS {
            let (mut is_any, mut held) = (false, Vec::new());
            for way in (0..).take(channels).chain([DATAGRAMS]) {
                let is_datagram = way == DATAGRAMS;
                let len = if is_datagram { Some(0) } else { connection.next_len(way) };
                let cost = size_of::<Parcel>() + len.unwrap_or(0);
                if !counts.has_room(&out.shared, way, cost) {
                    held.extend(len.map(|_| (way, cost)));
                    continue;
                }
                let message =
                    if is_datagram { connection.recv_datagram() } else { connection.recv_packed(way) };
                if let Some(message) = message {
                    is_any = true;
                    out.tell_message(id, way, message, counts);
                }
            }
            if !is_any {
                let held = Held { counts: Arc::clone(counts), ways: held };
                return (is_read, if held.ways.is_empty() { Left::Nothing } else { Left::Held(held) });
            }
            is_read = true;
        }
        (is_read, Left::More)
    }
}

/// Most commands between two pumps; more of them wait for the next turn.
const COMMANDS_PER_TURN: usize = 1024;
/// Messages read from each channel of a session before another session's turn.
const TURNS: usize = 8;
/// The longest that a thread sleeps, in case a wake-up gets lost.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
