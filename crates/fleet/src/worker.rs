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
    let (mut tried, mut wait) = (Some(tried), WAIT_MIN);
    while line.strong_count() > 0 {
        match store.connect() {
            Ok(()) => {
                info!("connected to the shared memory of used tokens");
                let (sender, questions) = sync_channel(QUEUE);
                let Some(up) = line.upgrade() else { return };
                *up.lock() = Some(sender);
                drop((up, tried.take()));
                let mut answered = false;
                let Err(error) = serve(&mut store, limit, &questions, &mut answered) else { return };
                warn!("lost the shared memory of used tokens: {error}");
                let Some(down) = line.upgrade() else { return };
                *down.lock() = None; // before `questions` is dropped with what waits there
                if answered {
                    wait = WAIT_MIN;
                    continue; // a slow answer costs the connection, and a good store soon has another
                }
            }
            Err(error) => warn!("no shared memory of used tokens: {error}; tries again in {wait:?}"),
        }
        tried = None;
        thread::sleep(wait);
        wait = WAIT_MAX.min(2 * wait);
    }
}

/// Asks the store what is asked, until nobody can ask any more. An error: the store has failed.
fn serve(
    store: &mut impl Store,
    limit: Duration,
    questions: &Receiver<Open>,
    answered: &mut bool,
) -> Result<(), StoreError> {
    loop {
        match questions.recv_timeout(BEAT) {
            Ok(first) => {
                let mut batch: Vec<_> = [first].into_iter().chain(questions.try_iter().take(BATCH)).collect();
                batch.retain(|question| Instant::now() < question.until);
                claim(store, batch)?;
            }
            Err(RecvTimeoutError::Timeout) => store.ping(limit)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        *answered = true;
    }
}

fn claim(store: &mut impl Store, batch: Vec<Open>) -> Result<(), StoreError> {
    let Some(oldest) = batch.first() else { return Ok(()) };
    let left = oldest.until.saturating_duration_since(Instant::now()).max(LEAST);
    let tokens: Vec<_> = batch.iter().map(|question| question.token).collect();
    let answers = store.claim(&tokens, left)?;
    if answers.len() != batch.len() {
        return Err("not an answer for each token".into());
    }
    batch.into_iter().zip(answers).for_each(|(question, is_unused)| question.answer(is_unused));
    Ok(())
}

/// Questions that may wait while others are asked; beyond that they have no answer. A server reads 2000 tokens a second at most by default, so
/// these are half a second's.
const QUEUE: usize = 1024;
/// Most questions that are asked at once.
const BATCH: usize = 255;
/// A socket cannot wait for no time.
const LEAST: Duration = Duration::from_micros(100);
/// How often an idle store is checked, so that a dead one is known before somebody joins.
const BEAT: Duration = Duration::from_secs(1);
/// How long a start waits for the store.
const FIRST: Duration = Duration::from_secs(2);
/// How long after a failure it is tried again: twice as long each time.
const WAIT_MIN: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(2);
