//! The program's handle to a thread, or to the threads of all shards of a server.

use super::outbox::Outgoing;
use super::shared::{Budgets, Shared};
use super::worker::{Command, Parcel, Tell, Worker};
use super::{Incoming, NotSent, ThreadConfig, Way};
use crate::net::driver::Driver;
use crate::net::end::{End, Id};
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

/// Threads with a server or a client each, and one queue of what they report. Dropping it ends the sessions
/// and the threads.
pub(super) struct Handle<E: End> {
    /// One per shard, at least one.
    pub(super) threads: Vec<Thread<E>>,
    parcels: Receiver<Parcel<E>>,
    /// What waits to be sent, for each open session.
    budgets: BTreeMap<Id, Budgets>,
    pub(super) local_addr: SocketAddr,
}

pub(super) struct Thread<E: End> {
    commands: Sender<Command<E>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl<E: End> Handle<E> {
    pub(super) fn spawn(
        ends: impl IntoIterator<Item = Driver<E>>,
        config: &ThreadConfig,
    ) -> io::Result<Self> {
        let (gives, parcels) = channel();
        let mut local_addr = SocketAddr::from(([0; 4], 0));
        let mut threads = Vec::new();
        for mut end in ends {
            local_addr = end.local_addr()?;
            let (commands, takes) = channel();
            let shared = Arc::new(Shared::new(end.line.port.bell()?, *config));
            let worker =
                Worker::new(end, takes, Tell { parcels: gives.clone(), shared: Arc::clone(&shared) });
            let thread = Some(Builder::new().name("whitewater".to_owned()).spawn(|| worker.run())?);
            threads.push(Thread { commands, shared, thread });
        }
        Ok(Self { threads, parcels, budgets: BTreeMap::new(), local_addr })
    }

    /// The next item; waits for it for at most `timeout`.
    pub(super) fn recv(&mut self, timeout: Option<Duration>) -> Option<(Id, Incoming<E::Message>)> {
        let parcel = match timeout {
            Some(timeout) => self.parcels.recv_timeout(timeout).ok(),
            None => self.parcels.try_recv().ok(),
        };
        let Parcel { id, incoming, cost, budgets } = parcel?;
        self.of(id)?.shared.taken(cost);
        if let Some(budgets) = budgets {
            self.budgets.insert(id, budgets);
        }
        if matches!(incoming, Incoming::Event(Event::Closed { .. })) {
            self.budgets.remove(&id);
        }
        Some((id, incoming))
    }

    pub(super) fn room(&self, id: Id, way: Way) -> usize {
        self.budgets.get(&id).map_or(0, |budgets| budgets.room(way))
    }

    pub(super) fn send(&self, id: Id, outgoing: Outgoing<E::Message>) -> Result<(), NotSent> {
        let budgets = self.budgets.get(&id).ok_or(NotSent::Gone)?;
        if !budgets.add(outgoing.way(), outgoing.cost()) {
            return Err(NotSent::Full);
        }
        self.of(id).ok_or(NotSent::Gone)?.command(Command::Send(id, outgoing))
    }

    /// Returns whether there was such a session that was not closed before.
    pub(super) fn close(&mut self, id: Id, code: u16) -> bool {
        let is_open = self.budgets.remove(&id).is_some();
        if is_open && let Some(thread) = self.of(id) {
            let _ = thread.command(Command::Close(id, code)); // if it fails, all of them are over
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

    /// Ends all sessions and then the threads, and waits for them. All of them start to end before the first
    /// is waited for.
    pub(super) fn shutdown(&mut self, code: u16) -> io::Result<()> {
        for thread in &self.threads {
            let _ = thread.command(Command::Shutdown(code)); // if it fails, the thread has ended by itself
        }
        let ended = self.threads.iter_mut().filter_map(|thread| thread.thread.take()).map(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread of the sessions panicked")))
        });
        ended.fold(Ok(()), io::Result::and)
    }

    fn of(&self, id: Id) -> Option<&Thread<E>> {
        let shard = id.map_or(0, |id| id.shard().into());
        self.threads.get(if self.threads.len() == 1 { 0 } else { shard })
    }
}

impl<E: End> Thread<E> {
    fn command(&self, command: Command<E>) -> Result<(), NotSent> {
        self.commands.send(command).map_err(|_| NotSent::Gone)?;
        self.shared.wake();
        Ok(())
    }
}

impl<E: End> fmt::Debug for Handle<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("local_addr", &self.local_addr).finish_non_exhaustive()
    }
}

impl<E: End> Drop for Handle<E> {
    fn drop(&mut self) {
        if let Err(error) = self.shutdown(0) {
            log::warn!("the thread of the sessions ended early: {error}");
        }
    }
}

const RUNS: usize = 1024;
