//! Where the fleet is kept: in this process, or in Redis for several of them.

use crate::fleet::{Fleet, NoPlace, SERVERS_MAX, Terms, Wanted};
use crate::messages::{Id, Listed, Report};
use crate::settings;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, ErrorKind, FromRedisValue, RedisError, Script, ServerErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long Redis may take for an answer, with all that it takes: to connect, and to learn the script.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) enum Store {
    Memory { fleet: Mutex<Fleet>, start: Instant },
    Redis(Box<Redis>),
}

pub(crate) struct Redis {
    client: Client,
    /// Connects again whenever the connection is lost. With its number: a silent one is replaced once.
    connection: Mutex<(u64, ConnectionManager)>,
    script: Script,
    /// The name of this fleet.
    fleet: String,
    terms: Terms,
}

/// Why the store does not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("Redis: {0}")]
    Redis(#[from] RedisError),
    #[error("Redis is silent")]
    Silent,
    #[error("Redis has a report that cannot be read: {0}")]
    Report(#[from] serde_json::Error),
    #[error("Redis has what is no number of a server: {0}")]
    Number(#[from] std::num::ParseIntError),
}

impl Store {
    pub(crate) fn memory(terms: Terms) -> Self {
        Self::Memory { fleet: Mutex::new(Fleet::new(terms)), start: Instant::now() }
    }

    /// Connects, and later again whenever the connection is lost or silent.
    pub(crate) async fn redis(settings: settings::Redis, terms: Terms) -> Result<Self, StoreError> {
        let settings::Redis { url, fleet } = settings;
        let client = Client::open(url)?;
        let connection = Mutex::new((0, connection(&client)?));
        let script = Script::new(include_str!("store.lua"));
        let store = Self::Redis(Box::new(Redis { client, connection, script, fleet, terms }));
        store.ping().await?;
        Ok(store)
    }

    /// Whether it answers.
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        match self {
            Self::Memory { .. } => Ok(()),
            Self::Redis(redis) => {
                redis.ask(async |mut connection| redis::cmd("PING").exec_async(&mut connection).await).await
            }
        }
    }

    /// As [`Fleet::report`].
    pub(crate) async fn report(&self, id: Id, mut report: Report) -> Result<Option<bool>, StoreError> {
        match self {
            Self::Memory { fleet, start } => Ok(lock(fleet).report(millis(start), id, report)),
            Self::Redis(redis) => {
                let arrived = std::mem::take(&mut report.arrived);
                let numbers = [report.capacity, report.players, report.draining.into()];
                let mut words = vec![id.0.to_string(), serde_json::to_string(&report)?, report.region];
                words.extend(numbers.map(|number| number.to_string()));
                words.extend(arrived.iter().map(|client| client.0.to_string()));
                let drain: i64 = redis.call("report", &words).await?;
                Ok(Some(drain == 1).filter(|_| drain >= 0))
            }
        }
    }

    /// As [`Fleet::remove`].
    pub(crate) async fn remove(&self, id: Id) -> Result<(), StoreError> {
        match self {
            Self::Memory { fleet, .. } => lock(fleet).remove(id),
            Self::Redis(redis) => redis.call::<()>("remove", &[id.0.to_string()]).await?,
        }
        Ok(())
    }

    /// As [`Fleet::drain`].
    pub(crate) async fn drain(&self, id: Id) -> Result<bool, StoreError> {
        match self {
            Self::Memory { fleet, start } => Ok(lock(fleet).drain(millis(start), id)),
            Self::Redis(redis) => Ok(redis.call("drain", &[id.0.to_string()]).await?),
        }
    }

    /// As [`Fleet::join`].
    pub(crate) async fn join(
        &self,
        wanted: &Wanted<'_>,
    ) -> Result<Result<(Id, Report), NoPlace>, StoreError> {
        match self {
            Self::Memory { fleet, start } => Ok(lock(fleet).join(millis(start), wanted)),
            Self::Redis(redis) => {
                let from = wanted.from.map(|id| id.0.to_string()).unwrap_or_default();
                let mut words = vec![from, wanted.regions.len().to_string()];
                words.extend_from_slice(wanted.regions);
                words.extend(wanted.clients.iter().map(|client| client.0.to_string()));
                let found: Vec<String> = redis.call("join", &words).await?;
                match &found[..] {
                    [id, report] => Ok(Ok((Id(id.parse()?), serde_json::from_str(report)?))),
                    [_no_lease] => Ok(Err(NoPlace::NoLease)),
                    _ => Ok(Err(NoPlace::NoRoom)),
                }
            }
        }
    }

    /// As [`Fleet::list`].
    pub(crate) async fn list(&self) -> Result<Vec<Listed>, StoreError> {
        match self {
            Self::Memory { fleet, start } => Ok(lock(fleet).list(millis(start))),
            Self::Redis(redis) => {
                let found: Vec<[String; 5]> = redis.call("list", &[]).await?;
                let mut list = found.iter().map(listed).collect::<Result<Vec<_>, _>>()?;
                list.sort_by_key(|listed| listed.server);
                Ok(list)
            }
        }
    }
}

impl Redis {
    async fn call<T: FromRedisValue>(&self, verb: &str, words: &[String]) -> Result<T, StoreError> {
        let mut call = self.script.arg(verb);
        call.arg(&self.fleet).arg(self.terms.lease).arg(self.terms.reserved).arg(SERVERS_MAX).arg(words);
        self.ask(async |mut connection| call.invoke_async(&mut connection).await).await
    }

    /// Asks, and waits for at most [`PATIENCE`]. The next question gets another connection if this one has gone silent, because TCP takes minutes to notice
    /// that a host is gone, and does not notice a process that has stopped; or if it leads to what has become a replica, because its name or a balancer
    /// may lead to the new master.
    async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(ConnectionManager) -> Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        let (number, asked) = lock(&self.connection).clone();
        let error = match timeout(PATIENCE, question(asked)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) if error.kind() != ErrorKind::Server(ServerErrorKind::ReadOnly) => {
                return Err(error.into());
            }
            Ok(Err(is_replica)) => is_replica.into(),
            Err(_) => StoreError::Silent,
        };
        let mut current = lock(&self.connection);
        if current.0 == number {
            *current = (number + 1, connection(&self.client)?);
        }
        Err(error)
    }
}

/// It connects with the first question.
fn connection(client: &Client) -> Result<ConnectionManager, RedisError> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(None)
        .set_number_of_retries(1);
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}

fn listed([server, report, reserved, drain, lease]: &[String; 5]) -> Result<Listed, StoreError> {
    Ok(Listed {
        server: Id(server.parse()?),
        report: serde_json::from_str(report)?,
        reserved: reserved.parse()?,
        drain: drain == "1",
        lease_ms: lease.parse()?,
    })
}

/// What is locked here is valid after each call, and these do not panic.
fn lock<T>(locked: &Mutex<T>) -> MutexGuard<'_, T> {
    locked.lock().unwrap_or_else(PoisonError::into_inner)
}

fn millis(start: &Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests;
