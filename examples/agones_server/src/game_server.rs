//! What the server reads of its `GameServer`.

use std::time::Duration;

/// The counter by which the fleet scales.
pub(crate) const PLAYERS: &str = "players";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GameServer {
    pub(crate) name: String,
    /// The first 8 bytes of the UID. The matchmaker derives it in the same way.
    pub(crate) server_id: u64,
    /// Where players send to: the node's address, and its port for the first port of the container.
    pub(crate) address: String,
    pub(crate) port: i32,
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
            server_id: server_id(&meta.uid)?,
            address: status.address,
            port: status.ports.first()?.port,
            state: status.state,
            capacity: status.counters.get(PLAYERS).map(|counter| counter.capacity),
            health_period: Duration::from_secs(period.filter(|seconds| *seconds > 0).unwrap_or(5)),
        })
    }
}

/// Version 4 of a UUID: 60 of these bits are random.
fn server_id(uid: &str) -> Option<u64> {
    let digits: String = uid.chars().filter(|digit| *digit != '-').collect();
    u64::from_str_radix(digits.get(..16)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_eight_bytes_of_a_uid_name_the_server() {
        assert_eq!(server_id("7a1c9f04-5b0e-4d6f-8a52-3f1f6c0d9e21"), Some(0x7a1c_9f04_5b0e_4d6f));
        for wrong in ["", "7a1c9f04", "7a1c9f04-5b0e-4d6x-8a52-3f1f6c0d9e21", "ä1c9f04-5b0e-4d6f-8a52"] {
            assert_eq!(server_id(wrong), None, "{wrong}");
        }
    }
}
