//! The thread: takes commands, pumps, delivers events and data.

use super::Incoming;
use super::outbox::{MESSAGE, Outbox, Outgoing};
use super::shared::{Budgets, Shared};
use crate::message::channel::Received;
use crate::net::driver::{Driver, farewell};
use crate::net::end::{End, Id};
use crate::session::Event;
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

type Run<E> = Box<dyn FnOnce(&mut Driver<E>) + Send>;

pub(super) enum Command<E: End> {
    Send(Id, Outgoing<E::Message>),
    Close(Id, u16),
    Run(Run<E>),
    /// Ends all sessions, then the thread.
    Shutdown(u16),
}

pub(super) struct Parcel<E: End> {
    pub(super) id: Id,
    pub(super) incoming: Incoming<E::Message>,
    /// What it counts for in the bytes waiting to be taken.
    pub(super) cost: usize,
    /// With the first parcel of a session: the budgets for sending to it.
    pub(super) budgets: Option<Budgets>,
}

pub(super) struct Tell<E: End> {
    pub(super) parcels: Sender<Parcel<E>>,
    pub(super) shared: Arc<Shared>,
}

impl<E: End> Tell<E> {
    fn tell(&self, id: Id, incoming: Incoming<E::Message>, budgets: Option<Budgets>) {
        let bytes = match &incoming {
            Incoming::Message { bytes, .. } | Incoming::Datagram(bytes) => bytes.capacity(),
            Incoming::Channel { received: Received::Block(block), .. } => block.len(),
            Incoming::Channel { .. } => MESSAGE,
            Incoming::Event(_) | Incoming::Refused(_) => 0,
        };
        let cost = bytes + size_of::<Parcel<E>>();
        self.shared.incoming.fetch_add(cost, SeqCst);
        let _ = self.parcels.send(Parcel { id, incoming, cost, budgets }); // if the handle is gone, nobody wants it
    }
}

pub(super) struct Worker<E: End> {
    end: Driver<E>,
    commands: Receiver<Command<E>>,
    out: Tell<E>,
    /// One for each connected session.
    outboxes: BTreeMap<Id, Outbox<E::Message>>,
    /// The sessions for which something waits.
    waiting: BTreeSet<Id>,
    /// Sessions that may have something to read, in turn.
    readable: VecDeque<Id>,
    /// The same, for look-up.
    listed: BTreeSet<Id>,
    /// Code and deadline of the shutdown.
    shutdown: Option<(u16, Time)>,
    buf: Vec<u8>,
}

impl<E: End> Worker<E> {
    pub(super) fn new(end: Driver<E>, commands: Receiver<Command<E>>, out: Tell<E>) -> Self {
        Self {
            end,
            commands,
            out,
            outboxes: BTreeMap::new(),
            waiting: BTreeSet::new(),
            readable: VecDeque::new(),
            listed: BTreeSet::new(),
            shutdown: None,
            buf: vec![0; DATAGRAM],
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
        let was_full = !self.out.shared.has_room();
        self.out.shared.is_asleep.store(true, SeqCst);
        let is_new = self.handle_commands() || (was_full && self.out.shared.has_room());
        if !is_new {
            let wait = wait.map_or(LONGEST_SLEEP, |wait| wait.min(LONGEST_SLEEP));
            self.end.line.port.wait(Some(wait))?;
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
            Command::Close(id, code) => {
                if let Some(outbox) = self.outboxes.get_mut(&id) {
                    outbox.close = Some((code, now + drain));
                    self.waiting.insert(id);
                }
            }
            Command::Run(run) => {
                self.out.shared.runs.fetch_sub(1, SeqCst);
                run(&mut self.end);
            }
            Command::Shutdown(code) => {
                for (id, outbox) in &mut self.outboxes {
                    outbox.close.get_or_insert((code, now + drain));
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
                has_moved |= outbox.send(now, connection, |refused| out.tell(*id, refused, None));
            }
            if let Some((code, until)) = outbox.close
                && (outbox.is_empty() || until <= now)
            {
                outbox.close = None;
                end.machine.close(now, *id, code);
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
        while self.out.shared.has_room()
            && let Some((id, event)) = self.end.machine.next_event()
        {
            is_any = true;
            self.handle_event(id, event);
        }
        for _ in 0..self.readable.len() {
            let Some(id) = self.readable.pop_front() else { break };
            let (is_read, is_more) = self.read(id, TURNS, false);
            is_any |= is_read;
            if is_more {
                self.readable.push_back(id);
            } else {
                self.listed.remove(&id);
            }
        }
        is_any
    }

    fn handle_event(&mut self, id: Id, event: Event) {
        let mut budgets = None;
        match event {
            Event::Connected => {
                let config = self.end.machine.config();
                let (lanes, channels) = (config.lanes.len(), config.channels.len());
                let new = Budgets::new(lanes, channels, self.out.shared.config.outgoing);
                self.outboxes.insert(id, Outbox::new(new.clone()));
                budgets = Some(new);
            }
            Event::Readable => {
                if self.listed.insert(id) {
                    self.readable.push_back(id);
                }
                return;
            }
            Event::Closed { .. } => {
                // What was received before the end is delivered in any case, since it is stored nowhere else.
                self.read(id, usize::MAX, true);
                for refused in self.outboxes.remove(&id).into_iter().flat_map(Outbox::into_refused) {
                    self.out.tell(id, refused, None);
                }
            }
            _ => {}
        }
        self.out.tell(id, Incoming::Event(event), budgets);
    }

    /// Reads a session, up to `turns` rounds over its lanes and channels, while there is room or
    /// `in_any_case`. Returns whether there was anything, and whether there may be more.
    fn read(&mut self, id: Id, turns: usize, in_any_case: bool) -> (bool, bool) {
        let config = self.end.machine.config();
        let (lanes, channels) = (config.lanes.len(), config.channels.len());
        let Self { end, out, buf, .. } = self;
        let mut is_read = false;
        let Some(connection) = end.machine.connection(id) else { return (false, false) };
        for _ in 0..turns {
            if !in_any_case && !out.shared.has_room() {
                break;
            }
            let mut is_any = false;
            let mut tell = |incoming| {
                is_any = true;
                out.tell(id, incoming, None);
            };
            for lane in 0..lanes {
                if let Some(len) = connection.peek_size(lane) {
                    let mut bytes = vec![0; len];
                    if connection.recv(lane, &mut bytes).is_ok() {
                        tell(Incoming::Message { lane, bytes });
                    }
                }
            }
            if let Ok(len) = connection.recv_datagram(buf) {
                tell(Incoming::Datagram(buf.get(..len).unwrap_or_default().to_vec()));
            }
            for channel in 0..channels {
                if let Some(received) = connection.recv_message(channel) {
                    tell(Incoming::Channel { channel, received });
                }
            }
            if !is_any {
                return (is_read, false);
            }
            is_read = true;
        }
        (is_read, true)
    }
}

/// Most commands between two pumps; more of them wait for the next turn.
const COMMANDS_PER_TURN: usize = 1024;
/// Messages of each lane and channel of a session before it is another session's turn.
const TURNS: usize = 8;
/// The longest that a thread sleeps, in case a wake-up gets lost.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Room for an unreliable datagram.
const DATAGRAM: usize = 1500;
