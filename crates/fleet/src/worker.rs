//! The thread that talks to the store, so that no loop waits for it.

use crate::question::Open;
use crate::store::{Store, StoreError};
use log::{info, warn};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{io, thread};

/// The way to the thread while it is connected. Without one, questions cost nothing.
#[derive(Debug, Default)]
pub(crate) struct Line(Mutex<Option<SyncSender<Open>>>);

impl Line {
    /// Starts the thread, and waits until it has tried to connect once. It ends soon after this is dropped.
    pub(crate) fn start(store: impl Store, limit: Duration) -> io::Result<Arc<Self>> {
        let line = Arc::new(Self::default());
        let (worker, (tried, first)) = (Arc::downgrade(&line), channel());
        thread::Builder::new().name("used tokens".into()).spawn(move || run(store, limit, &worker, tried))?;
        let _ = first.recv_timeout(FIRST); // else questions are answered without it
        Ok(line)
    }

    /// Passes a question on. If that is impossible, drops it, and the asker sees that.
    pub(crate) fn ask(&self, question: Open) {
        if let Some(sender) = &*self.lock() {
            let _ = sender.try_send(question);
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<SyncSender<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(mut store: impl Store, limit: Duration, line: &Weak<Line>, tried: Sender<()>) {
    let (mut tried, mut wait, mut failures) = (Some(tried), WAIT_MIN, 0);
    let mut questions = None;
    while line.strong_count() > 0 {
        match store.connect() {
            Ok(()) => {
                info!("connected to the shared memory of used tokens");
                let Some(up) = line.upgrade() else { return };
                let questions = questions.get_or_insert_with(|| {
                    let (sender, come) = sync_channel(QUEUE);
                    *up.lock() = Some(sender);
                    Questions { come, batch: Vec::new() }
                });
                drop((up, tried.take()));
                let Err(error) = questions.serve(&mut store, limit, || failures = 0) else { return };
                warn!("lost the shared memory of used tokens: {error}");
                failures += 1;
                if failures == 1 {
                    wait = WAIT_MIN;
                    continue; // a slow answer costs the connection, and what has time left is asked over another one
                }
            }
            Err(error) => warn!("no shared memory of used tokens: {error}; tries again in {wait:?}"),
        }
        let Some(down) = line.upgrade() else { return };
        *down.lock() = None; // before what waits is dropped
        drop((down, questions.take(), tried.take()));
        thread::sleep(wait);
        wait = WAIT_MAX.min(2 * wait);
    }
}

/// What is asked. If it is dropped, there is no answer.
struct Questions {
    come: Receiver<Open>,
    /// Those that the store is being asked. They stay here until it has answered.
    batch: Vec<Open>,
}

impl Questions {
    /// Asks the store what is asked, until nobody can ask any more. An error: the store has failed.
    fn serve(
        &mut self,
        store: &mut impl Store,
        limit: Duration,
        mut answered: impl FnMut(),
    ) -> Result<(), StoreError> {
        loop {
            if self.batch.is_empty() {
                match self.come.recv_timeout(BEAT) {
                    Ok(first) => self.batch.push(first),
                    Err(RecvTimeoutError::Timeout) => {
                        store.ping(limit)?;
                        answered();
                    }
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
            let room = BATCH.saturating_sub(self.batch.len());
            self.batch.extend(self.come.try_iter().take(room));
            self.batch.retain(|question| Instant::now() < question.until);
            if let Some(until) = self.batch.iter().map(|question| question.until).max() {
                self.claim(store, until)?;
                answered();
            }
        }
    }

    /// Asks for as long as anybody waits: who has waited for too long gives up without the others.
    fn claim(&mut self, store: &mut impl Store, until: Instant) -> Result<(), StoreError> {
        let left = until.saturating_duration_since(Instant::now()).max(LEAST);
        let tokens: Vec<_> = self.batch.iter().map(|question| question.token).collect();
        let answers = store.claim(&tokens, left)?;
        if answers.len() != tokens.len() {
            return Err("not an answer for each token".into());
        }
        self.batch.drain(..).zip(answers).for_each(|(question, is_unused)| question.answer(is_unused));
        Ok(())
    }
}

/// Questions that may wait while others are asked; beyond that they have no answer. A server reads 2000 tokens a second at most by default, so
/// these are half a second's.
const QUEUE: usize = 1024;
/// Most questions that are asked at once.
const BATCH: usize = 256;
/// A socket cannot wait for no time.
const LEAST: Duration = Duration::from_micros(100);
/// How often an idle store is checked, so that a dead one is known before somebody joins.
const BEAT: Duration = Duration::from_secs(1);
/// How long a start waits for the store.
const FIRST: Duration = Duration::from_secs(2);
/// How long after a failure it is tried again: twice as long each time.
const WAIT_MIN: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(2);
