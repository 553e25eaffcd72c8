//! The sidecar of the pod, on a thread of its own: the loop of the game must not wait for it. It may start later than the server, and it may
//! be started again while players play.

use crate::game_server::{GameServer, PLAYERS};
use crate::server::News;
use agones::Sdk;
use agones::errors::{Error, Result};
use std::future::Future;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

/// How long to wait before a call that has failed is repeated, and for its answer.
const RETRY: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(2);
/// A sidecar that is gone does not hold up the end for longer.
const END: Duration = Duration::from_secs(5);

/// What the sidecar is to know. Only the latest matters: the loop overwrites it and goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) players: i64,
    /// How many there is room for, players included. `None`: the fleet has no counter.
    pub(crate) capacity: Option<i64>,
    /// The server is bound.
    pub(crate) is_ready: bool,
    /// Nobody may delete the server now.
    pub(crate) is_busy: bool,
    /// How often it was allocated, nobody came, and it is to be free again.
    pub(crate) returns: u64,
    /// Players are gone, sessions are closed.
    pub(crate) is_over: bool,
    /// Counts beats of the loop. Health depends on it, so a loop that hangs is seen.
    pub(crate) beats: u64,
}

pub(crate) struct Sidecar {
    told: watch::Sender<Told>,
    thread: JoinHandle<()>,
}

impl Sidecar {
    pub(crate) fn start(news: Sender<News>) -> io::Result<Self> {
        let (told, to_tell) = watch::channel(Told::default());
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let context = runtime.enter();
        let terminated = signal(SignalKind::terminate())?; // from now on, SIGTERM does not end the process
        drop(context);
        let thread = thread::spawn(move || runtime.block_on(run(to_tell, &news, terminated)));
        Ok(Self { told, thread })
    }

    /// Does not wait.
    pub(crate) fn tell(&self, change: impl FnOnce(&mut Told)) {
        self.told.send_if_modified(|told| {
            let before = *told;
            change(told);
            *told != before
        });
    }

    /// Tells it that the server has ended, and waits for the answer for at most [`END`].
    pub(crate) fn end(self) {
        self.tell(|told| {
            told.players = 0;
            told.capacity = told.capacity.map(|_| 0);
            told.is_over = true;
        });
        let _ = self.thread.join(); // a panic has been printed
    }
}

/// Ends when the sidecar knows that the server is over, or when the loop is gone.
async fn run(mut to_tell: watch::Receiver<Told>, news: &Sender<News>, terminated: Signal) {
    let mut end = to_tell.clone();
    let over = async {
        let _ = end.wait_for(|told| told.is_over).await; // the loop is gone: over as well
        sleep(END).await;
    };
    let talk = async {
        let sdk = connect().await;
        tokio::spawn(watch(sdk.clone(), news.clone()));
        Teller::new(sdk).run(&mut to_tell).await;
    };
    tokio::spawn(stop(terminated, news.clone()));
    first(over, talk).await;
}

/// Waits until one of them has ended.
async fn first(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    tokio::select! {
        () = one => {}
        () = other => {}
    }
}

/// Waits for the sidecar to start, for as long as it takes.
async fn connect() -> Sdk {
    loop {
        match Sdk::new(None, None).await {
            Ok(sdk) => return sdk,
            Err(error) => eprintln!("no sidecar yet: {error}"),
        }
    }
}

/// Tells the loop of every change of the `GameServer`.
async fn watch(mut sdk: Sdk, news: Sender<News>) {
    loop {
        if let Ok(mut changes) = sdk.watch_gameserver().await {
            while let Ok(Some(change)) = changes.message().await {
                match GameServer::read(change) {
                    Some(game_server) => drop(news.send(News::Changed(game_server))), // fails if the loop is gone
                    None => eprintln!("the sidecar: a GameServer without a UID or without a port"),
                }
            }
        }
        sleep(RETRY).await;
    }
}

/// Tells the loop of SIGTERM.
async fn stop(mut terminated: Signal, news: Sender<News>) {
    while terminated.recv().await.is_some() && news.send(News::Stop).is_ok() {}
}

/// Tells the sidecar what it does not know yet.
struct Teller {
    sdk: Sdk,
    /// A stream that is open as long as the sidecar runs.
    health: mpsc::Sender<()>,
    /// What it was told, except for players and capacity.
    told: Told,
    /// Players and capacity, if this sidecar was told.
    counter: Option<(i64, Option<i64>)>,
}

impl Teller {
    fn new(sdk: Sdk) -> Self {
        Self { health: sdk.health_check(), sdk, told: Told::default(), counter: None }
    }

    async fn run(&mut self, to_tell: &mut watch::Receiver<Told>) {
        loop {
            let next = *to_tell.borrow_and_update();
            self.beat(next.beats);
            match self.tell(next).await {
                Ok(()) if next.is_over => return,
                Ok(()) if to_tell.changed().await.is_err() => return,
                Ok(()) => {}
                Err(error) => {
                    eprintln!("the sidecar: {error}");
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// A sidecar that was started again may have lost what it had not passed on: it is told once more.
    fn beat(&mut self, beats: u64) {
        if mem::replace(&mut self.told.beats, beats) == beats {
            return;
        }
        if self.health.is_closed() {
            self.health = self.sdk.health_check();
            self.counter = None;
        }
        let _ = self.health.try_send(()); // full: it hears from us soon
    }

    async fn tell(&mut self, next: Told) -> Result<()> {
        if self.counter != Some((next.players, next.capacity)) && next.is_ready {
            self.count(next.players, next.capacity).await?;
            self.counter = Some((next.players, next.capacity));
        }
        if next.is_ready && !self.told.is_ready {
            // An answer may have been lost, and `Ready` once more would free a server that was allocated meanwhile.
            let state = within(self.sdk.get_gameserver()).await?.status.map(|status| status.state);
            if state.is_none_or(|state| state != "Allocated") {
                within(self.sdk.ready()).await?;
            }
            self.told.is_ready = true;
        }
        if next.returns != self.told.returns {
            self.told.returns = next.returns; // only once: it may be allocated again by the time that a failure is known
            if next.players == 0 {
                within(self.sdk.ready()).await?;
            }
        }
        if next.is_busy && !self.told.is_busy {
            within(self.sdk.allocate()).await?;
            self.told.is_busy = true;
        }
        if next.is_over && !self.told.is_over {
            within(self.sdk.shutdown()).await?;
            self.told.is_over = true;
        }
        Ok(())
    }

    /// The counter, by which a fleet can scale, and a label for people. The capacity only falls, and the count is never above it: first the count.
    async fn count(&mut self, players: i64, capacity: Option<i64>) -> Result<()> {
        within(self.sdk.set_label(PLAYERS, players.to_string())).await?;
        let Some(capacity) = capacity else { return Ok(()) };
        let mut beta = self.sdk.beta().clone();
        within(beta.set_counter_count(PLAYERS, players)).await?;
        within(beta.set_counter_capacity(PLAYERS, capacity)).await
    }
}

async fn within<T>(answer: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(PATIENCE, answer).await.map_err(Error::from)?
}
