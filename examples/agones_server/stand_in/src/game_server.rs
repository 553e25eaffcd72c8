//! The state of a `GameServer`, and which call is allowed in which state.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What the stand-in knows.
#[derive(Clone, Debug)]
pub struct GameServer {
    /// Its name.
    pub name: String,
    /// Its UID, as Kubernetes makes one.
    pub uid: String,
    /// The port of the node that players send to.
    pub port: u16,
    /// Where it is in its life.
    pub state: State,
    /// The health of its process.
    pub health: Health,
    /// The counter `players`, if the fleet defines it.
    pub players: Option<Counter>,
    /// Labels, with Agones' prefix.
    pub labels: BTreeMap<String, String>,
    /// Calls that change the state, in their order, refused ones too.
    pub calls: Vec<&'static str>,
}

/// A subset of the states of Agones: those that a server sees.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// The pod has a node, and the server has not said that it is ready.
    Scheduled,
    /// It may be allocated, and deleted.
    Ready,
    /// It has players, or will have.
    Allocated,
    /// It is over.
    Shutdown,
    /// It was silent for too long. That is final.
    Unhealthy,
}

/// A counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counter {
    /// How many there are.
    pub count: i64,
    /// How many there can be.
    pub capacity: i64,
}

/// Counts periods without a beat. Source: `checkHealth` of Agones, pkg/sdkserver/sdkserver.go.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    /// How long the first beat may take.
    pub initial_delay: Duration,
    /// A beat is due within this time.
    pub period: Duration,
    /// That many checks in a row without a beat are too many.
    pub failure_threshold: u32,
    /// Beats that have come, ever.
    pub beats: u64,
    /// Checks without a beat since the last one.
    pub failures: u32,
    /// When the last beat came, or the end of the initial delay.
    pub heard: Instant,
}

impl GameServer {
    /// One that waits for its server to be ready. Players reach it at this port of the node.
    #[must_use]
    pub fn scheduled(name: &str, uid: &str, port: u16, players: Option<Counter>, health: Health) -> Self {
        Self {
            name: name.to_owned(),
            uid: uid.to_owned(),
            port,
            state: State::Scheduled,
            health,
            players,
            labels: BTreeMap::new(),
            calls: Vec::new(),
        }
    }

    /// `Ready`. In Agones, this frees a server that was allocated.
    pub(crate) fn ready(&mut self) -> Result<(), String> {
        self.enter("ready", State::Ready, &[State::Scheduled, State::Ready, State::Allocated])
    }

    pub(crate) fn allocate(&mut self) -> Result<(), String> {
        self.enter("allocate", State::Allocated, &[State::Ready, State::Allocated])
    }

    pub(crate) fn shut_down(&mut self) -> Result<(), String> {
        self.enter("shutdown", State::Shutdown, &[State::Scheduled, State::Ready, State::Allocated])
    }

    fn enter(&mut self, call: &'static str, next: State, from: &[State]) -> Result<(), String> {
        self.calls.push(call);
        if !from.contains(&self.state) {
            return Err(format!("{call} of a server that is {:?}", self.state));
        }
        self.state = next;
        Ok(())
    }

    /// Sets what is given of the counter `players`.
    pub(crate) fn count(&mut self, count: Option<i64>, capacity: Option<i64>) -> Result<Counter, String> {
        let players = self.players.as_mut().ok_or("counter not found: players")?;
        let next =
            Counter { count: count.unwrap_or(players.count), capacity: capacity.unwrap_or(players.capacity) };
        if !(0..=next.capacity).contains(&next.count) {
            return Err(format!("out of range: {next:?}"));
        }
        *players = next;
        Ok(next)
    }

    /// Whether that makes it unhealthy.
    pub(crate) fn check(&mut self, now: Instant) -> bool {
        let fails = self.health.fails(now) && self.state != State::Shutdown;
        if fails {
            self.state = State::Unhealthy;
        }
        fails
    }
}

impl Health {
    /// Of a sidecar that has not started.
    #[must_use]
    pub fn new(initial_delay: Duration, period: Duration, failure_threshold: u32) -> Self {
        Self { initial_delay, period, failure_threshold, beats: 0, failures: 0, heard: Instant::now() }
    }

    pub(crate) fn start(&mut self, now: Instant) {
        (self.heard, self.failures) = (now + self.initial_delay, 0);
    }

    pub(crate) fn beat(&mut self, now: Instant) {
        (self.heard, self.failures) = (now, 0);
        self.beats += 1;
    }

    fn fails(&mut self, now: Instant) -> bool {
        if self.heard + self.period < now {
            self.failures += 1;
        }
        self.failures >= self.failure_threshold
    }
}
