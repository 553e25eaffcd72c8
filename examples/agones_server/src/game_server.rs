//! What the server reads of its `GameServer`.

use std::time::Duration;

/// The counter of the players, by which a fleet can scale.
pub(crate) const PLAYERS: &str = "players";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GameServer {
    pub(crate) name: String,
    /// Where players send to: the node's address, and its port for the first port of the container.
    pub(crate) address: String,
    pub(crate) port: u16,
    /// `Ready`, `Allocated` and so on.
    pub(crate) state: String,
    /// Capacity of the counter [`PLAYERS`], if the fleet defines it.
    pub(crate) capacity: Option<i64>,
    /// The sidecar wants to hear something within this time.
    pub(crate) health_period: Duration,
}

impl GameServer {
    /// `None`: it is not complete, as before the pod has a node.
    pub(crate) fn read(known: agones::GameServer) -> Option<Self> {
        let (meta, status) = (known.object_meta?, known.status?);
        let health = known.spec.and_then(|spec| spec.health);
        let period = health.and_then(|health| u64::try_from(health.period_seconds).ok());
        Some(Self {
            name: meta.name,
            address: status.address,
            port: u16::try_from(status.ports.first()?.port).ok()?,
            state: status.state,
            capacity: status.counters.get(PLAYERS).map(|counter| counter.capacity),
            health_period: Duration::from_secs(period.filter(|seconds| *seconds > 0).unwrap_or(5)),
        })
    }
}
