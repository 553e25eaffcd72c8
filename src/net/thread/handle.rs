//! The program's end of a thread.

use super::outbox::Outgoing;
use super::shared::{Budgets, Shared};
use super::worker::{Command, Parcel, Worker};
use super::{Incoming, NotSent, ThreadConfig, Way};
use crate::net::driver::Driver;
use crate::net::end::End;
use crate::session::Event;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A thread with a server or a client. Dropped, it ends the sessions and the thread.
pub(super) struct Handle<E: End> {
    commands: Sender<Command<E>>,
    /// What the thread gives, unless somebody takes that of several.
    parcels: Option<Receiver<Parcel<E>>>,
    shared: Arc<Shared>,
    config: ThreadConfig,
    /// What waits for each session that takes anything.
    budgets: BTreeMap<E::Id, Budgets>,
    thread: Option<JoinHandle<io::Result<()>>>,
    local_addr: SocketAddr,
}

impl<E: End> Handle<E> {
    pub(super) fn spawn(end: Driver<E>, config: &ThreadConfig) -> io::Result<Self> {
        let (gives, parcels) = channel();
        let mut handle = Self::spawn_for(end, config, gives)?;
        handle.parcels = Some(parcels);
        Ok(handle)
    }

    /// The same for one who takes what several threads give, and has it [opened](Self::open).
    pub(super) fn spawn_for(
        mut end: Driver<E>,
        config: &ThreadConfig,
        gives: Sender<Parcel<E>>,
    ) -> io::Result<Self> {
        let local_addr = end.local_addr()?;
        let (commands, takes) = channel();
        let shared = Arc::new(Shared::default());
        if let Some(call) = end.call()? {
            shared.set_call(call);
        }
        let worker = Worker::new(end, *config, takes, gives, Arc::clone(&shared));
        let thread = Builder::new().name("whitewater".to_owned()).spawn(|| worker.run())?;
        let (config, thread) = (*config, Some(thread));
        Ok(Self { commands, parcels: None, shared, config, budgets: BTreeMap::new(), thread, local_addr })
    }

    pub(super) fn try_recv(&mut self) -> Option<(E::Id, Incoming<E::Message>)> {
        let parcel = self.parcels.as_ref()?.try_recv().ok()?;
        Some(self.open(parcel))
    }

    pub(super) fn recv(&mut self, timeout: Duration) -> Option<(E::Id, Incoming<E::Message>)> {
        let parcel = self.parcels.as_ref()?.recv_timeout(timeout).ok()?;
        Some(self.open(parcel))
    }

    /// What is in a parcel of this thread.
    pub(super) fn open(&mut self, parcel: Parcel<E>) -> (E::Id, Incoming<E::Message>) {
        let Parcel { id, incoming, cost, budgets } = parcel;
        let before = self.shared.incoming.take_away(cost);
        if before >= self.config.incoming {
            self.shared.wake(); // it may have waited for room
        }
        if let Some(budgets) = budgets {
            self.budgets.insert(id, budgets);
        }
        if matches!(incoming, Incoming::Event(Event::Closed { .. })) {
            self.budgets.remove(&id);
        }
        (id, incoming)
    }

    /// Bytes that may be sent to a session on a way now.
    pub(super) fn room(&self, id: E::Id, way: Way) -> usize {
        self.budgets.get(&id).map_or(0, |budgets| budgets.room(way, self.config.outgoing))
    }

    pub(super) fn send(&self, id: E::Id, outgoing: Outgoing<E::Message>) -> Result<(), NotSent> {
        let budgets = self.budgets.get(&id).ok_or(NotSent::Gone)?;
        let (way, cost) = (outgoing.way(), outgoing.cost());
        if !budgets.has_room(way, cost, self.config.outgoing) {
            return Err(NotSent::Full);
        }
        budgets.add(way, cost);
        self.command(Command::Send(id, outgoing))
    }

    /// Returns whether there was such a session, and it was not closed before.
    pub(super) fn close(&mut self, id: E::Id, code: u16) -> bool {
        let is_open = self.budgets.remove(&id).is_some();
        if is_open {
            let _ = self.command(Command::Close(id, code)); // or all of them are over
        }
        is_open
    }

    pub(super) fn run(&self, run: impl FnOnce(&mut Driver<E>) + Send + 'static) -> Result<(), NotSent> {
        if !self.shared.runs.has_room(1, RUNS) {
            return Err(NotSent::Full);
        }
        self.shared.runs.add(1);
        self.command(Command::Run(Box::new(run)))
    }

    pub(super) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    pub(super) const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Has all sessions end, and then the thread.
    pub(super) fn begin_shutdown(&self, code: u16) {
        let _ = self.command(Command::Shutdown(code)); // or it has ended by itself
    }

    /// The same, and waits for it.
    pub(super) fn shutdown(&mut self, code: u16) -> io::Result<()> {
        self.begin_shutdown(code);
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(io::Error::other("the thread of the sessions panicked")),
        }
    }

    fn command(&self, command: Command<E>) -> Result<(), NotSent> {
        self.commands.send(command).map_err(|_| NotSent::Gone)?;
        self.shared.wake();
        Ok(())
    }
}

impl<E: End> fmt::Debug for Handle<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (local_addr, sessions) = (self.local_addr, self.budgets.len());
        f.debug_struct("Handle")
            .field("local_addr", &local_addr)
            .field("sessions", &sessions)
            .finish_non_exhaustive()
    }
}

impl<E: End> Drop for Handle<E> {
    fn drop(&mut self) {
        if let Err(error) = self.shutdown(0) {
            log::warn!("the thread of the sessions ended early: {error}");
        }
    }
}

/// Closures that may wait.
const RUNS: usize = 1024;
