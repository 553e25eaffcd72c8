//! The program's end of a thread, or of the threads of all shards of a server.

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
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Threads with a server or a client each, and one queue of what comes. Dropped, it ends the sessions and the threads.
pub(super) struct Handle<E: End> {
    /// By shard; one at least.
    pub(super) threads: Vec<Thread<E>>,
    parcels: Receiver<Parcel<E>>,
}

pub(super) struct Thread<E: End> {
    commands: Sender<Command<E>>,
    shared: Arc<Shared>,
    /// Bytes that may wait for a session.
    outgoing: usize,
    /// What waits for each session that takes anything.
    budgets: BTreeMap<E::Id, Budgets>,
    thread: Option<JoinHandle<io::Result<()>>>,
    local_addr: SocketAddr,
}

impl<E: End> Handle<E> {
    pub(super) fn spawn(
        ends: impl IntoIterator<Item = Driver<E>>,
        config: &ThreadConfig,
    ) -> io::Result<Self> {
        let (gives, parcels) = channel();
        let spawn = |end| Thread::spawn(end, config, gives.clone());
        Ok(Self { threads: ends.into_iter().map(spawn).collect::<io::Result<_>>()?, parcels })
    }

    pub(super) fn try_recv(&mut self) -> Option<(E::Id, Incoming<E::Message>)> {
        let parcel = self.parcels.try_recv().ok()?;
        self.open(parcel)
    }

    pub(super) fn recv(&mut self, timeout: Duration) -> Option<(E::Id, Incoming<E::Message>)> {
        let parcel = self.parcels.recv_timeout(timeout).ok()?;
        self.open(parcel)
    }

    fn open(&mut self, parcel: Parcel<E>) -> Option<(E::Id, Incoming<E::Message>)> {
        let Parcel { id, incoming, cost, budgets } = parcel;
        let thread = self.of_mut(id)?;
        thread.shared.taken(cost);
        if let Some(budgets) = budgets {
            thread.budgets.insert(id, budgets);
        }
        if matches!(incoming, Incoming::Event(Event::Closed { .. })) {
            thread.budgets.remove(&id);
        }
        Some((id, incoming))
    }

    /// Bytes that may be sent to a session on a way now.
    pub(super) fn room(&self, id: E::Id, way: Way) -> usize {
        let of = |thread: &Thread<E>| Some(thread.budgets.get(&id)?.room(way, thread.outgoing));
        self.of(id).and_then(of).unwrap_or_default()
    }

    pub(super) fn send(&self, id: E::Id, outgoing: Outgoing<E::Message>) -> Result<(), NotSent> {
        let thread = self.of(id).ok_or(NotSent::Gone)?;
        let budgets = thread.budgets.get(&id).ok_or(NotSent::Gone)?;
        let (way, cost) = (outgoing.way(), outgoing.cost());
        if !budgets.has_room(way, cost, thread.outgoing) {
            return Err(NotSent::Full);
        }
        budgets.add(way, cost);
        thread.command(Command::Send(id, outgoing))
    }

    /// Returns whether there was such a session, and it was not closed before.
    pub(super) fn close(&mut self, id: E::Id, code: u16) -> bool {
        let Some(thread) = self.of_mut(id) else { return false };
        let is_open = thread.budgets.remove(&id).is_some();
        if is_open {
            let _ = thread.command(Command::Close(id, code)); // or all of them are over
        }
        is_open
    }

    pub(super) fn run(
        &self,
        shard: usize,
        run: impl FnOnce(&mut Driver<E>) + Send + 'static,
    ) -> Result<(), NotSent> {
        let thread = self.threads.get(shard).ok_or(NotSent::Gone)?;
        if thread.shared.runs.load(SeqCst) >= RUNS {
            return Err(NotSent::Full);
        }
        thread.shared.runs.fetch_add(1, SeqCst);
        thread.command(Command::Run(Box::new(run)))
    }

    pub(super) fn is_finished(&self) -> bool {
        self.threads.iter().any(|thread| thread.thread.as_ref().is_none_or(JoinHandle::is_finished))
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        let unspecified = SocketAddr::from(([0; 4], 0));
        self.threads.first().map_or(unspecified, |thread| thread.local_addr) // there is one
    }

    /// Has all sessions end, and then the threads, and waits for them: all begin to end before one is waited for.
    pub(super) fn shutdown(&mut self, code: u16) -> io::Result<()> {
        for thread in &self.threads {
            let _ = thread.command(Command::Shutdown(code)); // or it has ended by itself
        }
        let ended = self.threads.iter_mut().filter_map(|thread| thread.thread.take()).map(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread of the sessions panicked")))
        });
        ended.fold(Ok(()), io::Result::and)
    }

    fn of(&self, id: E::Id) -> Option<&Thread<E>> {
        self.threads.get(self.index(id))
    }

    fn of_mut(&mut self, id: E::Id) -> Option<&mut Thread<E>> {
        let index = self.index(id);
        self.threads.get_mut(index)
    }

    fn index(&self, id: E::Id) -> usize {
        if self.threads.len() == 1 { 0 } else { E::shard(id) }
    }
}

impl<E: End> Thread<E> {
    fn spawn(mut end: Driver<E>, config: &ThreadConfig, gives: Sender<Parcel<E>>) -> io::Result<Self> {
        let local_addr = end.local_addr()?;
        let (commands, takes) = channel();
        let shared = Arc::new(Shared::new(end.line.port.bell()?, config.incoming));
        let worker = Worker::new(end, takes, gives, Arc::clone(&shared));
        let thread = Builder::new().name("whitewater".to_owned()).spawn(|| worker.run())?;
        let (outgoing, thread) = (config.outgoing, Some(thread));
        Ok(Self { commands, shared, outgoing, budgets: BTreeMap::new(), thread, local_addr })
    }

    fn command(&self, command: Command<E>) -> Result<(), NotSent> {
        self.commands.send(command).map_err(|_| NotSent::Gone)?;
        self.shared.wake();
        Ok(())
    }
}

impl<E: End> fmt::Debug for Handle<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("local_addr", &self.local_addr()).finish_non_exhaustive()
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
